"""Reads a folder of the files that agent backends of this family are configured with.

One file, one reader; the order matters, since each reader checks names against those before it.
"""

from pathlib import Path

from django.utils.translation import gettext as _

from apps.releases.portable.native import Portable
from apps.releases.portable.report import Report
from apps.releases.portable.seed.agents import DEFAULT, agents_read
from apps.releases.portable.seed.drafts import Drafts
from apps.releases.portable.seed.folder import Folder
from apps.releases.portable.seed.identity import identity_read
from apps.releases.portable.seed.judges import judges_read
from apps.releases.portable.seed.later import LATER_FILES, gateway_tools_merge, later_list
from apps.releases.portable.seed.mapping import mapping_read
from apps.releases.portable.seed.profiles import profiles_read
from apps.releases.portable.seed.prompts import prompt_read
from apps.releases.portable.seed.rails import rails_read
from apps.releases.portable.seed.record import Record
from apps.releases.portable.seed.routing import routing_read
from apps.releases.portable.seed.servers import addresses_read, servers_read
from apps.releases.portable.seed.tools import policies_merge, tools_read
from apps.releases.portable.yaml_source import Problem, Source, SourceRefused

AGENTS = "agents.yaml"
# Made when no file gives them: every agent names a policy of each kind.
_DEFAULTS = {
    "model_profile": {"provider": "scripted"},
    "memory_policy": {},
    "rail_policy": {},
    "judge_policy": {},
    "routing_policy": {},
}  # fmt: skip


class NothingKnown(SourceRefused):
    """No file of the folder is one that is read here."""


def seed_read(
    root: Path, *, environment: str = "dev", docker_environment: str = "production"
) -> tuple[Portable, Report]:
    """Return the folder's configuration and the report of all that was not taken as it stood.

    Addresses of ``mcp_servers.yaml`` are bound in ``environment``, those of
    ``mcp_servers.docker.yaml`` in ``docker_environment``. Raises ``SourceRefused`` with every
    problem; a file that is missing is no problem.
    """
    folder, report = Folder(root), Report()
    drafts = Drafts(report, environment)
    _simple_files(folder, drafts, docker_environment)
    _policies(folder, drafts)
    _agents(folder, drafts)
    for name in folder.unread():
        report.add_file("dropped", name, _("Not a file that is read here."))
    if not folder.used:
        raise NothingKnown([Problem("", 0, "", _("No known file in this folder."))])
    portable = drafts.portable()
    if report.problems:
        raise SourceRefused(report.problems)
    return portable, report


def _simple_files(folder: Folder, drafts: Drafts, docker_environment: str) -> None:
    if source := folder.read("mcp_servers.yaml"):
        servers_read(source, drafts)
    if source := folder.read("mcp_servers.docker.yaml"):
        addresses_read(source, drafts, docker_environment)
    if source := folder.read("tools.yaml"):
        tools_read(source, drafts)
    if source := folder.read("tool_policies.yaml"):
        policies_merge(source, drafts)
    for name in LATER_FILES:
        if source := folder.read(name):
            later_list(source, drafts)
            if name == "mcp_gateway.yaml":
                gateway_tools_merge(source, drafts)
    if source := folder.read("identity.yaml"):
        identity_read(source, drafts)
    if source := folder.read("mcp_parameter_mapping.yaml"):
        mapping_read(source, drafts)
    if source := folder.read("llm_profiles.yaml"):
        profiles_read(source, drafts)


def _policies(folder: Folder, drafts: Drafts) -> None:
    if source := folder.read("prompt_policy.yaml"):
        prompt_read(source, drafts, folder, DEFAULT)
    if source := folder.read("guardrails.yaml"):
        rails_read(source, drafts, DEFAULT)
    if source := folder.read("judges.yaml"):
        judges_read(source, drafts, DEFAULT)
    if source := folder.read("routing.yaml"):
        routing_read(source, drafts)


def _agents(folder: Folder, drafts: Drafts) -> None:
    """Fill in the default policies, then take the agents, which name them."""
    read = bool(drafts.items)
    source = folder.read(AGENTS)
    for kind, content in _DEFAULTS.items():
        if (read or source) and DEFAULT not in drafts.of(kind):
            empty = Record(Source("", {}), "", {}, drafts.report)
            drafts.add(kind, DEFAULT, dict(content), empty)
            drafts.report.add_file(
                "derived", "", _("No file gives %(k)s 'default'; it was made.") % {"k": kind}
            )
    agents_read(source or Source(AGENTS, {}), drafts, folder)
    for name in folder.agent_ids():
        if name not in drafts.of("agent"):
            drafts.report.add_file(
                "warning", f"agents/{name}", _("agents.yaml and routing.yaml name no such agent.")
            )

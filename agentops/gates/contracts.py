"""Gate: tools are as their servers declared them when they were accepted."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.releases.gates import GateContext, Problem, release_gate
from apps.tools.config import ToolConfig
from apps.tools.contract_models import ToolQuarantine
from apps.tools.contracts.hashing import pin_holds
from apps.tools.contracts.schemas import contradictions
from apps.tools.contracts.selectors import quarantines_open

SHOWN = 10


@release_gate(
    title=gettext_lazy("Accepted contracts"),
    description=gettext_lazy(
        "No tool is in quarantine, and each is as the contract that was accepted for it says."
    ),
    asks_database=True,
)
def contracts_accepted(context: GateContext) -> list[Problem]:
    """Gate: a tool whose server declares something else now, whose pin is not the hash of its fields,
    or whose arguments contradict its pinned schema.

    What runs goes on with the contract it pins; this is about new releases. Tools without a pin are
    named once, and nothing more can be said of them.
    """
    tools = {slug: tool for slug, tool in context.release.all(ToolConfig).items() if tool.enabled}
    held = _held(tools)
    problems: list[Problem] = []
    for slug, tool in tools.items():
        if not tool.contract.sha256:
            continue
        problems += _quarantined(slug, tool, held.get(slug, []))
        if not pin_holds(slug, tool):
            text = _("tool %(slug)s: the pinned hash is not that of the pinned contract.")
            problems.append(_problem(slug, "contract.sha256", text % {"slug": slug}))
        problems += _contradicting(slug, tool)
    return [*problems, *_unpinned(tools)]


def _held(tools: Mapping[str, ToolConfig]) -> dict[str, list[ToolQuarantine]]:
    held: dict[str, list[ToolQuarantine]] = defaultdict(list)
    for row in quarantines_open():
        tool = tools.get(row.tool)
        if tool is not None and tool.mcp_server == row.server:
            held[row.tool].append(row)
    return held


def _quarantined(slug: str, tool: ToolConfig, rows: list[ToolQuarantine]) -> Iterator[Problem]:
    """Yield where the server declares something else than this release would pin."""
    for row in rows:
        words = {"slug": slug, "server": row.server, "environment": row.environment}
        if row.reason == ToolQuarantine.Reason.GONE:
            text = _(
                "tool %(slug)s: %(server)s no longer lists it (%(environment)s). Switch it off or archive it."
            )
        elif row.seen_sha256 != tool.contract.sha256:
            text = _(
                "tool %(slug)s: %(server)s declares another contract (%(environment)s) than the one accepted."
                " Used by %(users)s."
            )
            words["users"] = _users(row)
        else:
            continue
        yield _problem(slug, "contract", text % words)


def _users(row: ToolQuarantine) -> str:
    users = [f"{user['kind']}:{user['slug']}" for user in json.loads(row.affected)]
    named = list(dict.fromkeys(users))
    return (", ".join(named[:SHOWN]) + (" …" if len(named) > SHOWN else "")) or "–"


def _contradicting(slug: str, tool: ToolConfig) -> Iterator[Problem]:
    for found in contradictions(tool, tool.contract.input_schema):
        message = _("tool %(slug)s: %(path)s: %(what)s") % {
            "slug": slug,
            "path": found.path,
            "what": _(found.message) % found.words,
        }
        yield Problem(
            kind=ToolConfig.kind, slug=slug, path=found.path, message=message, level=found.level
        )


def _unpinned(tools: Mapping[str, ToolConfig]) -> list[Problem]:
    names = [slug for slug, tool in tools.items() if not tool.contract.sha256]
    if not names:
        return []
    text = _("No contract is pinned for %(count)s tools: %(names)s.")
    shown = ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
    return [Problem(level="warn", message=text % {"count": len(names), "names": shown})]


def _problem(slug: str, path: str, message: str) -> Problem:
    return Problem(kind=ToolConfig.kind, slug=slug, path=path, message=message)

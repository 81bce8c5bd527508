"""Gates: arguments of tools are filled, actions are confirmed, changed contracts are shown."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.agents.config import AgentConfig
from apps.releases.gates import GateContext, Problem, release_gate
from apps.routing.config import IntentConfig
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.release import Release
from apps.runtime.turn import CANONICAL_KEYS
from apps.tools.config import ParameterMappingConfig, ToolConfig
from apps.tools.mapping import GLOBAL_MAPPING, sources_of

# What of a tool a model sees, or what a call means to the other side. Texts of ours (label,
# user_prompt) and how long we wait are no contract.
CONTRACT_FIELDS = (
    "description", "mcp_server", "remote_name", "tool_type", "requires", "confirmation_required",
    "idempotent",
)  # fmt: skip
ARGUMENT_FIELDS = ("type", "description", "enum", "aliases", "restricted")
SHOWN = 10


@release_gate(
    title=gettext_lazy("Required arguments"),
    description=gettext_lazy(
        "Something fills every required argument: a mapping, a question, the model."
    ),
    level="warn",
)
def arguments_filled(context: GateContext) -> list[Problem]:
    """Gate: a required argument that only a client could send, in a field of its name.

    Where none does, the tool is never called.
    """
    release = context.release
    asked = _asked_by_models(release)
    problems: list[Problem] = []
    for slug, tool in release.all(ToolConfig).items():
        if not tool.enabled:
            continue
        sources = sources_of(release, slug, tool)
        for name in tool.requires:
            argument = tool.args_schema[name]
            if argument.source in ("constant", "secret"):
                continue
            known = {name, *argument.aliases} & set(CANONICAL_KEYS)
            by_model = slug in asked and argument.for_model
            if name in sources.context or argument.user_prompt or known or by_model:
                continue
            problems.append(_unfilled(slug, name))
    problems += _mapped_in_vain(release)
    return problems


def _unfilled(slug: str, name: str) -> Problem:
    text = _(
        "tool %(slug)s: nothing here fills the required argument %(name)s, only a client that sends it."
        " Map a canonical key to it or give it a question."
    )
    return Problem(
        kind="tool",
        slug=slug,
        path=f"args_schema.{name}",
        message=text % {"slug": slug, "name": name},
    )


def _asked_by_models(release: Release) -> set[str]:
    """Return the tools whose arguments a model chooses."""
    return {
        tool
        for agent in release.all(AgentConfig).values()
        if agent.tool_use == "model" and agent.may_answer
        for tool in agent.tools
    }


def _mapped_in_vain(release: Release) -> Iterator[Problem]:
    """Yield what a mapping says about arguments its tool does not have, or never takes from it."""
    tools = release.all(ToolConfig)
    for slug, mapping in release.all(ParameterMappingConfig).items():
        tool = tools.get(mapping.tool or slug)
        if tool is None or slug == GLOBAL_MAPPING:
            continue
        for key, name in mapping.map.items():
            if name not in tool.args_schema:
                text = _(
                    "parameter_mapping %(slug)s: %(path)s fills %(name)s, which its tool lacks."
                )
                yield _vain(slug, f"map.{key}", name, text)
        for name in mapping.extract:
            if name not in tool.args_schema:
                text = _(
                    "parameter_mapping %(slug)s: %(path)s reads %(name)s, which its tool lacks."
                )
                yield _vain(slug, f"extract.{name}", name, text)
        for name in mapping.defaults:
            if name in tool.requires:
                text = _(
                    "parameter_mapping %(slug)s: %(path)s is never used: %(name)s is required, and a"
                    " default never stands in for that."
                )
                yield _vain(slug, f"defaults.{name}", name, text)


def _vain(slug: str, path: str, name: str, text: str) -> Problem:
    words = {"slug": slug, "path": path, "name": name}
    return Problem(
        kind="parameter_mapping", slug=slug, path=path, level="warn", message=text % words
    )


@release_gate(
    title=gettext_lazy("Actions without confirmation"),
    description=gettext_lazy("A tool that changes something asks the customer first."),
    level="warn",
)
def actions_confirmed(context: GateContext) -> list[Problem]:
    """Gate: a mutable tool has a confirmation policy."""
    text = _("tool %(slug)s changes something and asks for no confirmation.")
    return [
        Problem(kind="tool", slug=slug, path="confirmation_required", message=text % {"slug": slug})
        for slug, tool in context.release.all(ToolConfig).items()
        if tool.enabled and tool.tool_type == "action" and not tool.confirmation_required
    ]


@release_gate(
    title=gettext_lazy("Tool contracts"),
    description=gettext_lazy(
        "What a model sees of a tool is as it was; a change lists who is affected."
    ),
    level="warn",
)
def contract_pins(context: GateContext) -> list[Problem]:
    """Gate: each changed contract, with the agents, intents and mappings that use the tool.

    Without a change it notes the contracts by one hash, which is kept with the release.
    """
    after = tool_pins(context.release)
    before = tool_pins(context.parent) if context.parent else after
    changed = [slug for slug, pin in after.items() if before.get(slug, pin) != pin]
    if not changed or context.parent is None:
        return _noted(after)
    users = _tool_users(context.release)
    old, new = context.parent.all(ToolConfig), context.release.all(ToolConfig)
    return [
        Problem(
            kind="tool",
            slug=slug,
            path=", ".join(_fields_changed(old[slug], new[slug])),
            message=_(
                "tool %(slug)s: its contract changed (%(old)s → %(new)s): %(fields)s. Used by %(users)s."
            )
            % {
                "slug": slug,
                "old": before[slug][:12],
                "new": after[slug][:12],
                "fields": ", ".join(_fields_changed(old[slug], new[slug])),
                "users": _shown(users.get(slug, [])),
            },
        )
        for slug in changed
    ]


def _noted(pins: Mapping[str, str]) -> list[Problem]:
    if not pins:
        return []
    words = {"count": len(pins), "pin": sha256_text(canonical_json(dict(pins)))[:12]}
    return [Problem(level="passed", message=_("Contracts of %(count)s tools: %(pin)s.") % words)]


def tool_pins(release: Release) -> dict[str, str]:
    """Return tool → sha256 of its contract: name and every field a model or the server sees."""
    key = "gates:tool_pins"
    if key not in release.derived:
        release.derived[key] = {
            slug: sha256_text(canonical_json({"name": slug, **_contract(tool)}))
            for slug, tool in release.all(ToolConfig).items()
        }
    pins: dict[str, str] = release.derived[key]
    return pins


def _contract(tool: ToolConfig) -> dict[str, object]:
    fields: dict[str, object] = {name: getattr(tool, name) for name in CONTRACT_FIELDS}
    for name, argument in tool.args_schema.items():
        fields[f"args_schema.{name}"] = {f: getattr(argument, f) for f in ARGUMENT_FIELDS}
    return fields


def _fields_changed(old: ToolConfig, new: ToolConfig) -> list[str]:
    before, after = _contract(old), _contract(new)
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def _tool_users(release: Release) -> Mapping[str, list[str]]:
    users: dict[str, list[str]] = defaultdict(list)
    for slug, agent in release.all(AgentConfig).items():
        for tool in dict.fromkeys(agent.tools):
            users[tool].append(f"agent:{slug}")
    for slug, intent in release.all(IntentConfig).items():
        for tool in dict.fromkeys(intent.mcp_tools):
            users[tool].append(f"intent:{slug}")
    for slug, mapping in release.all(ParameterMappingConfig).items():
        users[mapping.tool or slug].append(f"parameter_mapping:{slug}")
    return users


def _shown(users: list[str]) -> str:
    return (", ".join(users[:SHOWN]) + (" …" if len(users) > SHOWN else "")) or "–"

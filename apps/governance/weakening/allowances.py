"""Somebody may use, say or decide more: allow-lists, evidence, confidence. Pure."""

from collections.abc import Iterator, Sequence

from apps.governance.weakening import connections, judges, rails
from apps.governance.weakening.edited import Content, Edited, Finder, defaults, number

ROUNDS, THRESHOLD, MARGIN = 4, 0.65, 0.05


def _widened(name: str) -> Finder:
    """Find a value more in the allow-list ``name``."""

    def find(edited: Edited) -> Iterator[str]:
        if edited.came(name):
            yield name

    return find


agent_tools_widened = _widened("tools")
intent_tools_widened = _widened("mcp_tools")
members_widened = _widened("members")


def model_calls_tools(edited: Edited) -> Iterator[str]:
    """The model decides which tools are called, not the intent."""
    if edited.changed("tool_use") and edited.after.get("tool_use") == "model":
        yield "tool_use"


def tool_rounds_raised(edited: Edited) -> Iterator[str]:
    """The model may ask for tools more often."""
    field = "max_tool_rounds"
    if number(edited.after, field, ROUNDS) > number(edited.before, field, ROUNDS):
        yield field


def evidence_dropped(edited: Edited) -> Iterator[str]:
    """Answers may state facts that no tool or document gave."""
    if edited.dropped("require_evidence"):
        yield "require_evidence"


def tool_usage_allowed(edited: Edited) -> Iterator[str]:
    """Agents of the prompt may call tools."""
    if edited.raised("allow_tool_usage"):
        yield "allow_tool_usage"


def confidence_lowered(edited: Edited) -> Iterator[str]:
    """An agent answers that is less sure to be the right one."""
    field = "confidence_threshold"
    if number(edited.after, field, THRESHOLD) < number(edited.before, field, THRESHOLD):
        yield field


def margin_lowered(edited: Edited) -> Iterator[str]:
    """The customer is asked less often which agent is meant."""
    if number(edited.after, "margin", MARGIN) < number(edited.before, "margin", MARGIN):
        yield "margin"


def _replaced(field: str, kind: str, finders: Sequence[Finder], *, unknown: bool) -> Finder:
    """Find an agent that names another item of ``kind``, laxer by ``finders`` than the one before.

    What an item says is known when the same request changes it; ``unknown``: what counts otherwise.
    """

    def find(edited: Edited) -> Iterator[str]:
        if not edited.changed(field):
            return
        old = _content(edited, kind, str(edited.before.get(field, "")), is_after=False)
        new = _content(edited, kind, str(edited.after.get(field, "")), is_after=True)
        if old is None or new is None:
            laxer = unknown
        else:
            pair = Edited(kind=kind, before=old, after=new)
            laxer = any(True for finder in finders for _path in finder(pair))
        if laxer:
            yield field

    return find


rails_replaced = _replaced("rails", "rail_policy", rails.FINDERS, unknown=True)
judges_replaced = _replaced("judges", "judge_policy", judges.FINDERS, unknown=True)
# These two are approved when they are made: naming another one is behaviour unless seen laxer.
prompt_replaced = _replaced(
    "prompt", "prompt", (evidence_dropped, tool_usage_allowed), unknown=False
)
profile_replaced = _replaced("model_profile", "model_profile", connections.PROFILE, unknown=False)


def _content(edited: Edited, kind: str, slug: str, *, is_after: bool) -> Content | None:
    """Return what item ``slug`` says now or afterwards, ``None`` when nobody here knows."""
    if not slug:
        return defaults(kind)
    edit = edited.beside.get((kind, slug))
    content = (edit.after if is_after else edit.before) if edit else None
    return None if content is None else {**defaults(kind), **content}

"""A tool that may do more, asks less, or is given more. Pure."""

from collections.abc import Iterator

from apps.governance.weakening.edited import Content, Edited, mapping, values
from apps.releases.patches.places import field_path


def action_added(edited: Edited) -> Iterator[str]:
    """A tool that changes something: new, switched on, or read-only until now."""
    if not _is_action(edited.after):
        return
    if edited.is_new or not _is_action(edited.before):
        yield "tool_type"
    elif edited.raised("enabled"):
        yield "enabled"


def action_declared_read_only(edited: Edited) -> Iterator[str]:
    """A tool that changed something counts as read-only: it is called without being asked for."""
    if _is_action(edited.before) and not _is_action(edited.after):
        yield "tool_type"


def confirmation_dropped(edited: Edited) -> Iterator[str]:
    """The customer is not asked any more."""
    if edited.dropped("confirmation_required"):
        yield "confirmation_required"


def idempotent_claimed(edited: Edited) -> Iterator[str]:
    """An action may be sent a second time."""
    if _is_action(edited.after) and edited.raised("idempotent"):
        yield "idempotent"


def requires_shortened(edited: Edited) -> Iterator[str]:
    """The tool is called without an argument it needed."""
    if edited.went("requires"):
        yield "requires"


def argument_restricted(edited: Edited) -> Iterator[str]:
    """The tool gets the real value of a masked document number."""
    before = _arguments(edited.before)
    for name, argument in _arguments(edited.after).items():
        if argument.get("restricted") and not before.get(name, {}).get("restricted"):
            yield _argument_path(name, "restricted", is_new=name not in before)


def enum_widened(edited: Edited) -> Iterator[str]:
    """An argument accepts more values, also when it goes by another name now."""
    before, after = _arguments(edited.before), _arguments(edited.after)
    gone = [values(argument, "enum") for name, argument in before.items() if name not in after]
    limits = [limit for limit in gone if limit]
    for name, argument in after.items():
        accepted = values(argument, "enum")
        if name in before:
            was = values(before[name], "enum")
            if was and (not accepted or accepted - was):
                yield _argument_path(name, "enum")
        elif limits and not any(accepted and accepted <= limit for limit in limits):
            yield _argument_path(name, "enum", is_new=True)


def server_changed(edited: Edited) -> Iterator[str]:
    """The arguments go to another server."""
    if not edited.is_new and edited.changed("mcp_server"):
        yield "mcp_server"


def remote_name_changed(edited: Edited) -> Iterator[str]:
    """The server is asked to do something else under the same name."""
    if not edited.is_new and edited.changed("remote_name"):
        yield "remote_name"


def _is_action(tool: Content) -> bool:
    return tool.get("tool_type") == "action"


def _arguments(tool: Content) -> dict[str, Content]:
    declared = mapping(tool, "args_schema")
    return {name: mapping(declared, name) for name in declared}


def _argument_path(name: str, inner: str, *, is_new: bool = False) -> str:
    path = field_path("args_schema", name)
    return path if is_new else field_path(path, inner)

"""A tool that may do more, asks less, or is given more. Pure."""

from collections.abc import Iterator

from apps.governance.weakening.edited import Content, Edited, mapping, number, values
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


def contract_unpinned(edited: Edited) -> Iterator[str]:
    """Nobody notices any more when the server changes what it declares."""
    if mapping(edited.before, "contract").get("sha256") and not mapping(
        edited.after, "contract"
    ).get("sha256"):
        yield "contract.sha256"


def server_changed(edited: Edited) -> Iterator[str]:
    """The arguments go to another server."""
    if not edited.is_new and edited.changed("mcp_server"):
        yield "mcp_server"


def remote_name_changed(edited: Edited) -> Iterator[str]:
    """The server is asked to do something else under the same name."""
    if not edited.is_new and edited.changed("remote_name"):
        yield "remote_name"


def agents_widened(edited: Edited) -> Iterator[str]:
    """More agents may call the tool than those it named."""
    if _opened(edited, "allowed_agents"):
        yield "allowed_agents"


def channels_widened(edited: Edited) -> Iterator[str]:
    """The tool is called from more channels than those it named."""
    if _opened(edited, "allowed_channels"):
        yield "allowed_channels"


def business_keys_shortened(edited: Edited) -> Iterator[str]:
    """The tool is called although less is known of who it is about."""
    if edited.went("required_business_keys"):
        yield "required_business_keys"


def source_relaxed(edited: Edited) -> Iterator[str]:
    """An argument that was fixed, or came from a place of its own, comes from elsewhere."""
    before = _arguments(edited.before)
    for name, argument in _arguments(edited.after).items():
        was = before.get(name, {}).get("source", "auto")
        if was not in ("auto", "model") and argument.get("source", "auto") != was:
            yield _argument_path(name, "source")


def secret_sent(edited: Edited) -> Iterator[str]:
    """A secret goes to the tool's server that did not."""
    before = _arguments(edited.before)
    for name, argument in _arguments(edited.after).items():
        secret = argument.get("secret") if argument.get("source") == "secret" else ""
        was = before.get(name, {})
        if secret and (was.get("source") != "secret" or was.get("secret") != secret):
            yield _argument_path(name, "secret", is_new=name not in before)


def rules_loosened(edited: Edited) -> Iterator[str]:
    """An argument's own schema is another one: nobody reads off it whether it is stricter."""
    before = _arguments(edited.before)
    for name, argument in _arguments(edited.after).items():
        was = mapping(before.get(name, {}), "json_schema")
        if was and was != mapping(argument, "json_schema"):
            yield _argument_path(name, "json_schema")


def check_dropped(edited: Edited) -> Iterator[str]:
    """An action is no longer checked, or by another tool, before the customer is asked."""
    was = mapping(edited.before, "pre_validation").get("tool")
    if was and was != mapping(edited.after, "pre_validation").get("tool"):
        yield "pre_validation.tool"


def check_fails_open(edited: Edited) -> Iterator[str]:
    """An action goes on when its check cannot be reached."""
    before = mapping(edited.before, "pre_validation")
    after = mapping(edited.after, "pre_validation")
    if after.get("tool") and after.get("fail_open") and not before.get("fail_open"):
        yield "pre_validation.fail_open"


def execution_replaced(edited: Edited) -> Iterator[str]:
    """What the customer confirms is carried out by something else."""
    before, after = mapping(edited.before, "execution"), mapping(edited.after, "execution")
    if edited.is_new or not _is_action(edited.after):
        return
    for name in ("mode", "workflow"):
        if before.get(name) != after.get(name):
            yield f"execution.{name}"


def confirmation_kept_longer(edited: Edited) -> Iterator[str]:
    """A yes counts longer than it did."""
    before = number(edited.before, "confirmation_seconds", 0)
    if number(edited.after, "confirmation_seconds", 0) > before:
        yield "confirmation_seconds"


def _opened(edited: Edited, name: str) -> bool:
    """Whether a list that limited something limits less: an empty one limits nothing."""
    was = values(edited.before, name)
    return bool(was) and (not values(edited.after, name) or bool(edited.came(name)))


def _is_action(tool: Content) -> bool:
    return tool.get("tool_type") == "action"


def _arguments(tool: Content) -> dict[str, Content]:
    declared = mapping(tool, "args_schema")
    return {name: mapping(declared, name) for name in declared}


def _argument_path(name: str, inner: str, *, is_new: bool = False) -> str:
    path = field_path("args_schema", name)
    return path if is_new else field_path(path, inner)

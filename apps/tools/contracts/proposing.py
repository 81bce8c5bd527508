"""What a tool's configuration becomes with a contract the server declares. Pure.

Only what follows from the contract alone is changed. What a person wrote (labels, questions, a
description in their own words) stays, and what needs a person is said in ``notes``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.runtime.i18n import gettext_noop as _
from apps.tools.config import ToolConfig
from apps.tools.contracts.hashing import Contract, contract_pinned
from apps.tools.contracts.schemas import Declared, declared, is_closed

Note = tuple[str, dict[str, str]]
"""A sentence, and what fills its placeholders."""


@dataclass
class Proposal:
    """The content to put into a change request, and what a person still has to look at.

    ``gone``: arguments that went with the contract: whoever fills them fills nothing now.
    """

    content: dict[str, Any]
    notes: list[Note] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def tool_adjusted(slug: str, tool: ToolConfig, seen: Contract) -> Proposal:
    """Return ``tool`` pinned to ``seen``, its arguments adjusted where that is mechanical."""
    before = contract_pinned(slug, tool)
    proposal = Proposal(tool.model_dump(mode="json"))
    content = proposal.content
    content["contract"] = seen.pinned()
    _describe(proposal, tool, before, seen)
    _arguments(proposal, before, seen)
    if seen.annotations.get("readOnlyHint") is False and tool.tool_type == "read_only":
        was = before.annotations.get("readOnlyHint") if before else None
        if was is not False:
            content.update(tool_type="action", confirmation_required=True)
            content["cache"]["enabled"] = False
            proposal.notes.append((_("The server now says that it changes something."), {}))
    return proposal


def tool_added(server: str, slug: str, seen: Contract) -> dict[str, Any]:
    """Return the content of a new tool: it acts and asks first unless the server says it only reads;
    nothing is taken to be idempotent, and nothing is kept."""
    reads = seen.annotations.get("readOnlyHint") is True
    properties = declared(seen.input_schema) or {}
    return {
        "description": seen.description or seen.title,
        "mcp_server": server,
        "remote_name": "" if slug == seen.name else seen.name,
        "tool_type": "read_only" if reads else "action",
        "confirmation_required": not reads,
        "idempotent": False,
        "cache": {"enabled": False},
        "args_schema": {name: _argument(found) for name, found in properties.items()},
        "requires": [name for name, found in properties.items() if found.required],
        "contract": seen.pinned(),
    }


def _describe(
    proposal: Proposal, tool: ToolConfig, before: Contract | None, seen: Contract
) -> None:
    if before is None or before.description == seen.description:
        return
    if tool.description in ("", before.description):
        proposal.content["description"] = seen.description
    else:
        text = _(
            "The description was written here and stays; compare it with the server's new one."
        )
        proposal.notes.append((text, {}))


def _arguments(proposal: Proposal, before: Contract | None, seen: Contract) -> None:
    server = declared(seen.input_schema)
    if server is None:
        return
    old = (declared(before.input_schema) if before else None) or {}
    arguments: dict[str, Any] = proposal.content["args_schema"]
    if is_closed(seen.input_schema):
        _take_out(proposal, [name for name in arguments if name not in server])
    requires: list[str] = proposal.content["requires"]
    for name, found in server.items():
        if name in arguments:
            _retype(arguments[name], old.get(name), found)
        elif found.required:
            arguments[name] = _argument(found)
            text = _("The server requires a new argument, %(name)s: say what fills it.")
            proposal.notes.append((text, {"name": name}))
        elif before is not None and name not in old:
            text = _(
                "The server offers a new argument, %(name)s; it is not sent until somebody adds it."
            )
            proposal.notes.append((text, {"name": name}))
        newly = found.required and not (name in old and old[name].required)
        if newly and name in arguments and name not in requires:
            requires.append(name)


def _take_out(proposal: Proposal, names: list[str]) -> None:
    content = proposal.content
    for name in names:
        if name in (content["items_argument"], content["resource_argument"]):
            text = _("The server no longer knows %(name)s, which this tool is built around.")
            proposal.notes.append((text, {"name": name}))
            continue
        del content["args_schema"][name]
        content["requires"] = [other for other in content["requires"] if other != name]
        proposal.gone.append(name)


def _retype(argument: dict[str, Any], old: Declared | None, new: Declared) -> None:
    """Give an argument the server's type, values and, where it had the server's words, words."""
    if (
        new.type
        and new.type != argument["type"]
        and (argument["type"], new.type) != ("integer", "number")
    ):
        argument["type"] = new.type
        argument["items"] = new.items
    elif new.items and argument["items"]:
        argument["items"] = new.items
    if argument["source"] in ("auto", "model"):
        own = set(argument["enum"])
        was = set(old.enum) if old else set()
        if new.enum and (not own or own - set(new.enum) or own == was):
            argument["enum"] = list(new.enum)
        elif not new.enum and own and own == was:
            argument["enum"] = []
    if old is not None and argument["description"] == old.description:
        argument["description"] = new.description


def _argument(found: Declared) -> dict[str, Any]:
    return {
        "type": found.type or "string",
        "description": found.description,
        "enum": list(found.enum),
        "items": found.items if found.type == "array" else "",
        "nullable": found.nullable,
    }


def notes_of_mapping(slug: str, content: Mapping[str, Any], gone: list[str]) -> list[Note]:
    """Return what a parameter mapping fills in vain once the arguments ``gone`` are no more."""
    text = _("Parameter mapping %(mapping)s fills %(name)s, which is gone.")
    names = [
        *content.get("map", {}).values(),
        *content.get("defaults", {}),
        *content.get("extract", {}),
    ]
    return [
        (text, {"mapping": slug, "name": name}) for name in dict.fromkeys(names) if name in gone
    ]

"""A request of the agent step becomes a call that may be sent, or the refusal of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import LedgerCall, NodeCall, RemoteTool, ToolRequest
from apps.runtime.release import Release
from apps.runtime.turn import ToolCall, Turn
from apps.tools.config import ToolConfig, ToolServerConfig
from apps.tools.mapping import arguments_map
from apps.tools.remotes import Secret, Unbound, server_remote, tool_remote
from apps.tools.restricted import arguments_mask, arguments_unmask
from apps.tools.validation import arguments_check, field_error


class Reason:
    """Why a call was refused: the value of ``metadata["reason"]``."""

    UNKNOWN_TOOL = "unknown_tool"
    DISABLED = "disabled"
    UNBOUND = "unbound"
    INVALID_ARGUMENTS = "invalid_arguments"
    MISSING_ARGUMENTS = "missing_arguments"
    CONFIRMATION_REQUIRED = "confirmation_required"
    READY = "ready"
    """Nothing is missing: what ``check`` says of a call that could be sent."""


@dataclass(frozen=True)
class Prepared:
    """A call that may be sent: ``shown`` is its record so far, ``real`` the arguments to send.

    ``confirmation_required``: only after the customer's recorded yes for exactly this call. ``key``:
    the idempotency key of a workflow's node, "" for the ledger's own.
    """

    remote: RemoteTool
    call: LedgerCall
    shown: ToolCall
    real: Mapping[str, Any]
    confirmation_required: bool = False
    key: str = ""

    def of_node(self, node: NodeCall | None) -> "Prepared":
        """Return the call with the key and within the time of the workflow's node it is."""
        if node is None:
            return self
        seconds = min(self.remote.timeout_seconds, node.timeout_seconds or math.inf)
        return replace(self, key=node.key, remote=replace(self.remote, timeout_seconds=seconds))


@dataclass(frozen=True)
class Preparation:
    """Checks requests against the turn's release. Asks nobody and changes nothing.

    ``secret`` turns a credential's name into its value; ``tag_key`` keys the tags that stand for
    restricted values.
    """

    secret: Secret
    tag_key: str

    def prepare(self, turn: Turn, request: ToolRequest) -> Prepared | ToolCall:
        """Return the call to send, or the ``refused`` record with its reason."""
        tool = turn.release.find(ToolConfig, request.tool)
        if tool is None:
            return _unseen(request, Reason.UNKNOWN_TOOL, _("This tool is not in the release."))
        server = turn.release.find(ToolServerConfig, tool.mcp_server)
        if server is None or not (tool.enabled and server.enabled):
            return _unseen(request, Reason.DISABLED, _("This tool is switched off."), tool)
        try:
            remote = self._remote(turn, request.tool, tool, server)
        except Unbound:
            text = _("The server of this tool has no address or credential in this environment.")
            return _unseen(request, Reason.UNBOUND, text, tool)
        return self._with_arguments(turn, request, tool, server, remote)

    def _with_arguments(
        self,
        turn: Turn,
        request: ToolRequest,
        tool: ToolConfig,
        server: ToolServerConfig,
        remote: RemoteTool,
    ) -> Prepared | ToolCall:
        mapped = arguments_map(turn, request.tool, tool, request.arguments)
        checked = arguments_check(tool, arguments_unmask(tool, mapped.arguments, turn.vault))
        shown = ToolCall(
            tool=request.tool,
            server=tool.mcp_server,
            arguments=arguments_mask(tool, checked.arguments, turn.vault, self.tag_key),
            status="refused",
            metadata={"undeclared": list(mapped.undeclared)} if mapped.undeclared else {},
            ordinal=request.ordinal,
            action=tool.tool_type == "action",
        )
        errors = _errors(tool, mapped.foreign, checked.errors)
        if errors:
            return _invalid(shown, tool, mapped.arguments, errors)
        call = LedgerCall(
            kind="tool",
            name=request.tool,
            ordinal=request.ordinal,
            contract=contract_of(turn.release, request.tool, tool, server),
            arguments=canonical_json(shown.arguments),
            action=shown.action,
            idempotent=tool.idempotent,
        )
        return Prepared(
            remote=remote,
            call=call,
            shown=shown,
            real=checked.arguments,
            confirmation_required=tool.confirmation_required,
        )

    def _remote(
        self, turn: Turn, slug: str, tool: ToolConfig, server: ToolServerConfig
    ) -> RemoteTool:
        """Return where and how to call. Raises ``Unbound``."""
        found = server_remote(
            tool.mcp_server,
            server,
            tenant=turn.tenant,
            bindings=turn.bindings,
            secret=self.secret,
            principal=turn.inbound.caller.principal,
            environment=turn.environment,
        )
        return tool_remote(found, slug, tool)


def contract_of(release: Release, slug: str, tool: ToolConfig, server: ToolServerConfig) -> str:
    """Return the sha256 of what is being called: a changed contract is another call."""
    key = f"tools:contract:{slug}"
    if key not in release.derived:
        schema = {name: arg.model_dump(mode="json") for name, arg in tool.args_schema.items()}
        contract = {
            "server": tool.mcp_server,
            "remote_name": tool.remote_name or slug,
            "transport": server.transport,
            "args_schema": schema,
        }
        release.derived[key] = sha256_text(canonical_json(contract))
    return str(release.derived[key])


def _errors(
    tool: ToolConfig, foreign: tuple[str, ...], found: tuple[Mapping[str, str], ...]
) -> tuple[Mapping[str, str], ...]:
    text = _("Only the data of this conversation's customer may be asked for.")
    others = [field_error(name, tool.args_schema[name], text) for name in foreign]
    return (*others, *(error for error in found if error["field"] not in foreign))


def _unseen(
    request: ToolRequest, reason: str, error: str, tool: ToolConfig | None = None
) -> ToolCall:
    """Refuse before the arguments were looked at: none of them is recorded."""
    shown = ToolCall(
        tool=request.tool,
        server=tool.mcp_server if tool else "",
        arguments={},
        status="refused",
        ordinal=request.ordinal,
        action=tool is not None and tool.tool_type == "action",
    )
    return _refuse(shown, reason, error)


def unconfirmed(shown: ToolCall, answer: str = "absent") -> ToolCall:
    """Return the refusal of a call that the customer has not said yes to; ``answer``: why not."""
    text = _("The customer has to confirm this first.")
    refused = _refuse(shown, Reason.CONFIRMATION_REQUIRED, text)
    return replace(refused, metadata={**refused.metadata, "confirmation": answer})


def _refuse(shown: ToolCall, reason: str, error: str) -> ToolCall:
    return replace(shown, error=error, metadata={**shown.metadata, "reason": reason})


def _invalid(
    shown: ToolCall,
    tool: ToolConfig,
    arguments: Mapping[str, Any],
    errors: tuple[Mapping[str, str], ...],
) -> ToolCall:
    missing = [e["field"] for e in errors if e["field"] not in arguments]
    only_missing = len(missing) == len(errors) and all(name in tool.requires for name in missing)
    reason = Reason.MISSING_ARGUMENTS if only_missing else Reason.INVALID_ARGUMENTS
    text = "; ".join(f"{e['field']}: {e['message']}" for e in errors)
    refused = _refuse(shown, reason, text)
    return replace(refused, field_errors=errors)

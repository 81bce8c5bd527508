"""A request of the agent step becomes a call that may be sent, or the refusal of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import LedgerCall, NodeCall, RemoteTool, ToolRequest
from apps.runtime.release import Release
from apps.runtime.turn import ToolCall, Turn
from apps.tools.config import ToolConfig, ToolServerConfig
from apps.tools.mapping import Mapped, arguments_map
from apps.tools.permissions import AGENT, BUSINESS_KEY, CHANNEL, Denial, denial_of
from apps.tools.remotes import Secret, Unbound, server_remote, tool_remote
from apps.tools.restricted import arguments_mask, arguments_unmask, is_lost, secret_mark
from apps.tools.validation import arguments_check, field_error, rules_of

SKIPPED = "IC.TOOL_SKIPPED_BY_POLICY"


class Reason:
    """Why a call was refused: the value of ``metadata["reason"]``."""

    UNKNOWN_TOOL = "unknown_tool"
    DISABLED = "disabled"
    UNBOUND = "unbound"
    INVALID_ARGUMENTS = "invalid_arguments"
    MISSING_ARGUMENTS = "missing_arguments"
    CONFIRMATION_REQUIRED = "confirmation_required"
    AGENT_NOT_ALLOWED = AGENT
    CHANNEL_NOT_ALLOWED = CHANNEL
    BUSINESS_KEY_MISSING = BUSINESS_KEY
    NO_TIME_LEFT = "no_time_left"
    READY = "ready"
    """Nothing is missing: what ``check`` says of a call that could be sent."""


@dataclass(frozen=True)
class Prepared:
    """A call that may be sent: ``shown`` is its record so far, ``real`` the arguments to send.

    ``confirmation_required``: only after the customer's recorded yes for exactly this call. ``key``:
    the idempotency key of a workflow's node, "" for the ledger's own. ``secrets``: secret value, the
    server's credential too -> what is kept in its place. ``tool`` is the tool's configuration.
    """

    remote: RemoteTool
    call: LedgerCall
    shown: ToolCall
    real: Mapping[str, Any] = field(repr=False)
    tool: ToolConfig
    confirmation_required: bool = False
    key: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

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
        denial = denial_of(turn, request, tool)
        if denial is not None:
            return _denied(request, tool, denial)
        # What a workflow's node is given was settled with its workflow, as what was confirmed was.
        settled = bool(request.confirmation) or request.node is not None
        mapped = arguments_map(turn, request.tool, tool, request.arguments, confirmed=settled)
        try:
            remote = self._remote(turn, request.tool, tool, server)
            secrets = self._secrets(turn, mapped)
        except Unbound:
            text = _("The server of this tool has no address or credential in this environment.")
            return _unseen(request, Reason.UNBOUND, text, tool)
        return self._with_arguments(turn, request, tool, server, remote, mapped, secrets)

    def _with_arguments(
        self,
        turn: Turn,
        request: ToolRequest,
        tool: ToolConfig,
        server: ToolServerConfig,
        remote: RemoteTool,
        mapped: Mapped,
        secrets: Mapping[str, str],
    ) -> Prepared | ToolCall:
        unmasked = arguments_unmask(tool, mapped.arguments, turn.vault)
        rules = rules_of(turn.release, request.tool, tool)
        checked = arguments_check(tool, {**unmasked, **secrets}, rules)
        marks = {name: secret_mark(mapped.secrets[name]) for name in secrets}
        known = {n: value for n, value in checked.arguments.items() if n not in secrets}
        shown = ToolCall(
            tool=request.tool,
            server=tool.mcp_server,
            arguments={**arguments_mask(tool, known, turn.vault, self.tag_key), **marks},
            status="refused",
            metadata=_noted(mapped),
            ordinal=request.ordinal,
            action=tool.transactional,
            agent=request.agent,
        )
        errors = _errors(tool, mapped.foreign, (*_lost(tool, unmasked), *checked.errors))
        if errors:
            return _invalid(shown, tool, mapped, errors)
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
            tool=tool,
            confirmation_required=tool.confirmation_required,
            secrets={
                **(
                    {remote.credential: secret_mark(server.credential)} if remote.credential else {}
                ),
                **{value: marks[name] for name, value in secrets.items()},
            },
        )

    def _secrets(self, turn: Turn, mapped: Mapped) -> dict[str, str]:
        """Return argument -> secret value. Raises ``Unbound`` for one that is not set."""
        found = {}
        for name, binding in mapped.secrets.items():
            value = self.secret(turn.bindings.get(f"credential:{binding}", ""))
            if not value:
                raise Unbound(binding)
            found[name] = value
        return found

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


def _noted(mapped: Mapped) -> dict[str, Any]:
    """Return what the record says of explicit arguments that were not taken."""
    noted = {"undeclared": list(mapped.undeclared), "overwritten": list(mapped.overwritten)}
    return {key: names for key, names in noted.items() if names}


def _lost(tool: ToolConfig, arguments: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
    """Return an error for each restricted argument whose value only the tag of is left."""
    text = _("This value was not kept and has to be given again.")
    return tuple(
        field_error(name, tool.args_schema[name], text)
        for name, value in arguments.items()
        if tool.args_schema[name].restricted and is_lost(value)
    )


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
        action=tool is not None and tool.transactional,
        agent=request.agent,
    )
    return _refuse(shown, reason, error)


def _denied(request: ToolRequest, tool: ToolConfig, denial: Denial) -> ToolCall:
    refused = _unseen(request, denial.reason, denial.message, tool)
    return _by_policy(
        replace(refused, field_errors=denial.errors), request.tool, tool.transactional
    )


def _by_policy(refused: ToolCall, slug: str, transactional: bool) -> ToolCall:
    """Return the refusal as one that the tool's policy is the reason of (platform facts 4.3)."""
    metadata = {
        **refused.metadata,
        "blocked_by_policy": True,
        "operation_type": "transactional" if transactional else "read_only",
        "policy_source": f"tool:{slug}",
    }
    return replace(refused, metadata=metadata, events=(*refused.events, SKIPPED))


def unconfirmed(shown: ToolCall, answer: str = "absent") -> ToolCall:
    """Return the refusal of a call that the customer has not said yes to; ``answer``: why not."""
    text = _("The customer has to confirm this first.")
    refused = _refuse(shown, Reason.CONFIRMATION_REQUIRED, text)
    refused = replace(refused, metadata={**refused.metadata, "confirmation": answer})
    return _by_policy(refused, shown.tool, shown.action)


def out_of_time(shown: ToolCall) -> ToolCall:
    """Return the refusal of a call for which the turn has no time left: it was not sent."""
    return _refuse(shown, Reason.NO_TIME_LEFT, _("This turn has no time left for tools."))


def _refuse(shown: ToolCall, reason: str, error: str) -> ToolCall:
    return replace(shown, error=error, metadata={**shown.metadata, "reason": reason})


def _invalid(
    shown: ToolCall, tool: ToolConfig, mapped: Mapped, errors: tuple[Mapping[str, str], ...]
) -> ToolCall:
    given = {*mapped.arguments, *mapped.foreign}
    missing = all(e["field"] in tool.args_schema and e["field"] not in given for e in errors)
    text = "; ".join(f"{e.get('path') or e['field']}: {e['message']}" for e in errors)
    reason = Reason.MISSING_ARGUMENTS if missing else Reason.INVALID_ARGUMENTS
    refused = replace(_refuse(shown, reason, text), field_errors=errors)
    return _by_policy(refused, shown.tool, shown.action) if missing else refused

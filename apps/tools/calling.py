"""Calls the tools a turn asks for: note them in the ledger, send, note how they ended.

A failing tool never raises: what happened is in the returned ``ToolCall``.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from apps.runtime.canonical import canonical_json
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import (
    ConfirmationPort,
    CoveragePort,
    Grant,
    Ledger,
    LedgerResult,
    LedgerState,
    RemoteResult,
    RemoteTool,
    ToolRequest,
    ToolTransport,
    ToolUnavailable,
)
from apps.runtime.turn import ToolCall, Turn
from apps.tools.caching import DEDUPED, AnswerCache, Answers, hit
from apps.tools.config import ToolConfig
from apps.tools.mapping import arguments_map, sources_of
from apps.tools.preparing import Preparation, Prepared, Reason, out_of_time, unconfirmed
from apps.tools.remotes import Secret
from apps.tools.restricted import result_scrub
from apps.tools.results import UNCONFIRMED, result_parse, result_text
from apps.tools.timing import TurnTime
from apps.tools.validation import json_schema

NEVER_AGAIN = ("circuit_open", "needs_sign_in", "forbidden_address")
"""Failures that another attempt of the same turn cannot change."""

TURN_SECONDS = 120.0
"""What the tools of a turn may take altogether, unless the caller is told otherwise."""

BACKSTOP_SECONDS = 1.0
"""How long after a call's own deadline the caller stops waiting for a transport that overran it."""


class ToolCaller:
    """The ``ToolPort``: ``transport`` speaks to servers, ``ledger`` remembers calls.

    ``secret`` gives the value a credential binding names. ``tag_key`` keys the tags that stand for
    restricted values a client sent in clear; it must outlive the process, or a call with such a
    value is taken for another one after a crash. ``answers`` keeps answers of read-only tools;
    ``turn_seconds`` is the time that all calls of a turn have together.
    """

    def __init__(
        self,
        transport: ToolTransport,
        ledger: Ledger,
        secret: Secret,
        *,
        tag_key: str = "",
        confirmations: ConfirmationPort | None = None,
        coverage: CoveragePort | None = None,
        answers: AnswerCache | None = None,
        turn_seconds: float = TURN_SECONDS,
    ) -> None:
        tag_key = tag_key or secrets.token_hex(16)
        self._transport = transport
        self._ledger = ledger
        self._confirmations = confirmations
        self._coverage = coverage
        self._preparation = Preparation(secret, tag_key)
        self._answers = Answers(answers, tag_key)
        self._time = TurnTime(turn_seconds)

    async def call(self, turn: Turn, requests: Sequence[ToolRequest]) -> list[ToolCall]:
        """Return one ``ToolCall`` per request, in order; equal requests are sent once.

        Raises only ``LeaseLost``.
        """
        answers: list[ToolCall | None] = [None] * len(requests)
        sending: dict[str, Prepared] = {}
        waiting: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            prepared = self._preparation.prepare(turn, request)
            if isinstance(prepared, ToolCall):
                answers[index] = prepared
            elif not request.node and (earlier := _earlier(turn, prepared.shown)) is not None:
                answers[index] = _repeated(earlier, request)
            elif self._time.left(turn) <= 0:
                answers[index] = out_of_time(prepared.shown)
            elif (refused := await self._unconfirmed(turn, request, prepared)) is not None:
                answers[index] = refused
            else:
                prepared = prepared.of_node(request.node)
                identity = f"{prepared.key}|{_identity(prepared.shown)}"
                sending.setdefault(identity, prepared)
                waiting.setdefault(identity, []).append(index)
        ended = await self._answered_or_run(turn, list(sending.values()))
        for identity, done in zip(sending, ended, strict=True):
            first, *again = waiting[identity]
            answers[first] = done
            for index in again:
                answers[index] = _repeated(done, requests[index])
        return [answer for answer in answers if answer is not None]

    async def check(self, turn: Turn, request: ToolRequest) -> ToolCall:
        """See ``runtime.ports.ToolPort``: what would be sent, and why not."""
        prepared = self._preparation.prepare(turn, request)
        if isinstance(prepared, ToolCall):
            return prepared
        reason = Reason.CONFIRMATION_REQUIRED if prepared.confirmation_required else Reason.READY
        metadata = {
            **prepared.shown.metadata,
            "reason": reason,
            "contract": prepared.call.contract,
            "arguments": prepared.call.arguments,
        }
        return replace(prepared.shown, metadata=metadata)

    async def _unconfirmed(
        self, turn: Turn, request: ToolRequest, prepared: Prepared
    ) -> ToolCall | None:
        """Return the refusal of a call that needs a yes there is none of; uses the yes up."""
        if not (prepared.confirmation_required or request.asked):
            return None
        if request.node is not None:
            run = request.node.execution
            covered = self._coverage and await self._coverage.covers(turn, run, request.tool)
            return None if covered else unconfirmed(prepared.shown)
        if self._confirmations is None or not request.confirmation:
            return unconfirmed(prepared.shown)
        answer = await self._confirmations.use(
            turn,
            Grant(
                id=request.confirmation,
                tool=request.tool,
                contract=prepared.call.contract,
                arguments=prepared.call.arguments,
            ),
        )
        return None if answer == "granted" else unconfirmed(prepared.shown, answer)

    def functions(self, turn: Turn, tools: Sequence[str]) -> list[dict[str, Any]]:
        """Return the tools a model may be offered, as ``{name, description, parameters}``.

        Unknown and disabled tools are left out, and so are arguments this conversation fills.
        """
        offered = []
        for slug in tools:
            tool = turn.release.find(ToolConfig, slug)
            if tool is None or not tool.enabled:
                continue
            schema = json_schema(tool, filled=_filled(turn, slug, tool))
            offered.append({"name": slug, "description": tool.description, "parameters": schema})
        return offered

    async def _answered_or_run(self, turn: Turn, prepared: Sequence[Prepared]) -> list[ToolCall]:
        """Return the calls of ``prepared``: kept answers where there are some, the others are sent."""
        looks = await self._answers.look(turn, prepared)
        done: dict[int, ToolCall] = {
            index: hit(item, _answered(item.shown, look.text))
            for index, (item, look) in enumerate(zip(prepared, looks, strict=True))
            if look.state == "hit"
        }
        rest = [index for index in range(len(prepared)) if index not in done]
        items = [prepared[index] for index in rest]
        with self._time.spending(turn):
            ended = await self._run(turn, items)
        calls = await self._answers.after(turn, items, [looks[index] for index in rest], ended)
        done.update(zip(rest, calls, strict=True))
        return [done[index] for index in range(len(prepared))]

    async def _run(self, turn: Turn, prepared: Sequence[Prepared]) -> list[tuple[ToolCall, str]]:
        """Send ``prepared`` at once; return each call with the text of its result."""
        if not prepared:
            return []
        left = self._time.left(turn)
        states = await self._ledger.begin(turn, [item.call for item in prepared])
        ended = await asyncio.gather(
            *(self._one(item, state, left) for item, state in zip(prepared, states, strict=True)),
            return_exceptions=True,
        )
        results = [
            LedgerResult(state.idempotency_key, done[1])
            for state, done in zip(states, ended, strict=True)
            if not isinstance(done, BaseException) and done[1] and state.state != "done"
        ]
        if results:
            await self._ledger.finish(turn, results)
        for done in ended:
            if isinstance(done, BaseException):
                raise done
        return [done for done in ended if not isinstance(done, BaseException)]

    async def _one(self, item: Prepared, state: LedgerState, left: float) -> tuple[ToolCall, str]:
        """Return the call's record and the text to store, empty when its end is not known."""
        if state.state == "done":
            return replace(_answered(item.shown, state.result), replayed=True), state.result
        if state.state == "unknown":
            return _unknown(item.shown), ""
        started = time.perf_counter()
        try:
            result = await self._send(item, item.key or state.idempotency_key, left)
        except ToolUnavailable as failure:
            if failure.sent and item.call.action:
                return _timed(_unknown(item.shown), started), ""
            metadata = {"unavailable": failure.code}
            result = RemoteResult(ok=False, error=str(failure), metadata=metadata)
        text = result_text(result_scrub(result, item.secrets))
        return _timed(_answered(item.shown, text), started), text

    async def _send(self, item: Prepared, key: str, left: float) -> RemoteResult:
        """Send, and again where the tool's retry policy says so and that cannot do a thing twice.

        A read has its timeout for all attempts. An idempotent action has it for each: the server
        answers the same key from its record, so asking again tells what became of it. Nothing goes
        on when the turn's time is over (``left``). Raises ``ToolUnavailable``: ``sent`` when any
        attempt may have arrived, whatever the last one says of itself.
        """
        policy, seconds = item.tool.retry, item.remote.timeout_seconds
        room = left if item.call.action and item.call.idempotent else min(left, seconds)
        started, spent, sent = time.monotonic(), 0.0, False
        for attempt in range(1, policy.max_attempts + 1):
            remote = replace(item.remote, timeout_seconds=min(seconds, room - spent))
            try:
                return await self._attempt(remote, item.real, key)
            except ToolUnavailable as failure:
                sent = sent or failure.sent
                pause = policy.backoff_ms / 1000 * 2 ** (attempt - 1)
                spent = time.monotonic() - started + pause
                last = attempt == policy.max_attempts or spent >= room
                if last or not _may_repeat(item, failure, sent=sent):
                    raise ToolUnavailable(str(failure), sent=sent, code=failure.code) from failure
            await asyncio.sleep(pause)
        raise AssertionError("a retry policy makes at least one attempt")

    async def _attempt(
        self, remote: RemoteTool, arguments: Mapping[str, Any], key: str
    ) -> RemoteResult:
        try:
            async with asyncio.timeout(remote.timeout_seconds + BACKSTOP_SECONDS):
                return await self._transport.call(remote, arguments, idempotency_key=key)
        except TimeoutError:
            late = "The server did not answer in time."
            raise ToolUnavailable(late, sent=True, code="timeout") from None


def _filled(turn: Turn, slug: str, tool: ToolConfig) -> set[str]:
    sources = sources_of(turn.release, slug, tool)
    mapped = arguments_map(turn, slug, tool, {}).arguments
    return {name for name in mapped if name in sources.context} | sources.customer


def _identity(call: ToolCall) -> str:
    return f"{call.tool}|{canonical_json(dict(call.arguments))}"


def _earlier(turn: Turn, call: ToolCall) -> ToolCall | None:
    """Return the same call made before in this turn, when its answer still holds.

    An action runs once whatever came of it. A read is answered from an earlier one only while no
    action came between, because an action may have changed what there is to read.
    """
    for earlier in reversed(turn.tool_calls):
        same = earlier.status != "refused" and _identity(earlier) == _identity(call)
        if same and (call.action or earlier.ok):
            return earlier
        if not call.action and earlier.action and earlier.status != "refused":
            return None
    return None


def _repeated(earlier: ToolCall, request: ToolRequest) -> ToolCall:
    """Return ``earlier`` as the answer of ``request``, which asks for the same."""
    return replace(
        earlier,
        ordinal=request.ordinal,
        agent=request.agent,
        metadata={**earlier.metadata, "deduped": True},
        events=(DEDUPED,),
        replayed=True,
        latency_ms=0.0,
    )


def _may_repeat(item: Prepared, failure: ToolUnavailable, *, sent: bool) -> bool:
    """Whether another attempt can do no harm: nothing has arrived, or arriving twice does nothing."""
    if failure.code in NEVER_AGAIN:
        return False
    return not sent or not item.call.action or item.call.idempotent


def _answered(shown: ToolCall, text: str) -> ToolCall:
    result = result_parse(text)
    unconfirmed = shown.action and bool(result.metadata.get(UNCONFIRMED))
    return replace(
        shown,
        status="ok" if result.ok else "unknown" if unconfirmed else "error",
        result=result.result,
        error=result.error,
        metadata={**result.metadata, **shown.metadata},
    )


def _unknown(shown: ToolCall) -> ToolCall:
    text = _("It was sent and no answer came: whether it was carried out is not known.")
    return replace(shown, status="unknown", error=text)


def _timed(call: ToolCall, started: float) -> ToolCall:
    return replace(call, latency_ms=round((time.perf_counter() - started) * 1000, 3))

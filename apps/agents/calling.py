"""One model call: profile, ledger, provider, price."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from apps.agents.profiles import cost, profile_resolve
from apps.agents.providers.base import ModelProfile, Provider, ProviderCall, message_dump
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.ports import (
    Ledger,
    LedgerCall,
    LedgerResult,
    ModelFailed,
    ModelReply,
    ModelRequest,
    ModelToolCall,
)
from apps.runtime.turn import ModelCall, Turn, Usage

Secret = Callable[[str], str]


class ModelCaller:
    """The ``ModelPort``: a finished call of a turn is read from the ledger, never made twice.

    ``providers`` by the name profiles use; ``secret`` gives the value of a named secret ("" or
    ``LookupError`` when it is not set). A call without a recorded end is made again, since a
    completion changes nothing; so is one whose record cannot be read. Raises ``ModelFailed``,
    ``UnknownItem`` for an unknown profile and ``LeaseLost``.
    """

    def __init__(
        self, providers: Mapping[str, Provider], ledger: Ledger, *, secret: Secret
    ) -> None:
        self._providers = providers
        self._ledger = ledger
        self._secret = secret

    async def complete(self, turn: Turn, request: ModelRequest) -> tuple[ModelReply, ModelCall]:
        """Return the reply, with its cost, and the record of the call."""
        profile = profile_resolve(turn.release, request.profile)
        provider = self._providers.get(profile.provider)
        if provider is None:
            raise ModelFailed(f"no provider {profile.provider!r} is set up", code="wrong_model")
        [state] = await self._ledger.begin(turn, [_ledger_call(profile, request)])
        if state.state == "done" and (kept := reply_load(state.result)) is not None:
            return kept, _record(request, kept, replayed=True)
        started = time.perf_counter()
        reply = await provider.complete(
            ProviderCall(
                profile=profile,
                messages=request.messages,
                tools=request.tools,
                ordinal=request.ordinal,
                base_url=turn.bindings.get(f"address:{profile.address}", ""),
                key=self._key(turn, profile),
            )
        )
        latency_ms = round((time.perf_counter() - started) * 1000, 3)
        reply = replace(reply, usage=replace(reply.usage, cost=_cost(reply, profile)))
        result = LedgerResult(idempotency_key=state.idempotency_key, result=reply_dump(reply))
        await self._ledger.finish(turn, [result])
        return reply, _record(request, reply, latency_ms=latency_ms)

    def _key(self, turn: Turn, profile: ModelProfile) -> str:
        """Return the key's value; a profile that wants one is never called without it."""
        if not profile.credential:
            return ""
        name = turn.bindings.get(f"credential:{profile.credential}", "")
        try:
            key = self._secret(name) if name else ""
        except LookupError:
            key = ""
        if not key:
            missing = f"the secret of the credential {profile.credential!r} is not set"
            raise ModelFailed(missing, code="auth")
        return key


def _cost(reply: ModelReply, profile: ModelProfile) -> float | None:
    """Unknown stays unknown; only what is known to be no model costs nothing."""
    known = cost(reply.usage, profile.prices)
    return 0.0 if known is None and reply.metadata.get("no_model") is True else known


def _ledger_call(profile: ModelProfile, request: ModelRequest) -> LedgerCall:
    """Return the call's identity: what is asked of which model at which binding.

    Messages are kept as a digest: the ledger needs to know that they are the same, not their text.
    """
    contract = {
        "provider": profile.provider,
        "model": profile.model,
        "address": profile.address,
        "temperature": profile.temperature,
        "max_tokens": profile.max_tokens,
    }
    asked = [[message_dump(message) for message in request.messages], list(request.tools)]
    return LedgerCall(
        kind="model",
        name=request.operation,
        ordinal=request.ordinal,
        contract=sha256_text(canonical_json(contract)),
        arguments=sha256_text(canonical_json(asked)),
        idempotent=True,
    )


def _record(
    request: ModelRequest, reply: ModelReply, *, latency_ms: float = 0.0, replayed: bool = False
) -> ModelCall:
    return ModelCall(
        profile=request.profile,
        provider=reply.provider,
        model=reply.model,
        operation=request.operation,
        usage=reply.usage,
        latency_ms=latency_ms,
        finish_reason=reply.finish_reason,
        metadata=reply.metadata,
        replayed=replayed,
    )


def reply_dump(reply: ModelReply) -> str:
    """Return ``reply`` as canonical text."""
    return canonical_json(
        {
            "text": reply.text,
            "tool_calls": [[call.id, call.name, call.arguments] for call in reply.tool_calls],
            "usage": vars(reply.usage),
            "finish_reason": reply.finish_reason,
            "provider": reply.provider,
            "model": reply.model,
            "metadata": dict(reply.metadata),
        }
    )


def reply_load(text: str) -> ModelReply | None:
    """Return the reply that ``reply_dump`` wrote; ``None`` when ``text`` is not one."""
    try:
        kept = json.loads(text)
        return ModelReply(
            text=kept["text"],
            tool_calls=tuple(ModelToolCall(*call) for call in kept["tool_calls"]),
            usage=Usage(**kept["usage"]),
            finish_reason=kept["finish_reason"],
            provider=kept["provider"],
            model=kept["model"],
            metadata=kept["metadata"],
        )
    except (ValueError, KeyError, TypeError):
        return None

"""Profiles, the ledger and the price of a model call."""

import json
from dataclasses import replace

import pytest

from apps.agents.calling import ModelCaller
from apps.agents.config import ModelProfileConfig, Prices
from apps.agents.profiles import cost, profile_resolve
from apps.agents.tests.builders import agent_release, asks, routed_turn
from apps.runtime.ports import (
    LeaseLost,
    LedgerState,
    ModelFailed,
    ModelMessage,
    ModelReply,
    ModelRequest,
)
from apps.runtime.release import UnknownItem
from apps.runtime.testing import FakeLedger, release_of
from apps.runtime.turn import Usage

REAL = {
    "provider": "openai_compatible", "model": "m-1", "base_url": "llm", "credential": "llm_key",
    "temperature": 0.1, "max_tokens": 500, "timeout_seconds": 30, "max_retries": 1,
    "prices": {"input": 2, "output": 8, "cached": 0.5},
}  # fmt: skip


class Recorder:
    """A provider that answers ``replies`` in turn and keeps the calls."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.calls = []

    async def complete(self, call):
        self.calls.append(call)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def reply(text="oi", **changes):
    return ModelReply(text=text, provider="openai_compatible", model="m-1", **changes)


def caller(provider, ledger=None, secrets=None):
    secrets = {"LLM_KEY": "sk-secret"} if secrets is None else secrets
    return ModelCaller(
        {"openai_compatible": provider}, ledger or FakeLedger(), secret=secrets.__getitem__
    )


def real_turn(**profiles):
    return routed_turn(
        release=agent_release(profiles={"default": REAL, **profiles}),
        bindings={"address:llm": "http://llm/v1", "credential:llm_key": "LLM_KEY"},
    )


def request(profile="default", text="oi", **changes):
    return ModelRequest(profile=profile, messages=(ModelMessage("user", text),), **changes)


def resolved(**profiles):
    configs = {slug: ModelProfileConfig(**fields) for slug, fields in profiles.items()}
    return profile_resolve(release_of(model_profile=configs), "named")


# -- profiles ----------------------------------------------------------------------------------


def test_profile__empty_fields__come_from_default_and_own_ones_win():
    profile = resolved(default=REAL, named={"max_tokens": 768})
    assert (profile.name, profile.provider, profile.model) == ("named", "openai_compatible", "m-1")
    assert (profile.max_tokens, profile.temperature, profile.max_retries) == (768, 0.1, 1)
    assert (profile.address, profile.credential) == ("llm", "llm_key")
    assert profile.prices == Prices(input=2, output=8, cached=0.5)


def test_profile__said_nowhere__has_the_platforms_defaults():
    profile = resolved(default={"provider": "scripted"}, named={})
    assert (profile.temperature, profile.max_tokens, profile.timeout_seconds) == (0.2, 2048, 120.0)


def test_profile__zero_temperature_and_no_retries__are_values_not_absence():
    profile = resolved(default=REAL, named={"temperature": 0, "max_retries": 0})
    assert (profile.temperature, profile.max_retries) == (0, 0)


def test_profile__another_model__does_not_take_over_the_price():
    assert resolved(default=REAL, named={"model": "m-2"}).prices == Prices()
    assert resolved(default=REAL, named={"model": "m-2", "prices": {"input": 1}}).prices == Prices(
        input=1
    )


def test_profile__another_address__does_not_take_over_the_key():
    assert resolved(default=REAL, named={"base_url": "other"}).credential == ""


def test_profile__another_provider__takes_over_neither_model_nor_script():
    scripted = {"provider": "scripted", "model": "s", "script": ["a"], "delay_ms": 5}
    with pytest.raises(ModelFailed) as raised:
        resolved(default=scripted, named={"provider": "openai_compatible"})
    assert raised.value.code == "wrong_model"
    profile = resolved(default=REAL, named={"provider": "scripted"})
    assert (profile.model, profile.address, profile.credential) == ("", "", "")
    assert resolved(default=scripted, named={}).script == ("a",)


@pytest.mark.parametrize("named", [{"model": "m"}, {"provider": "openai_compatible"}])
def test_profile__without_provider_or_model__is_a_visible_error(named):
    with pytest.raises(ModelFailed) as raised:
        resolved(named=named)
    assert raised.value.code == "wrong_model"


def test_profile__unknown_name__is_never_the_default():
    with pytest.raises(UnknownItem):
        profile_resolve(release_of(model_profile={"default": ModelProfileConfig(**REAL)}), "nope")


# -- price -------------------------------------------------------------------------------------

PRICED = Prices(input=2, output=8, cached=0.5)


@pytest.mark.parametrize(
    ("usage", "prices", "usd"),
    [
        (Usage(1_000_000, 1_000_000), PRICED, 10.0),
        (Usage(1000, 500), PRICED, 0.006),
        (Usage(1000, 0, cached_tokens=400), PRICED, 0.0014),
        (Usage(1000, 0, cached_tokens=400), Prices(input=2, output=8), 0.002),
        (Usage(100, 0, cached_tokens=400), PRICED, 0.00005),
        (Usage(1, 1), PRICED, 0.00001),
        (Usage(0, 0), PRICED, 0.0),
        (Usage(10, 10), Prices(input=0, output=0), 0.0),
        (Usage(10, 10), Prices(), None),
        (Usage(0, 0), Prices(), None),
        (Usage(10, 10), Prices(input=1), None),
        (Usage(10, 10), Prices(output=1), None),
        (Usage(10, 0), Prices(input=1), 0.00001),
    ],
)
def test_cost__tokens_and_prices__exact_or_unknown_never_zero_by_accident(usage, prices, usd):
    assert cost(usage, prices) == usd


# -- calls and the ledger ----------------------------------------------------------------------


async def test_call__fresh__reaches_the_provider_with_bound_values_and_is_recorded():
    provider, ledger = Recorder(reply(usage=Usage(1000, 500))), FakeLedger()
    answer, record = await caller(provider, ledger).complete(real_turn(), request())
    [sent] = provider.calls
    assert (sent.base_url, sent.key) == ("http://llm/v1", "sk-secret")
    assert "sk-secret" not in repr(sent)
    assert answer.text == "oi"
    assert (record.profile, record.provider, record.model) == (
        "default", "openai_compatible", "m-1",
    )  # fmt: skip
    assert answer.usage.cost == record.usage.cost == 0.006
    assert (record.operation, record.replayed) == ("agent.answer", False)
    assert next(iter(ledger.entries.values())) is not None


async def test_call__done_before__is_read_from_the_ledger():
    first = replace(asks(("t", '{"a":1}')), usage=Usage(3, 4), metadata={"reasoning_content": "h"})
    provider, ledger = Recorder(first), FakeLedger()
    call = caller(provider, ledger).complete
    turn = real_turn()
    one, _ = await call(turn, request())
    again, record = await call(turn, request())
    assert len(provider.calls) == 1
    assert again == one
    assert again.tool_calls == first.tool_calls
    assert record.replayed is True
    assert record.usage == one.usage


@pytest.mark.parametrize(
    "other",
    [request(text="outra"), request(ordinal=1), request(operation="judge"),
     request(tools=({"type": "function"},)), request(profile="hot")],
)  # fmt: skip
async def test_call__anything_different__is_another_call(other):
    provider, ledger = Recorder(reply("a"), reply("b")), FakeLedger()
    call = caller(provider, ledger).complete
    turn = real_turn(hot={"temperature": 1})
    await call(turn, request())
    answer, _ = await call(turn, other)
    assert answer.text == "b"


async def test_call__other_profile_of_the_same_model__is_the_same_call():
    provider = Recorder(reply("a"))
    call = caller(provider, FakeLedger()).complete
    turn = real_turn(alias={})
    await call(turn, request())
    answer, record = await call(turn, request(profile="alias"))
    assert (answer.text, record.profile, record.replayed) == ("a", "alias", True)


async def test_call__ledger_entry__holds_no_message_text():
    ledger = FakeLedger()
    await caller(Recorder(reply()), ledger).complete(real_turn(), request(text="segredo"))
    [entry] = ledger.calls
    assert "segredo" not in repr(entry)
    assert (entry.kind, entry.name, entry.action) == ("model", "agent.answer", False)


@pytest.mark.parametrize("state", ["restarted", "unknown"])
async def test_call__started_without_an_end__is_made_again(state):
    class Crashed(FakeLedger):
        async def begin(self, turn, calls):
            return [LedgerState(state=state, idempotency_key="k")]

    provider, ledger = Recorder(reply("de novo")), Crashed()
    answer, _ = await caller(provider, ledger).complete(real_turn(), request())
    assert answer.text == "de novo"
    assert json.loads(ledger.entries["k"] or "")["text"] == "de novo"


@pytest.mark.parametrize("stored", ["", "{}", "[1]", '{"text":1}'])
async def test_call__record_that_cannot_be_read__is_made_again(stored):
    class Damaged(FakeLedger):
        async def begin(self, turn, calls):
            return [LedgerState(state="done", idempotency_key="k", result=stored)]

    answer, record = await caller(Recorder(reply("novo")), Damaged()).complete(
        real_turn(), request()
    )
    assert (answer.text, record.replayed) == ("novo", False)


async def test_call__that_fails__is_made_again_under_the_same_ordinal():
    provider = Recorder(ModelFailed("x", code="broken"), reply("depois"))
    call = caller(provider, FakeLedger()).complete
    turn = real_turn()
    with pytest.raises(ModelFailed):
        await call(turn, request())
    answer, _ = await call(turn, request())
    assert answer.text == "depois"


async def test_call__lease_lost__goes_up():
    class Lost(FakeLedger):
        async def finish(self, turn, results):
            raise LeaseLost

    with pytest.raises(LeaseLost):
        await caller(Recorder(reply()), Lost()).complete(real_turn(), request())


@pytest.mark.parametrize("secrets", [{}, {"LLM_KEY": ""}])
async def test_call__key_not_set__is_an_auth_error_and_nothing_is_sent(secrets):
    provider = Recorder(reply())
    with pytest.raises(ModelFailed) as raised:
        await caller(provider, secrets=secrets).complete(real_turn(), request())
    assert raised.value.code == "auth"
    assert provider.calls == []


async def test_call__credential_not_bound__is_an_auth_error():
    turn = replace(real_turn(), bindings={"address:llm": "http://llm/v1"})
    with pytest.raises(ModelFailed) as raised:
        await caller(Recorder(reply())).complete(turn, request())
    assert raised.value.code == "auth"


async def test_call__provider_that_is_not_set_up__is_a_visible_error():
    with pytest.raises(ModelFailed) as raised:
        await ModelCaller({}, FakeLedger(), secret=str).complete(real_turn(), request())
    assert raised.value.code == "wrong_model"


async def test_call__no_price_known__costs_none_but_no_model_costs_nothing():
    release = agent_release(profiles={"default": {**REAL, "prices": {}}})
    turn = replace(real_turn(), release=release)
    answer, _ = await caller(Recorder(reply(usage=Usage(5, 5)))).complete(turn, request())
    assert answer.usage.cost is None
    free = reply(usage=Usage(5, 5), metadata={"no_model": True})
    answer, _ = await caller(Recorder(free)).complete(turn, request())
    assert answer.usage.cost == 0.0

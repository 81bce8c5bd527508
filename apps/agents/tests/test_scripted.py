"""The provider that is no model."""

import json
import time
from typing import Literal

import pytest

from apps.agents.config import Prices
from apps.agents.evidence import evidence_messages
from apps.agents.providers.base import ModelProfile, ProviderCall
from apps.agents.providers.registry import Providers
from apps.agents.providers.scripted import Scripted
from apps.agents.tests.builders import INVOICE
from apps.runtime.ports import ModelFailed, ModelMessage, ModelToolCall
from apps.runtime.turn import ToolCall


def function(name, description=""):
    return {"type": "function", "function": {"name": name, "description": description}}


TOOLS = (
    function("consultar_fatura", "Consulta uma fatura do cliente pelo número."),
    function("consultar_plano", "Consulta o plano contratado e a franquia."),
)


def call(*messages, script=(), tools=(), ordinal=0, delay_ms=0):
    profile = ModelProfile(
        name="default", provider="scripted", model="", address="", credential="", temperature=0,
        max_tokens=1, timeout_seconds=1, max_retries=0, prices=Prices(), script=tuple(script),
        delay_ms=delay_ms,
    )  # fmt: skip
    return ProviderCall(profile=profile, messages=messages, tools=tools, ordinal=ordinal)


async def said(*messages, **options):
    return (await Scripted().complete(call(*messages, **options))).text


def user(text="qual o valor da fatura?"):
    return ModelMessage("user", text)


def evidence(*results, ok=True):
    status: Literal["ok", "error"] = "ok" if ok else "error"
    calls = [
        ToolCall(tool="t", server="s", arguments={}, status=status, result=r, ordinal=n)
        for n, r in enumerate(results)
    ]
    return evidence_messages(calls, lambda text: text)


async def test_scripted__evidence__is_said_and_marked_as_no_model():
    reply = await Scripted().complete(call(user(), *evidence(INVOICE)))
    assert reply.text == "Fatura 3000131180: valor total R$ 129,90, vencimento 10/05/2026."
    assert reply.metadata == {"no_model": True}
    assert (reply.provider, reply.model, reply.finish_reason) == ("scripted", "scripted", "stop")
    assert reply.usage.estimated is True
    assert reply.usage.output_tokens == 16


async def test_scripted__changed_amount__changes_the_answer():
    changed = {**INVOICE, "valor_total": 140.1}
    assert "R$ 140,10" in await said(user(), *evidence(changed))


async def test_scripted__same_request__has_the_same_answer():
    request = call(user(), *evidence(INVOICE, {"nome": "Plano"}))
    assert await Scripted().complete(request) == await Scripted().complete(request)


async def test_scripted__system_language__is_spoken():
    system = ModelMessage("system", "x\nLanguage: en. Answer in this language.")
    assert await said(system, user(), *evidence(INVOICE)) == (
        "Invoice 3000131180: total amount 129.90, due date 2026-05-10."
    )


async def test_scripted__no_evidence__claims_nothing():
    assert await said(user("R$ 999,00 é o valor da fatura 123?")) == (
        "Não tenho essa informação no momento."
    )


async def test_scripted__failed_tool_or_older_evidence__is_not_said():
    old = (user(), *evidence(INVOICE), ModelMessage("assistant", "R$ 129,90"))
    assert await said(*old, user("e agora?")) == "Não tenho essa informação no momento."
    assert "tenho" in await said(user(), *evidence({"valor": 1}, ok=False))


async def test_scripted__tool_text_that_is_no_json__is_said_as_it_is():
    assert await said(user(), ModelMessage("tool", "linha ativa", tool_call_id="1")) == (
        "Linha ativa."
    )


async def test_scripted__long_ids__keep_every_digit():
    text = await said(user(), *evidence({"protocolo": 9007199254740993, "valor": 0.1}))
    assert text == "Protocolo 9007199254740993, valor R$ 0,10."


async def test_script__entries__are_played_by_ordinal_and_the_last_one_stays():
    script = ["um", "dois"]
    played = [await said(user(), script=script, ordinal=n) for n in range(4)]
    assert played == ["um", "dois", "dois", "dois"]


async def test_script__object_entries__are_calls_endings_and_errors():
    script = [
        json.dumps({"tool_calls": [{"name": "t", "arguments": {"a": 1}},
                                   {"name": "t", "arguments": '{"a":"1'}]}),
        json.dumps({"text": "cort", "finish_reason": "length"}),
        json.dumps({"error": "rate_limited"}),
        json.dumps({"error": "nonsense"}),
        '{"valor": 3}',
        "{não é json",
    ]  # fmt: skip
    provider = Scripted()

    async def play(ordinal):
        return await provider.complete(call(user(), script=script, ordinal=ordinal))

    first = await play(0)
    assert first.tool_calls == (
        ModelToolCall("script_0_0", "t", '{"a":1}'), ModelToolCall("script_0_1", "t", '{"a":"1'),
    )  # fmt: skip
    assert first.finish_reason == "tool_calls"
    second = await play(1)
    assert (second.text, second.finish_reason) == ("cort", "length")
    for ordinal, code in ((2, "rate_limited"), (3, "broken")):
        with pytest.raises(ModelFailed) as raised:
            await play(ordinal)
        assert raised.value.code == code
    assert (await play(4)).text == '{"valor": 3}'
    assert (await play(5)).text == "{não é json"


async def test_script__delay__is_waited():
    started = time.perf_counter()
    await said(user(), script=["x"], delay_ms=60)
    assert time.perf_counter() - started >= 0.055


async def test_tools__message_that_clearly_names_one__asks_for_it_once():
    reply = await Scripted().complete(call(user("consultar minha fatura"), tools=TOOLS))
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("consultar_fatura", "{}")]
    assert reply.finish_reason == "tool_calls"
    after = call(user("consultar minha fatura"), *evidence(INVOICE), tools=TOOLS)
    assert (await Scripted().complete(after)).tool_calls == ()


@pytest.mark.parametrize(
    "text", ["oi", "minha fatura", "consultar fatura e consultar plano", "do da de o a"]
)
async def test_tools__unclear_message__is_answered_without_a_tool(text):
    reply = await Scripted().complete(call(user(text), tools=TOOLS))
    assert reply.tool_calls == ()


def test_registry__unknown_provider__is_absent_and_scripted_is_no_fallback():
    providers = Providers()
    assert providers.get("outro") is None
    assert sorted(providers) == ["openai_compatible", "scripted"]
    assert len(providers) == 2
    assert isinstance(providers["scripted"], Scripted)


CONDITIONAL = (
    '{"after": "consultar_fatura", "text": "Veja: {evidence}"}',
    '{"noted": "ended", "text": "Voltei."}',
    '{"when": "minha fatura", "tool_calls": [{"name": "consultar_fatura"}]}',
    '{"after": "", "text": "Como posso ajudar?"}',
)


@pytest.mark.parametrize(
    ("messages", "text", "asked"),
    [
        ((user("quero a minha nova fatura"),), "", ["consultar_fatura"]),
        ((user("oi"),), "Como posso ajudar?", []),
        ((ModelMessage("system", "it has ended."), user("oi")), "Voltei.", []),
    ],
)
async def test_scripted__conditions__choose_the_first_entry_that_fits(messages, text, asked):
    reply = await Scripted().complete(call(*messages, script=CONDITIONAL, ordinal=5))
    assert (reply.text, [c.name for c in reply.tool_calls]) == (text, asked)


async def test_scripted__text_with_evidence__says_the_results_in_its_place():
    done = ToolCall(tool="consultar_fatura", server="s", arguments={}, status="ok", result=INVOICE)
    messages = evidence_messages([done], lambda text: text)
    assert (await said(user(), *messages, script=CONDITIONAL)).startswith(
        "Veja: Fatura 3000131180: valor total R$ 129,90"
    )


async def test_scripted__no_entry_fits__says_the_evidence():
    script = ('{"when": "nunca", "text": "x"}',)
    assert (await said(user(), *evidence(INVOICE), script=script)).startswith("Fatura 3000131180")


async def test_scripted__field_of_one_function__is_put_into_texts_and_arguments():
    other = ToolCall(
        tool="outra", server="s", arguments={}, status="ok", result={"x": 1}, ordinal=1
    )
    done = ToolCall(
        tool="consulta", server="s", arguments={}, status="ok", result={"texto": 'diz "oi"'}
    )
    messages = (user(), *evidence_messages([done, other], lambda text: text))
    entry = {
        "after": "outra", "text": "Ele {evidence:consulta.texto}.",
        "tool_calls": [{"name": "report", "arguments": {"findings": "{evidence:consulta.texto}"}}],
    }  # fmt: skip
    reply = await Scripted().complete(call(*messages, script=(json.dumps(entry),)))
    assert reply.text == 'Ele diz "oi".'
    assert json.loads(reply.tool_calls[0].arguments) == {"findings": 'diz "oi"'}

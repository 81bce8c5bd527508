"""What was said before an action was asked for, and what is asked for again (platform facts 15.1, 15.3, 4.8)."""

import pytest

from apps.runtime.ports import ToolUnavailable
from apps.runtime.testing import turn_of
from apps.runtime.turn import ChatMessage
from apps.tools.config import Argument, PreValidation, Response, ToolConfig
from apps.tools.tests.talk import CANCEL, Talk, world
from apps.tools.tests.world import FakeTransport

pytestmark = pytest.mark.asyncio

DONE = {"protocol": "CAN-1", "status": "cancelado"}


def remembering(*said, thread="", **options):
    """Return a conversation in its next turn, in which the customer said these, oldest first."""
    lines = [
        line
        for text in said
        for line in (
            ChatMessage(role="user", text=text, thread=thread),
            ChatMessage(role="assistant", text="O pedido PED-0 chega hoje."),
        )
    ]
    transport = options.pop("transport", None) or FakeTransport({"cancelar_pedido": DONE})
    talk = Talk(transport=transport, memory=tuple(lines), **options)
    talk.turns = [turn_of() for _ in said]
    return talk


async def opened(*said, text="quero cancelar meu pedido", **options):
    talk = remembering(*said, **options)
    await talk.say(text)
    return talk.dialogue.transaction


async def test_said_before__newest_first__fills_what_is_missing_and_keeps_its_origin():
    transaction = await opened("meu pedido é o PED-1", "e o PED-2, onde está?", "obrigado")

    assert transaction.values == {"order_id": "PED-2"}
    assert transaction.origins == {"order_id": "earlier"}
    assert transaction.missing == ("reason",)


async def test_said_before__and_said_now__what_is_said_now_stands():
    transaction = await opened("onde está o PED-2?", text="quero cancelar o PED-9")

    assert transaction.values == {"order_id": "PED-9"}
    assert transaction.origins == {"order_id": "said"}


@pytest.mark.parametrize(
    "said",
    [
        ("o PED-3 chegou", "tenho o PED-1 e o PED-2"),
        ("meu pedido é o PED-1", "o pedido não é o PED-1"),
        ("meu pedido é o PED-1", "esquece"),
        ("são 3 caixas", "faz 2 dias"),
    ],
    ids=["ambiguous", "withdrawn", "given up", "no identifier"],
)
async def test_said_before__ambiguous_or_taken_back__stays_open_whatever_is_older(said):
    transaction = await opened(*said)

    assert transaction.values == {}
    assert transaction.missing == ("order_id", "reason")


async def test_said_before__the_last_action_ended__is_not_revived():
    talk = remembering(transport=FakeTransport({"cancelar_pedido": DONE}))
    for text in ("quero cancelar meu pedido", "PED-1001", "comprei errado", "sim"):
        await talk.say(text)
    assert talk.status == "COMPLETED"
    said = ("quero cancelar meu pedido", "PED-1001", "comprei errado", "sim", "obrigado")
    await talk.say("obrigado", elsewhere=True)
    talk.memory = tuple(ChatMessage(role="user", text=text) for text in said)

    await talk.say("quero cancelar meu pedido")

    assert talk.dialogue.transaction.values == {}


async def test_said_before__to_a_specialist_or_for_an_action_nobody_is_asked_about__is_not_used():
    at_once = CANCEL.model_copy(update={"confirmation_required": False})

    to_specialist = await opened("meu pedido é o PED-1", thread="sub-1")
    unasked = await opened("meu pedido é o PED-1", release=world(cancelar_pedido=at_once))

    assert (to_specialist.values, unasked.values) == ({}, {})


async def test_unknown_and_asked_for_again__its_state_is_looked_up_before_anything_is_sent():
    """An end that nobody knows: the check reads what became of it, before a yes could send it again."""
    sent = []

    def cancel(arguments):
        sent.append(arguments)
        raise ToolUnavailable("gone", sent=True)

    def check(arguments):
        return {"eligible": not sent, "reason": "O pedido já está cancelado."}

    tool = CANCEL.model_copy(update={"pre_validation": PreValidation(tool="validar")})
    validator = ToolConfig(
        mcp_server="retail", args_schema={"order_id": Argument()}, requires=["order_id"]
    )
    talk = Talk(
        transport=FakeTransport({"cancelar_pedido": cancel, "validar": check}),
        release=world(cancelar_pedido=tool, validar=validator),
    )
    await talk.say("quero cancelar o pedido PED-77, motivo: comprei errado")
    await talk.say("sim")
    assert talk.status == "UNKNOWN"

    await talk.say("quero cancelar o pedido PED-77, motivo: comprei errado")

    assert (talk.status, talk.said) == ("OUT_OF_SCOPE", "O pedido já está cancelado.")
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("wish", "said"), [(True, ""), ("true", "Pronto: CAN-1."), (None, "Pronto: CAN-1.")]
)
async def test_result_that_asks_for_a_models_words__the_fixed_text_is_not_said(wish, said):
    direct = CANCEL.model_copy(
        update={"response": Response(template="Pronto: {result.protocol}.", direct=True)}
    )
    result = {**DONE, "requires_llm_composition": wish}
    talk = Talk(
        transport=FakeTransport({"cancelar_pedido": result}), release=world(cancelar_pedido=direct)
    )
    await talk.say("quero cancelar o pedido PED-77, motivo: comprei errado")

    await talk.say("sim")

    assert (talk.status, talk.said) == ("COMPLETED", said)

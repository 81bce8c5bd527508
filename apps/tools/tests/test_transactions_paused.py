"""What an unclear answer to a paused workflow means, where its question asks a model (platform facts 3.6)."""

from dataclasses import replace

import pytest

from apps.runtime.config import KindConfig
from apps.tools.config import Execution
from apps.tools.tests.talk import CANCEL, PausingWorkflow, Talk, world
from apps.tools.tests.world import FakeTransport

pytestmark = pytest.mark.asyncio


class Profile(KindConfig):
    """As a model profile of another app: that there is one is enough."""

    kind = "model_profile"


async def paused(*answers, profile="reader"):
    """Return a conversation whose workflow waits for "sim" or "ainda não", and what a model says."""
    tool = CANCEL.model_copy(update={"execution": Execution(mode="workflow", workflow="flow")})
    release = world(cancelar_pedido=tool)
    release = replace(release, items={**release.items, ("model_profile", "reader"): Profile()})
    talk = Talk(
        transport=FakeTransport({}),
        release=release,
        workflows=PausingWorkflow(profile),
        readings=answers,
    )
    await talk.say("quero cancelar o pedido PED-77, motivo: comprei errado")
    await talk.say("sim")
    assert (talk.status, talk.said) == ("WORKFLOW_PAUSED", "Já chegou?")
    return talk


async def test_paused__unclear_answer__a_model_says_which_one_is_meant():
    talk = await paused('{"answer": "sim"}')

    await talk.say("o carteiro entregou de manhã")

    assert talk.workflows.answers == ["sim"]
    assert talk.last.reading.source == "semantic"
    assert talk.status == "COMPLETED"
    [call] = talk.last.model_calls
    assert call.operation == "reader"


@pytest.mark.parametrize("answer", ['{"answer": "talvez"}', '{"answer": null}', "sim", "{}"])
async def test_paused__model_says_none_of_the_answers__the_question_stays(answer):
    talk = await paused(answer)

    await talk.say("o carteiro passou")

    assert (talk.last.reading.kind, talk.status) == ("unclear", "WORKFLOW_PAUSED")


@pytest.mark.parametrize(
    "text", ["sim", "ainda não", "esquece", "ainda não. Eu não contratei esse item"]
)
async def test_paused__literal_answer_giving_up_or_more_to_say__no_model_is_asked(text):
    talk = await paused('{"answer": "sim"}')

    await talk.say(text)

    assert talk.last.model_calls == ()
    assert talk.last.reading.source == "deterministic"


async def test_paused__question_that_wants_no_model_or_has_none__stays_unclear():
    for profile in ("", "absent"):
        talk = await paused('{"answer": "sim"}', profile=profile)
        await talk.say("o carteiro entregou")
        assert (talk.last.reading.kind, talk.last.model_calls) == ("unclear", ())

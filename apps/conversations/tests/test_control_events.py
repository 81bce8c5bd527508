"""A conversation given to a person or ended is told as an event (platform facts 3.5)."""

import pytest

from apps.conversations import services
from apps.conversations.models import Event
from apps.conversations.tests.test_run_turn import take, walked
from apps.runtime.outcomes import Answered, Ended, HandedOver
from apps.runtime.turn import Route
from apps.tenants.scope import tenant_transaction

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("control", "outcome", "event"),
    [
        ("HUMAN_HANDOFF", HandedOver("Um momento.", "customer"), "session.human_handoff.requested"),
        ("END_SESSION", Ended("Até logo!"), "session.end.requested"),
        ("", Answered("Olá!"), None),
    ],
)
def test_settle__of_a_conversation_given_away_or_ended__tells_it_once(
    control, outcome, event, say, deployed
):
    turn = walked(take(deployed, say("atendente").turn_id)).evolve(
        outcome=outcome,
        route=Route(agent="helper", intent="x", method="control", confidence=1.0, control=control),
    )

    services.turn_settle(turn=turn, tenant_id=deployed.pk)

    with tenant_transaction(deployed):
        told = list(Event.objects.values_list("event_type", flat=True))
    assert [name for name in told if name.endswith(".requested")] == ([event] if event else [])

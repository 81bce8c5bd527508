"""Messages and changes of what runs, one after the other in any order: each message's release is the
one that ``choosing`` says. With real processes: ``services/test_changing.py``."""

import random
import time
from uuid import UUID

import pytest

from agentops.tests.services.changing import (
    ENVIRONMENTS,
    Changer,
    Place,
    Said,
    place_make,
    verdict_of,
)
from apps.conversations.models import Session, TurnRecord
from apps.conversations.services import turn_accept
from apps.releases.selectors import caches_clear
from apps.runtime.turn import Caller, Inbound
from apps.tenants.scope import tenant_scope, tenant_transaction

STEPS = 700


@pytest.mark.django_db
@pytest.mark.parametrize("seed", [1, 2])
def test_messages__between_changes_of_what_runs__run_on_what_the_rules_say(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("agentops.wiring.ring", lambda tenant_id, turn_id: None)
    place = place_make()
    chance = random.Random(seed)  # the same run every time
    changers = {name: Changer(place, name, seed, 0) for name in ENVIRONMENTS}
    talks: list[list[Said]] = []
    for step in range(STEPS):
        environment = chance.choice(ENVIRONMENTS)
        if chance.random() < 0.25:
            changers[environment].act()
        elif talks and chance.random() < 0.6:
            talk = chance.choice(talks[-25:])
            talk.append(said(place, talk[0].environment, talk[0].session, len(talk)))
        else:
            talks.append([said(place, environment, f"conversa-{step}", 0)])
        if step % 50 == 0:
            caches_clear()  # another process
    verdict = verdict_of(place, talks)
    assert verdict.illegal == []
    assert verdict.lost == []
    assert verdict.turns > 400
    assert verdict.moved_legally > 5
    assert verdict.finished_on_theirs > 100
    with tenant_transaction(place.tenant):
        assert Session.objects.count() == len(talks)


def said(place: Place, environment: str, session: str, number: int) -> Said:
    """Accept one message; nobody answers it."""
    sent = time.time()
    with tenant_scope(place.tenant):
        accepted = turn_accept(
            inbound=Inbound(
                channel="web",
                text="oi",
                agent=None,
                message_id=f"m{number}",
                session=session,
                caller=Caller(principal="key:test"),
            ),
            tenant_slug=place.tenant.slug,
            environment=environment,
        )
    known = time.time()
    with tenant_transaction(place.tenant):
        release: UUID = TurnRecord.objects.values_list("release_id", flat=True).get(
            pk=accepted.turn_id
        )
    return Said(environment, session, sent, known, release, place.text(release), accepted.turn_id)

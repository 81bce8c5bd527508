"""Workflow runs in the database: who holds one, what is kept, and what outlives a process."""

import json
import os
import subprocess
import sys
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection
from django.utils import timezone

from apps.conversations.models import Session, TurnRecord
from apps.releases.services import item_save, release_publish
from apps.runtime.ports import LeaseLost, WorkflowNodeRow
from apps.runtime.turn import SessionState
from apps.tenants.scope import tenant_transaction
from apps.tools.tests.workflow_process import FileServer
from apps.tools.tests.workflow_rows import (
    IDEMPOTENT,
    NODES,
    RUN,
    go,
    published,
    turn_in,
    workflows,
)
from apps.tools.tests.workflow_world import Server
from apps.tools.workflow_models import WorkflowNodeRun, WorkflowRun
from apps.tools.workflows.adapters import DatabaseWorkflows
from apps.tools.workflows.interface import Code

pytestmark = pytest.mark.django_db

OTHER_SESSION = "11111111-0000-4000-8000-000000000002"
INPUTS = {"order_id": "PED-1"}


@pytest.fixture
def release(world) -> str:
    return published(world.acme)


def ran(work: Any) -> Any:
    """Wait for ``work`` on this thread's database connection."""

    async def done() -> Any:
        return await work

    return async_to_sync(done)()


def rows(tenant) -> list[tuple[str, str, str]]:
    with tenant_transaction(tenant):
        found = WorkflowNodeRun.objects.order_by("pk")
        return [(row.kind, row.node, row.status) for row in found]


def run_row(tenant) -> Any:
    with tenant_transaction(tenant):
        return WorkflowRun.objects.get(pk=RUN)


def elsewhere(world, release, **changes):
    """A turn of the same customer in another conversation."""
    session = SessionState(id=OTHER_SESSION, agent="a", turn_number=1)
    return turn_in(world.acme.pk, release, 9, session=session, **changes)


def test_run__over_two_turns__is_kept_node_by_node(world, release):
    server = Server()
    now = turn_in(world.acme.pk, release)
    _turn, paused = ran(workflows(server).start(now, "troca", INPUTS, RUN))
    assert (paused.status, paused.question) == ("PAUSED", "Qual o motivo?")
    row = run_row(world.acme)
    assert (row.status, row.node, row.ended_at) == ("PAUSED", "pergunta", None)
    assert str(row.release_id) == release
    later = turn_in(world.acme.pk, release, 2)
    assert ran(workflows(server).expects(later, RUN, " Defeito ")) == "Defeito"
    _turn, done = ran(workflows(server).resume(later, RUN, "Defeito"))
    assert (done.status, done.text) == ("COMPLETED", "Pronto.")
    assert server.effects == ["reservar", "trocar", "avisar"]
    assert rows(world.acme) == [
        ("call", "reserva", "ok"),
        ("pause", "pergunta", "answered"),
        ("call", "troca", "ok"),
        ("call", "aviso", "ok"),
    ]
    row = run_row(world.acme)
    assert (row.status, row.ended_at is not None) == ("COMPLETED", True)


def test_what_tools_answer_and_what_was_given__is_not_readable_in_the_tables(world, release):
    server = Server({"reservar": {"cpf": "529.982.247-25"}})
    now = turn_in(world.acme.pk, release, vault={"<CPF_1>": "111.444.777-35"})
    nodes = [{**NODES[0], "next": "", "params": {"cpf": "$.input.cpf"}}]
    again = published(world.acme, nodes)
    now = replace(now, release=turn_in(world.acme.pk, again).release)
    given = {"cpf": "<CPF_1>", "order_id": "segredo"}
    ran(workflows(server).start(now, "troca", given, RUN))
    assert server.calls[0][1]["cpf"] == "111.444.777-35"
    kept = everything(world.acme)
    for secret in ("529.982.247-25", "111.444.777-35", "segredo"):
        assert secret not in kept
    assert '{"cpf":"<CPF_1>"}' in kept


def everything(tenant) -> str:
    with tenant_transaction(tenant):
        found = [*WorkflowRun.objects.values(), *WorkflowNodeRun.objects.values()]
    return "\n".join(str(value) for row in found for value in row.values())


def test_release__deployed_while_it_waits__the_run_goes_on_with_its_own(world, release):
    server = Server()
    ran(workflows(server).start(turn_in(world.acme.pk, release), "troca", INPUTS, RUN))
    newer = changed(world.acme)
    later = turn_in(world.acme.pk, newer, 2)
    after, done = ran(workflows(server).resume(later, RUN, "x"))
    assert done.status == "COMPLETED"
    # In the newer release the tool goes by another name and is all there is; new runs go by that.
    assert server.effects == ["reservar", "trocar", "avisar"]
    assert after.release.id == newer
    fresh = turn_in(world.acme.pk, newer, 3)
    ran(workflows(server).start(fresh, "troca", {"order_id": "PED-2"}, "another"))
    assert server.effects[3:] == ["avisar_novo"]


def changed(tenant) -> str:
    with tenant_transaction(tenant):
        renamed = {"mcp_server": "shop", "tool_type": "action", "remote_name": "avisar_novo"}
        item_save(kind="tool", slug="avisar", content=renamed, actor="test")
        flow = {
            "start": "aviso",
            "nodes": [{"id": "aviso", "tool": "avisar", "at_most_once": True}],
        }
        item_save(kind="workflow", slug="troca", content=flow, actor="test")
        return str(release_publish(actor="test").pk)


def test_run__of_another_tenant__is_absent(world, release):
    ran(workflows(Server()).start(turn_in(world.acme.pk, release), "troca", INPUTS, RUN))
    foreign = published(world.other)
    stranger = turn_in(world.other.pk, foreign, 2)
    _turn, result = ran(workflows(Server()).resume(stranger, RUN, "x"))
    assert result.code == Code.UNKNOWN_RUN
    assert ran(workflows(Server()).expects(stranger, RUN, "x")) == ""


# -- who holds it ------------------------------------------------------------------------------


def test_older_holder_of_the_turn__writes_nothing_any_more(world, release):
    store = DatabaseWorkflows()
    old = turn_in(world.acme.pk, release, fence=1)
    ran(workflows(Server(), store=store).start(old, "troca", INPUTS, RUN))
    new = replace(old, fence=2)
    ran(store.take(new, RUN))
    row = WorkflowNodeRow(kind="call", node="aviso", visit=1, status="begun", turn=old.id)
    for late in (
        store.note(old, RUN, row),
        store.close(old, RUN, status="FAILED", node="", outcome="{}", error=""),
        store.take(old, RUN),
    ):
        with pytest.raises(LeaseLost):
            ran(late)
    ran(store.note(new, RUN, row))


def test_older_turn_of_the_session__does_not_take_it_back(world, release):
    store = DatabaseWorkflows()
    first, second = turn_in(world.acme.pk, release), turn_in(world.acme.pk, release, 2)
    ran(workflows(Server()).start(first, "troca", INPUTS, RUN))
    ran(store.take(second, RUN))
    with pytest.raises(LeaseLost):
        ran(store.take(first, RUN))


def test_same_request_in_another_conversation__while_it_runs__is_not_begun(world, release):
    server, store = Server(), DatabaseWorkflows()
    first = turn_in(world.acme.pk, release)
    ran(workflows(server).start(first, "troca", INPUTS, RUN))
    ran(store.take(first, RUN))
    _turn, result = ran(workflows(server).start(elsewhere(world, release), "troca", INPUTS, "b"))
    assert result.code == Code.IN_PROGRESS
    assert server.effects == ["reservar"]


def test_same_request_in_another_conversation__while_it_waits__is_asked_there(world, release):
    server = Server()
    ran(workflows(server).start(turn_in(world.acme.pk, release), "troca", INPUTS, RUN))
    there = elsewhere(world, release)
    _turn, result = ran(workflows(server).start(there, "troca", INPUTS, "b"))
    assert (result.status, result.execution_id) == ("PAUSED", RUN)
    again = elsewhere(world, release, id=str(uuid.uuid4()))
    _turn, done = ran(workflows(server).resume(again, RUN, "Defeito"))
    assert done.status == "COMPLETED"
    assert server.effects == ["reservar", "trocar", "avisar"]
    # The conversation it left finds it no more.
    back = turn_in(world.acme.pk, release, 2)
    _turn, left = ran(workflows(server).resume(back, RUN, "Defeito"))
    assert left.code == Code.UNKNOWN_RUN


def test_same_request__long_after_it_ended__is_carried_out_again(world, release):
    server = Server()
    ran(workflows(server).start(turn_in(world.acme.pk, release), "troca", INPUTS, RUN))
    later = turn_in(world.acme.pk, release, 2)
    ran(workflows(server).resume(later, RUN, "x"))
    third = turn_in(world.acme.pk, release, 3)
    _turn, soon = ran(workflows(server).start(third, "troca", INPUTS, "soon"))
    assert (soon.replayed, soon.execution_id, soon.text) == (True, RUN, "Pronto.")
    age(world.acme)
    _turn, much_later = ran(workflows(server).start(third, "troca", INPUTS, "later"))
    assert much_later.status == "PAUSED"
    assert server.effects.count("reservar") == 2


def age(tenant) -> None:
    with tenant_transaction(tenant):
        WorkflowRun.objects.update(ended_at=timezone.now() - timedelta(seconds=3601))


def test_abandoned_run__is_taken_back_and_kept_as_that(world, release):
    server = Server()
    ran(workflows(server).start(turn_in(world.acme.pk, release), "troca", INPUTS, RUN))
    later = turn_in(world.acme.pk, release, 2)
    _turn, result = ran(workflows(server).abandon(later, RUN))
    assert (result.code, result.compensated) == (Code.ABANDONED, ("reserva",))
    row = run_row(world.acme)
    assert row.status == "COMPENSATED"
    assert ("compensation", "reserva", "ok") in rows(world.acme)


def test_coverage__of_a_run_that_is_not_confirmed_or_not_held__is_none(world, release):
    store = DatabaseWorkflows()
    now = turn_in(world.acme.pk, release)
    ran(workflows(Server()).start(now, "troca", INPUTS, RUN))
    ran(store.take(now, RUN))
    assert not ran(store.covers(now, RUN, "avisar"))
    confirm(world.acme)
    assert ran(store.covers(now, RUN, "avisar"))
    assert not ran(store.covers(now, RUN, "another_tool"))
    assert not ran(store.covers(replace(now, fence=7), RUN, "avisar"))
    stranger = turn_in(world.acme.pk, release, 4)
    assert not ran(store.covers(stranger, RUN, "avisar"))


def confirm(tenant) -> None:
    with tenant_transaction(tenant):
        WorkflowRun.objects.update(confirmed=True)


# -- two processes -----------------------------------------------------------------------------


def claimed(tenant: Any, release: str, number: int, fence: int) -> dict[str, Any]:
    """Make the session's ``number``-th turn one that a worker holds with ``fence``."""
    with tenant_transaction(tenant):
        session, _made = Session.objects.get_or_create(
            key="acme:a:s", defaults={"name": "s", "agent": "a", "channel": "web", "principal": "p"}
        )
        TurnRecord.objects.filter(number__lt=number).update(status="settled")
        record, _made = TurnRecord.objects.update_or_create(
            session=session,
            number=number,
            defaults={
                "channel": "web",
                "user": "p",
                "message_id": f"m{number}",
                "body_digest": "0" * 64,
                "release_id": uuid.UUID(release),
                "environment": "production",
                "inbound": "",
                "fence": fence,
                "status": "running",
            },
        )
    return {
        "tenant": tenant.pk,
        "release": release,
        "session": str(session.pk),
        "turn": str(record.pk),
        "number": number,
        "fence": fence,
        "answer": "Defeito" if number > 1 else "",
    }


def in_another_process(told: dict[str, Any]) -> int:
    """Carry the run on in a process of its own; return how it exited."""
    database = connection.settings_dict
    where = f"{database['HOST']}:{database['PORT'] or 5432}/{database['NAME']}"
    who = database["USER"] + (f":{database['PASSWORD']}" if database["PASSWORD"] else "")
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgres://{who}@{where}",
        "SECRET_KEY": settings.SECRET_KEY,
    }
    command = [sys.executable, "-m", "apps.tools.tests.workflow_process", json.dumps(told)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("dies", "status", "effects"),
    [
        ("before_record:troca", "COMPLETED", ["reservar", "trocar", "avisar"]),
        ("before_record:aviso", "COMPLETED", ["reservar", "trocar", "avisar"]),
        ("after_effect:trocar", "COMPLETED", ["reservar", "trocar", "avisar"]),
        ("after_effect:avisar", "UNKNOWN", ["reservar", "trocar", "avisar"]),
    ],
)
@pytest.mark.parametrize("same_turn", [True, False])
def test_process_killed_in_the_middle__another_goes_on__no_effect_twice(
    world, tmp_path: Path, dies, status, effects, same_turn
):
    """The same turn is claimed again, or given up and the customer's next one goes on.

    A later turn has no ledger of what the first did: there an action without a recorded end is
    unknown, and an idempotent one is repeated under its key, which its server knows.
    """
    release = published(world.acme)
    file = str(tmp_path / "effects")
    assert in_another_process({**claimed(world.acme, release, 1, 1), "file": file}) == 0
    told = {**claimed(world.acme, release, 2, 1), "file": file}
    assert in_another_process({**told, "dies": dies}) == 9
    again = claimed(world.acme, release, 2 if same_turn else 3, 2)
    result = go({**again, "file": file})
    if not same_turn and dies == "before_record:aviso":
        status = "UNKNOWN"
    assert result.run_status == status
    server = FileServer(Path(file), idempotent=IDEMPOTENT)
    assert server.effects == effects
    assert len({key for key, _tool in server.lines}) == len(server.lines)

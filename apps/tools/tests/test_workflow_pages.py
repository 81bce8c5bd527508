"""Pages of workflow runs: who sees them, what of them, and how many questions they ask."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.runtime.canonical import canonical_json
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal
from apps.tenants.services import membership_grant
from apps.tools.tests.workflow_rows import RUN, published
from apps.tools.workflow_models import WorkflowNodeRun, WorkflowRun

pytestmark = pytest.mark.django_db

LIST = reverse("admin:tools_workflowrun_changelist")
DETAIL = reverse("admin:tools_workflowrun_change", args=[RUN])


@pytest.fixture
def release(world) -> str:
    return published(world.acme)


def run_make(release: str, pk: str = "", **fields: Any) -> Any:
    turn = uuid.uuid4()
    given = {
        "workflow": "troca",
        "status": "FAILED",
        "error": "Recusado para o CPF 529.982.247-25",
        "node": "troca",
        "agent": "a",
        **fields,
    }
    return WorkflowRun.objects.create(
        id=pk or uuid.uuid4(),
        session_id=uuid.uuid4(),
        release_id=uuid.UUID(release),
        definition="{}",
        identity=uuid.uuid4().hex,
        inputs=seal({"text": '{"order_id":"PED-1"}'}),
        began_turn=turn,
        turn=turn,
        turn_number=1,
        fence=1,
        **given,
    )


@pytest.fixture
def run(world, release) -> Any:
    with tenant_transaction(world.acme):
        made = run_make(release, RUN)
        answer = {"error": "", "result": {"cpf": "529.982.247-25", "id": "R-9"}}
        WorkflowNodeRun.objects.create(
            run=made,
            kind="call",
            node="reserva",
            visit=1,
            status="ok",
            tool="reservar",
            attempts=2,
            arguments='{"order_id":"PED-1"}',
            result=seal({"text": canonical_json(answer)}),
            turn=uuid.uuid4(),
        )
    return made


def test_detail__for_who_may_read_traces__shows_nodes_and_masks_personal_data(run, as_bob):
    page = as_bob.get(DETAIL)
    text = page.content.decode()
    assert page.status_code == 200
    for shown in ("reserva", "reservar", "R-9", "PED-1", "Failed"):
        assert shown in text
    assert "529.982.247-25" not in text


def test_detail__without_the_trace__shows_what_happened_but_no_values(run, world, client):
    person = User.objects.create_user("rita")
    with tenant_transaction(world.acme):
        membership_grant(user=person, role=Role.OPERATOR, actor="test")
    from apps.tenants import roles

    kept = roles.PERMISSIONS[Role.OPERATOR]
    roles.PERMISSIONS[Role.OPERATOR] = kept - {"conversations.trace"}
    try:
        client.force_login(person)
        text = client.get(DETAIL).content.decode()
    finally:
        roles.PERMISSIONS[Role.OPERATOR] = kept
    assert "reserva" in text
    assert "R-9" not in text
    assert "PED-1" not in text


def test_pages__of_another_tenant__are_absent(run, as_charlie):
    assert as_charlie.get(DETAIL).status_code == 404
    assert b"troca" not in as_charlie.get(LIST).content
    absent = reverse("admin:tools_workflowrun_change", args=[uuid.uuid4()])
    assert as_charlie.get(absent).status_code == 404


def test_pages__change_nothing(run, as_alice):
    assert as_alice.get(reverse("admin:tools_workflowrun_add")).status_code == 403
    delete = reverse("admin:tools_workflowrun_delete", args=[RUN])
    assert as_alice.post(delete).status_code == 403


def test_list__by_state_and_name__shows_those(world, release, as_alice):
    with tenant_transaction(world.acme):
        run_make(release, workflow="cancelamento", status="COMPLETED")
        run_make(release, workflow="devolucao", status="UNKNOWN")
    assert b"devolucao" in as_alice.get(LIST).content
    done = as_alice.get(LIST, {"status": "COMPLETED"}).content
    assert (b"cancelamento" in done, b"devolucao" in done) == (True, False)
    named = as_alice.get(LIST, {"q": "devol"}).content
    assert (b"cancelamento" in named, b"devolucao" in named) == (False, True)
    assert b"No run is like that" in as_alice.get(LIST, {"status": "PAUSED"}).content
    assert as_alice.get(LIST, {"status": "no state", "p": "zz"}).status_code == 200


def test_list__of_many_runs__has_pages_and_asks_no_more_questions(world, release, as_alice):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            page = as_alice.get(LIST)
        assert page.status_code == 200
        return len(asked)

    with tenant_transaction(world.acme):
        run_make(release)
    as_alice.get(LIST)
    few = queries()
    with tenant_transaction(world.acme):
        for _number in range(60):
            run_make(release)
    assert queries() <= few
    second = as_alice.get(LIST, {"p": "2"}).content.decode()
    assert second.count('scope="row"') == 11

"""Versions and contracts through the API: Alice changes them, others read, Charlie sees his own."""

import pytest

from agentops.tests.governed_world import Governed
from apps.governance.approval_models import CompatibilityRow
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.django_db, pytest.mark.governed]
ROW = {"framework": "2.1.x", "runtime": "2.1.x", "agent_gateway": "2.0.x", "supported": True}
MATRIX = "governance/compatibility"
CONTRACT = "governance/contracts/gateway-request/1"


def test_compatibility__a_row__is_added_changed_and_listed(governed: Governed):
    added = governed.call("post", MATRIX, ROW, by="alice", status=201)
    assert added["updated_by"] == "user:alice"
    changed = {**ROW, "supported": False}
    governed.call("put", f"{MATRIX}/{added['id']}", changed, by="alice", status=200)
    (row,) = governed.call("get", MATRIX, by="bob", status=200)["rows"]
    assert (row["agent_gateway"], row["supported"]) == ("2.0.x", False)


def test_compatibility__what_is_no_version__is_refused_by_field(governed: Governed):
    wrong = {**ROW, "runtime": "latest"}
    answer = governed.call("post", MATRIX, wrong, by="alice", status=422)
    assert [error["field"] for error in answer["errors"]] == ["runtime"]


def test_contract__built_in__is_listed_deprecated_and_never_active_again(
    governed: Governed,
):
    (shown,) = governed.call("get", "governance/contracts", by="bob", status=200)["contracts"]
    assert (shown["name"], shown["built_in"]) == ("gateway-request", True)
    given = {"status": "deprecated", "deprecated_on": "2026-06-01"}
    kept = governed.call("put", CONTRACT, given, by="alice", status=200)
    assert (kept["built_in"], kept["schema"]) == (False, shown["schema"])
    answer = governed.call("put", CONTRACT, {"status": "active"}, by="alice", status=422)
    assert [error["field"] for error in answer["errors"]] == ["status"]


@pytest.mark.parametrize("who", ["olga", "ana", "bob", "system"])
def test_versions__changed_by_who_does_not_govern__are_refused(
    governed: Governed,
    who: str,
):
    governed.call("post", MATRIX, ROW, by=who, status=403)
    governed.call("put", CONTRACT, {"status": "active"}, by=who, status=403)
    with tenant_transaction(governed.world.acme):
        assert not CompatibilityRow.objects.exists()


def test_compatibility__row_of_another_tenant__is_absent(governed: Governed):
    added = governed.call("post", MATRIX, ROW, by="alice", status=201)
    governed.call("put", f"{MATRIX}/{added['id']}", ROW, by="charlie", status=404)
    assert governed.call("get", MATRIX, by="charlie", status=200)["rows"] == []

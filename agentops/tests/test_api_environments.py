"""The configuration API: deploy, promote, roll back, canary, freeze, bindings, duties."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agentops.tests.governed_world import Governed
from agentops.tests.test_api_changes import approved

pytestmark = [pytest.mark.django_db, pytest.mark.governed]


def published(governed: Governed) -> int:
    number = approved(governed)["number"]
    change = governed.call("post", f"changes/{number}/publish", by="ana", status=200)
    return int(change["release"])


def runs(governed: Governed) -> dict[str, int]:
    shown = governed.call("get", "environments", by="bob", status=200)["environments"]
    return {e["name"]: e["release"]["number"] for e in shown}


def test_release__promoted_and_rolled_back__one_hop_at_a_time(governed):
    release = published(governed)
    body = {"release": release, "in_flight": "pin", "max_pin_hours": 5}
    said = governed.call("post", "environments/production/promote", body, by="ana", status=200)
    assert (said["release"]["number"], said["in_flight"], said["max_pin_hours"]) == (
        release,
        "pin",
        5,
    )
    assert runs(governed) == {"dev": 1, "staging": release, "production": release}
    body = {"release": 1, "reason": "Customers complain"}
    governed.call("post", "environments/production/roll-back", body, by="otto", status=200)
    assert runs(governed)["production"] == 1
    history = governed.call("get", "environments/production/history?limit=2", status=200)["results"]
    assert [(e["verb"], e["release"], e["previous"]) for e in history] == [
        ("roll_back", 1, release), ("promote", release, 1),
    ]  # fmt: skip


def test_release__deployed_past_staging__is_refused_and_said_so(governed):
    release = published(governed)
    refused = governed.call(
        "post", "environments/production/deploy", {"release": release}, by="ana", status=409
    )
    assert refused["code"] == "HOP_SKIPPED"
    assert runs(governed)["production"] == 1


def test_release__rolled_back_to_one_that_never_ran__is_refused(governed):
    release = published(governed)
    body = {"release": release, "reason": "x"}
    refused = governed.call("post", "environments/dev/roll-back", body, by="ana", status=409)
    assert refused["code"] == "NEVER_RAN"


def test_release__that_is_not_there__is_absent(governed):
    governed.call("post", "environments/dev/deploy", {"release": 99}, by="ana", status=404)
    governed.call("post", "environments/moon/deploy", {"release": 1}, by="ana", status=404)


def test_canary__started_changed_and_finished(governed):
    release = published(governed)
    where = "environments/production/canary"
    body = {"release": release, "share": 10, "rules": {"max_error_rate": 0.2}}
    said = governed.call("post", where, body, by="ana", status=200)
    assert (said["canary"]["number"], said["canary_share"]) == (release, 10)
    assert said["canary_rules"]["max_error_rate"] == 0.2
    assert governed.call("patch", where, {"share": 50}, by="ana", status=200)["canary_share"] == 50
    assert governed.call("post", where, body, by="ana", status=409)["code"] == "CANARY_REFUSED"
    said = governed.call("post", f"{where}/finish", {}, by="ana", status=200)
    assert (said["release"]["number"], said["canary"]) == (release, None)
    stop = {"reason": "nothing to stop"}
    assert governed.call("post", f"{where}/stop", stop, by="ana", status=409)["code"] == (
        "CANARY_REFUSED"
    )


def test_environment__frozen__is_not_promoted_to(governed):
    release = published(governed)
    now = timezone.now()
    body = {
        "starts_at": (now - timedelta(hours=1)).isoformat(),
        "ends_at": (now + timedelta(hours=1)).isoformat(),
        "reason": "Black Friday",
    }
    window = governed.call("post", "environments/production/freezes", body, by="otto", status=201)
    promote = {"release": release}
    refused = governed.call(
        "post", "environments/production/promote", promote, by="ana", status=409
    )
    assert refused["code"] == "FROZEN"
    assert "Black Friday" in refused["detail"]
    where = f"environments/production/freezes/{window['id']}"
    governed.call("post", where.replace("production", "dev") + "/end", {}, by="otto", status=404)
    governed.call("post", f"{where}/end", {}, by="otto", status=200)
    governed.call("post", "environments/production/promote", promote, by="ana", status=200)


def test_freeze__that_ends_before_it_starts__names_the_field(governed):
    body = {"starts_at": "2030-01-02T00:00:00Z", "ends_at": "2030-01-01T00:00:00Z", "reason": "x"}
    refused = governed.call("post", "environments/dev/freezes", body, by="otto", status=422)
    assert refused["errors"][0]["field"] == "ends_at"


def test_binding__of_production__takes_a_second_person(governed):
    value = {"value": "http://127.0.0.1:9/crm"}
    governed.call("put", "environments/dev/bindings/address/crm", value, by="otto", status=200)
    where = "environments/production"
    refused = governed.call("put", f"{where}/bindings/address/crm", value, by="otto", status=409)
    assert refused["code"] == "BINDING_NEEDS_APPROVAL"
    body = {"what": "address", "name": "crm", "reason": "new system", **value}
    proposal = governed.call("post", f"{where}/binding-proposals", body, by="otto", status=201)
    decide = f"{where}/binding-proposals/{proposal['id']}/decide"
    governed.call("post", decide, {"approve": True}, by="otto", status=403)
    governed.call("post", decide, {"approve": True}, by="charlie", status=404)
    said = governed.call("post", decide, {"approve": True}, by="alice", status=200)
    assert said["status"] == "approved"
    bound = governed.call("get", f"{where}/bindings", by="bob", status=200)["results"]
    assert [(b["name"], b["value"]) for b in bound] == [("crm", value["value"])]
    listed = governed.call("get", f"{where}/binding-proposals?status=open", status=200)
    assert listed["results"] == []


def test_binding__by_a_role_that_may_not__is_refused(governed):
    body = {"value": "http://127.0.0.1:9/x"}
    governed.call("put", "environments/dev/bindings/address/x", body, by="ana", status=403)


# -- governance ------------------------------------------------------------------------------------
def test_matrix__changed_by_an_admin__and_by_nobody_else(governed):
    shown = governed.call("get", "governance/matrix", by="bob", status=200)
    activity = next(iter(shown["matrix"]))
    body = {"letters": {"domain": "R/A", "security": "C"}}
    where = f"governance/matrix/{activity}"
    governed.call("put", where, body, by="ana", status=403)
    assert governed.call("put", where, body, by="system", status=403)["code"] == "PERSON_REQUIRED"
    said = governed.call("put", where, body, by="alice", status=200)
    assert said["matrix"][activity]["domain"] == "R/A"
    wrong = governed.call("put", where, {"letters": {"moon": "A"}}, by="alice", status=422)
    assert wrong["errors"][0]["field"] == "moon"
    governed.call("put", "governance/matrix/nothing", body, by="alice", status=404)


def test_quorum__never_falls_below_what_holds_for_all(governed):
    listed = governed.call("get", "governance/quorums", by="bob", status=200)["quorums"]
    assert {q["risk"] for q in listed} == {"cosmetic", "behaviour", "weakening"}
    body = {"approvals": 2, "extra_duty": "sre"}
    said = governed.call("put", "governance/quorums/behaviour", body, by="alice", status=200)
    assert said == {"risk": "behaviour", **body}
    low = {"approvals": 1, "extra_duty": "security"}
    refused = governed.call("put", "governance/quorums/weakening", low, by="alice", status=422)
    assert refused["errors"][0]["field"] == "approvals"


def test_duty__granted_delegated_and_ended(governed):
    grant = {"user": "olga", "duty": "domain", "reason": "knows the domain"}
    governed.call("post", "governance/duties", {**grant, "user": "alice"}, by="alice", status=403)
    row = governed.call("post", "governance/duties", grant, by="alice", status=201)
    held = governed.call("get", "governance/duties", by="bob", status=200)
    assert {"duty": "domain", "on_behalf_of": "", "expires_at": None} in next(
        h["held"] for h in held["holders"] if h["username"] == "olga"
    )
    stranger = {**grant, "user": "charlie"}
    nobody = {**grant, "user": "nobody"}
    foreign = governed.call("post", "governance/duties", stranger, by="alice", status=422)
    assert foreign == governed.call("post", "governance/duties", nobody, by="alice", status=422)
    until = (timezone.now() + timedelta(days=2)).isoformat()
    body = {"user": "otto", "duty": "domain", "expires_at": until, "reason": "holiday"}
    standin = governed.call("post", "governance/duties/delegations", body, by="ana", status=201)
    assert standin["on_behalf_of"] == "ana"
    end = f"governance/duties/{standin['id']}/end"
    governed.call("post", end, {}, by="charlie", status=404)
    assert governed.call("post", end, {}, by="ana", status=200)["ended_at"]
    governed.call("post", f"governance/duties/{row['id']}/end", {}, by="alice", status=200)


def test_gate__its_level__is_changed_by_an_admin_and_a_locked_one_by_nobody(governed):
    gates = governed.call("get", "governance/gates", by="bob", status=200)["gates"]
    soft = next(g["gate"] for g in gates if not g["locked"])
    locked = next(g["gate"] for g in gates if g["locked"])
    where = f"governance/gates/{soft}"
    governed.call("put", where, {"level": "warn"}, by="ana", status=403)
    said = governed.call("put", where, {"level": "warn"}, by="alice", status=200)
    assert (said["level"], said["own"], said["updated_by"]) == ("warn", "warn", "user:alice")
    off = governed.call(
        "put", f"governance/gates/{locked}", {"level": "off"}, by="alice", status=422
    )
    assert off["errors"][0]["field"] == "level"
    governed.call("put", "governance/gates/nothing", {"level": "off"}, by="alice", status=404)


def test_evidence__about_a_manifest__is_brought_by_a_build(governed):
    sha256 = governed.release.sha256
    body = {"manifest_sha256": sha256, "what": "tests", "passed": True, "result_sha256": "a" * 64}
    governed.call("post", "governance/evidence", body, by="bob", status=403)
    row = governed.call("post", "governance/evidence", body, by="system", status=201)
    assert row["recorded_by"].startswith("key:")
    listed = governed.call("get", f"governance/evidence?manifest_sha256={sha256}", status=200)
    assert [e["what"] for e in listed["results"]] == ["tests"]
    body["result_sha256"] = "nonsense"
    refused = governed.call("post", "governance/evidence", body, by="system", status=422)
    assert refused["errors"][0]["field"] == "result_sha256"


def test_readiness__of_an_agent__is_answered_and_exempted_by_a_second_person(governed):
    shown = governed.call("get", "governance/readiness/billing", by="bob", status=200)
    assert shown["total"] == len(shown["topics"])
    exempt = next(t["code"] for t in shown["topics"] if t["exemptible"] and t["state"] == "open")
    plain = next(
        t["code"]
        for t in shown["topics"]
        if t["state"] == "open" and not t["why"] and t["code"] != exempt
    )
    where = f"governance/readiness/billing/{plain}"
    governed.call("put", where, {"state": "done"}, status=422)
    said = governed.call("put", where, {"state": "done", "note": "seen"}, status=200)
    assert {t["code"]: t["state"] for t in said["topics"]}[plain] == "done"
    where = f"governance/readiness/billing/{exempt}/exemption"
    body = {"reason": "none here", "expires_at": "2099-01-01T00:00:00Z"}
    governed.call("post", where, body, by="ana", status=200)
    governed.call("post", f"{where}/approve", {}, by="ana", status=403)
    said = governed.call("post", f"{where}/approve", {}, by="otto", status=200)
    assert {t["code"]: t["state"] for t in said["topics"]}[exempt] == "exempt"
    for address in ("governance/readiness/nothing", "governance/readiness/prompt"):
        governed.call("get", address, status=404)


def test_notifications__are_ones_own_and_marked_as_read(governed):
    number = approved(governed)["number"]
    mine = governed.call("get", "notifications?unread=true", by="ana", status=200)["results"]
    assert any(f"#{number}" in notice["subject"] for notice in mine)
    governed.call("post", "notifications/read", {"id": mine[0]["id"]}, by="otto", status=404)
    said = governed.call("post", "notifications/read", {"id": mine[0]["id"]}, by="ana", status=200)
    assert said == {"read": 1}
    governed.call("post", "notifications/read", {}, by="ana", status=200)
    left = governed.call("get", "notifications?unread=true", by="ana", status=200)
    assert left["results"] == []
    governed.call("get", "notifications", by="system", status=404)

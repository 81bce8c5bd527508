"""The configuration API: drafts, review, publication; every write a draft until it is approved."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agentops.tests.governed_world import Governed
from apps.releases.change_models import ChangeRequest
from apps.tenants.models import AuditEntry
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.django_db, pytest.mark.governed]

TERMS = {"title": "Kinder", "reason": "Customers ask for it", "bump": "patch"}
KIND = {"system": "You explain invoices.\nBe very kind."}


def drafted(governed: Governed, content=None, **terms):
    number = governed.call("post", "changes", {**TERMS, **terms}, status=201)["number"]
    body = {"content": content or KIND}
    governed.call("put", f"changes/{number}/items/prompt/billing", body, status=200)
    return number


def submitted(governed: Governed, **terms):
    number = drafted(governed, **terms)
    return governed.call("post", f"changes/{number}/submit", status=200)


def approved(governed: Governed, **terms):
    found = submitted(governed, **terms)
    decision = {"decision": "approve", "sha256": found["manifest_sha256"]}
    return governed.call(
        "post", f"changes/{found['number']}/decide", decision, by="ana", status=200
    )


def prompt(governed: Governed):
    return governed.call("get", "items/prompt/billing", status=200)


def test_item__written__lands_in_a_draft_and_in_nothing_that_runs(governed):
    before = governed.state()
    said = governed.call("put", "items/prompt/billing", {"content": KIND, "base": 1}, status=200)
    assert said["changed"] is True
    change = said["change"]
    assert (change["status"], change["author"]) == ("draft", "user:olga")
    assert [(p["kind"], p["slug"], p["action"]) for p in change["patches"]] == [
        ("prompt", "billing", "change")
    ]
    assert change["patches"][0]["after"]["system"] == KIND["system"]
    assert prompt(governed)["content"]["system"].endswith("Be kind.")
    assert governed.state() == before


def test_item__written_by_a_system__is_a_draft_it_cannot_approve(governed):
    governed.call("put", "items/prompt/billing", {"content": KIND}, by="system", status=200)
    number = governed.call("get", "changes?queue=mine", by="system", status=200)["results"][0][
        "number"
    ]
    governed.call("patch", f"changes/{number}", TERMS, by="system", status=200)
    change = governed.call("post", f"changes/{number}/submit", by="system", status=200)
    decision = {"decision": "approve", "sha256": change["manifest_sha256"]}
    refused = governed.call("post", f"changes/{number}/decide", decision, by="system", status=403)
    assert refused["code"] in ("NOT_AN_APPROVER", "SELF_APPROVAL")


def test_item__with_content_that_does_not_fit__names_the_field_and_keeps_nothing(governed):
    body = {"content": {"system": "x", "sistema": "y"}}
    refused = governed.call("put", "items/prompt/billing", body, status=422)
    assert refused["errors"] == [{"field": "sistema", "message": "This field is not known here."}]
    assert governed.call("get", "changes", status=200)["results"] == []


def test_item__edited_from_an_older_revision__is_told(governed):
    body = {"content": KIND, "base": 7}
    refused = governed.call("put", "items/prompt/billing", body, status=409)
    assert (refused["code"], refused["head"]) == ("STALE_BASE", 1)


def test_unknown_field__is_refused_by_name(governed):
    refused = governed.call("post", "changes", {"titel": "x"}, status=422)
    assert refused["errors"] == [{"field": "titel", "message": "This field is not known here."}]


def test_change__from_draft_to_published__goes_live_in_staging_only(governed):
    change = approved(governed)
    assert change["status"] == "approved"
    assert change["approvals"][0]["person"] == "user:ana"
    assert (change["missing"], change["more"]) == ([], 0)
    change = governed.call("post", f"changes/{change['number']}/publish", by="ana", status=200)
    assert change["status"] in ("published", "deployed")
    assert prompt(governed)["content"]["system"] == KIND["system"]
    shown = governed.call("get", "environments", status=200)["environments"]
    assert {e["name"]: e["release"]["number"] for e in shown} == {
        "dev": 1, "staging": change["release"], "production": 1,
    }  # fmt: skip
    release = governed.call("get", f"releases/{change['release']}", status=200)
    assert release["requests"] == [change["number"]]
    assert release["sha256"] == change["manifest_sha256"]


def test_change__incomplete__says_what_is_missing(governed):
    number = governed.call("post", "changes", {}, status=201)["number"]
    refused = governed.call("post", f"changes/{number}/submit", status=422)
    assert refused["code"] == "INCOMPLETE_REQUEST"
    assert {error["field"] for error in refused["errors"]} >= {"title", "reason"}


def test_change__decided_in_the_wrong_state__is_a_conflict(governed):
    number = drafted(governed)
    decision = {"decision": "reject", "sha256": "0" * 64, "comment": "no"}
    refused = governed.call("post", f"changes/{number}/decide", decision, by="ana", status=409)
    assert refused["code"] == "WRONG_STATE"


def test_change__scheduled_and_taken_back__keeps_its_approval(governed):
    number = approved(governed)["number"]
    at = (timezone.now() + timedelta(hours=2)).isoformat()
    body = {"at": at, "zone": "America/Sao_Paulo"}
    change = governed.call("put", f"changes/{number}/schedule", body, by="ana", status=200)
    assert (change["status"], change["schedule_zone"]) == ("scheduled", "America/Sao_Paulo")
    change = governed.call("delete", f"changes/{number}/schedule", by="ana", status=200)
    assert (change["status"], change["scheduled_for"]) == ("approved", None)


def test_change__in_conflict__lists_it_and_is_resolved_by_a_choice(governed):
    mine = submitted(governed)["number"]
    other = governed.call("post", "changes", {**TERMS, "title": "Short"}, by="alice", status=201)
    theirs = other["number"]
    body = {"content": {"system": "You explain invoices shortly."}}
    governed.call("put", f"changes/{theirs}/items/prompt/billing", body, by="alice", status=200)
    found = governed.call("post", f"changes/{theirs}/submit", by="alice", status=200)
    decision = {"decision": "approve", "sha256": found["manifest_sha256"]}
    governed.call("post", f"changes/{theirs}/decide", decision, by="ana", status=200)
    governed.call("post", f"changes/{theirs}/publish", by="ana", status=200)

    seen = governed.call("get", f"changes/{mine}", status=200)
    assert seen["is_stale"] is True
    refused = governed.call("post", f"changes/{mine}/rebase", {}, status=409)
    assert refused["code"] == "MERGE_CONFLICT"
    conflict = refused["conflicts"]["prompt:billing"][0]
    assert conflict["path"] == "system"
    assert conflict["theirs"] == "You explain invoices shortly."
    choices = {"choices": {"prompt:billing": {"system": {"value": "Short and kind."}}}}
    change = governed.call("post", f"changes/{mine}/rebase", choices, status=200)
    assert change["patches"][0]["after"]["system"] == "Short and kind."
    assert change["is_stale"] is False


@pytest.mark.parametrize("choice", ["ours", {"valeu": 1}, 3, None])
def test_change__rebased_with_no_choice_at_all__names_the_place(governed, choice):
    number = submitted(governed)["number"]
    body = {"choices": {"prompt:billing": {"system": choice}}}
    refused = governed.call("post", f"changes/{number}/rebase", body, status=422)
    assert refused["errors"][0]["field"] == "choices.prompt:billing.system"


def test_change__its_items__are_archived_restored_and_dropped(governed):
    number = drafted(governed)
    where = f"changes/{number}/items"
    change = governed.call("post", f"{where}/intent/order/archive", {"note": "gone"}, status=200)
    assert {p["slug"]: p["action"] for p in change["patches"]}["order"] == "archive"
    change = governed.call("delete", f"{where}/prompt/billing", status=200)
    assert [p["slug"] for p in change["patches"]] == ["order"]
    governed.call("post", f"{where}/prompt/billing/restore", {"revision": 9}, status=404)
    governed.call("delete", f"{where}/prompt/billing", status=404)


def test_change__discussed__by_field_and_settled(governed):
    number = submitted(governed)["number"]
    body = {"text": "Why?", "kind": "prompt", "slug": "billing", "path": "system"}
    said = governed.call("post", f"changes/{number}/comments", body, by="ana", status=201)
    governed.call("post", f"changes/{number}/comments", body, by="bob", status=403)
    settled = governed.call("post", f"changes/{number}/comments/{said['id']}/resolve", status=200)
    assert settled["resolved_by"] == "user:olga"
    comments = governed.call("get", f"changes/{number}", status=200)["comments"]
    assert [(c["author"], c["path"]) for c in comments] == [("user:ana", "system")]


def test_change__withdrawn_or_superseded__is_closed(governed):
    first, second, third = drafted(governed), drafted(governed), drafted(governed)
    assert governed.call("post", f"changes/{first}/withdraw", status=200)["status"] == "withdrawn"
    body = {"by": third}
    said = governed.call("post", f"changes/{second}/supersede", body, status=200)
    assert said["status"] == "superseded"
    refused = governed.call("put", f"changes/{first}/items/prompt/billing", {"content": KIND})
    assert refused["code"] == "WRONG_STATE"


def test_break_glass__by_a_person__is_live_and_ratified_by_a_second(governed):
    number = drafted(governed)
    body = {"reason": "The rail is open"}
    change = governed.call("post", f"changes/{number}/break-glass", body, by="alice", status=200)
    assert change["broken_glass_by"] == "user:alice"
    assert governed.call("get", "environments/production", status=200)["release"]["number"] == 2
    refused = governed.call("post", f"changes/{number}/ratify", {}, by="alice", status=403)
    assert refused["code"] in ("SELF_APPROVAL", "NOT_AN_APPROVER")
    change = governed.call("post", f"changes/{number}/ratify", {}, by="ana", status=200)
    assert change["ratified_by"] == "user:ana"


def test_personal_key__in_the_trail__stands_beside_its_person(governed):
    drafted(governed)
    with tenant_transaction(governed.world.acme):
        entry = AuditEntry.objects.get(action="change.opened")
    assert entry.actor == "user:olga"
    assert json.loads(entry.detail)["by_key"] == governed.keys["olga"][3:11]


# -- who may what ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("by", "method", "address", "body"),
    [
        ("bob", "post", "changes", {}),
        ("bob", "put", "items/prompt/billing", {"content": KIND}),
        ("ana", "post", "changes", {}),
        ("olga", "post", "changes/1/decide", {"decision": "approve", "sha256": "0" * 64}),
        ("olga", "post", "changes/1/publish", {}),
        ("olga", "post", "environments/dev/deploy", {"release": 1}),
        ("bob", "post", "environments/dev/freezes", {}),
        ("olga", "put", "governance/quorums/behaviour", {"approvals": 1}),
    ],
)
def test_scope__that_a_role_does_not_give__is_refused(governed, by, method, address, body):
    assert governed.call(method, address, body, by=by, status=403)["code"] == "MISSING_SCOPE"


def test_key__without_the_scope__is_refused(governed, issue_key):
    governed.keys["narrow"] = issue_key("message:write")
    assert governed.call("get", "changes", by="narrow", status=403)["code"] == "MISSING_SCOPE"


def test_nobody__is_asked_for_a_credential(governed):
    assert Client().get("/v1/changes").status_code == 401


def test_charlie__of_another_tenant__finds_nothing_here(governed):
    number = submitted(governed)["number"]
    for address in (f"changes/{number}", "items/prompt/billing", "releases/1"):
        foreign = governed.call("get", address, by="charlie", status=404)
        absent = governed.call("get", address.replace("billing", "x").replace(str(number), "999"),
                               by="charlie", status=404)  # fmt: skip
        assert foreign == absent
    assert governed.call("get", "changes", by="charlie", status=200)["results"] == []


# -- reading ---------------------------------------------------------------------------------------
def test_item__as_of_a_moment__is_what_it_was(governed):
    before = timezone.now().isoformat().replace("+", "%2B")
    number = approved(governed)["number"]
    governed.call("post", f"changes/{number}/publish", by="ana", status=200)
    then = governed.call("get", f"items/prompt/billing?at={before}", status=200)
    assert (then["revision"], prompt(governed)["revision"]) == (1, 2)
    assert then["content"]["system"].endswith("Be kind.")
    governed.call("get", "items/prompt/billing?at=2000-01-01T00:00:00Z", status=404)
    ran = governed.call("get", f"environments/staging/then?at={before}", status=200)
    assert ran["release"]["number"] == 1
    history = governed.call("get", "environments/staging/history", status=200)["results"]
    assert [event["release"] for event in history] == [2, 1]


def test_release__its_manifest_record_and_diff(governed):
    number = approved(governed)["number"]
    governed.call("post", f"changes/{number}/publish", by="ana", status=200)
    manifest = governed.call("get", "releases/2/manifest", status=200)
    assert manifest["manifest"]["items"]["prompt"]["billing"]["system"] == KIND["system"]
    diff = governed.call("get", "releases/2/diff", status=200)
    assert diff["since"] == 1
    assert [(i["kind"], i["slug"], i["change"]) for i in diff["items"]] == [
        ("prompt", "billing", "changed")
    ]
    assert governed.call("get", "releases/2/diff?since=2", status=200)["items"] == []
    record = governed.call("get", "releases/2/record", status=200)["record"]
    assert manifest["sha256"] in record


def test_item__its_reach__names_agents_environments_and_open_changes(governed):
    number = drafted(governed)
    reach = governed.call("get", "items/prompt/billing/reach", by="bob", status=200)
    assert reach["agents"] == ["billing"]
    assert "agent:billing" in reach["users"]
    assert {e["environment"] for e in reach["environments"]} == {"dev", "staging", "production"}
    assert (reach["releases"], reach["changes"]) == ([1], [number])
    governed.call("get", "items/prompt/nothing/reach", status=404)


def test_configuration__at_a_moment__is_what_was_accepted_then(governed):
    before = timezone.now().isoformat().replace("+", "%2B")
    number = approved(governed)["number"]
    governed.call("post", f"changes/{number}/publish", by="ana", status=200)
    then = governed.call("get", f"configuration?at={before}", by="bob", status=200)
    now = governed.call("get", "configuration", by="bob", status=200)
    assert (then["release"], now["release"]) == (1, 2)
    assert then["items"]["prompt"]["billing"]["system"].endswith("Be kind.")
    assert now["items"]["prompt"]["billing"]["system"] == KIND["system"]


@pytest.mark.parametrize("address", ["items", "changes", "releases", "environments/dev/history"])
def test_list__of_any_length__asks_the_same_number_of_queries(
    governed, address, django_assert_max_num_queries
):
    with tenant_transaction(governed.world.acme):
        for number in range(1, 40):
            ChangeRequest.objects.create(number=number, title=f"{number}", author="user:olga")
    governed.call("get", address, status=200)
    with django_assert_max_num_queries(12):
        page = governed.call("get", f"{address}?limit=5", status=200)
    if address in ("items", "changes"):
        assert (len(page["results"]), page["next_offset"]) == (5, 5)
        rest = governed.call("get", f"{address}?limit=200&offset=5", status=200)
        assert rest["next_offset"] is None


@pytest.mark.parametrize(
    ("address", "field"),
    [("items?limit=0", "limit"), ("items?offset=-1", "offset"), ("items?at=x", "at"),
     ("changes?queue=all&sort=x", "sort"), ("items/prompt/billing?at=yesterday", "at")],
)  # fmt: skip
def test_query__that_is_not_understood__is_refused_by_name(governed, address, field):
    assert governed.call("get", address, status=422)["errors"][0]["field"] == field


@pytest.mark.parametrize(
    "address",
    ["items/prompt/%00", "items/nothing/billing", "changes/99999999999999999999", "releases/0",
     "environments/moon", "environments/dev%00", "items/prompt/billing/nothing"],
)  # fmt: skip
def test_address__of_nothing__is_absent(governed, address):
    assert governed.call("get", address, status=404)["code"] == "NOT_FOUND"


@pytest.mark.parametrize("body", [b"[" * 100_000, b"{", b"\xff", b'{"title": NaN}'])
def test_body__that_is_not_json__is_refused(governed, body):
    response = Client().post(
        "/v1/changes", body, content_type="application/json",
        headers={"authorization": f"Bearer {governed.keys['olga']}"},
    )  # fmt: skip
    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"


def test_body__too_large__is_refused_before_it_is_read(governed, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    refused = governed.call("post", "changes", {"title": "x" * 2000}, status=413)
    assert refused["code"] == "TOO_LARGE"


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
def test_text__that_no_store_keeps__is_refused(governed, text):
    governed.call("post", "changes", {"title": text}, status=422)
    governed.call("put", "items/prompt/billing", {"content": {"system": text}}, status=422)

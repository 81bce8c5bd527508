"""Configuration from git: plan, one request, approvals, publication, and no difference afterwards."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from agentops.demo_data import FOLDER
from agentops.tests.governed_world import Governed
from apps.releases.authority import ChangeRequestRequired, setting_up
from apps.releases.change_models import BindingProposal, ChangeRequest
from apps.releases.changes.services import request_decide
from apps.releases.environments.services import binding_set
from apps.releases.models import Binding, ConfigItem, Deployment, Release
from apps.releases.portable.native import native_parse
from apps.releases.portable.transfer import tenant_import
from apps.releases.portable.yaml_source import source_read
from apps.releases.services import release_publish
from apps.tenants.models import AuditEntry, Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant, tenant_create

pytestmark = [pytest.mark.django_db, pytest.mark.governed]
DEMO = ("default", "loja", "tim")
# One person fills one duty only, and a whole tenant asks for all of them.
APPROVERS, ADMINS = ("ana", "aline", "andre"), ("adam", "ada")


def run(name: str, *args: Any) -> tuple[int, str]:
    """Run a command; return its exit code and what it printed."""
    out = StringIO()
    code = 0
    with redirect_stdout(out):
        try:
            call_command(name, *(str(arg) for arg in args), stdout=out, stderr=StringIO())
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue()


def run_json(name: str, *args: Any) -> tuple[int, Any]:
    code, said = run(name, *args, "--json")
    return code, json.loads(said)


@pytest.fixture
def empty(world: Any) -> Any:
    """A tenant without anything but its people: an author, and enough others to approve all."""
    tenant = tenant_create(slug="copy", name="Copy", actor="test")
    with tenant_transaction(tenant):
        approvers = [(name, Role.APPROVER) for name in APPROVERS]
        admins = [(name, Role.TENANT_ADMIN) for name in ADMINS]
        for name, role in [("olga", Role.BUSINESS_OWNER), *approvers, *admins]:
            user = User.objects.create_user(name)
            membership_grant(user=user, role=role, actor="test")
    return tenant


def approve_all(tenant: Any, number: int = 1) -> ChangeRequest:
    with tenant_transaction(tenant):
        for person in (*APPROVERS, *ADMINS):
            request = ChangeRequest.objects.get(number=number)
            request_decide(
                request=request,
                actor=f"user:{person}",
                decision="approve",
                sha256=request.manifest_sha256,
            )
        found: ChangeRequest = ChangeRequest.objects.get(number=number)
        return found


def bound(tenant: Any, path: Path) -> None:
    with tenant_transaction(tenant), setting_up("bindings of a test"):
        for what, name in native_parse([source_read(path, path.name)]).binding_names:
            for environment in settings.RELEASE_ENVIRONMENTS:
                binding_set(
                    environment=environment, what=what, name=name,
                    value="http://127.0.0.1:9/x" if what == "address" else "X", actor="test",
                )  # fmt: skip


def sha256_of(path: Path) -> str:
    """Return the sha256 of a release made of the file in a tenant of its own."""
    tenant = tenant_create(slug="original", name="Original", actor="test")
    with tenant_transaction(tenant), setting_up("a test's world"):
        tenant_import(portable=native_parse([source_read(path, path.name)]), actor="test")
        return str(release_publish(actor="test").sha256)


# -- a tenant's way through git --------------------------------------------------------------------
@pytest.mark.parametrize("slug", DEMO)
def test_export_plan_and_setup__into_an_empty_tenant__give_the_same_sha256(
    empty: Any, tmp_path: Path, slug: str
) -> None:
    sha256 = sha256_of(FOLDER / f"{slug}.yaml")
    files = tmp_path / "exported.yaml"
    assert run("config_export", "original", files)[0] == 0
    code, plan = run_json("config_plan", files, "--tenant", "copy")
    assert (code, plan["sha256"]) == (2, sha256)
    code, said = run_json("config_apply", files, "--tenant", "copy", "--setup")
    assert (code, said["sha256"]) == (0, sha256)
    assert run("config_plan", files, "--tenant", "copy")[0] == 0
    with tenant_transaction(empty):
        assert Release.objects.get().sha256 == sha256
        assert not Deployment.objects.exists()


@pytest.mark.parametrize("slug", DEMO)
def test_export_plan_and_apply__through_approvals__give_the_same_sha256(
    empty: Any, tmp_path: Path, slug: str
) -> None:
    path = FOLDER / f"{slug}.yaml"
    sha256 = sha256_of(path)
    run("config_export", "original", f"{tmp_path}/folder/")
    bound(empty, path)
    args = (
        f"{tmp_path}/folder", "--tenant", "copy", "--ref", "main", "--actor", "user:olga",
        "--risk", "weakening",
    )  # fmt: skip
    assert run("config_plan", *args)[0] == 2
    code, said = run_json("config_apply", *args)
    assert (code, said["request"]["status"], said["request"]["sha256"]) == (0, "in_review", sha256)
    code, said = run_json("config_apply", *args, "--publish")
    assert code == 3
    assert said["waiting_for"]["duties"] or said["waiting_for"]["people"]
    assert approve_all(empty).status == "approved"
    code, said = run_json("config_apply", *args, "--publish")
    assert (code, said["sha256"]) == (0, sha256)
    with tenant_transaction(empty):
        assert Release.objects.get().sha256 == sha256
        assert Deployment.objects.get().environment == "staging"
        assert Release.objects.get().published_by == "command:config_apply"
        assert ChangeRequest.objects.get().author == "user:olga"
    assert run("config_plan", *args) == (0, run("config_plan", *args)[1])
    assert run("config_apply", *args, "--publish")[0] == 0
    with tenant_transaction(empty):
        assert (Release.objects.count(), ChangeRequest.objects.count()) == (1, 1)


# -- plan ------------------------------------------------------------------------------------------
@pytest.fixture
def files(governed: Governed, tmp_path: Path) -> Path:
    """Acme's configuration, exported."""
    path = tmp_path / "acme.yaml"
    run("config_export", "acme", path)
    return path


def edit(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_plan__of_what_is_accepted__is_no_change(governed: Governed, files: Path) -> None:
    code, said = run("config_plan", files, "--tenant", "acme")
    assert code == 0
    assert "No change" in said


def test_plan__says_fields_risk_and_who_must_approve_and_writes_nothing(
    governed: Governed, files: Path
) -> None:
    before = governed.state()
    edit(files, "keywords:\n", "keywords:\n        - bill\n")
    code, plan = run_json("config_plan", files, "--tenant", "acme", "--risk", "behaviour")
    assert code == 2
    changed = {(i["kind"], i["slug"]): i for i in plan["items"]}
    assert set(changed) == {("intent", "invoice"), ("intent", "order")}
    invoice = changed[("intent", "invoice")]
    assert invoice["fields"][0]["path"].startswith("keywords")
    assert invoice["head"] == {"revision": 1, "author": "test"}
    assert plan["risk"] == "behaviour"
    assert plan["must_approve"]["people"] >= 1
    assert plan["must_approve"]["duties"]
    assert {finding["gate"] for finding in plan["gates"]}
    assert (plan["written"], len(plan["sha256"])) == (False, 64)
    assert governed.state() == before
    with tenant_transaction(governed.world.acme):
        assert not ChangeRequest.objects.exists()


def test_plan__in_words__shows_lines_of_a_text(governed: Governed, files: Path) -> None:
    edit(files, "Be kind.", "Be brief.")
    code, said = run("config_plan", files, "--tenant", "acme")
    assert code == 2
    assert "~ prompt billing  (now revision 1 by test)" in said
    assert "Be brief." in said
    assert "must approve:" in said
    assert "gates:" in said


def test_plan__with_request__writes_one_draft_and_finds_it_again(
    governed: Governed, files: Path
) -> None:
    edit(files, "Be kind.", "Be brief.")
    args = (files, "--tenant", "acme", "--request", "--ref", "feature/brief")
    assert "written as request #1" in run("config_plan", *args)[1]
    edit(files, "Be brief.", "Be very brief.")
    assert "written as request #1" in run("config_plan", *args)[1]
    request = governed.request(1)
    assert (request.status, request.author) == ("draft", "command:config_plan")
    with tenant_transaction(governed.world.acme):
        assert ChangeRequest.objects.count() == request.patches.count() == 1
    edit(files, "Be very brief.", "Be kind.")
    assert run("config_plan", *args)[0] == 0
    assert governed.request(1).status == "withdrawn"


def test_plan__of_fewer_items__archives_the_rest_only_when_asked(
    governed: Governed, tmp_path: Path
) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("format: agentops-config-v1\nitems:\n  prompt:\n    spare: {system: x}\n")
    code, plan = run_json("config_plan", path, "--tenant", "acme")
    assert (code, plan["counts"]["created"], plan["counts"]["archived"]) == (2, 1, 0)
    code, plan = run_json("config_plan", path, "--tenant", "acme", "--replace")
    assert plan["counts"]["archived"] == 11


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--actor", "user:charlie"), "active member"),
        (("--actor", "user:nobody"), "active member"),
        (("--actor", "key:12345678"), "active member"),
        (("--actor", "olga"), "active member"),
        (("--actor", "user:bob"), "may not edit"),
        (("--tenant", "nobody"), "There is no tenant"),
    ],
)
def test_command__of_a_stranger__is_an_error(
    governed: Governed, files: Path, args: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        run("config_plan", files, "--tenant", "acme", *args)


def test_plan__of_a_bad_file__names_the_line(governed: Governed, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("format: agentops-config-v1\nitems:\n  prompt:\n    a: {sistema: x}\n")
    for command in ("config_plan", "config_apply"):
        with pytest.raises(CommandError, match=r"bad\.yaml:4 items\.prompt\.a\.sistema"):
            run(command, path, "--tenant", "acme")


# -- apply -----------------------------------------------------------------------------------------
def test_apply__again_without_an_edit__keeps_the_approvals(governed: Governed, files: Path) -> None:
    edit(files, "Be kind.", "Be brief.")
    args = (files, "--tenant", "acme", "--actor", "user:olga", "--title", "Prices of June")
    assert run("config_apply", *args)[0] == 0
    approve(governed)
    code, said = run_json("config_apply", files, "--tenant", "acme")
    assert (code, said["request"]["status"]) == (0, "approved")
    assert governed.request(1).title == "Prices of June"
    edit(files, "Be brief.", "Be very brief.")
    code, said = run_json("config_apply", *args)
    assert (code, said["request"]["status"]) == (0, "in_review")
    assert run("config_apply", *args, "--publish")[0] == 3
    assert governed.state()["releases"][-1][0] == 1


def test_apply__after_somebody_else_published__is_approved_anew(
    governed: Governed, files: Path
) -> None:
    edit(files, "Be kind.", "Be brief.")
    args = (files, "--tenant", "acme", "--actor", "user:olga")
    run("config_apply", *args)
    approve(governed)
    other = governed.call("post", "changes", {"title": "t", "reason": "r"}, by="alice")["number"]
    body = {"content": {"system": "Orders, shortly."}}
    governed.call("put", f"changes/{other}/items/prompt/orders", body, by="alice", status=200)
    found = governed.call("post", f"changes/{other}/submit", by="alice", status=200)
    approve(governed, other)
    governed.call("post", f"changes/{other}/publish", by="ana", status=200)
    assert found["number"] == other

    code, said = run_json("config_apply", *args, "--publish")
    assert code == 3
    # The files still say the old text of what was published: it stands in the request to be seen.
    shown = governed.call("get", "changes/1", status=200)
    assert {p["slug"] for p in shown["patches"]} == {"billing", "orders"}
    assert said["request"]["status"] == "in_review"


def test_apply__that_weakens_undeclared__writes_nothing(governed: Governed, tmp_path: Path) -> None:
    path = tmp_path / "rails.yaml"
    path.write_text(
        "format: agentops-config-v1\nitems:\n  rail_policy:\n    default: {input: []}\n"
    )
    before = governed.state()
    with pytest.raises(CommandError, match="Weakens safety"):
        run("config_apply", path, "--tenant", "acme", "--actor", "user:olga")
    with tenant_transaction(governed.world.acme):
        assert not ChangeRequest.objects.exists()
    declared = ("--actor", "user:olga", "--risk", "weakening")
    assert run("config_apply", path, "--tenant", "acme", *declared)[0] == 0
    assert governed.request(1).risk == "weakening"
    assert governed.state() == before


def approve(governed: Governed, number: int = 1) -> None:
    found = governed.call("get", f"changes/{number}", status=200)
    decision = {"decision": "approve", "sha256": found["manifest_sha256"]}
    governed.call("post", f"changes/{number}/decide", decision, by="ana", status=200)


def test_apply__set_up_of_a_tenant_that_has_a_release__is_refused(
    governed: Governed, files: Path
) -> None:
    before = governed.state()
    edit(files, "Be kind.", "Be brief.")
    with pytest.raises(CommandError, match="for a tenant without a release"):
        run("config_apply", files, "--tenant", "acme", "--setup")
    with pytest.raises(CommandError, match="--deploy goes with --setup"):
        run("config_apply", files, "--tenant", "acme", "--deploy", "production")
    assert governed.state() == before


def test_setup__with_deploy__runs_there(empty: Any) -> None:
    path = FOLDER / "loja.yaml"
    bound(empty, path)
    args = ("--tenant", "copy", "--setup", "--deploy", "dev", "--deploy", "production")
    assert run("config_apply", path, *args)[0] == 0
    with tenant_transaction(empty):
        running = Deployment.objects.order_by("environment").values_list("environment", flat=True)
        assert list(running) == ["dev", "production"]
        actors = AuditEntry.objects.filter(action="release.published").values_list(
            "actor", flat=True
        )
        assert list(actors) == ["command:config_apply"]


def test_apply__with_values_of_bindings__proposes_those_of_production(
    governed: Governed, tmp_path: Path
) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(
        "format: agentops-config-v1\nbindings:\n  address:\n    crm:\n"
        "      dev: http://127.0.0.1:9/dev\n      production: http://127.0.0.1:9/prod\n"
    )
    code, plan = run_json("config_plan", path, "--tenant", "acme")
    assert (code, plan["bindings"]) == (2, 2)
    assert run("config_apply", path, "--tenant", "acme")[0] == 0
    with tenant_transaction(governed.world.acme):
        assert list(Binding.objects.values_list("environment", flat=True)) == ["dev"]
        assert BindingProposal.objects.get().environment == "production"
    assert run("config_plan", path, "--tenant", "acme")[0] == 0


# -- import ----------------------------------------------------------------------------------------
def test_import__drafts_a_request_and_moves_no_head(governed: Governed, files: Path) -> None:
    before = governed.state()
    edit(files, "Be kind.", "Be brief.")
    assert "Drafted as request #1" in run("config_import", files, "--tenant", "acme")[1]
    assert governed.state() == before
    assert governed.request(1).status == "draft"


def test_import__below_a_request__is_not_possible(governed: Governed, files: Path) -> None:
    portable = native_parse([source_read(edit(files, "Be kind.", "Be brief."), "acme.yaml")])
    with tenant_transaction(governed.world.acme), pytest.raises(ChangeRequestRequired):
        tenant_import(portable=portable, actor="user:alice")
    with tenant_transaction(governed.world.acme):
        assert ConfigItem.objects.get(kind="prompt", slug="billing").head.number == 1

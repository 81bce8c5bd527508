"""What must never happen, tried through every door: one table of door × act.

Each cell is either an attempt, which has to be refused with a sentence and leave everything that
runs as it was, or the reason why that door has no such act. Run with ``-s`` to see the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, get_commands
from django.db import connection
from django.urls import reverse

from agentops.tests.governed_world import Governed
from agentops.tests.matrix import walker
from agentops.tests.test_config_from_git import run
from apps.releases.authority import ChangeRequestRequired
from apps.releases.changes.refusals import ChangeRefused
from apps.releases.changes.services import (
    patch_save,
    request_decide,
    request_open,
    request_publish,
    request_submit,
)
from apps.releases.environments.services import release_deploy, release_promote
from apps.releases.models import Release
from apps.releases.pages.uploading import files_pack
from apps.releases.portable.transfer import tenant_import
from apps.releases.services import item_save, release_publish
from apps.tenants.models import Role, User
from apps.tenants.owned import AppendOnly
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = [pytest.mark.django_db, pytest.mark.governed]

DOORS = ("service", "admin", "console", "api", "import", "command")
ACTS = (
    "self_approval",
    "weakening_alone",
    "weakening_as_cosmetic",
    "stale_publish",
    "skipped_hop",
    "edited_release",
)
# Entries of the trail of which a refused act leaves none.
DONE = (
    "change.approved", "change.decided", "change.published", "release.published",
    "release.deployed", "environment.promoted", "item.saved", "item.created", "item.archived",
    "item.revision_accepted",
)  # fmt: skip
KIND = {"system": "You explain invoices.\nBe very kind."}
OPEN_RAILS: dict[str, Any] = {"input": []}


@dataclass
class There:
    """The situation an act is tried in: a request's number, a release to promote."""

    governed: Governed
    folder: Path
    number: int = 0
    release: int = 1

    @property
    def sha256(self) -> str:
        return str(self.governed.request(self.number).manifest_sha256)

    def page(self, act: str, who: str, **data: str) -> str:
        """Post an act of the request's page; return what the page says."""
        key = self.governed.request(self.number).pk
        url = reverse("admin:releases_changerequest_act", args=[key, act])
        response = self.governed.browser(who).post(url, data)
        assert response.status_code in (403, 409), response.status_code
        return str(response.content.decode())

    def refused(self, method: str, address: str, status: int, body: Any = None, *, by: str) -> str:
        return str(self.governed.call(method, address, body, by=by, status=status)["code"])

    def files(self, text: str) -> Path:
        path = self.folder / "files.yaml"
        path.write_text(f"format: agentops-config-v1\n{text}")
        return path

    def imported(self, text: str, who: str = "olga") -> Any:
        """Apply a YAML file on the import page."""
        packed = files_pack({"files.yaml": self.files(text).read_bytes()})
        options = {"environment": "dev", "docker_environment": "production", "note": ""}
        data = {"packed": packed, "apply": "1", **options}
        return self.governed.browser(who).post(reverse("admin:releases_import"), data)

    def uploaded(self, text: str) -> str:
        """Try a YAML file on the import page and with the command; return what both say."""
        upload = SimpleUploadedFile("files.yaml", self.files(text).read_bytes())
        options = {"environment": "dev", "docker_environment": "production", "note": ""}
        response = self.governed.browser("olga").post(
            reverse("admin:releases_import"), {"uploads": upload, **options}
        )
        assert response.status_code == 200
        return str(response.content.decode()) + command_refused(
            "config_import", self.folder / "files.yaml"
        )


def command_refused(name: str, *args: Any) -> str:
    with pytest.raises(CommandError) as refused:
        run(name, *args, "--tenant", "acme")
    return str(refused.value)


def refusal(call: Callable[[], Any], kind: type[Exception] = ChangeRefused) -> str:
    with pytest.raises(kind) as refused:
        call()
    return f"{getattr(refused.value, 'code', type(refused.value).__name__)} {refused.value}"


# -- situations ------------------------------------------------------------------------------------
def submitted(
    there: There, kind: str, content: dict[str, Any], *, risk: str, submit: bool = True
) -> int:
    """A request of Olga, through the services, as any door would make it."""
    with tenant_transaction(there.governed.world.acme):
        request = request_open(actor="user:olga", title="Try", reason="A test", declared_risk=risk)
        slug = "default" if kind == "rail_policy" else "billing"
        patch_save(actor="user:olga", request=request, kind=kind, slug=slug, content=content)
        if submit:
            request_submit(request=request, actor="user:olga")
    there.number = request.number
    return int(request.number)


def approve(there: There, who: str) -> None:
    with tenant_transaction(there.governed.world.acme):
        request_decide(
            request=there.governed.request(there.number),
            actor=f"user:{who}",
            decision="approve",
            sha256=there.sha256,
        )


def own_request(there: There) -> None:
    """Olga, who holds every duty an approver has, and may publish, has a request in review."""
    with tenant_transaction(there.governed.world.acme):
        for role in (Role.APPROVER, Role.TENANT_ADMIN):
            membership_grant(user=User.objects.get(username="olga"), role=role, actor="test")
    submitted(there, "prompt", KIND, risk="behaviour")


def weakening_approved_once(there: There) -> None:
    submitted(there, "rail_policy", OPEN_RAILS, risk="weakening")
    approve(there, "alice")
    assert there.governed.request(there.number).status == "in_review"


def weakening_called_cosmetic(there: There) -> None:
    submitted(there, "rail_policy", OPEN_RAILS, risk="cosmetic", submit=False)


def approved_then_stale(there: There) -> None:
    """Approved by Ana; then another request was published."""
    submitted(there, "prompt", KIND, risk="behaviour")
    approve(there, "ana")
    mine = there.number
    with tenant_transaction(there.governed.world.acme):
        request = request_open(actor="user:alice", title="Other", reason="A test")
        patch_save(
            actor="user:alice", request=request, kind="prompt", slug="orders",
            content={"system": "Orders, shortly."},
        )  # fmt: skip
        request_submit(request=request, actor="user:alice")
    there.number = request.number
    approve(there, "ana")
    with tenant_transaction(there.governed.world.acme):
        request_publish(request=there.governed.request(there.number), actor="user:ana")
    there.number = mine


def in_dev_only(there: There) -> None:
    """A release that runs in dev, and in no environment on the way to production."""
    with tenant_transaction(there.governed.world.acme):
        request = request_open(actor="user:olga", title="Dev", reason="A test", environment="dev")
        patch_save(actor="user:olga", request=request, kind="prompt", slug="billing", content=KIND)
        request_submit(request=request, actor="user:olga")
    there.number = request.number
    approve(there, "ana")
    with tenant_transaction(there.governed.world.acme):
        published = request_publish(request=there.governed.request(there.number), actor="user:ana")
    there.release = published.number


SITUATIONS: dict[str, Callable[[There], None]] = {
    "self_approval": own_request,
    "weakening_alone": weakening_approved_once,
    "weakening_as_cosmetic": weakening_called_cosmetic,
    "stale_publish": approved_then_stale,
    "skipped_hop": in_dev_only,
    "edited_release": lambda there: None,
}

RAILS_YAML = "items:\n  rail_policy:\n    default:\n      input: []\n"
PROMPT_YAML = 'items:\n  prompt:\n    billing:\n      system: "You explain invoices, and more."\n'


# -- service ---------------------------------------------------------------------------------------
def in_acme(call: Callable[[There], Any]) -> Callable[[There], str]:
    """An attempt at the service itself, in the tenant's scope."""

    def attempt(there: There) -> str:
        with tenant_transaction(there.governed.world.acme):
            return str(call(there))

    return attempt


def service_self_approval(there: There) -> str:
    request = there.governed.request(there.number)
    return refusal(
        lambda: request_decide(
            request=request, actor="user:olga", decision="approve", sha256=there.sha256
        )
    )


def service_publish(there: There) -> str:
    request = there.governed.request(there.number)
    return refusal(lambda: request_publish(request=request, actor="user:ana"))


def service_cosmetic(there: There) -> str:
    request = there.governed.request(there.number)
    return refusal(lambda: request_submit(request=request, actor="user:olga"))


def service_hop(there: There) -> str:
    found = Release.objects.get(number=there.release)
    said = ""
    for verb in (release_deploy, release_promote):
        deploying = partial(verb, release=found, environment="production", actor="user:ana")
        said += refusal(deploying)
    return said


def service_release(there: There) -> str:
    found = Release.objects.get(number=1)
    found.note = "changed"
    said = [refusal(found.save, AppendOnly), refusal(found.delete, AppendOnly)]
    said.append(refusal(lambda: Release.objects.update(note="changed"), AppendOnly))
    # Nor does a head move, or a release come to be, past a request.
    said.append(
        refusal(
            lambda: item_save(kind="prompt", slug="billing", content=KIND, actor="user:alice"),
            ChangeRequestRequired,
        )
    )
    said.append(refusal(lambda: release_publish(actor="user:alice"), ChangeRequestRequired))
    return " ".join(said)


# -- admin -----------------------------------------------------------------------------------------
def admin_hop(there: There) -> str:
    with tenant_transaction(there.governed.world.acme):
        key = Release.objects.get(number=there.release).pk
    said = ""
    for act in ("deploy", "promote"):
        response = there.governed.browser("ana").post(
            reverse("admin:releases_deploy", args=[key]),
            {"environment": "production", "act": act, "in_flight": "follow", "max_pin_hours": "72"},
        )
        # A page with the refusal on it, not the way on that success leads to.
        assert response.status_code in (200, 409)
        said += response.content.decode()
    return said


def admin_release(there: There) -> str:
    with tenant_transaction(there.governed.world.acme):
        key = Release.objects.get(number=1).pk
    browser = there.governed.browser("alice")
    answers = [
        browser.post(f"/admin/releases/release/{key}/{page}/", {"note": "changed"})
        for page in ("change", "delete")
    ]
    answers.append(browser.post("/admin/releases/release/add/", {"note": "changed"}))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) <= {403, 404, 405}, statuses
    return f"statuses {statuses}"


# -- API -------------------------------------------------------------------------------------------
def api_self_approval(there: There) -> str:
    body = {"decision": "approve", "sha256": there.sha256}
    system = there.refused("post", f"changes/{there.number}/decide", 403, body, by="system")
    assert system == "NOT_AN_APPROVER"
    return there.refused("post", f"changes/{there.number}/decide", 403, body, by="olga")


def api_hop(there: There) -> str:
    body = {"release": there.release}
    return " ".join(
        there.refused("post", f"environments/production/{verb}", 409, body, by="ana")
        for verb in ("deploy", "promote")
    )


def api_release(there: There) -> str:
    return " ".join(
        there.refused(method, address, 405, {"note": "changed"}, by="alice")
        for method, address in (
            ("put", "releases/1"), ("patch", "releases/1"), ("delete", "releases/1"),
            ("post", "releases"), ("put", "releases/1/manifest"),
        )
    )  # fmt: skip


# -- import ----------------------------------------------------------------------------------------
def import_alone(there: There) -> str:
    """A file that opens the rails becomes a draft, whoever imports it, and nothing more."""
    for who in ("olga", "alice"):
        assert there.imported(RAILS_YAML, who).status_code == 302
    path = there.files(RAILS_YAML)
    said = run("config_import", path, "--tenant", "acme")[1]
    with tenant_transaction(there.governed.world.acme):
        portable_refused(there)
    return said


def portable_refused(there: There) -> None:
    from apps.releases.portable.native import native_parse
    from apps.releases.portable.yaml_source import source_read

    portable = native_parse([source_read(there.files(RAILS_YAML), "files.yaml")])
    refusal(lambda: tenant_import(portable=portable, actor="user:alice"), ChangeRequestRequired)


def import_as_cosmetic(there: There) -> str:
    """An imported request is submitted like any other: what it weakens has to be declared."""
    assert there.imported(RAILS_YAML).status_code == 302
    # Into a request of its own, which is declared as behaviour.
    with tenant_transaction(there.governed.world.acme):
        from apps.releases.change_models import ChangeRequest

        there.number = ChangeRequest.objects.order_by("-number")[0].number
    return there.page("submit", "olga")


def import_field(name: str) -> Callable[[There], str]:
    """A file that tries to say more than configuration is refused as a whole."""
    return lambda there: there.uploaded(f"{name}:\n  - 1\n{PROMPT_YAML}")


# -- command ---------------------------------------------------------------------------------------
def command_self_approval(there: There) -> str:
    """Who commits cannot let the command approve for them: it has no such option, and waits."""
    args = ("--tenant", "acme", "--actor", "user:olga", "--ref", "mine")
    path = there.files(PROMPT_YAML)
    assert run("config_apply", path, *args)[0] == 0
    code, said = run("config_apply", path, *args, "--publish")
    assert code == 3
    return said


def command_alone(there: There) -> str:
    args = ("--tenant", "acme", "--actor", "user:olga", "--ref", "rails", "--risk", "weakening")
    path = there.files(RAILS_YAML)
    assert run("config_apply", path, *args)[0] == 0
    code, said = run("config_apply", path, *args, "--publish")
    assert code == 3
    return said


def command_as_cosmetic(there: There) -> str:
    return command_refused(
        "config_apply", there.files(RAILS_YAML), "--actor", "user:olga", "--risk", "cosmetic"
    )


def command_stale(there: There) -> str:
    """The request of the files was approved before somebody else published: it waits anew."""
    with tenant_transaction(there.governed.world.acme):
        request = there.governed.request(there.number)
        request.reference = "stale"
        request.save(update_fields=["reference"])
    text = (
        'items:\n  prompt:\n    billing:\n      system: "You explain invoices.\\nBe very kind."\n'
    )
    code, said = run(
        "config_apply", there.files(text), "--tenant", "acme", "--actor", "user:olga",
        "--ref", "stale", "--publish",
    )  # fmt: skip
    assert code == 3
    return said


def command_hop(there: There) -> str:
    path = there.files(PROMPT_YAML)
    said = command_refused("config_apply", path, "--deploy", "production")
    return said + command_refused("config_apply", path, "--setup", "--deploy", "production")


def command_release(there: There) -> str:
    known = {name for name, app in get_commands().items() if app == "apps.releases"}
    # Of these, those that write make requests; the others read.
    assert known == {
        "config_apply", "config_export", "config_import", "config_plan", "release_record",
        "verify_record",
    }  # fmt: skip
    return command_refused("config_apply", there.files(PROMPT_YAML), "--setup")


CONSOLE = "the console chats and shows conversations; it has no page that changes configuration"
IMPORT_NEVER_PUBLISHES = (
    "an import makes a draft and publishes nothing, so nothing of it goes stale"
)
Cell = Callable[[There], str] | str
TABLE: dict[tuple[str, str], Cell] = {
    **{("console", act): CONSOLE for act in ACTS},
    ("service", "self_approval"): in_acme(service_self_approval),
    ("service", "weakening_alone"): in_acme(service_publish),
    ("service", "weakening_as_cosmetic"): in_acme(service_cosmetic),
    ("service", "stale_publish"): in_acme(service_publish),
    ("service", "skipped_hop"): in_acme(service_hop),
    ("service", "edited_release"): in_acme(service_release),
    ("admin", "self_approval"): lambda t: t.page(
        "decide", "olga", decision="approve", sha256=t.sha256
    ),
    ("admin", "weakening_alone"): lambda t: t.page("publish", "ana"),
    ("admin", "weakening_as_cosmetic"): lambda t: t.page("submit", "olga"),
    ("admin", "stale_publish"): lambda t: t.page("publish", "ana"),
    ("admin", "skipped_hop"): admin_hop,
    ("admin", "edited_release"): admin_release,
    ("api", "self_approval"): api_self_approval,
    ("api", "weakening_alone"): lambda t: t.refused(
        "post", f"changes/{t.number}/publish", 409, by="ana"
    ),
    ("api", "weakening_as_cosmetic"): lambda t: t.refused(
        "post", f"changes/{t.number}/submit", 422, by="olga"
    ),
    ("api", "stale_publish"): lambda t: t.refused(
        "post", f"changes/{t.number}/publish", 409, by="ana"
    ),
    ("api", "skipped_hop"): api_hop,
    ("api", "edited_release"): api_release,
    ("import", "self_approval"): import_field("approvals"),
    ("import", "weakening_alone"): import_alone,
    ("import", "weakening_as_cosmetic"): import_as_cosmetic,
    ("import", "stale_publish"): IMPORT_NEVER_PUBLISHES,
    ("import", "skipped_hop"): import_field("deployments"),
    ("import", "edited_release"): import_field("releases"),
    ("command", "self_approval"): command_self_approval,
    ("command", "weakening_alone"): command_alone,
    ("command", "weakening_as_cosmetic"): command_as_cosmetic,
    ("command", "stale_publish"): command_stale,
    ("command", "skipped_hop"): command_hop,
    ("command", "edited_release"): command_release,
}
# What the refusal says, by door and act; a door's own words where it has some.
SAID: dict[tuple[str, str], tuple[str, ...]] = {
    ("service", "self_approval"): ("self_approval", "somebody else has to approve"),
    ("service", "weakening_alone"): ("wrong_state", "In review"),
    ("service", "weakening_as_cosmetic"): ("risk_understated", "Weakens safety"),
    ("service", "stale_publish"): ("stale_request", "no longer what was reviewed"),
    ("service", "skipped_hop"): ("hop_skipped",),
    ("service", "edited_release"): ("AppendOnly", "never changed", "only through a change request"),
    ("admin", "self_approval"): ("somebody else has to approve",),
    ("admin", "weakening_alone"): ("possible only while",),
    ("admin", "weakening_as_cosmetic"): ("Weakens safety",),
    ("admin", "stale_publish"): ("no longer what was reviewed",),
    ("admin", "skipped_hop"): ("production",),
    ("admin", "edited_release"): ("40",),
    ("api", "self_approval"): ("SELF_APPROVAL",),
    ("api", "weakening_alone"): ("WRONG_STATE",),
    ("api", "weakening_as_cosmetic"): ("RISK_UNDERSTATED",),
    ("api", "stale_publish"): ("STALE_REQUEST",),
    ("api", "skipped_hop"): ("HOP_SKIPPED HOP_SKIPPED",),
    ("api", "edited_release"): ("METHOD_NOT_ALLOWED",),
    ("import", "self_approval"): ("approvals", "This field is not known here."),
    ("import", "weakening_alone"): ("Drafted as request",),
    ("import", "weakening_as_cosmetic"): ("Weakens safety",),
    ("import", "skipped_hop"): ("deployments", "This field is not known here."),
    ("import", "edited_release"): ("releases", "This field is not known here."),
    ("command", "self_approval"): ("in_review; still to approve",),
    ("command", "weakening_alone"): ("in_review; still to approve: 2 people", "security"),
    ("command", "weakening_as_cosmetic"): ("Weakens safety",),
    ("command", "stale_publish"): ("in_review; still to approve",),
    ("command", "skipped_hop"): ("--deploy goes with --setup", "without a release"),
    ("command", "edited_release"): ("without a release",),
}
TRIED = [cell for cell, how in TABLE.items() if callable(how)]


@pytest.mark.parametrize(("door", "act"), TRIED, ids=[f"{d}-{a}" for d, a in TRIED])
def test_forbidden_act__through_a_door__is_refused_and_changes_nothing(
    governed: Governed, tmp_path: Path, door: str, act: str
) -> None:
    there = There(governed, tmp_path)
    SITUATIONS[act](there)
    before, told = governed.state(), governed.audited(*DONE)
    attempt = TABLE[(door, act)]
    assert callable(attempt)
    said = attempt(there)
    for words in SAID[(door, act)]:
        assert words in said
    assert governed.state() == before
    assert governed.audited(*DONE) == told
    if there.number:
        assert governed.request(there.number).status in (
            "draft",
            "in_review",
            "approved",
            "published",
            "deployed",
        )
        approved = governed.request(there.number).release_id
        assert (approved is None) is (act != "skipped_hop")


def test_table__of_doors_and_acts__has_every_cell() -> None:
    assert set(TABLE) == {(door, act) for door in DOORS for act in ACTS}
    assert set(SAID) == set(TRIED)
    lines = []
    for act in ACTS:
        cells = ("refused" if callable(TABLE[(door, act)]) else "no such act" for door in DOORS)
        lines.append(f"  {act:24}" + "".join(f"{cell:14}" for cell in cells))
    print("\n  " + " " * 24 + "".join(f"{door:14}" for door in DOORS))
    print("\n".join(lines))


def test_console__has_no_route_that_changes_configuration() -> None:
    console = [route for route in walker.routes() if route.startswith("console/")]
    assert console
    words = ("change", "release", "deploy", "item", "publish", "approve", "binding", "config")
    assert [route for route in console if any(word in route for word in words)] == []


@pytest.mark.services
def test_release__edited_by_sql__is_refused_by_the_database(governed: Governed) -> None:
    from django.db.utils import DatabaseError

    for statement in (
        "UPDATE releases_release SET note = 'changed'",
        "DELETE FROM releases_release",
        "UPDATE releases_approval SET decision = 'approve'",
        "UPDATE releases_headmove SET actor = 'x'",
    ):
        with (
            pytest.raises(DatabaseError, match="permission denied"),
            tenant_transaction(governed.world.acme),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)

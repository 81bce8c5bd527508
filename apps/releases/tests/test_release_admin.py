"""Going live in the admin: publish, deploy, roll back, bind, import, export."""

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.changes.core import candidate_whole
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.models import Binding, ConfigItem, Deployment, Release
from apps.releases.selectors import deployed_release
from apps.releases.services import item_save, release_publish
from apps.releases.tests.browser import send, submission
from apps.releases.tests.conftest import small_world
from apps.runtime.canonical import sha256_text
from apps.tenants.models import Membership
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant
from conftest import World


@pytest.fixture
def small(world: World) -> World:
    """acme with a small configuration, nothing published."""
    with tenant_transaction(world.acme):
        small_world()
    return world


@pytest.fixture
def live(small: World) -> World:
    """acme with two releases; production is bound and runs the second."""
    with tenant_transaction(small.acme):
        release_publish(actor="user:alice", note="First")
        item_save(
            kind="prompt", slug="billing", content={"system": "Be brief."}, actor="user:alice"
        )
        second = release_publish(actor="user:alice", note="Second")
        bind()
        release_deploy(release=second, environment="production", actor="user:alice")
    return small


def bind() -> None:
    binding_set(
        environment="production",
        what="address",
        name="telecom_mcp",
        value="http://127.0.0.1:9001/mcp",
        actor="user:alice",
    )


def release(world: World, number: int) -> Release:
    with tenant_transaction(world.acme):
        found: Release = Release.objects.get(number=number)
        return found


def running(world: World, environment: str = "production") -> int | None:
    with tenant_transaction(world.acme):
        found = deployed_release(environment)
        return found.number if found else None


def role_of_bob(world: World, role: str) -> None:
    with tenant_transaction(world.acme):
        Membership.objects.filter(user=world.bob).delete()
        membership_grant(user=world.bob, role=role, actor="test")


def page(name: str, world: World, number: int, *more: str) -> str:
    return reverse(f"admin:{name}", args=[release(world, number).pk, *more])


def arriving(environment: str, act: str = "roll_back", **more: str) -> dict[str, str]:
    """Return what the page of a release and an environment posts."""
    terms = {"in_flight": "follow", "max_pin_hours": "72", "reason": "Wrong prices"}
    return {"environment": environment, "act": act, **terms, **more}


def environment(name: str = "production") -> str:
    return reverse("admin:releases_environment", args=[name])


def text(response: Any) -> str:
    return str(response.content.decode())


# -- releases are made by change requests ----------------------------------------------------------
def test_releases__list__leads_to_the_change_requests_and_publishes_nothing(
    live: World, as_alice: Client
) -> None:
    shown = text(as_alice.get(reverse("admin:releases_release_changelist")))
    assert reverse("admin:releases_changerequest_changelist") in shown
    assert "Publish a release" not in shown
    gone = as_alice.post("/admin/releases/release/publish/", {"note": "x"}, follow=True)
    assert gone.status_code == 404
    with tenant_transaction(live.acme):
        assert Release.objects.count() == 2


def back_to_the_first(world: World) -> None:
    """Save again what release #1 holds."""
    with tenant_transaction(world.acme):
        item_save(
            kind="prompt", slug="billing", content={"system": "You explain bills."}, actor="a"
        )


def test_releases__list__is_named_once_in_the_breadcrumb(live: World, as_alice: Client) -> None:
    shown = text(as_alice.get(reverse("admin:releases_release_changelist")))
    assert shown.count(f'href="{reverse("admin:app_list", args=["releases"])}"') == 0
    shown = text(as_alice.get(reverse("admin:releases_binding_changelist")))
    assert shown.count(f'href="{reverse("admin:app_list", args=["releases"])}"') == 1


@pytest.mark.parametrize(
    ("role", "deploys"),
    [
        ("tenant_admin", True),
        ("business_owner", False),
        ("approver", True),
        ("operator", True),
        ("auditor", False),
    ],
)
def test_going_live__by_role__is_for_those_who_may(
    live: World, as_bob: Client, role: str, deploys: bool
) -> None:
    ran_first(live)
    role_of_bob(live, role)
    url = page("releases_deploy", live, 1)
    assert as_bob.get(url).status_code == (200 if deploys else 403)
    answer = as_bob.post(url, arriving("production"))
    assert answer.status_code == (302 if deploys else 403)
    assert running(live) == (1 if deploys else 2)
    assert as_bob.get(page("releases_release_change", live, 1)).status_code == 200


# -- one release -----------------------------------------------------------------------------------
def test_release_page__for_an_auditor__shows_facts_changes_and_contents(
    live: World, as_bob: Client
) -> None:
    shown = text(as_bob.get(page("releases_release_change", live, 2)))
    assert release(live, 2).sha256 in shown
    assert "verified" in shown
    assert "references_resolve" in shown
    assert "Changes since release #1" in shown
    assert "You explain bills." in shown
    assert "get_bill" in shown
    assert page("releases_deploy", live, 2) not in shown


def test_release_page__filtered_by_kind__lists_that_kind_only(live: World, as_bob: Client) -> None:
    shown = text(as_bob.get(page("releases_release_change", live, 2), {"kind": "tool"}))
    contents = shown[shown.index('id="contents"') :]
    assert "get_bill" in contents
    assert "bill_explain" not in contents


def test_release_item__as_it_was__shows_the_old_words(live: World, as_bob: Client) -> None:
    shown = text(as_bob.get(page("releases_release_item", live, 1, "prompt", "billing")))
    assert "You explain bills." in shown
    assert "Be brief." not in shown
    absent = page("releases_release_item", live, 1, "prompt", "nothing")
    assert as_bob.get(absent).status_code == 404


def test_manifest__downloaded__has_the_sha256_of_the_release(live: World, as_bob: Client) -> None:
    response = as_bob.get(page("releases_manifest", live, 2))
    assert hashlib.sha256(response.content).hexdigest() == release(live, 2).sha256


@pytest.mark.parametrize(
    "name",
    ["releases_release_change", "releases_deploy", "releases_manifest", "releases_record"],
)
def test_release_pages__for_another_tenant__are_the_404_of_an_absent_one(
    live: World, as_charlie: Client, name: str
) -> None:
    foreign = as_charlie.get(page(name, live, 2))
    absent = as_charlie.get(reverse(f"admin:{name}", args=["00000000-0000-4000-8000-000000000000"]))
    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.content == absent.content


def test_release__edited_or_deleted__has_no_page(live: World, as_alice: Client) -> None:
    assert as_alice.get(reverse("admin:releases_release_add")).status_code == 403
    delete = page("releases_release_delete", live, 1)
    assert as_alice.post(delete, {"post": "yes"}).status_code == 403
    with tenant_transaction(live.acme):
        assert Release.objects.count() == 2


def test_release_list__with_20_releases__asks_as_many_queries_as_with_two(
    live: World, as_alice: Client
) -> None:
    url = reverse("admin:releases_release_changelist")

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert as_alice.get(url).status_code == 200
        assert not [q for q in captured.captured_queries if '"manifest"' in q["sql"]]
        return len(captured)

    few = queries()
    with tenant_transaction(live.acme):
        for number in range(18):
            words = {"system": f"Number {number}."}
            item_save(kind="prompt", slug="billing", content=words, actor="a")
            release_publish(actor="a")
    assert queries() == few


# -- deploy ----------------------------------------------------------------------------------------
def test_deploy__with_unbound_names__lists_them_with_a_link_to_bind(
    live: World, as_alice: Client
) -> None:
    url = page("releases_deploy", live, 2)
    shown = text(as_alice.post(url, arriving("staging", "deploy")))
    assert "Not done: staging has no value for what the release names." in shown
    assert "<code>address:telecom_mcp</code>" in shown
    assert f"{environment('staging')}?what=address&amp;name=telecom_mcp#propose" in shown
    assert running(live, "staging") is None


def test_deploy__of_an_older_release__is_called_a_roll_back(live: World, as_alice: Client) -> None:
    ran_first(live)
    url = page("releases_deploy", live, 1)
    shown = text(as_alice.get(url, {"environment": "production"}))
    assert "This rolls production back from release #2 to release #1." in shown
    response = as_alice.post(url, arriving("production"), follow=True)
    assert "Release #1 runs in production" in text(response)
    assert running(live) == 1


@pytest.mark.parametrize("name", ["moon", "x\x00"])
def test_deploy__to_an_environment_that_is_none__is_absent(
    live: World, as_alice: Client, name: str
) -> None:
    response = as_alice.post(page("releases_deploy", live, 1), arriving(name))
    assert response.status_code == 404
    assert running(live) == 2


def test_environment_page__offers_the_other_releases(live: World, as_alice: Client) -> None:
    ran_first(live)
    with tenant_transaction(live.acme):
        key = Deployment.objects.get(environment="production").pk
    response = as_alice.get(reverse("admin:releases_deployment_change", args=[key]), follow=True)
    assert "Roll back to this" in text(response)
    assert page("releases_deploy", live, 1) + "?environment=production" in text(response)


def ran_first(world: World) -> None:
    """Let production have run release #1 before the second."""
    with tenant_transaction(world.acme):
        for number in (1, 2):
            found = Release.objects.get(number=number)
            release_deploy(release=found, environment="production", actor="user:alice")


# -- bindings --------------------------------------------------------------------------------------
def test_binding__added_and_changed__goes_through_the_service(
    small: World, as_alice: Client
) -> None:
    url = reverse("admin:releases_binding_add")
    query = {"environment": "dev", "what": "address", "name": "telecom_mcp"}
    data = submission(text(as_alice.get(url, query)).split('id="binding_form"')[1])
    assert data["name"] == "telecom_mcp"
    data["value"] = "http://127.0.0.1:9001/mcp"
    assert send(as_alice, url, data).status_code == 302
    with tenant_transaction(small.acme):
        made = Binding.objects.get()
    assert (made.environment, made.value, made.updated_by) == (
        "dev",
        "http://127.0.0.1:9001/mcp",
        "user:alice",
    )
    change = reverse("admin:releases_binding_change", args=[made.pk])
    assert as_alice.post(change, {"value": "http://127.0.0.1:9002/mcp"}).status_code == 302
    with tenant_transaction(small.acme):
        assert Binding.objects.get().value == "http://127.0.0.1:9002/mcp"


@pytest.mark.parametrize(
    ("what", "value", "message"),
    [
        ("address", "ftp://x", "An address starts with http:// or https://"),
        ("credential", "sk-abcdefghijklmnop", "Give the name of an environment variable"),
    ],
)
def test_binding__that_cannot_be__is_refused_at_its_field(
    small: World, as_alice: Client, what: str, value: str, message: str
) -> None:
    data = {"environment": "dev", "what": what, "name": "n", "value": value}
    shown = text(as_alice.post(reverse("admin:releases_binding_add"), data))
    assert message in shown
    with tenant_transaction(small.acme):
        assert not Binding.objects.exists()


def test_binding__that_exists__is_not_added_twice(live: World, as_alice: Client) -> None:
    data = {
        "environment": "production",
        "what": "address",
        "name": "telecom_mcp",
        "value": "http://127.0.0.1:9009/mcp",
    }
    response = as_alice.post(reverse("admin:releases_binding_add"), data)
    assert "It is already bound there" in text(response)
    with tenant_transaction(live.acme):
        assert Binding.objects.get().value == "http://127.0.0.1:9001/mcp"


def test_binding__that_a_deployed_release_needs__is_not_removed(
    live: World, as_alice: Client
) -> None:
    with tenant_transaction(live.acme):
        key = Binding.objects.get().pk
        spare = binding_set(
            environment="dev", what="address", name="spare", value="http://x/", actor="a"
        ).pk
    url = reverse("admin:releases_binding_remove", args=[key])
    assert "Not removed." in text(as_alice.post(url))
    assert as_alice.post(reverse("admin:releases_binding_remove", args=[spare])).status_code == 302
    with tenant_transaction(live.acme):
        assert [binding.pk for binding in Binding.objects.all()] == [key]


def test_binding_pages__for_others__are_closed(
    live: World, as_bob: Client, as_charlie: Client
) -> None:
    with tenant_transaction(live.acme):
        key = Binding.objects.get().pk
    change = reverse("admin:releases_binding_change", args=[key])
    assert as_bob.get(change).status_code == 200
    assert as_bob.post(change, {"value": "http://evil/"}).status_code == 403
    assert as_bob.post(reverse("admin:releases_binding_remove", args=[key])).status_code == 403
    assert as_charlie.get(change).status_code == 404
    assert as_charlie.post(change, {"value": "http://evil/"}).status_code == 404


# -- import, export --------------------------------------------------------------------------------
def exported(client: Client, **query: str) -> bytes:
    response = client.get(reverse("admin:releases_export"), {"format": "yaml", **query})
    assert response.headers["Content-Disposition"].startswith("attachment")
    return bytes(response.content)


def test_export_then_import__into_an_empty_tenant__gives_the_same_sha256(
    live: World, as_bob: Client, as_charlie: Client
) -> None:
    url = reverse("admin:releases_import")
    upload = SimpleUploadedFile("acme.yaml", exported(as_bob))
    shown = text(as_charlie.post(url, {"uploads": upload, **import_options()}))
    assert "This is what the import would do. Nothing is written yet." in shown
    with tenant_transaction(live.other):
        assert not ConfigItem.objects.exists()
    form = shown[
        shown.index("_packed") if "_packed" in shown else shown.index('name="packed"') - 200 :
    ]
    data = submission(form[: form.index("</form>")])
    data["apply"] = "1"
    assert send(as_charlie, url, data).status_code == 302
    with tenant_transaction(live.other):
        assert not ConfigItem.objects.exists()
        manifest = candidate_whole(ChangeRequest.objects.get()).manifest
        assert sha256_text(manifest) == release(live, 2).sha256


def applied(shown: str) -> QueryDict:
    """Return what the button below a dry run's report posts."""
    form = next(form for form in shown.split("<form") if 'name="packed"' in form)
    data = submission("<form" + form[: form.index("</form>")])
    data["apply"] = "1"
    return data


def import_options(**more: str) -> dict[str, str]:
    return {"environment": "dev", "docker_environment": "production", "note": "", **more}


def test_export__as_zip__has_one_file_per_kind(live: World, as_bob: Client) -> None:
    response = as_bob.get(reverse("admin:releases_export"), {"format": "zip"})
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert {"agent.yaml", "prompt.yaml", "tool.yaml"} <= set(archive.namelist())


def test_export__with_values__has_the_addresses_and_without_them_none(
    live: World, as_bob: Client
) -> None:
    assert b"127.0.0.1:9001" in exported(as_bob, values="1")
    assert b"127.0.0.1:9001" not in exported(as_bob)


def test_import__of_bad_files__says_where_and_writes_nothing(
    small: World, as_alice: Client
) -> None:
    bad = b"format: agentops-config-v1\nitems:\n  prompt:\n    x:\n      sistem: hello\n"
    upload = SimpleUploadedFile("bad.yaml", bad)
    shown = text(
        as_alice.post(reverse("admin:releases_import"), {"uploads": upload, **import_options()})
    )
    assert "Nothing was imported: 2 problems." in shown
    assert "<code>bad.yaml:5</code>" in shown
    assert "This field is not known here." in shown


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("x.zip", b"no zip", "This is not a readable zip."),
        ("../x.yaml", b"a: 1", ""),
        ("tools.yaml", b"\xff\xfe\x00", "This is not UTF-8 text."),
        ("x.exe", b"MZ", "The file must be a mapping with"),
    ],
)
def test_import__of_files_that_are_none__is_refused(
    small: World, as_alice: Client, name: str, data: bytes, message: str
) -> None:
    upload = SimpleUploadedFile(name, data)
    response = as_alice.post(
        reverse("admin:releases_import"), {"uploads": upload, **import_options()}
    )
    assert response.status_code == 200
    assert message in text(response)


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"format: agentops-config-v1\nitems: [1,\n", "tenant.yaml:3", "(column 1)"),
        (b"a: 1\nb: 'x\n", "tenant.yaml:3", "(column 1)"),
        (b"", "tenant.yaml", "The file is empty."),
        (b"# nothing\n", "tenant.yaml:1", "The file is empty."),
        (b"- a\n- b\n", "tenant.yaml:1", "must be a mapping with &#x27;format: agentops-config-v1"),
        (
            b"format: x-v9\n",
            "tenant.yaml:1",
            "must be a mapping with &#x27;format: agentops-config",
        ),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "tenant.yaml:1", "This is not UTF-8 text."),
    ],
)
def test_import__of_one_bad_file__names_it_and_no_path_of_the_server(
    small: World, as_alice: Client, data: bytes, place: str, message: str
) -> None:
    with tenant_transaction(small.acme):
        before = ConfigItem.objects.count()
    upload = SimpleUploadedFile("tenant.yaml", data)
    response = as_alice.post(
        reverse("admin:releases_import"), {"uploads": upload, **import_options()}
    )
    shown = text(response)
    assert response.status_code == 200
    assert "Nothing was imported: 1 problem." in shown
    assert f"<code>{place}</code>" in shown
    assert message in shown
    assert "import-" not in shown[shown.index("Nothing was imported") :].split("</ul>")[0]
    with tenant_transaction(small.acme):
        assert ConfigItem.objects.count() == before


def test_import__of_several_unknown_files__shows_no_path_of_the_server(
    small: World, as_alice: Client
) -> None:
    upload = zip_of(**{"a.txt": b"a", "b.txt": b"b"})
    shown = text(
        as_alice.post(reverse("admin:releases_import"), {"uploads": upload, **import_options()})
    )
    assert "<li>No known file in this folder.</li>" in shown


def test_import__without_files_or_with_broken_packed_ones__is_refused(
    small: World, as_alice: Client
) -> None:
    url = reverse("admin:releases_import")
    assert "Choose at least one file." in text(as_alice.post(url, import_options()))
    for packed in ("%%%", "AAAA"):
        data = import_options(packed=packed, apply="1")
        assert as_alice.post(url, data).status_code == 200


def zip_of(**files: bytes) -> SimpleUploadedFile:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/"), data)
    return SimpleUploadedFile("all.zip", buffer.getvalue())


def test_import__of_another_platforms_folder__reports_what_it_drops(
    small: World, as_alice: Client
) -> None:
    upload = zip_of(
        **{
            "telecom__config__mcp_servers.yaml": b"servers:\n  billing:\n    transport: streamable_http\n    endpoint: http://127.0.0.1:9/mcp\n",
            "telecom__config__tools.yaml": b"tools:\n  consult:\n    mcp_server: billing\n    use_mock: true\n",
        }
    )
    shown = text(
        as_alice.post(reverse("admin:releases_import"), {"uploads": upload, **import_options()})
    )
    assert "Not taken over as it stood" in shown
    assert "use_mock" in shown
    assert "consult" in shown


def test_import__by_a_business_owner__binds_no_addresses_and_says_so(
    small: World, as_bob: Client
) -> None:
    role_of_bob(small, "business_owner")
    upload = zip_of(
        **{
            "mcp_servers.yaml": b"servers:\n  billing:\n    transport: streamable_http\n    endpoint: http://127.0.0.1:9/mcp\n",
        }
    )
    url = reverse("admin:releases_import")
    shown = text(as_bob.post(url, {"uploads": upload, **import_options()}))
    assert "your role may not change bindings" in shown
    data = applied(shown)
    assert send(as_bob, url, data).status_code == 302
    with tenant_transaction(small.acme):
        assert not Binding.objects.exists()
        assert ChangePatch.objects.filter(kind="tool_server", slug="billing").exists()


@pytest.mark.parametrize("role", ["auditor", "approver", "operator"])
def test_import__by_who_may_not_edit__is_forbidden(small: World, as_bob: Client, role: str) -> None:
    role_of_bob(small, role)
    url = reverse("admin:releases_import")
    assert as_bob.get(url).status_code == 403
    assert as_bob.post(url, import_options()).status_code == 403


# -- first page ------------------------------------------------------------------------------------
def test_overview__after_a_change__counts_what_is_unpublished(
    live: World, as_alice: Client
) -> None:
    url = reverse("admin:index")
    assert "nothing: release #2 holds everything" in text(as_alice.get(url))
    with tenant_transaction(live.acme):
        item_save(kind="prompt", slug="billing", content={"system": "New."}, actor="a")
        item_save(kind="prompt", slug="more", content={"system": "More."}, actor="a")
    shown = text(as_alice.get(url))
    assert "2 changed items" in shown
    assert "release #2" in shown


def test_overview__with_what_runs_saved_again__says_it_is_the_same(
    live: World, as_alice: Client
) -> None:
    back_to_the_first(live)
    assert "1 changed item" in text(as_alice.get(reverse("admin:index")))
    with tenant_transaction(live.acme):
        release_deploy(
            release=Release.objects.get(number=1), environment="production", actor="user:alice"
        )
    shown = text(as_alice.get(reverse("admin:index")))
    assert "nothing: the same as release #1" in shown
    assert "changed item" not in shown
    assert "Look and publish" not in shown


def test_overview__by_role__links_only_to_what_is_allowed(live: World, as_bob: Client) -> None:
    shown = text(as_bob.get(reverse("admin:index")))
    assert reverse("admin:agents_agent_changelist") in shown
    assert reverse("admin:tenants_auditentry_changelist") in shown
    assert reverse("admin:tenants_user_changelist") not in shown
    role_of_bob(live, "operator")
    assert reverse("admin:tenants_auditentry_changelist") not in text(
        as_bob.get(reverse("admin:index"))
    )


def test_admin__for_a_platform_admin_without_any_tenant__says_so(client: Client, db: None) -> None:
    from apps.tenants.models import User

    client.force_login(User.objects.create_superuser("root", "root@example.com", "x"))
    assert "You are in no tenant" in text(client.get(reverse("admin:index")))
    for name in ("agents_agent_changelist", "releases_release_changelist", "releases_as_of"):
        assert client.get(reverse(f"admin:{name}")).status_code == 403


def test_gates__of_a_release__are_kept_as_json(live: World) -> None:
    results = json.loads(release(live, 1).gates)
    assert ("references_resolve", "passed") in [(r["gate"], r["level"]) for r in results]

"""``demo_load``: everything once, nothing twice, nothing over somebody's head."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentops import demo_data
from agentops.demo_data import FOLDER, PEOPLE, TENANTS
from apps.governance.duties import holders_of
from apps.governance.raci import DUTIES
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.models import Binding, ConfigItem, Deployment, Release, Revision
from apps.releases.portable.native import native_parse
from apps.releases.portable.transfer import tenant_export, tenant_import
from apps.releases.portable.yaml_source import source_read
from apps.releases.services import item_archive, item_restore_head, item_save, release_publish
from apps.tenants.models import ApiKey, AuditEntry, Membership, Tenant, User
from apps.tenants.scope import tenant_transaction

ALICE = "user:alice"


def load(**options: Any) -> str:
    out = StringIO()
    call_command("demo_load", stdout=out, **options)
    return out.getvalue()


@pytest.fixture(autouse=True)
def _demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DEMO", True)


@pytest.fixture
def loaded_all(db: None, _demo: None) -> None:
    load()


@pytest.fixture
def loaded(db: None, _demo: None, monkeypatch: pytest.MonkeyPatch) -> Tenant:
    """One of the demo tenants is enough for most tests."""
    monkeypatch.setattr(demo_data, "TENANTS", {"default": "Demo"})
    load()
    return Tenant.objects.get(slug="default")


def edit(tenant: Tenant, system: str = "Editado.") -> Revision:
    with tenant_transaction(tenant):
        return item_save(
            kind="prompt", slug="billing_agent", content={"system": system}, actor=ALICE
        )


def test_demo_load__without_demo__is_refused(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DEMO", False)
    with pytest.raises(CommandError, match="DEMO=1"):
        load()
    assert not Tenant.objects.exists()


def test_demo_load__first_run__everything_is_there_and_deployed(db: None) -> None:
    told = load(telecom_url="http://127.0.0.1:1/mcp", retail_url="http://127.0.0.1:2/mcp")

    assert set(Tenant.objects.filter(demo_keyless=True).values_list("slug", flat=True)) == {
        "default",
        "tim",
        "loja",
    }
    for slug in TENANTS:
        with tenant_transaction(Tenant.objects.get(slug=slug)):
            assert Release.objects.count() == 1
            assert {d.environment: d.release.number for d in Deployment.objects.all()} == {
                "dev": 1,
                "staging": 1,
                "production": 1,
            }
    with tenant_transaction(Tenant.objects.get(slug="loja")):
        assert set(Binding.objects.values_list("name", "value")) == {
            ("retail_mcp", "http://127.0.0.1:2/mcp")
        }
    assert "published release 1" in told


def test_demo_load__people__have_their_roles_and_the_password(loaded: Tenant) -> None:
    admin = User.objects.get(username="admin")
    assert admin.is_superuser
    assert admin.check_password("demo")
    with tenant_transaction(loaded):
        assert {m.user.username: m.role for m in Membership.objects.all()} == PEOPLE
        # Whoever may edit finds somebody else for every duty.
        for duty in DUTIES:
            assert holders_of([duty]) - {"alice", "olga"}, duty


def test_demo_load__keys__are_printed_once_and_stored_hashed(db: None) -> None:
    told = load()
    texts = [line.rsplit(" ", 1)[1] for line in told.splitlines() if "shown only now" in line]
    assert len(texts) == 2
    with tenant_transaction(Tenant.objects.get(slug="default")):
        for key, text in zip(ApiKey.objects.order_by("name"), texts, strict=True):
            assert text not in str(vars(key))
            assert key.prefix in text
    assert "shown only now" not in load()


def test_demo_load__second_run__writes_nothing(loaded_all: None) -> None:
    loaded = Tenant.objects.get(slug="default")
    with tenant_transaction(loaded):
        before = (Revision.objects.count(), AuditEntry.objects.count())
    with CaptureQueriesContext(connection) as queries:
        told = load()
    with tenant_transaction(loaded):
        assert (Revision.objects.count(), AuditEntry.objects.count()) == before
    assert told.count("no changes") == 3
    assert "people" not in told
    written = [q["sql"] for q in queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert written == []
    assert len(queries) < 50


def test_demo_load__edited_item__is_left_and_named(loaded: Tenant) -> None:
    edit(loaded)
    told = load()
    assert "prompt billing_agent was edited here: left as it is" in told
    with tenant_transaction(loaded):
        head = ConfigItem.objects.get(kind="prompt", slug="billing_agent").head
        assert head is not None
        assert head.author == ALICE
        assert Release.objects.count() == 1


def test_demo_load__archived_item__stays_archived(loaded: Tenant) -> None:
    with tenant_transaction(loaded):
        item = ConfigItem.objects.get(kind="state_policy", slug="WAITING_BILLING_CONFIRMATION")
        item_archive(item=item, actor=ALICE)
    load()
    with tenant_transaction(loaded):
        assert ConfigItem.objects.get(pk=item.pk).archived_at is not None


def test_demo_load__newer_file__replaces_what_nobody_touched_and_deploys_it(
    loaded: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _newer_files(tmp_path, monkeypatch)

    told = load()

    assert "tenant default: 1 items saved; published release 2" in told
    with tenant_transaction(loaded):
        assert {d.release.number for d in Deployment.objects.all()} == {2}


def test_demo_load__newer_file_and_unpublished_edits__publishes_nothing(
    loaded: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(loaded)
    _newer_files(tmp_path, monkeypatch)

    told = load()

    assert "1 items saved" in told
    assert "not published: others edited here" in told
    with tenant_transaction(loaded):
        assert Release.objects.count() == 1


def test_demo_load__head_set_back__is_somebodys_choice(
    loaded: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _newer_files(tmp_path, monkeypatch)
    load()
    with tenant_transaction(loaded):
        item = ConfigItem.objects.get(kind="prompt", slug="assistente")
        first = Revision.objects.get(item=item, number=1)
        item_restore_head(item=item, revision=first, actor=ALICE)

    assert "prompt assistente was edited here: left as it is" in load()


def test_demo_load__bindings__follow_the_servers_unless_somebody_set_them(loaded: Tenant) -> None:
    with tenant_transaction(loaded):
        binding_set(
            environment="production",
            what="address",
            name="telecom_mcp",
            value="http://mine:1/mcp",
            actor=ALICE,
        )

    told = load(telecom_url="http://127.0.0.1:9/mcp")

    assert "binding telecom_mcp in production was set here: left as it is" in told
    with tenant_transaction(loaded):
        bound = dict(Binding.objects.filter(name="telecom_mcp").values_list("environment", "value"))
    assert bound == {
        "dev": "http://127.0.0.1:9/mcp",
        "staging": "http://127.0.0.1:9/mcp",
        "production": "http://mine:1/mcp",
    }


def test_demo_load__somebodys_deployment__is_not_undone(
    loaded: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(loaded)
    with tenant_transaction(loaded):
        mine = release_publish(actor=ALICE)
        release_deploy(release=mine, environment="staging", actor=ALICE)
        for item in ConfigItem.objects.filter(kind="prompt", slug="billing_agent"):
            first = Revision.objects.get(item=item, number=1)
            item_restore_head(item=item, revision=first, actor=ALICE)
    _newer_files(tmp_path, monkeypatch)

    load()

    with tenant_transaction(loaded):
        assert {d.environment: d.release.number for d in Deployment.objects.all()} == {
            "dev": 3,
            "staging": 2,
            "production": 3,
        }


def test_demo_load__revoked_role_and_changed_password__stay(loaded: Tenant) -> None:
    bob = User.objects.get(username="bob")
    bob.set_password("another one")
    bob.save()
    with tenant_transaction(loaded):
        Membership.objects.get(user=bob).delete()
    load()
    bob.refresh_from_db()
    assert bob.check_password("another one")
    with tenant_transaction(loaded):
        assert not Membership.objects.filter(user=bob).exists()


def test_demo_tenants__exported_and_imported_elsewhere__have_the_same_sha256(
    loaded_all: None,
) -> None:
    for slug in TENANTS:
        with tenant_transaction(Tenant.objects.get(slug=slug)):
            sha256 = Release.objects.get().sha256
            portable = tenant_export()
        with tenant_transaction(Tenant.objects.create(slug=f"{slug}-copy", name="Copy")):
            tenant_import(portable=portable, actor=ALICE)
            assert release_publish(actor=ALICE).sha256 == sha256


def test_example_of_a_real_model__is_valid() -> None:
    portable = native_parse([source_read(FOLDER / "openai-compatible.yaml", "f")])
    assert [(i.kind, i.slug) for i in portable.items] == [
        ("model_profile", slug)
        for slug in (
            "default",
            "mcp_parameter_extraction",
            "route_continuity",
            "router",
            "transaction_parameter_extraction",
        )
    ]


def _newer_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a later version of the product shipped another text in one prompt."""
    for slug in TENANTS:
        text = (FOLDER / f"{slug}.yaml").read_text()
        (folder / f"{slug}.yaml").write_text(text.replace("a porta de entrada", "a recepção"))
    monkeypatch.setattr(demo_data, "FOLDER", folder)

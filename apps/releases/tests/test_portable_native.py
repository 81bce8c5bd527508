"""A whole tenant out of one database and into an empty tenant: same sha256."""

from pathlib import Path
from typing import Any

import pytest

from apps.releases.environments.services import binding_set
from apps.releases.models import Binding, ConfigItem, Release, Revision
from apps.releases.portable.files import files_write, sources_read
from apps.releases.portable.native import Portable, native_files, native_parse, native_text
from apps.releases.portable.transfer import Imported, tenant_export, tenant_import
from apps.releases.portable.yaml_source import SourceRefused, source_parse
from apps.releases.services import item_archive, release_publish
from apps.releases.tests.conftest import ALICE, item, save, small_world
from apps.releases.tests.test_portable_yaml import ODD_TEXTS
from apps.runtime.config import KINDS
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import tenant_scope

HEAD = "format: agentops-config-v1\n"


def read(text: str) -> Portable:
    return native_parse([source_parse(text.encode(), "t.yaml")])


def load(text: str, **options: Any) -> Imported:
    return tenant_import(portable=read(text), actor=ALICE, **options)


def problems(text: str) -> list[str]:
    with pytest.raises(SourceRefused) as refused:
        load(text)
    return [str(problem) for problem in refused.value.problems]


def every_kind() -> None:
    """One item at least of every kind, full of texts that other YAML tools stumble over."""
    small_world()
    save("routing_policy", "default", default_agent="billing_agent", fallback_text="Olá 👋\nSim?\n")
    save("state_policy", "WAITING", state="0123", agent="billing_agent", description="no")
    save("intent", "odd", agent="billing_agent", keywords=ODD_TEXTS, description=ODD_TEXTS[-1])
    save("prompt", "odd", system="\n".join(["Olá", "  recuo", "fim "]), response_style="1e3")
    save(
        "parameter_mapping",
        "_global",
        defaults={
            "long": 12345678901234567890123456789,
            "float": 1.0,
            "big": 1e22,
            "none": None,
            "text": "2026-01-01",
            "nested": {"no": ["no", False, {"0": "0"}]},
        },
    )
    save("identity_key", "customer_key", sources=["msisdn"], identifies_customer=True)
    save(
        "workflow",
        "odd",
        start="ask",
        nodes=[{"id": "ask", "pause": {"key": "yes", "question": ODD_TEXTS[-1]}}],
    )
    save("model_profile", "real", provider="openai_compatible", base_url="llm", credential="llm")


@pytest.fixture
def empty(acme: Tenant) -> Tenant:
    return Tenant.objects.create(slug="empty", name="Empty")


def test_export_import__every_kind_and_odd_texts__gives_the_same_sha256(
    acme: Tenant, empty: Tenant
) -> None:
    every_kind()
    assert {i.kind for i in ConfigItem.objects.all()} == set(KINDS)
    first = release_publish(actor=ALICE)
    text = native_text(tenant_export())

    with tenant_scope(empty):
        load(text)
        second = release_publish(actor=ALICE)
        assert native_text(tenant_export()) == text

    assert second.sha256 == first.sha256
    assert second.manifest == first.manifest


@pytest.mark.parametrize("name", ["folder", "tenant.zip"])
def test_export_import__folder_and_zip__give_the_same_sha256(
    acme: Tenant, empty: Tenant, tmp_path: Path, name: str
) -> None:
    every_kind()
    first = release_publish(actor=ALICE)
    files_write(tmp_path / name, native_files(tenant_export()))

    with tenant_scope(empty):
        tenant_import(portable=native_parse(sources_read(tmp_path / name)), actor=ALICE)
        assert release_publish(actor=ALICE).sha256 == first.sha256


def test_export__labels_and_archived_items__labels_go_along_archived_stay(billing: Tenant) -> None:
    from apps.releases.services import item_save

    item_save(
        kind="prompt",
        slug="x",
        content={"system": "Oi."},
        actor=ALICE,
        name="Saudação",
        owner="Bia",
    )
    save("prompt", "old", system="Velho.")
    item_archive(item=item("prompt", "old"), actor=ALICE)

    document = source_parse(native_text(tenant_export()), "f").value

    assert document["items"]["prompt"]["x"]["name"] == "Saudação"
    assert document["items"]["prompt"]["x"]["owner"] == "Bia"
    assert "technical_owner" not in document["items"]["prompt"]["x"]
    assert "old" not in document["items"]["prompt"]
    assert list(document["items"]) == sorted(document["items"])


def test_export__bindings__are_names_only_unless_values_are_asked_for(billing: Tenant) -> None:
    for name in ("telecom_mcp", "unused"):
        binding_set(
            environment="dev", what="address", name=name, value="http://localhost:1", actor=ALICE
        )

    assert source_parse(native_text(tenant_export()), "f").value["bindings"] == {
        "address": ["telecom_mcp"]
    }
    assert source_parse(native_text(tenant_export(binding_values=True)), "f").value["bindings"] == {
        "address": {"telecom_mcp": {"dev": "http://localhost:1"}}
    }


def test_import__binding_values__are_bound(acme: Tenant) -> None:
    load(HEAD + "bindings:\n  address:\n    telecom_mcp: {staging: 'http://mcp:1'}\n")

    assert list(Binding.objects.values_list("environment", "what", "name", "value")) == [
        ("staging", "address", "telecom_mcp", "http://mcp:1")
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "t.yaml:1: The file is empty."),
        ("format: agentops-config-v2\n", "t.yaml:1 format: The file must be a mapping"),
        (HEAD + "itens: {}\n", "t.yaml:2 itens: This field is not known here."),
        (HEAD + "items:\n  agente: {}\n", "t.yaml:3 items.agente: Unknown kind; known: agent,"),
        (
            HEAD + "items:\n  prompt:\n    a: {system: Oi.}\n    a: {system: Tchau.}\n",
            "t.yaml:5 items.prompt.a: The key stands twice; first on line 4.",
        ),
        (
            HEAD + "items:\n  prompt:\n    a:\n      system: Oi.\n      sistem: x\n",
            "t.yaml:6 items.prompt.a.sistem: This field is not known here.",
        ),
        (
            HEAD + "items:\n  intent:\n    a:\n      agent: x\n      keywords: [a, 5]\n",
            "t.yaml:6 items.intent.a.keywords[1]: Input should be a valid string",
        ),
        (
            HEAD + "items:\n  prompt:\n    a: {}\n",
            "t.yaml:4 items.prompt.a.system: This field is required.",
        ),
        (HEAD + "items:\n  prompt:\n    'a b': {system: Oi.}\n", "t.yaml:4 items.prompt.a b: Use"),
        (
            HEAD + "items:\n  prompt:\n    a: {system: Oi., name: 5}\n",
            "t.yaml:4 items.prompt.a.name: Text of at most 200",
        ),
        (HEAD + "items:\n  prompt:\n    a:\n", "t.yaml:4 items.prompt.a: Expected a map"),
        (HEAD + "items: []\n", "t.yaml:2 items: Expected a map"),
        (HEAD + "bindings: {port: [a]}\n", "t.yaml:2 bindings.port: Expected address or"),
        (HEAD + 'bindings: {address: ["a b"]}\n', "t.yaml:2 bindings.address[0]: This is not"),
    ],
)
def test_import__bad_document__is_refused_with_file_line_and_path(
    acme: Tenant, body: str, expected: str
) -> None:
    found = problems(body)
    assert any(line.startswith(expected) for line in found), found


def test_import__several_problems__are_all_named_and_nothing_is_saved(acme: Tenant) -> None:
    found = problems(
        HEAD
        + "items:\n  prompt:\n    good: {system: Oi.}\n    bad: {sys: x}\n  intent:\n    b: {}\n"
    )

    assert len(found) == 3  # an unknown field and two missing ones
    assert not ConfigItem.objects.exists()
    assert not AuditEntry.objects.exists()


def test_import__item_stands_in_two_files__both_are_named() -> None:
    sources = [
        source_parse(HEAD + "items: {prompt: {a: {system: Oi.}}}\n", "one.yaml"),
        source_parse(HEAD + "items: {prompt: {a: {system: Oi.}}}\n", "two.yaml"),
    ]
    with pytest.raises(SourceRefused, match=r"two\.yaml:2 .*first in one\.yaml, line 2"):
        native_parse(sources)


def test_import__late_failure__leaves_nothing_behind(acme: Tenant) -> None:
    text = HEAD + (
        "items:\n  prompt:\n    a: {system: Oi.}\n"
        "bindings:\n  address: {x: {production: 'ftp://nowhere'}}\n"
    )
    assert problems(text) == [
        "bindings.address.x.production: An address starts with http:// or https:// and names a host."
    ]
    assert not ConfigItem.objects.exists()


def test_import__twice__second_time_makes_no_revision(billing: Tenant) -> None:
    text = native_text(tenant_export())
    before = Revision.objects.count()

    done = load(text)

    assert set(done.changes.values()) == {"unchanged"}
    assert Revision.objects.count() == before


def test_import__dry_run__says_what_would_happen_and_writes_nothing(billing: Tenant) -> None:
    before, audited = Revision.objects.count(), AuditEntry.objects.count()

    done = load(
        HEAD + "items:\n  prompt:\n    billing: {system: Novo.}\n    new: {system: Oi.}\n",
        dry_run=True,
    )

    assert done.changes == {("prompt", "billing"): "changed", ("prompt", "new"): "created"}
    assert (Revision.objects.count(), AuditEntry.objects.count()) == (before, audited)


def test_import__replace__archives_what_the_file_does_not_name(billing: Tenant) -> None:
    done = load(
        HEAD + "items:\n  memory_policy:\n    default: {}\n  rail_policy:\n    default: {}\n",
        replace=True,
    )

    assert done.counts() == {"created": 0, "changed": 0, "unchanged": 2, "archived": 7}
    release = release_publish(actor=ALICE)
    assert Release.objects.get(pk=release.pk).manifest.startswith('{"format":1,"items":{"memory_po')


def test_import__reference_to_nothing__is_named(acme: Tenant) -> None:
    done = load(HEAD + "items:\n  state_policy:\n    s: {state: S, agent: ghost}\n")
    assert done.dangling == ["state_policy s: agent → agent:ghost"]


def test_labels__no_kind_has_such_a_field() -> None:
    taken = {
        (kind, name)
        for kind, config in KINDS.items()
        for name in config.model_fields
        if name in ("name", "owner", "technical_owner")
    }
    assert taken == set()


def test_sources_read__broken_zip__is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK nothing")
    with pytest.raises(SourceRefused, match="not a readable zip"):
        sources_read(tmp_path / "x.zip")

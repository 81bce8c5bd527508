"""A release is parsed once in a process, and not at all by the process that published it."""

import pytest

from agentops.tests.governed_world import governed  # noqa: F401  # a fixture
from apps.releases.changes.services import (
    patch_save,
    request_decide,
    request_open,
    request_publish,
    request_submit,
)
from apps.releases.models import ConfigItem, Release
from apps.releases.selectors import caches_clear, release_load
from apps.runtime import release as runtime_release
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.django_db, pytest.mark.governed]


@pytest.fixture
def parsed(monkeypatch) -> list[str]:
    """The sha256 of every manifest that is parsed."""
    seen: list[str] = []
    real = runtime_release.release_parse

    def counting(**given):
        release = real(**given)
        seen.append(release.sha256)
        return release

    monkeypatch.setattr(runtime_release, "release_parse", counting)
    return seen


def published(governed) -> Release:  # noqa: F811
    """A change of Olga's that Ana approved and published."""
    with tenant_transaction(governed.world.acme):
        request = request_open(actor="user:olga", title="Kinder", reason="Asked for")
        content = {"system": "You explain invoices kindly."}
        patch_save(
            actor="user:olga", kind="prompt", slug="billing", content=content, request=request
        )
        request = request_submit(request=request, actor="user:olga")
        request_decide(
            request=request, actor="user:ana", decision="approve", sha256=request.manifest_sha256
        )
        request.refresh_from_db()
        return request_publish(request=request, actor="user:ana")


def test_publisher__of_a_release__has_it_parsed_already_and_it_equals_the_stored_one(
    governed,  # noqa: F811
    parsed,
):
    release = published(governed)
    parsed.clear()
    tenant = governed.world.acme.pk
    kept = release_load(tenant, release.pk)
    assert parsed == []
    caches_clear()
    read = release_load(tenant, release.pk)
    assert parsed == [release.sha256]
    assert (kept.id, kept.number, kept.sha256) == (read.id, read.number, read.sha256)
    assert kept.items == read.items


def test_release__loaded_a_hundred_times__is_parsed_once(governed, parsed):  # noqa: F811
    release = published(governed)
    caches_clear()
    parsed.clear()
    for _ in range(100):
        release_load(governed.world.acme.pk, release.pk)
    assert parsed == [release.sha256]


def test_publication__that_was_rolled_back_and_is_made_again__is_loaded_as_it_is_now(governed):  # noqa: F811
    tenant = governed.world.acme
    kept: list[str] = []

    def fail() -> None:
        with tenant_transaction(tenant):
            kept.append(str(published(governed).pk))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    again = published(governed)
    assert str(again.pk) != kept[0]
    loaded = release_load(tenant.pk, again.pk)
    assert (loaded.id, loaded.number) == (str(again.pk), again.number)
    with tenant_transaction(tenant):
        assert ConfigItem.objects.get(kind="prompt", slug="billing").head.number == 2

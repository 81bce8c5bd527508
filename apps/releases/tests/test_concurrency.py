"""Two at once: publishers, editors and loaders, in threads and in processes."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.conf import settings
from django.db import connection

from apps.releases import selectors
from apps.releases.authority import setting_up
from apps.releases.change_models import ChangeRequest
from apps.releases.changes.services import (
    patch_save,
    request_decide,
    request_open,
    request_submit,
)
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.freezing import manifest_of_heads
from apps.releases.models import ConfigItem, Release, Revision
from apps.releases.selectors import release_load
from apps.releases.services import StaleBase, item_save, release_publish
from apps.releases.tests.conftest import ALICE, audited, small_world
from apps.runtime.canonical import sha256_text
from apps.tenants.models import Role, Tenant, User
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tenants.services import membership_grant

T = TypeVar("T")
AT_ONCE = 5


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    """A tenant whose rows are committed, so that others see them."""
    tenant = Tenant.objects.create(slug="acme-releases", name="Acme")
    with tenant_transaction(tenant):
        small_world()
    return tenant


def together(tenant: Tenant, work: Callable[[int], T]) -> list[T]:
    """Run ``work(0)``, ``work(1)``, … in threads that start at the same moment."""
    barrier = threading.Barrier(AT_ONCE)

    def run(number: int) -> T:
        try:
            # A thread has no context of the test's: neither its tenant nor what it may do.
            with tenant_scope(tenant.pk), setting_up("writers at once"):
                barrier.wait(timeout=30)
                return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, range(AT_ONCE)))


def chain(tenant: Tenant) -> list[Release]:
    """Return all releases: numbers without gaps, each follows the one before, the stored bytes have
    the stored hash, and the last one is what the heads are now."""
    with tenant_transaction(tenant):
        releases = list(Release.objects.order_by("number"))
        assert releases[-1].manifest == manifest_of_heads()
    assert [release.number for release in releases] == list(range(1, len(releases) + 1))
    assert [r.parent_id for r in releases] == [None, *(r.pk for r in releases[:-1])]
    assert all(sha256_text(release.manifest) == release.sha256 for release in releases)
    return releases


def test_release_publish__same_heads_in_threads__is_one_release_for_all(tenant: Tenant) -> None:
    ids = together(tenant, lambda number: release_publish(actor=f"user:{number}").pk)
    assert len(set(ids)) == 1
    with tenant_transaction(tenant):
        assert Release.objects.count() == 1
        assert [action for _, action, _ in audited()].count("release.published") == 1


def test_release_publish__others_save_meanwhile__makes_one_unbroken_chain(tenant: Tenant) -> None:
    def save_and_publish(number: int) -> tuple[str, str]:
        revision = item_save(
            kind="prompt", slug=f"p{number}", content={"system": "x"}, actor=f"user:{number}"
        )
        return f"p{number}", release_publish(actor=revision.author).sha256

    published = together(tenant, save_and_publish)
    releases = chain(tenant)
    by_sha = {release.sha256: release.manifest for release in releases}
    for slug, sha256 in published:
        # What a publisher saved before is in what it got back, also when another one published it.
        assert f'"{slug}":' in by_sha[sha256]


def test_item_save__same_item_in_threads__numbers_have_no_gap(tenant: Tenant) -> None:
    together(
        tenant,
        lambda number: (
            item_save(kind="prompt", slug="new", content={"system": f"{number}"}, actor=ALICE).pk
        ),
    )
    with tenant_transaction(tenant):
        saved = ConfigItem.objects.select_related("head").get(kind="prompt", slug="new")
        numbers = list(Revision.objects.filter(item=saved).values_list("number", flat=True))
    assert sorted(numbers) == list(range(1, AT_ONCE + 1))
    assert saved.head is not None
    assert saved.head.number == AT_ONCE


def test_item_save__same_base_in_threads__one_wins_the_others_are_told(tenant: Tenant) -> None:
    def edit(number: int) -> bool:
        content = {"system": f"edit {number}"}
        try:
            item_save(kind="prompt", slug="billing", content=content, actor=ALICE, base=1)
        except StaleBase:
            return False
        return True

    assert sorted(together(tenant, edit)) == [False] * (AT_ONCE - 1) + [True]
    with tenant_transaction(tenant):
        assert Revision.objects.filter(item__kind="prompt").count() == 2


def test_release_load__cold_in_threads__parses_once(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(tenant):
        release_id = release_publish(actor=ALICE).pk
    parsed: list[int] = []
    real = selectors._parsed

    def counted(row: Release) -> object:
        parsed.append(row.number)
        return real(row)

    monkeypatch.setattr(selectors, "_parsed", counted)
    loaded = together(tenant, lambda _number: release_load(tenant.pk, release_id))
    assert parsed == [1]
    assert len({id(release) for release in loaded}) == 1


def test_release_publish__in_processes__is_one_unbroken_chain(tenant: Tenant) -> None:
    publishers = [Publisher(tenant, f"p{number}") for number in range(3)]
    try:
        for publisher in publishers:
            assert publisher.answer() == ["ready"]
        for publisher in publishers:
            publisher.say("publish")
        same = [publisher.answer() for publisher in publishers]
        for publisher in publishers:
            publisher.say("save")
        changed = [publisher.answer() for publisher in publishers]
    finally:
        for publisher in publishers:
            publisher.end()

    releases = chain(tenant)
    assert same == [["1", releases[0].sha256]] * 3
    known = [[str(release.number), release.sha256] for release in releases[1:]]
    assert all(answer in known for answer in changed)


RACES = 100


@pytest.mark.services
def test_request_publish__two_processes_at_once__one_wins_the_other_is_told(
    tenant: Tenant,
) -> None:
    """Even rounds: both publish one request. Odd rounds: each its own, made on the same heads."""
    with tenant_transaction(tenant), setting_up("a test's world"):
        approver = User.objects.create_user("approver")
        membership_grant(user=approver, role=Role.APPROVER, actor="test")
        binding_set(
            environment="staging",
            what="address",
            name="telecom_mcp",
            value="http://127.0.0.1:9/mcp",
            actor="test",
        )
        release = release_publish(actor="test")
        release_deploy(release=release, environment="staging", actor="test")
    publishers = [Publisher(tenant, f"user:{name}") for name in ("ana", "otto")]
    told: list[str] = []
    try:
        for publisher in publishers:
            assert publisher.answer() == ["ready"]
        for race in range(RACES):
            numbers = _approved_requests(tenant, race, 1 + race % 2)
            for publisher, number in zip(publishers, (numbers * 2)[:2], strict=True):
                publisher.say(f"request {number}")
            answers = [publisher.answer() for publisher in publishers]
            won = [answer for answer in answers if len(answer) == 2]
            assert len(won) == 1, answers
            told += [answer[0] for answer in answers if len(answer) == 1]
            with tenant_transaction(tenant):
                published = ChangeRequest.objects.filter(release__number=won[0][0])
                assert published.count() == 1
                assert Release.objects.count() == race + 2
    finally:
        for publisher in publishers:
            publisher.end()
    assert told == ["WrongState", "StaleRequest"] * (RACES // 2)


def _approved_requests(tenant: Tenant, race: int, count: int) -> list[int]:
    """Open, submit and approve requests of different people on today's heads; return their numbers."""
    numbers = []
    with tenant_transaction(tenant):
        for index in range(count):
            request = request_open(actor=f"user:author{index}", title="t", reason="r")
            patch_save(
                actor=request.author,
                kind="prompt",
                slug=f"raced{index}",
                content={"system": f"race {race}"},
                request=request,
            )
            request = request_submit(request=request, actor=request.author)
            request_decide(
                request=request,
                actor="user:approver",
                decision="approve",
                sha256=request.manifest_sha256,
            )
            numbers.append(request.number)
    return numbers


class Publisher:
    """A process that publishes when told to."""

    def __init__(self, tenant: Tenant, actor: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "apps.releases.tests.publisher", str(tenant.pk), actor],
            env={**os.environ, **process_environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self) -> list[str]:
        assert self._process.stdout is not None
        return self._process.stdout.readline().split()

    def end(self) -> None:
        self._process.communicate(timeout=60)


def process_environment() -> dict[str, str]:
    """Return what points another process at the database of this test."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:///{database['NAME']}"
    else:
        port = database["PORT"] or 5432
        url = (
            f"postgres://{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{port}"
            f"/{database['NAME']}"
        )
    return {
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "agentops.settings",
        "SECRET_KEY": settings.SECRET_KEY,
    }

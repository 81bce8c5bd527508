"""A large tenant: what people wait for, in milliseconds and queries. ``python -m agentops.bench.scale``.

Runs on the configured database (see ``__main__``): makes the tenant, then asks the product's own
pages and services in this process. Nothing here passes or fails.
"""

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.urls import reverse  # noqa: E402

from agentops.bench.scale_world import ScaleWorld, world_make  # noqa: E402
from apps.releases.change_models import ChangeRequest  # noqa: E402
from apps.releases.changes.services import (  # noqa: E402
    patch_save,
    request_decide,
    request_open,
    request_publish,
    request_rebase,
    request_submit,
)
from apps.releases.models import ConfigItem, Release  # noqa: E402
from apps.releases.selectors import caches_clear, release_load  # noqa: E402
from apps.runtime import release as runtime_release  # noqa: E402
from apps.tenants.scope import tenant_transaction  # noqa: E402

OPEN_REQUESTS, PUBLICATIONS, PAGES = 40, 5, 7


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


class Timed:
    """Milliseconds, CPU milliseconds of this process, and queries of one thing done several times."""

    def __init__(self) -> None:
        self.times: dict[str, list[tuple[float, float]]] = {}
        self.queries: dict[str, int] = {}

    def do(self, name: str, act: Callable[[], Any]) -> Any:
        """Do it once and note how long it took; the second time, count queries instead."""
        done = len(self.times.setdefault(name, []))
        if done and name not in self.queries:
            with CaptureQueriesContext(connection) as captured:
                result = act()
            self.queries[name] = len(captured)
            return result
        started, cpu = time.perf_counter(), time.process_time()
        result = act()
        spent = (time.perf_counter() - started) * 1000, (time.process_time() - cpu) * 1000
        self.times[name].append(spent)
        return result

    def lines(self) -> Iterator[str]:
        """Yield a table row of each thing: the first time, the median of the others, queries."""
        yield "| what | first, ms | then, ms | CPU, ms | queries |"
        yield "|---|---|---|---|---|"
        for name, times in self.times.items():
            later = times[1:] or times
            wall, cpu = (statistics.median(spent[n] for spent in later) for n in (0, 1))
            queries = self.queries.get(name, "–")
            yield f"| {name} | {times[0][0]:.0f} | {wall:.0f} | {cpu:.0f} | {queries} |"


def draft_make(world: ScaleWorld, number: int, timed: Timed | None = None) -> ChangeRequest:
    """Open a request of Olga's that changes a prompt and an intent."""
    note = timed or Timed()
    with tenant_transaction(world.tenant):
        request = request_open(
            actor="user:olga", title=f"Warmer greeting {number}", reason="Customers asked for it."
        )
    for kind, slug, field in (
        ("prompt", f"prompt-{number}", "system"),
        ("intent", f"intent-{number}", "description"),
    ):
        with tenant_transaction(world.tenant):
            item = ConfigItem.objects.select_related("head").get(kind=kind, slug=slug)
            assert item.head is not None
            content = {**json.loads(item.head.content), field: f"Warm {number}"}
            note.do(
                "an edit saved into a request",
                partial(
                    patch_save,
                    actor="user:olga",
                    kind=kind,
                    slug=slug,
                    content=content,
                    request=request,
                ),
            )
    return request


def act(world: ScaleWorld, name: str, timed: Timed, do: Callable[[], Any]) -> Any:
    """Time ``do`` in a transaction of its own, as a door runs it."""

    def run() -> Any:
        with tenant_transaction(world.tenant):
            return do()

    return timed.do(name, run)


def changes_measure(world: ScaleWorld, timed: Timed) -> None:
    """Submit, approve and publish requests one after another, others waiting meanwhile."""
    waiting = [draft_make(world, number) for number in range(100, 100 + OPEN_REQUESTS)]
    for request in waiting:
        with tenant_transaction(world.tenant):
            request_submit(request=request, actor="user:olga")
    for number in range(PUBLICATIONS):
        request = draft_make(world, number, timed)
        submitted = act(
            world,
            "submit: candidate, risk, gates",
            timed,
            partial(request_submit, request=request, actor="user:olga"),
        )
        for person in ("user:ana", "user:alice"):
            if submitted.status != "in_review":
                break
            act(
                world,
                "approve",
                timed,
                partial(
                    request_decide,
                    request=submitted,
                    actor=person,
                    decision="approve",
                    sha256=submitted.manifest_sha256,
                ),
            )
            with tenant_transaction(world.tenant):
                submitted.refresh_from_db()
        act(
            world,
            "publish: lock, check again, gates, freeze, deploy",
            timed,
            partial(request_publish, request=submitted, actor="user:ana"),
        )
    for request in waiting[:5]:
        act(
            world,
            "rebase of a stale request",
            timed,
            partial(request_rebase, request=request, actor="user:olga"),
        )


def pages_measure(world: ScaleWorld, timed: Timed) -> None:
    """Get the pages people look at, as Ana."""
    client = Client()
    client.force_login(world.people["ana"])
    for name, address in pages(world).items():
        for _ in range(PAGES):
            response = timed.do(f"page: {name}", partial(client.get, address))
            assert response.status_code == 200, (name, response.status_code)


def pages(world: ScaleWorld) -> dict[str, str]:
    """Return the addresses that are measured."""
    with tenant_transaction(world.tenant):
        release = Release.objects.defer("manifest").order_by("-number").first()
        old = Release.objects.defer("manifest").get(number=100)
        intent = ConfigItem.objects.get(kind="intent", slug="intent-7")
        agent = ConfigItem.objects.get(kind="agent", slug="agent-7")
        waiting = ChangeRequest.objects.filter(status="in_review").order_by("number").first()
        published = ChangeRequest.objects.get(number=100)
    assert release is not None
    assert waiting is not None
    queue = reverse("admin:releases_changerequest_changelist")
    return {
        "overview": reverse("admin:index"),
        "queue, mine": f"{queue}?queue=mine",
        "queue, team": f"{queue}?queue=team",
        "queue, all": f"{queue}?queue=all",
        "request in review": _of("changerequest", waiting),
        "request published, 76 items": _of("changerequest", published),
        "release with its difference": _of("release", release),
        "release from the middle": _of("release", old),
        "releases": reverse("admin:releases_release_changelist"),
        "intents, first of 58 pages": reverse("admin:routing_intent_changelist"),
        "item: intent": reverse("admin:routing_intent_change", args=[intent.pk]),
        "item: agent": reverse("admin:agents_agent_change", args=[agent.pk]),
        "history of an item": reverse("admin:agents_agent_change", args=[agent.pk]).replace(
            "/change/", "/history/"
        ),
        "used by": reverse("admin:agents_agent_change", args=[agent.pk]).replace(
            "/change/", "/used-by/"
        ),
    }


def _of(model: str, row: Any) -> str:
    return reverse(f"admin:releases_{model}_change", args=[row.pk])


@contextmanager
def parses_counted() -> Iterator[list[str]]:
    """Note the sha256 of every manifest that is parsed meanwhile."""
    parsed: list[str] = []
    real = runtime_release.release_parse

    def counting(**given: Any) -> Any:
        release = real(**given)
        parsed.append(release.sha256)
        return release

    runtime_release.release_parse = counting
    try:
        yield parsed
    finally:
        runtime_release.release_parse = real


def parse_measure(world: ScaleWorld, timed: Timed) -> None:
    """Load a release a thousand times: it is parsed once, and later asks the database nothing."""
    with tenant_transaction(world.tenant):
        newest = (
            Release.objects.defer("manifest").order_by("-number").values_list("pk", "sha256")[0]
        )
    caches_clear()
    with parses_counted() as parsed:
        timed.do("release read and parsed", lambda: release_load(world.tenant.pk, newest[0]))
        with CaptureQueriesContext(connection) as captured:
            for _ in range(1000):
                release_load(world.tenant.pk, newest[0])
    say(f"release loaded 1,001 times: parsed {len(parsed)} time(s), then {len(captured)} queries")


def main() -> None:
    """Make the tenant, measure, print."""
    started = time.perf_counter()
    world = world_make()
    counted = ", ".join(f"{count:,} {name}" for name, count in world.rows.items())
    say(
        f"\n## scale on {connection.vendor}: {counted}; made in {time.perf_counter() - started:.0f} s"
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # what a database does by itself within a minute
    timed = Timed()
    parse_measure(world, timed)
    with parses_counted() as parsed:
        changes_measure(world, timed)
        pages_measure(world, timed)
    say(f"manifests parsed in all of this: {len(parsed)}, different: {len(set(parsed))}")
    for line in timed.lines():
        say(line)


if __name__ == "__main__":
    main()

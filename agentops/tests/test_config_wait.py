"""``config_apply --wait``: people decide while a build waits. The clock is the test's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from agentops.tests.governed_world import Governed
from agentops.tests.test_config_from_git import approve, edit, run, run_json
from apps.releases.change_models import ChangeRequest
from apps.releases.models import Release
from apps.releases.portable import awaiting
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.django_db, pytest.mark.governed]


class Clock:
    """Time that passes only in ``sleep``; ``at``: what happens when so many seconds have passed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.at: dict[float, Callable[[], Any]] = {}

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        for moment in [found for found in self.at if found <= self.now]:
            self.at.pop(moment)()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(awaiting, "sleep", clock.sleep)
    monkeypatch.setattr(awaiting, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def args(governed: Governed, tmp_path: Path) -> tuple[Any, ...]:
    """The arguments that apply an edited copy of acme's configuration as Olga."""
    path = tmp_path / "acme.yaml"
    run("config_export", "acme", path)
    edit(path, "Be kind.", "Be brief.")
    return (path, "--tenant", "acme", "--actor", "user:olga")


def turned_down(governed: Governed, decision: str) -> None:
    shown = governed.call("get", "changes/1", status=200)
    body = {"decision": decision, "sha256": shown["manifest_sha256"], "comment": "Too brief."}
    governed.call("post", "changes/1/decide", body, by="ana", status=200)


def releases(governed: Governed) -> int:
    with tenant_transaction(governed.world.acme):
        return int(Release.objects.count())


def test_wait__approved_meanwhile__publishes_what_was_approved(
    governed: Governed, clock: Clock, args: tuple[Any, ...]
) -> None:
    clock.at[5] = lambda: approve(governed)
    code, said = run_json("config_apply", *args, "--publish", "--wait", 60)
    assert code == 0
    assert clock.slept == [2.0, 2.0, 2.0]
    assert said["sha256"] == governed.request(1).manifest_sha256
    assert governed.request(1).status == "deployed"
    assert releases(governed) == 2


def test_wait__over_before_anybody_decides__exits_3_and_publishes_nothing(
    governed: Governed, clock: Clock, args: tuple[Any, ...]
) -> None:
    before = governed.state()
    code, said = run_json("config_apply", *args, "--publish", "--wait", 5)
    assert (code, clock.now) == (3, 5.0)
    assert clock.slept == [2.0, 2.0, 1.0]
    assert said["waiting_for"] == {"duties": ["domain"], "people": 1}
    assert governed.request(1).status == "in_review"
    assert governed.state() == before


def test_wait__without_publish__says_approved_and_publishes_nothing(
    governed: Governed, clock: Clock, args: tuple[Any, ...]
) -> None:
    before = governed.state()
    assert run("config_apply", *args, "--wait", 3)[0] == 3
    clock.at[clock.now + 1] = lambda: approve(governed)
    code, said = run_json("config_apply", *args, "--wait", 60)
    assert (code, said["request"]["status"]) == (0, "approved")
    assert said["must_approve"]["missing"] == []
    assert governed.state() == before


def test_wait__of_what_is_approved_already__does_not_wait(
    governed: Governed, clock: Clock, args: tuple[Any, ...]
) -> None:
    assert run("config_apply", *args)[0] == 0
    approve(governed)
    assert run("config_apply", *args, "--publish", "--wait", 60)[0] == 0
    assert clock.slept == []
    assert run("config_apply", *args, "--publish", "--wait", 60)[0] == 0, "nothing differs"
    assert clock.slept == []


@pytest.mark.parametrize(
    ("decision", "status"), [("reject", "rejected"), ("request_changes", "draft")]
)
def test_wait__turned_down_meanwhile__is_an_error_at_once(
    governed: Governed, clock: Clock, args: tuple[Any, ...], decision: str, status: str
) -> None:
    clock.at[1] = lambda: turned_down(governed, decision)
    with pytest.raises(CommandError, match=f"Request #1 is {status}: it was not approved"):
        run("config_apply", *args, "--publish", "--wait", 3600)
    assert clock.now == 2.0
    assert releases(governed) == 1


@pytest.mark.parametrize("publish", [("--publish",), ()])
def test_wait__published_by_a_person_meanwhile__is_done(
    governed: Governed, clock: Clock, args: tuple[Any, ...], publish: tuple[str, ...]
) -> None:
    def by_hand() -> None:
        approve(governed)
        governed.call("post", "changes/1/publish", by="ana", status=200)

    clock.at[1] = by_hand
    code, said = run_json("config_apply", *args, *publish, "--wait", 60)
    assert (code, said.get("release")) == (0, 2 if publish else None)
    assert said["request"]["number"] == 1
    assert releases(governed) == 2


def test_wait__approved_by_the_author__is_refused_and_waited_on(
    governed: Governed, clock: Clock, args: tuple[Any, ...]
) -> None:
    def own() -> None:
        with tenant_transaction(governed.world.acme):
            sha256 = ChangeRequest.objects.get().manifest_sha256
        body = {"decision": "approve", "sha256": sha256}
        governed.call("post", "changes/1/decide", body, by="olga", status=403)
        governed.call("get", "changes/1", by="charlie", status=404)

    clock.at[1] = own
    assert run("config_apply", *args, "--publish", "--wait", 4)[0] == 3


@pytest.mark.parametrize("seconds", ["-1", "1.5", "soon", "٣", "604801", "9" * 40])
def test_wait__of_what_is_no_number_of_seconds__is_an_error(
    governed: Governed, args: tuple[Any, ...], seconds: str
) -> None:
    with pytest.raises(CommandError, match="give whole seconds"):
        run("config_apply", *args, f"--wait={seconds}")
    with tenant_transaction(governed.world.acme):
        assert not ChangeRequest.objects.exists()


def test_wait__of_a_set_up__is_an_error(governed: Governed, args: tuple[Any, ...]) -> None:
    with pytest.raises(CommandError, match="nothing to --wait for"):
        run("config_apply", *args, "--setup", "--wait", 5)

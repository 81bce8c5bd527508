"""Which release the next message runs on: the whole table, and the share of a canary."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from apps.conversations.choosing import (
    POINTS,
    Standing,
    release_choose,
    release_forced,
    release_target,
    share_point,
)
from apps.releases.environments.pointers import (
    MOST_KEPT,
    Pointer,
    kept_after,
    pointer_read,
    pointer_text,
)

TENANT, HOUR = 7, 3600.0
OLD, NOW_RUNS, CANARY, GONE = (UUID(int=number) for number in (1, 2, 3, 4))
LEFT = 1_000_000.0
"""When OLD was left."""


def name_at(below: bool, share: int = 50) -> str:
    """Return a conversation's name that is in the canary's share, or that is not."""
    return next(
        name
        for name in (f"s{number}" for number in range(1000))
        if (share_point(TENANT, name) < share * POINTS // 100) == below
    )


INSIDE, OUTSIDE = name_at(True), name_at(False)


def pointer(in_flight: str, *, canary: bool = False, kept: bool = True) -> Pointer:
    return Pointer(
        release=NOW_RUNS,
        canary=CANARY if canary else None,
        share=50 if canary else 0,
        canary_at=LEFT if canary else 0.0,
        in_flight=in_flight,
        max_pin_hours=72,
        kept={OLD: LEFT} if kept and in_flight in ("pin", "migrate") else {},
    )


@pytest.mark.parametrize(
    ("in_flight", "current", "boundary", "hours", "chosen"),
    [
        # A new conversation, or one that ended: what runs.
        ("follow", None, True, 1, NOW_RUNS),
        ("pin", None, True, 1, NOW_RUNS),
        ("migrate", None, True, 1, NOW_RUNS),
        ("force", None, True, 1, NOW_RUNS),
        # One that is open since before the release arrived.
        ("follow", OLD, True, 1, NOW_RUNS),
        ("follow", OLD, False, 1, NOW_RUNS),
        ("force", OLD, True, 1, NOW_RUNS),
        ("force", OLD, False, 1, NOW_RUNS),
        ("pin", OLD, True, 1, OLD),
        ("pin", OLD, False, 1, OLD),
        ("pin", OLD, True, 71.99, OLD),
        ("pin", OLD, True, 72, NOW_RUNS),
        ("pin", OLD, False, 73, NOW_RUNS),
        ("migrate", OLD, True, 1, NOW_RUNS),
        ("migrate", OLD, False, 1, OLD),
        ("migrate", OLD, False, 72, NOW_RUNS),
        # One on what is not kept: rolled back, stopped, or let go by an earlier deployment.
        ("pin", GONE, True, 1, NOW_RUNS),
        ("migrate", GONE, False, 1, NOW_RUNS),
    ],
)
def test_choice__by_policy_and_conversation__is_the_one_of_the_table(
    in_flight: str, current: UUID | None, boundary: bool, hours: float, chosen: UUID
) -> None:
    standing = Standing("s", current, boundary)
    now = LEFT + hours * HOUR
    assert release_choose(pointer(in_flight), TENANT, standing, now) == chosen


@pytest.mark.parametrize(
    ("in_flight", "name", "current", "boundary", "hours", "chosen"),
    [
        ("follow", INSIDE, None, True, 1, CANARY),
        ("follow", OUTSIDE, None, True, 1, NOW_RUNS),
        ("follow", INSIDE, NOW_RUNS, False, 1, CANARY),
        ("follow", OUTSIDE, CANARY, False, 1, NOW_RUNS),
        ("force", INSIDE, NOW_RUNS, False, 1, CANARY),
        ("pin", INSIDE, None, True, 1, CANARY),
        ("pin", INSIDE, NOW_RUNS, True, 1, NOW_RUNS),
        ("pin", INSIDE, NOW_RUNS, True, 72, CANARY),
        ("pin", OUTSIDE, CANARY, True, 1, CANARY),
        ("pin", OUTSIDE, CANARY, True, 72, NOW_RUNS),
        ("pin", INSIDE, OLD, True, 1, OLD),
        ("pin", INSIDE, OLD, True, 72, CANARY),
        ("migrate", INSIDE, NOW_RUNS, True, 1, CANARY),
        ("migrate", INSIDE, NOW_RUNS, False, 1, NOW_RUNS),
    ],
)
def test_choice__beside_a_canary__is_the_one_of_the_table(
    in_flight: str, name: str, current: UUID | None, boundary: bool, hours: float, chosen: UUID
) -> None:
    standing = Standing(name, current, boundary)
    now = LEFT + hours * HOUR
    assert release_choose(pointer(in_flight, canary=True), TENANT, standing, now) == chosen


@pytest.mark.parametrize("share", [1, 5, 10, 33, 50, 90, 99])
def test_share__of_ten_thousand_conversations__is_within_two_points(share: int) -> None:
    runs = replace(pointer("follow", canary=True), share=share)
    found = sum(release_target(runs, TENANT, f"c-{n}") == CANARY for n in range(10_000))
    assert abs(found / 100 - share) < 2


def test_share__raised__keeps_everybody_who_was_in_it() -> None:
    runs = pointer("follow", canary=True)
    names = [f"c-{number}" for number in range(2_000)]
    before: set[str] = set()
    for share in range(1, 100):
        inside = {
            n for n in names if release_target(replace(runs, share=share), TENANT, n) == CANARY
        }
        assert before <= inside
        before = inside


def test_share_point__by_tenant_and_name__is_the_same_in_every_process() -> None:
    # Written down, so that a change of the hash is seen: it would move open conversations.
    assert [share_point(7, name) for name in ("a", "sessão-1", "\ud800")] == [6192, 3337, 1639]
    assert share_point(8, "a") != share_point(7, "a")


def test_forced__message_that_waits__runs_on_what_runs_now() -> None:
    forced = replace(pointer("force"), forced_at=LEFT)
    assert release_forced(forced, TENANT, "s", OLD, LEFT - 1) == NOW_RUNS
    assert release_forced(forced, TENANT, "s", OLD, LEFT + 1) == NOW_RUNS
    assert release_forced(forced, TENANT, "s", NOW_RUNS, LEFT - 1) is None


def test_forced__then_another_deployment__still_moves_what_waited_then_and_nothing_else() -> None:
    later = replace(pointer("pin"), forced_at=LEFT)
    assert release_forced(later, TENANT, "s", OLD, LEFT - 1) == NOW_RUNS
    assert release_forced(later, TENANT, "s", OLD, LEFT + 1) is None


# -- what is kept -------------------------------------------------------------------------------


def arrive(
    before: Pointer | None, release: UUID, in_flight: str, now: float, **taken: UUID
) -> Pointer:
    after = Pointer(release=release, in_flight=in_flight)
    gone = frozenset(taken.values())
    return replace(after, kept=kept_after(before, after, now=now, taken_back=gone))


def test_kept__chain_of_pins__counts_each_from_when_it_was_left() -> None:
    first = arrive(None, OLD, "pin", 0)
    second = arrive(first, NOW_RUNS, "pin", 10 * HOUR)
    third = arrive(second, CANARY, "pin", 20 * HOUR)
    assert dict(first.kept) == {}
    assert dict(third.kept) == {OLD: 10 * HOUR, NOW_RUNS: 20 * HOUR}
    assert release_choose(third, TENANT, Standing("s", OLD), 81 * HOUR) == OLD
    assert release_choose(third, TENANT, Standing("s", OLD), 82 * HOUR) == CANARY
    assert release_choose(third, TENANT, Standing("s", NOW_RUNS), 91 * HOUR) == NOW_RUNS
    fourth = arrive(third, GONE, "pin", 83 * HOUR)
    assert dict(fourth.kept) == {NOW_RUNS: 20 * HOUR, CANARY: 83 * HOUR}


@pytest.mark.parametrize("in_flight", ["follow", "force"])
def test_kept__follow_after_pin__lets_everybody_go_for_good(in_flight: str) -> None:
    pinned = arrive(arrive(None, OLD, "follow", 0), NOW_RUNS, "pin", 1)
    followed = arrive(pinned, CANARY, in_flight, 2)
    again = arrive(followed, GONE, "pin", 3)
    assert dict(followed.kept) == {}
    # Who never wrote in between was let go all the same.
    assert dict(again.kept) == {CANARY: 3}
    assert release_choose(again, TENANT, Standing("s", OLD), 4) == GONE


def test_kept__roll_back__takes_the_bad_one_away_and_nothing_else() -> None:
    pinned = arrive(arrive(None, OLD, "pin", 0), NOW_RUNS, "pin", 1)
    bad = arrive(pinned, GONE, "pin", 2)
    back = arrive(bad, NOW_RUNS, "pin", 3, bad=GONE)
    assert dict(back.kept) == {OLD: 1}
    assert release_choose(back, TENANT, Standing("s", GONE), 4) == NOW_RUNS
    assert release_choose(back, TENANT, Standing("s", OLD), 4) == OLD


def test_kept__more_than_fits__forgets_the_oldest() -> None:
    runs = arrive(None, uuid4(), "pin", 0)
    left = []
    for number in range(1, MOST_KEPT + 3):
        left.append(runs.release)
        runs = arrive(runs, uuid4(), "pin", float(number))
    assert set(runs.kept) == set(left[-MOST_KEPT:])


def test_pointer__written_and_read__is_the_same() -> None:
    runs = replace(pointer("pin", canary=True), forced_at=12.5)
    assert pointer_read(pointer_text(runs)) == runs
    assert pointer_text(pointer_read(pointer_text(runs))) == pointer_text(runs)

"""A judge policy that passes more answers. Pure."""

from collections.abc import Iterator

from apps.governance.weakening.edited import Content, Edited, Finder, entries, number
from apps.governance.weakening.strength import STRENGTH
from apps.releases.patches.places import entry_path

# What ``JudgeRule`` of a sibling app says by itself.
THRESHOLD, ON_FAIL = 0.6, "retry"


def switched_off(edited: Edited) -> Iterator[str]:
    """No judge runs any more."""
    if edited.dropped("enabled"):
        yield "enabled"


def fails_open(edited: Edited) -> Iterator[str]:
    """A judge that breaks passes the answer."""
    if edited.dropped("fail_closed"):
        yield "fail_closed"


def removed(edited: Edited) -> Iterator[str]:
    """A judge that ran is in the list no more."""
    left = entries(edited.after, "judges", "name")
    for name, rule in entries(edited.before, "judges", "name").items():
        if name not in left and rule.get("enabled", True):
            yield entry_path("judges", name)


def disabled(edited: Edited) -> Iterator[str]:
    """A judge is switched off."""
    for path, before, after in _kept(edited):
        if before.get("enabled", True) and not after.get("enabled", True):
            yield f"{path}.enabled"


def threshold_lowered(edited: Edited) -> Iterator[str]:
    """A worse answer passes."""
    for path, before, after in _kept(edited):
        if number(after, "threshold", THRESHOLD) < number(before, "threshold", THRESHOLD):
            yield f"{path}.threshold"


def action_relaxed(edited: Edited) -> Iterator[str]:
    """Less is done about an answer that fails."""
    for path, before, after in _kept(edited):
        old, new = (STRENGTH.get(rule.get("on_fail", ON_FAIL), 0) for rule in (before, after))
        if new < old:
            yield f"{path}.on_fail"


FINDERS: tuple[Finder, ...] = (
    switched_off,
    fails_open,
    removed,
    disabled,
    threshold_lowered,
    action_relaxed,
)


def _kept(edited: Edited) -> Iterator[tuple[str, Content, Content]]:
    left = entries(edited.after, "judges", "name")
    for name, rule in entries(edited.before, "judges", "name").items():
        if name in left:
            yield entry_path("judges", name), rule, left[name]

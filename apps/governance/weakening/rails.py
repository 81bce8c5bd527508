"""A rail policy that lets more through. Pure."""

from collections.abc import Iterator

from apps.governance.rails.dlex_out import PROMPT_WORDS
from apps.governance.rails.input_size import MAX_TOKENS
from apps.governance.rails.pinj import THRESHOLD
from apps.governance.rails.vloop import REPEATS, WINDOW
from apps.governance.weakening.edited import Content, Edited, Finder, entries, mapping, number
from apps.governance.weakening.strength import is_relaxed
from apps.releases.patches.places import entry_path

PHASES = ("input", "output")


def removed(edited: Edited) -> Iterator[str]:
    """A rail that ran is in the list no more (nor under another code)."""
    for phase in PHASES:
        left = entries(edited.after, phase, "code")
        for code, rule in entries(edited.before, phase, "code").items():
            if code not in left and rule.get("enabled", True):
                yield entry_path(phase, code)


def disabled(edited: Edited) -> Iterator[str]:
    """A rail is switched off."""
    for path, _code, before, after in _kept(edited):
        if before.get("enabled", True) and not after.get("enabled", True):
            yield f"{path}.enabled"


def action_relaxed(edited: Edited) -> Iterator[str]:
    """A rail that denies does less about it."""
    for path, code, before, after in _kept(edited):
        if is_relaxed(code, str(before.get("on_deny", "")), str(after.get("on_deny", ""))):
            yield f"{path}.on_deny"


def fails_open(edited: Edited) -> Iterator[str]:
    """A rail that breaks lets the text pass."""
    for path, _code, before, after in _kept(edited):
        if before.get("on_error", "block") == "block" and after.get("on_error") == "observe":
            yield f"{path}.on_error"


def _parameter(rail: str, name: str, default: float, *, sign: int) -> Finder:
    """Find a number of ``rail`` that went up (``sign`` 1) or down (-1): then it denies less."""

    def find(edited: Edited) -> Iterator[str]:
        for path, code, before, after in _kept(edited):
            old, new = (number(mapping(r, "parameters"), name, default) for r in (before, after))
            if code == rail and sign * (new - old) > 0:
                yield f"{path}.parameters.{name}"

    return find


def _names(rail: str, name: str) -> Finder:
    """Find a comma-separated list of ``rail`` with a name more: it leaves more alone."""

    def find(edited: Edited) -> Iterator[str]:
        for path, code, before, after in _kept(edited):
            if code == rail and _listed(after, name) - _listed(before, name):
                yield f"{path}.parameters.{name}"

    return find


pinj_threshold_raised = _parameter("PINJ", "threshold", THRESHOLD, sign=1)
input_size_raised = _parameter("INPUT_SIZE", "max_tokens", MAX_TOKENS, sign=1)
vloop_repeats_raised = _parameter("VLOOP", "repeats", REPEATS, sign=1)
vloop_window_lowered = _parameter("VLOOP", "window", WINDOW, sign=-1)
prompt_words_raised = _parameter("DLEX_OUT", "prompt_words", PROMPT_WORDS, sign=1)
msk_skip_widened = _names("MSK", "skip")
msk_allow_widened = _names("MSK", "allow")

FINDERS: tuple[Finder, ...] = (
    removed,
    disabled,
    action_relaxed,
    fails_open,
    pinj_threshold_raised,
    input_size_raised,
    vloop_repeats_raised,
    vloop_window_lowered,
    prompt_words_raised,
    msk_skip_widened,
    msk_allow_widened,
)


def _kept(edited: Edited) -> Iterator[tuple[str, str, Content, Content]]:
    """Yield path, code, rule before and rule after of every rail that is in both lists."""
    for phase in PHASES:
        left = entries(edited.after, phase, "code")
        for code, rule in entries(edited.before, phase, "code").items():
            if code in left:
                yield entry_path(phase, code), code, rule, left[code]


def _listed(rule: Content, name: str) -> set[str]:
    listed = str(mapping(rule, "parameters").get(name, "")).split(",")
    return {entry.strip() for entry in listed if entry.strip()}

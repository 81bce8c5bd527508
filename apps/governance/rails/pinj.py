"""PINJ: the message tries to give the agent other instructions, or to get at those it has."""

import re

from apps.governance.detection.disguises import hidden_texts, plain_text
from apps.governance.detection.injection_rules import HARD, SOFT, InjectionRule
from apps.governance.rails.base import Rail, RailContext, RailResult

THRESHOLD = 1.0
_WORD = re.compile(r"[a-z][a-z_']*")


class PromptInjection(Rail):
    """Adds up the rules that match, on the text and on what it hides; ``threshold`` denies.

    Hidden text counts only with the rules that need no long context, and one of them is enough:
    nobody hides an innocent order to ignore the instructions.
    """

    code = "PINJ"

    def check(self, text: str, context: RailContext) -> RailResult:
        threshold = context.number("threshold", THRESHOLD)
        total, names = injection_score(text)
        if total < threshold:
            return self.allow(context)
        return self.deny(context, "injection: " + ", ".join(names))


def injection_score(text: str) -> tuple[float, tuple[str, ...]]:
    """Return the sum of the matching rules' weights and their names."""
    plain = plain_text(text)
    words = _words(plain)
    matched = _matching(plain, words, (*HARD, *SOFT))
    total = sum(rule.weight for rule in matched)
    names = [rule.name for rule in matched]
    for hidden in hidden_texts(text, plain, words):
        found = _matching(hidden, _words(hidden), HARD)
        if found and not {rule.name for rule in found} <= set(names):
            total += 1.0
            names += [f"hidden {rule.name}" for rule in found]
    return round(total, 3), tuple(names)


def _words(plain: str) -> frozenset[str]:
    return frozenset(_WORD.findall(plain))


def _matching(
    plain: str, words: frozenset[str], rules: tuple[InjectionRule, ...]
) -> list[InjectionRule]:
    starts = frozenset(word[:5] for word in words)
    return [r for r in rules if not r.anchors.isdisjoint(starts) and r.pattern.search(plain)]

"""What an answer may state: everything a turn's tools, customer and context hold."""

import re
from collections.abc import Iterable
from decimal import Decimal
from itertools import combinations
from typing import Any

from apps.evals.judges.facts import Fact, date_keys, facts_find, number_key, status_keys
from apps.runtime.text import fold
from apps.runtime.turn import Turn

_WORDS = re.compile(r"[a-z]+")
_DIGITS = re.compile(r"\d{4,}")
# Differences and sums are offered for short results only; in long ones chance would find a match.
_MOST_TO_COMBINE = 24
_LONGEST_TEXT = 50_000
_NOT_COMPACT = re.compile(r"[^a-z0-9]")
_LONGEST_NAME = 400  # an identifier with its blanks and marks


class Evidence:
    """Collects keys of facts, and says whether it holds one."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.numbers: list[Decimal] = []
        self.digits: set[str] = set()

    def holds(self, fact: Fact) -> bool:
        """Tell whether ``fact`` is in the evidence, in any of its readings or rounded."""
        if not fact.keys.isdisjoint(self.keys):
            return True
        return any(self._rounds_to(key[2:]) or self._ends_in(key[2:]) for key in fact.keys)

    def add_text(self, text: str) -> None:
        """Take what a text states: the customer's words, a string in a result."""
        text = text[:_LONGEST_TEXT]
        for fact in facts_find(text):
            self.keys |= fact.keys
            for key in fact.keys:
                self._add_parts(key)
        self.digits.update(_DIGITS.findall(text))
        folded = fold(text)
        self.keys.update(status_keys(_WORDS.findall(folded.replace("_", " "))))
        if len(text) <= _LONGEST_NAME:
            compact = _NOT_COMPACT.sub("", folded)
            if 3 <= len(compact) <= 40:
                self.keys.add(f"i:{compact}")
        self.keys.add(f"w:{folded.strip()}")

    def add_identifiers(self, text: str) -> None:
        """Take only numbers that name something: a protocol that an earlier answer gave."""
        for fact in facts_find(text):
            if fact.kind == "id" or any(key.startswith("i:") for key in fact.keys):
                self.keys |= fact.keys

    def add_value(self, value: Any) -> None:
        """Take a tool's result: leaves, names of fields that are set, sizes and totals of lists."""
        if isinstance(value, dict):
            for key, item in value.items():
                if item not in (None, False, "", 0, [], {}):
                    self.keys.update(status_keys(_WORDS.findall(fold(str(key)).replace("_", " "))))
                self.add_value(item)
        elif isinstance(value, list | tuple):
            self.keys.add(number_key(Decimal(len(value))))
            for item in value:
                self.add_value(item)
            self._add_totals(value)
        elif isinstance(value, bool) or value is None:
            return
        elif isinstance(value, int | float):
            self._add_number(Decimal(str(value)))
        else:
            self.add_text(str(value))

    def combine(self) -> None:
        """Offer sums and differences of the numbers in tool results, when they are few."""
        if len(self.numbers) <= _MOST_TO_COMBINE:
            for one, other in combinations(self.numbers, 2):
                self.keys.update((number_key(one + other), number_key(one - other)))

    def _add_number(self, number: Decimal) -> None:
        if number.is_finite():
            self.numbers.append(number)
            self.keys.add(number_key(number))
            if number == number.to_integral_value():
                self.digits.add(f"{abs(number):.0f}")
                self.keys.add(f"i:{abs(number):.0f}")

    def _add_totals(self, rows: Iterable[Any]) -> None:
        totals: dict[str, Decimal] = {}
        for row in rows:
            for key, item in row.items() if isinstance(row, dict) else ():
                if isinstance(item, int | float) and not isinstance(item, bool):
                    totals[key] = totals.get(key, Decimal(0)) + Decimal(str(item))
        self.keys.update(number_key(total) for total in totals.values() if total.is_finite())

    def _add_parts(self, key: str) -> None:
        """A full date also holds its day and month, its month and year, its day, its year."""
        if not key.startswith("d:") or key.startswith("d:--"):
            return
        year, month, day = (int(part) for part in key[2:].split("-"))
        self.keys |= date_keys(None, month, day) | date_keys(year, month, None)
        self.keys |= {f"n:{year}", f"n:{day}"}

    def _rounds_to(self, written: str) -> bool:
        if "." not in written or written.count(".") > 1 or not written.replace(".", "").isdigit():
            return False
        wanted = Decimal(written)
        return any(abs(abs(n) - wanted) < Decimal("0.005") for n in self.numbers)

    def _ends_in(self, written: str) -> bool:
        """ "Card ending in 1111": the last digits of a long number."""
        if len(written) < 4 or not written.isdigit():
            return False
        return any(len(d) > 7 and d.endswith(written) for d in self.digits)


def evidence_of(turn: Turn) -> Evidence:
    """Return the evidence of this turn: ok tool results, what was asked of them and said.

    What earlier actions of the conversation brought counts too: a protocol given then is no
    invention now (fault 39); and what the runtime itself has to say: a question for a confirmation,
    why a tool refused. The prompt does not count.
    """
    evidence = Evidence()
    for call in turn.tool_calls:
        if call.ok:
            evidence.add_value(call.result)
    evidence.combine()
    for kept in turn.dialogue.evidence:
        evidence.add_value(dict(kept.summary))
    for call in turn.tool_calls:
        if call.ok:
            evidence.add_value(dict(call.arguments))
    for value in turn.business_context.values.values():
        evidence.add_text(value)
    if turn.prepared is not None:
        evidence.add_text(turn.prepared.text)
    evidence.add_text(turn.text)
    return evidence


def add_memory(evidence: Evidence, turn: Turn) -> None:
    """Add what was said before: of earlier answers only identifiers count."""
    for message in turn.memory:
        if message.role == "user":
            evidence.add_text(message.text)
        else:
            evidence.add_identifiers(message.text)

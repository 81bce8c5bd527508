"""Keywords and phrases of all intents, found in a message by an inverted index of stems."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from apps.routing.sentence import Sentence
from apps.runtime.text import stem_plural, words

# Words that may stand between two words of a phrase (platform facts 3.5, "ordered_tokens").
MAX_GAP = 3
# Shorter words of a phrase need not be said ("ordered_content_tokens") …
SHORT_WORD = 2
# … when so many longer ones are left.
MIN_TELLING = 2

HowMatched = Literal["exact", "ordered_tokens", "ordered_content_tokens"]


@dataclass(frozen=True)
class Keyword:
    """One keyword of one or more intents: the stems that have to be said, in order, and who
    declares it. ``whole``: its stems with the short words that need not be."""

    text: str
    stems: tuple[str, ...]
    whole: tuple[str, ...]
    intents: tuple[tuple[str, str], ...]
    """(intent, agent) of everyone who declares it."""


@dataclass(frozen=True)
class Match:
    """A keyword found in a message. ``negated``: only where the customer denies it."""

    keyword: Keyword
    positions: tuple[int, ...]
    negated: bool

    def how(self, sentence: Sentence) -> HowMatched:
        """Return how the message says the keyword: word for word, with words between, or without
        its short words (platform facts 3.5)."""
        first, last = self.positions[0], self.positions[-1]
        said = tuple(word.stem for word in sentence.words[first : last + 1])
        if said == self.keyword.whole:
            return "exact"
        if self.keyword.stems == self.keyword.whole or _in_order(self.keyword.whole, said):
            return "ordered_tokens"
        return "ordered_content_tokens"


@dataclass(frozen=True)
class KeywordIndex:
    """Every keyword under its rarest stem, so that a message touches only those it may hold."""

    by_anchor: Mapping[str, Sequence[Keyword]] = field(default_factory=dict)

    def find(self, sentence: Sentence) -> list[Match]:
        """Return each keyword of the index that ``sentence`` holds, whole words, words in order."""
        matches = []
        for stem in sentence.positions:
            for keyword in self.by_anchor.get(stem, ()):
                match = _match(keyword, sentence)
                if match is not None:
                    matches.append(match)
        return matches


def keyword_index(intents: Iterable[tuple[str, str, Sequence[str]]]) -> KeywordIndex:
    """Build the index of (intent, agent, keywords). A keyword without a word in it is left out."""
    owners: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    texts: dict[tuple[str, ...], str] = {}
    for intent, agent, keywords in intents:
        for text in keywords:
            stems = _telling(words(text))
            if stems:
                texts.setdefault(stems, text)
                owners[stems][intent] = agent
    frequency: dict[str, int] = defaultdict(int)
    for stems in owners:
        for stem in set(stems):
            frequency[stem] += 1
    by_anchor: dict[str, list[Keyword]] = defaultdict(list)
    for stems, declared in owners.items():
        anchor = min(stems, key=lambda stem: (frequency[stem], -len(stem), stem))
        by_anchor[anchor].append(
            Keyword(
                text=texts[stems],
                stems=stems,
                whole=tuple(stem_plural(word) for word in words(texts[stems])),
                intents=tuple(declared.items()),
            )
        )
    return KeywordIndex(by_anchor=dict(by_anchor))


def _telling(said: Sequence[str]) -> tuple[str, ...]:
    """Return the stems of a keyword that have to be said."""
    telling = [word for word in said if len(word) > SHORT_WORD]
    return tuple(stem_plural(word) for word in (telling if len(telling) >= MIN_TELLING else said))


def _in_order(wanted: Sequence[str], said: Iterable[str]) -> bool:
    rest = iter(said)
    return all(stem in rest for stem in wanted)


def _match(keyword: Keyword, sentence: Sentence) -> Match | None:
    denied: Match | None = None
    for start in sentence.positions.get(keyword.stems[0], ()):
        positions = _follow(keyword.stems, start, sentence)
        if positions is not None:
            negated = any(sentence.words[index].negated for index in positions)
            match = Match(keyword=keyword, positions=positions, negated=negated)
            if not negated:
                return match
            denied = denied or match
    return denied


def _follow(stems: Sequence[str], start: int, sentence: Sentence) -> tuple[int, ...] | None:
    """Return where ``stems`` stand from ``start`` on, each at most ``MAX_GAP`` words after the last.

    All within one sentence. Of several ways the one that ends first is taken.
    """
    paths: dict[int, tuple[int, ...]] = {start: (start,)}
    for stem in stems[1:]:
        following: dict[int, tuple[int, ...]] = {}
        for index in sentence.positions.get(stem, ()):
            for last, path in paths.items():
                same = sentence.words[index].sentence == sentence.words[last].sentence
                if 0 < index - last <= MAX_GAP + 1 and same and index not in following:
                    following[index] = (*path, index)
        if not following:
            return None
        paths = following
    return paths[min(paths)]

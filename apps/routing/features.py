"""What a sentence is compared by: word stems, pairs of them, pieces of words; as a sparse row. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import snowballstemmer

from apps.routing.linear import Floats, Row
from apps.routing.sentence import Sentence

# Pieces of words forgive typing errors and inflection; pairs tell "top up failed" from "failed top".
GRAMS = (3, 5)
GRAM_WEIGHT = 0.4
PAIR_WEIGHT = 0.5
# What inflection leaves: the shortest of the three languages' stems, since a message does not say
# which one it is in.
ROOT_WEIGHT = 0.7
SHORTEST_INFLECTED = 4
LANGUAGES = ("portuguese", "english", "spanish")
NOTHING: Row = (np.zeros(0, np.int64), np.zeros(0, np.float32))


def features(sentence: Sentence, *, words_only: bool = False) -> dict[str, float]:
    """Return the counted features of ``sentence``; ``words_only`` leaves pairs and pieces out.

    A noun's spelling used as another verb ("me conta") is a word of its own.
    """
    counts: dict[str, float] = defaultdict(float)
    before = ""
    for word in sentence.words:
        if word.verb:
            counts[f"verb {word.stem}"] += 1
            before = ""
            continue
        counts[f"word {word.stem}"] += 1
        if words_only:
            continue
        counts[f"root {root(word.text)}"] += ROOT_WEIGHT
        if before:
            counts[f"pair {before} {word.stem}"] += PAIR_WEIGHT
        before = word.stem
        marked = f"#{word.text}#"
        for length in GRAMS:
            for start in range(len(marked) - length + 1):
                counts[marked[start : start + length]] += GRAM_WEIGHT
    return counts


@lru_cache(maxsize=50_000)
def root(word: str) -> str:
    """Return ``word`` without its endings."""
    if len(word) < SHORTEST_INFLECTED:
        return word
    found = (snowballstemmer.stemmer(language).stemWord(word) for language in LANGUAGES)
    return str(min(found, key=len))


@dataclass(frozen=True)
class Vocabulary:
    """The known features, each with its rarity; ``unseen`` is the rarity of all others."""

    positions: dict[str, int]
    rarity: list[float]
    unseen: float
    words_only: bool = False

    def row(self, sentence: Sentence) -> Row:
        """Return ``sentence`` as a vector of length 1, of which only the known part is kept."""
        return self.row_of(features(sentence, words_only=self.words_only))

    def row_of(self, counts: dict[str, float]) -> Row:
        """Return counted features as ``row`` does."""
        positions: list[int] = []
        values: list[float] = []
        square = 0.0
        for feature, count in counts.items():
            position = self.positions.get(feature)
            value = math.sqrt(count) * (self.unseen if position is None else self.rarity[position])
            square += value * value
            if position is not None:
                positions.append(position)
                values.append(value)
        if not positions:
            return NOTHING
        scaled: Floats = np.array(values, np.float32) / np.float32(math.sqrt(square))
        return np.array(positions, np.int64), scaled


def vocabulary_of(
    sentences: Sequence[Sentence], *, words_only: bool
) -> tuple[Vocabulary, Iterable[Row]]:
    """Return the vocabulary of ``sentences``, and their rows in order."""
    counted = [features(sentence, words_only=words_only) for sentence in sentences]
    frequency: Counter[str] = Counter()
    for counts in counted:
        frequency.update(counts.keys())
    total = len(sentences)
    vocabulary = Vocabulary(
        positions={feature: position for position, feature in enumerate(frequency)},
        rarity=[math.log((1 + total) / (1 + count)) + 1 for count in frequency.values()],
        unseen=math.log(1 + total) + 1,
        words_only=words_only,
    )
    return vocabulary, (vocabulary.row_of(counts) for counts in counted)

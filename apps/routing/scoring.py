"""How a row scores for every intent: by fitted weights, or by centroids where weights would not fit.

Both answer with two scores per intent that the row touches: its *likeness* (the cosine with the
intent's mean example) and its *preference* (who wins; only differences mean something). Pure.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Protocol

import numpy as np

from apps.routing.linear import Floats, Row, centroids, linear_fit

# A query of the inverted lists looks at this many entries exactly; the commonest features after
# that only re-score the intents found so far, so its time hardly grows with the number of intents.
MAX_VISITS = 4_000
MAX_RESCORED = 64


@dataclass(frozen=True)
class Scores:
    """Likeness and preference by intent number. ``fitted``: preferences come from fitted weights."""

    likeness: Mapping[int, float]
    preference: Mapping[int, float]
    fitted: bool


class Scorer(Protocol):
    """Scores one row."""

    def __call__(self, row: Row) -> Scores: ...


@dataclass(frozen=True)
class Fitted:
    """Dense weights: every intent gets a score."""

    centres: Floats
    weights: Floats

    def __call__(self, row: Row) -> Scores:
        positions, values = row
        likeness = values @ self.centres[positions]
        preference = values @ self.weights[positions] + self.weights[-1]
        return Scores(
            likeness=dict(enumerate(likeness.tolist())),
            preference=dict(enumerate(preference.tolist())),
            fitted=True,
        )


def fitted(rows: Sequence[Row], labels: Sequence[int], features: int, intents: int) -> Fitted:
    """Return the scorer learned from ``rows``."""
    return Fitted(
        centres=centroids(rows, labels, features, intents),
        weights=linear_fit(rows, labels, features, intents),
    )


@dataclass(frozen=True)
class Inverted:
    """The centroids as one list per feature, for so many intents that a matrix would not fit."""

    lists: Mapping[int, Mapping[int, float]]

    def __call__(self, row: Row) -> Scores:
        found = self._likeness(row)
        return Scores(likeness=found, preference=found, fitted=False)

    def _likeness(self, row: Row) -> dict[int, float]:
        pairs = zip(row[0].tolist(), row[1].tolist(), strict=True)
        postings = sorted(
            ((self.lists[position], value) for position, value in pairs),
            key=lambda posting: len(posting[0]),
        )
        scores: dict[int, float] = defaultdict(float)
        visits = 0
        for index, (entries, value) in enumerate(postings):
            visits += len(entries)
            if visits > MAX_VISITS and scores:
                return _rescored(scores, postings[index:])
            for intent, weight in entries.items():
                scores[intent] += value * weight
        return scores


def _rescored(
    scores: Mapping[int, float], rest: Sequence[tuple[Mapping[int, float], float]]
) -> dict[int, float]:
    kept = dict(nlargest(MAX_RESCORED, scores.items(), key=lambda item: (item[1], -item[0])))
    for entries, value in rest:
        for intent in kept:
            kept[intent] += value * entries.get(intent, 0.0)
    return kept


def inverted(rows: Sequence[Row], labels: Sequence[int]) -> Inverted:
    """Return the scorer by the mean of each intent's rows."""
    centres: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for (positions, values), label in zip(rows, labels, strict=True):
        centre = centres[label]
        for position, value in zip(positions.tolist(), values.tolist(), strict=True):
            centre[position] += value
    lists: dict[int, dict[int, float]] = defaultdict(dict)
    for label, centre in centres.items():
        length = float(np.sqrt(sum(value * value for value in centre.values())))
        for position, value in centre.items():
            lists[position][label] = value / length
    return Inverted(lists=dict(lists))

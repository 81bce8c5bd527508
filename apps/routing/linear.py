"""Linear classifiers of sparse rows, fitted in this process with numpy. Pure.

Two losses on the same rows: one-versus-rest hinge (exact, by dual coordinate descent; the better one
on few examples) and softmax (the better one on many intents). Their weights are added, so a query
costs one of them. The order of the steps is fixed: the same examples give the same weights.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Row = tuple[NDArray[Any], Floats]
"""Positions of features and their values."""

HINGE_COST = 2.0
HINGE_ROUNDS = 6
HINGE_SHARE = 10.0
SOFTMAX_RATE = 6.0
SOFTMAX_ROUNDS = 10
# Rounds are saved where there are many examples: so many steps, and so many multiplications.
MAX_STEPS = 60_000
MAX_WORK = 600_000_000
MIN_ROUNDS = 2
# With this many examples the softmax alone is as good, and takes half the time.
MAX_HINGED = 3_000


def linear_fit(rows: Sequence[Row], labels: Sequence[int], features: int, classes: int) -> Floats:
    """Return weights, one line per feature and a last one that every row has."""
    longest = max((len(positions) for positions, _ in rows), default=0)
    work = max(1, len(rows) * longest * classes)
    affordable = max(MIN_ROUNDS, min(MAX_STEPS // max(1, len(rows)), MAX_WORK // work))
    weights = _softmax(rows, labels, features, classes, rounds=min(SOFTMAX_ROUNDS, affordable))
    if len(rows) <= MAX_HINGED:
        hinged = _hinge(rows, labels, features, classes, rounds=min(HINGE_ROUNDS, affordable))
        weights += HINGE_SHARE * hinged
    return weights


def centroids(rows: Sequence[Row], labels: Sequence[int], features: int, classes: int) -> Floats:
    """Return the classes' mean directions, each of length 1, as columns."""
    total = np.zeros((features, classes), np.float32)
    for (positions, values), label in zip(rows, labels, strict=True):
        total[positions, label] += values
    length = np.linalg.norm(total, axis=0)
    return np.asarray(total / np.where(length > 0, length, 1), np.float32)


def _steps(count: int, rounds: int) -> list[int]:
    """Return the rows' numbers, ``rounds`` times, each time in another order."""
    chance = np.random.default_rng(0)
    return [int(row) for _ in range(rounds) for row in chance.permutation(count)]


def _softmax(
    rows: Sequence[Row], labels: Sequence[int], features: int, classes: int, *, rounds: int
) -> Floats:
    weights = np.zeros((features + 1, classes), np.float32)
    steps = _steps(len(rows), rounds)
    for done, row in enumerate(steps):
        positions, values = rows[row]
        mine = weights[positions]
        scores = values @ mine + weights[-1]
        chances = np.exp(scores - scores.max())
        chances /= chances.sum()
        chances[labels[row]] -= 1
        rate = SOFTMAX_RATE * (1 - done / len(steps))
        weights[positions] = mine - (rate * values)[:, None] * chances
    return weights


def _hinge(
    rows: Sequence[Row], labels: Sequence[int], features: int, classes: int, *, rounds: int
) -> Floats:
    """Every class against the rest at once; ``alphas`` are the dual variables."""
    weights = np.zeros((features + 1, classes), np.float32)
    alphas = np.zeros((len(rows), classes), np.float32)
    sides = -np.ones((len(rows), classes), np.float32)
    sides[np.arange(len(rows)), np.asarray(labels)] = 1
    slack = 0.5 / HINGE_COST
    curves = np.array([values @ values for _, values in rows], np.float32) + 1 + slack
    for row in _steps(len(rows), rounds):
        positions, values = rows[row]
        mine, side, before = weights[positions], sides[row], alphas[row]
        scores = values @ mine + weights[-1]
        after = np.maximum(before - (side * scores - 1 + before * slack) / curves[row], 0)
        change = (after - before) * side
        weights[positions] = mine + values[:, None] * change
        weights[-1] += change
        alphas[row] = after
    return weights

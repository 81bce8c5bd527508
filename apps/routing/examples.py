"""How much a message is like the intents' example sentences, as a probability. Pure.

A linear classifier is fitted to the examples when a release is first used (``linear.py``): over word
stems, pairs of them and pieces of words (``features.py``). Who wins is its preference; how sure that
is, is a logistic function of three numbers, fitted on 10,590 messages over 140 random tenants of 2 to
150 intents with 2 to 30 examples each, drawn from the train parts of BANKING77, CLINC150 and Home
Assistant (pt, es, en), 38 of 100 belonging to none of the tenant's intents. What it reaches is
measured by ``manage.py routing_accuracy`` and asserted in ``tests/test_example_accuracy.py``.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest

from apps.routing.features import Vocabulary, vocabulary_of
from apps.routing.scoring import Inverted, Scorer, Scores, fitted, inverted
from apps.routing.sentence import Sentence, Word, read

# Past this many intents words alone are kept, and past this many cells (features x intents, 4 bytes
# each, twice) no weights are fitted: the index of a release stays below some 250 MB.
MAX_INTENTS_WITH_PIECES = 1_000
MAX_CELLS = 30_000_000
# confidence = sigmoid(BIAS + LIKENESS * likeness + PREFERRED * preferred + KNOWN * known), where
# preferred is tanh(how far the preference is in front / NARROW), negative when it is behind, and known
# the share of the message's telling words that stand in the intent's examples.
BIAS, LIKENESS, PREFERRED, KNOWN = -3.4, 3.1, 3.6, 1.9
NARROW = 10.0
# What "preferred" is where there is nobody else to prefer.
ALONE = 0.5
# Of centroids alone: by the likeness and its lead over the second's.
PLAIN_BIAS, PLAIN_LIKENESS, PLAIN_LEAD = -2.95, 6.65, 12.77
# One known content word out of two or more is no understanding ("qual o valor do vaso" by
# "valor"): confidence is scaled by this, below any sensible threshold.
BARELY_UNDERSTOOD = 0.6
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class Likeness:
    """How much a message is like one intent's examples."""

    intent: str
    confidence: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class ExampleModel:
    """What the examples of a release were compiled to.

    ``small_talk``: stems of examples without a subject ("bom dia"): a message without one
    ("qual é?") is understood by these only, not by the small words of sentences that have a subject.
    """

    intents: tuple[str, ...] = ()
    vocabulary: Vocabulary = field(default_factory=lambda: Vocabulary({}, [], 1.0))
    scorer: Scorer = field(default_factory=lambda: Inverted({}))
    stems: dict[str, frozenset[str]] = field(default_factory=dict)
    small_talk: dict[str, frozenset[str]] = field(default_factory=dict)

    def spoken(self, sentence: Sentence) -> "Spoken":
        """Return what the words of ``sentence`` say, for every intent they say anything of."""
        row = self.vocabulary.row(sentence)
        scores = self.scorer(row) if len(row[0]) else Scores({}, {}, fitted=False)
        stems = self.stems if _has_content(sentence) else self.small_talk
        return Spoken(self.intents, scores, _telling(sentence), stems)

    def rank(self, sentence: Sentence, admits: Callable[[str], bool], limit: int) -> list[Likeness]:
        """Return the ``limit`` intents that ``admits`` lets in, most like ``sentence`` first.

        Another intent that fits much better makes all of them unlikely: the
        message is about something these agents do not answer.
        """
        spoken = self.spoken(sentence)
        preference = spoken.scores.preference
        ranked = nsmallest(
            limit,
            (number for number in preference if admits(self.intents[number])),
            key=lambda number: (-round(preference[number], 6), self.intents[number]),
        )
        return [spoken.likeness(number) for number in ranked]


@dataclass(frozen=True)
class Spoken:
    """A message's words beside the examples. ``stems``: what each intent's examples hold."""

    intents: tuple[str, ...]
    scores: Scores
    telling: tuple[Word, ...]
    stems: dict[str, frozenset[str]]

    @cached_property
    def preferences(self) -> dict[str, float]:
        """Intent -> who is preferred, where weights were fitted; differences are near to log odds."""
        if not self.scores.fitted:
            return {}
        return {self.intents[number]: value for number, value in self.scores.preference.items()}

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {intent: number for number, intent in enumerate(self.intents)}

    def ahead(self, intent: str) -> float:
        """Return how far the words prefer ``intent`` over the best other one, -1 to 1."""
        number = self.numbers.get(intent, -1)
        return preferred(self.scores, number) if number in self.scores.preference else 0.0

    def known_words(self, intent: str) -> tuple[str, ...]:
        """Return the telling words that the intent's examples hold."""
        held = self.stems.get(intent, frozenset())
        return tuple(word.text for word in self.telling if word.stands and word.stem in held)

    def known(self, intent: str) -> float:
        """Return the share of the telling words that the intent's examples hold."""
        return len(self.known_words(intent)) / max(1, len(self.telling))

    def likeness(self, number: int) -> Likeness:
        """Return how sure the words make of one intent, and which they are."""
        intent = self.intents[number]
        words = self.known_words(intent)
        confidence = sureness(self.scores, number, len(words) / max(1, len(self.telling)))
        if len(words) < min(2, len(self.telling)):
            confidence *= BARELY_UNDERSTOOD
        return Likeness(intent=intent, confidence=confidence, words=words)


def preferred(scores: Scores, intent: int) -> float:
    """Return how far ``intent`` is in front of the best other one, -1 to 1."""
    rivals = (value for number, value in scores.preference.items() if number != intent)
    rival = max(rivals, default=None)
    return ALONE if rival is None else math.tanh((scores.preference[intent] - rival) / NARROW)


def sureness(scores: Scores, intent: int, known: float) -> float:
    """Return the probability that the message is about ``intent``.

    ``known`` is the share of its telling words that the intent's examples hold.
    """
    likeness = scores.likeness[intent]
    if scores.fitted:
        ahead = preferred(scores, intent)
        return _sigmoid(BIAS + LIKENESS * likeness + PREFERRED * ahead + KNOWN * known)
    highest = max(scores.likeness.values())
    others = (value for number, value in scores.likeness.items() if number != intent)
    lead = likeness - max(0.0, max(others, default=0.0))
    foreign = min(1.0, likeness / highest) if highest > 0 else 0.0
    return _sigmoid(PLAIN_BIAS + foreign * (PLAIN_LIKENESS * likeness + PLAIN_LEAD * lead))


def example_model(intents: Sequence[tuple[str, Sequence[str]]]) -> ExampleModel:
    """Build the model of (intent, examples); an example without a word is left out.

    An intent's name is one more example to learn from, but nobody is understood by it alone.
    """
    sentences = [
        (intent, sentence)
        for intent, examples in intents
        for sentence in map(read, examples)
        if sentence.words
    ]
    if not sentences:
        return ExampleModel()
    names = tuple(dict.fromkeys(intent for intent, _ in sentences))
    numbers = {intent: number for number, intent in enumerate(names)}
    named = [(intent, read(name_words(intent))) for intent in names]
    learned = [*sentences, *(pair for pair in named if pair[1].words)]
    labels = [numbers[intent] for intent, _ in learned]
    vocabulary, rows = vocabulary_of(
        [sentence for _, sentence in learned], words_only=len(names) > MAX_INTENTS_WITH_PIECES
    )
    kept, size = list(rows), len(vocabulary.positions)
    fits = size * len(names) <= MAX_CELLS
    return ExampleModel(
        intents=names,
        vocabulary=vocabulary,
        scorer=fitted(kept, labels, size, len(names)) if fits else inverted(kept, labels),
        stems=_stems(sentences),
        small_talk=_stems([pair for pair in sentences if not _has_content(pair[1])]),
    )


def name_words(slug: str) -> str:
    """Return the words of a name: ``card_arrival`` and ``CardArrival`` are two."""
    return _CAMEL.sub(" ", slug).replace("_", " ").replace("-", " ")


def _stems(sentences: Iterable[tuple[str, Sentence]]) -> dict[str, frozenset[str]]:
    stems: dict[str, set[str]] = defaultdict(set)
    for intent, sentence in sentences:
        stems[intent].update(sentence.positions)
    return {intent: frozenset(known) for intent, known in stems.items()}


def _has_content(sentence: Sentence) -> bool:
    return any(word.content for word in sentence.words)


def _telling(sentence: Sentence) -> tuple[Word, ...]:
    """Return the distinct words a message is understood by: all of them when none has a subject."""
    content = {word.stem: word for word in sentence.words if word.content}
    return tuple((content or {word.stem: word for word in sentence.words}).values())


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, value))))

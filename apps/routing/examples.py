"""A small text classifier made from the intents' example sentences.

One weight vector per intent: the TF-IDF centroid of its examples over word stems and character
4-grams, then a few margin corrections where an example scores higher for another intent. On ten
examples per intent of BANKING77 and CLINC150 that comes within two points of TF-IDF + logistic
regression without needing numpy; the measured figures are asserted in
``tests/test_example_accuracy.py``.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from apps.routing.sentence import Sentence, Word, read

GRAM = 4
GRAM_WEIGHT = 0.5
# Character grams forgive typing errors and inflection, but take about 250 entries per intent; past
# this many intents words alone are kept, so that an index stays below some 100 MB.
MAX_INTENTS_WITH_GRAMS = 1_000
# Corrections cost about 0.5 ms per example and round; past this many examples the centroids stand.
MAX_EXAMPLES_CORRECTED = 2_000
ROUNDS = 5
RATE = 0.1
MARGIN = 0.2
# A query looks at this many entries exactly; the commonest features after that only re-score the
# intents found so far, so that its time hardly grows with the number of intents.
MAX_VISITS = 4_000
MAX_RESCORED = 64
# confidence = sigmoid(BIAS + SIMILARITY * best + LEAD * (best - second)): fitted by logistic
# regression on 11,721 messages over 140 random tenants of 2 to 150 intents with 2 to 10 examples
# each, drawn from the train parts of BANKING77, CLINC150 and Home Assistant (pt), a third of them
# belonging to none of the tenant's intents.
BIAS, SIMILARITY, LEAD = -2.95, 6.65, 12.77
# One known content word out of two or more is no understanding ("qual o valor do vaso" by
# "valor"): confidence is scaled by this, below any sensible threshold. On the same messages it
# halves the acceptance of foreign ones (6.2 % -> 3.1 %) and costs 9 points of the others.
BARELY_UNDERSTOOD = 0.6


@dataclass(frozen=True)
class Likeness:
    """How much a message is like one intent's examples."""

    intent: str
    confidence: float
    words: tuple[str, ...]


@dataclass
class ExampleModel:
    """Weights by feature and intent, and the rarity of each feature."""

    weights: dict[str, dict[str, float]] = field(default_factory=dict)
    rarity: dict[str, float] = field(default_factory=dict)
    unseen: float = 1.0
    grams: bool = True
    vocabulary: dict[str, frozenset[str]] = field(default_factory=dict)
    # Stems of examples without a subject ("bom dia"): a message without one ("qual é?") is
    # understood by these only, not by the small words of sentences that have a subject.
    small_talk: dict[str, frozenset[str]] = field(default_factory=dict)

    def rank(self, sentence: Sentence, admits: Callable[[str], bool], limit: int) -> list[Likeness]:
        """Return the ``limit`` intents that ``admits`` lets in, most like ``sentence`` first.

        Another intent that fits much better makes all of them unlikely: the
        message is about something these agents do not answer.
        """
        scores = self._scores(self.vector(sentence))
        if not scores:
            return []
        ranked = nsmallest(
            limit + 1,
            ((score, intent) for intent, score in scores.items() if admits(intent)),
            key=lambda pair: (-round(pair[0], 9), pair[1]),
        )
        highest = max(scores.values())
        telling = _telling(sentence)
        vocabulary = self.vocabulary if _has_content(sentence) else self.small_talk
        found = []
        for score, intent in ranked[:limit]:
            rivals = [other for other, name in ranked if name != intent]
            foreign = min(1.0, score / highest) if highest > 0 else 0.0
            lead = score - max(0.0, rivals[0]) if rivals else score
            known = tuple(
                word.text
                for word in telling
                if word.stands and word.stem in vocabulary.get(intent, ())
            )
            confidence = _sigmoid(BIAS + foreign * (SIMILARITY * score + LEAD * lead))
            if len(known) < min(2, len(telling)):
                confidence *= BARELY_UNDERSTOOD
            found.append(Likeness(intent=intent, confidence=confidence, words=known))
        return found

    def vector(self, sentence: Sentence) -> dict[str, float]:
        """Return the features of ``sentence`` as a vector of length 1."""
        counts = features(sentence, grams=self.grams)
        weighed = {
            feature: math.sqrt(count) * self.rarity.get(feature, self.unseen)
            for feature, count in counts.items()
        }
        length = math.sqrt(sum(value * value for value in weighed.values())) or 1.0
        return {feature: value / length for feature, value in weighed.items()}

    def _scores(self, vector: dict[str, float]) -> dict[str, float]:
        scores: dict[str, float] = defaultdict(float)
        postings = sorted(
            ((self.weights[feature], value) for feature, value in vector.items()
             if feature in self.weights),
            key=lambda posting: len(posting[0]),
        )  # fmt: skip
        visits = 0
        for index, (weights, value) in enumerate(postings):
            visits += len(weights)
            if visits > MAX_VISITS and scores:
                return _rescored(scores, postings[index:])
            for intent, weight in weights.items():
                scores[intent] += value * weight
        return scores


def _rescored(
    scores: dict[str, float], rest: Iterable[tuple[dict[str, float], float]]
) -> dict[str, float]:
    kept = dict(nsmallest(MAX_RESCORED, scores.items(), key=lambda item: (-item[1], item[0])))
    for weights, value in rest:
        for intent in kept:
            kept[intent] += value * weights.get(intent, 0.0)
    return kept


def features(sentence: Sentence, *, grams: bool) -> dict[str, float]:
    """Return the counted word stems and, with ``grams``, character 4-grams of ``sentence``.

    A noun's spelling used as another verb ("me conta") is a word of its own.
    """
    counts: dict[str, float] = defaultdict(float)
    for word in sentence.words:
        if word.verb:
            counts[f"verb {word.stem}"] += 1
            continue
        counts[f"word {word.stem}"] += 1
        if grams:
            marked = f"#{word.text}#"
            for start in range(len(marked) - GRAM + 1):
                counts[marked[start : start + GRAM]] += GRAM_WEIGHT
    return counts


def example_model(intents: Sequence[tuple[str, Sequence[str]]]) -> ExampleModel:
    """Build the model of (intent, examples); an example without a word is left out."""
    sentences = [
        (intent, sentence)
        for intent, examples in intents
        for sentence in map(read, examples)
        if sentence.words
    ]
    model = ExampleModel(grams=len(intents) <= MAX_INTENTS_WITH_GRAMS)
    _weigh(model, [sentence for _, sentence in sentences])
    vectors = [(intent, model.vector(sentence)) for intent, sentence in sentences]
    _centre(model, vectors)
    model.vocabulary = _stems(sentences)
    model.small_talk = _stems([pair for pair in sentences if not _has_content(pair[1])])
    if len(vectors) <= MAX_EXAMPLES_CORRECTED:
        _correct(model, _interleaved(vectors))
    return model


def _weigh(model: ExampleModel, sentences: Sequence[Sentence]) -> None:
    frequency: Counter[str] = Counter()
    for sentence in sentences:
        frequency.update(features(sentence, grams=model.grams).keys())
    total = len(sentences)
    model.unseen = math.log(1 + total) + 1
    model.rarity = {
        feature: math.log((1 + total) / (1 + count)) + 1 for feature, count in frequency.items()
    }


def _centre(model: ExampleModel, vectors: Sequence[tuple[str, dict[str, float]]]) -> None:
    centres: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for intent, vector in vectors:
        for feature, value in vector.items():
            centres[intent][feature] += value
    for intent, centre in centres.items():
        length = math.sqrt(sum(value * value for value in centre.values()))
        for feature, value in centre.items():
            model.weights.setdefault(feature, {})[intent] = value / length


def _interleaved(
    vectors: Sequence[tuple[str, dict[str, float]]],
) -> list[tuple[str, dict[str, float]]]:
    """One example of each intent after the other: corrections do not favour the last intent."""
    seen: Counter[str] = Counter()
    order = []
    for intent, vector in vectors:
        order.append((seen[intent], intent, vector))
        seen[intent] += 1
    return [(intent, vector) for _, intent, vector in sorted(order, key=lambda item: item[:2])]


def _correct(model: ExampleModel, vectors: Sequence[tuple[str, dict[str, float]]]) -> None:
    """Move weights where another intent comes within ``MARGIN`` of an example's own."""
    for _ in range(ROUNDS):
        for intent, vector in vectors:
            scores = model._scores(vector)
            own = scores.pop(intent, 0.0)
            if not scores:
                continue
            rival, score = max(scores.items(), key=lambda item: (item[1], item[0]))
            if own - score < MARGIN:
                for feature, value in vector.items():
                    weights = model.weights[feature]
                    weights[intent] = weights.get(intent, 0.0) + RATE * value
                    weights[rival] = weights.get(rival, 0.0) - RATE * value


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

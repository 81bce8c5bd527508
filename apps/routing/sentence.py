"""A customer's message as routing reads it: folded words, clauses, negation, readings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from apps.routing import lexicon
from apps.runtime.text import fold, stem_plural

# A point or comma between digits belongs to the number ("71,99").
_PIECE = re.compile(r"[^\W_]+|(?<!\d)[.,]|[.,](?!\d)|[;:!?\n]", re.UNICODE)
_SENTENCE_ENDS = frozenset(".!?;\n")
# A message is read up to here; a longer one has said what it is about.
MAX_WORDS = 2_000
# How many words a copula's negation reaches over articles: "nao e a minha fatura".
MAX_DETERMINERS = 4
# "sim, por favor", "nao, obrigado": so many words are still nothing but a yes or no.
SHORT_REPLY = 3
# How many words may stand between asking for a person and the word for one.
MAX_TO_PERSON = 6


@dataclass(frozen=True, slots=True)
class Word:
    """One word.

    ``negated``: the customer says it is not about this. ``verb``: a noun's spelling used as
    another verb ("me conta").
    """

    text: str
    stem: str
    clause: int
    sentence: int
    negated: bool = False
    verb: bool = False

    @property
    def content(self) -> bool:
        """Whether the word says something about the subject."""
        return self.text not in lexicon.FUNCTION_WORDS and not self.text.isdigit()

    @property
    def stands(self) -> bool:
        """Whether the word means what it spells."""
        return not (self.negated or self.verb)


@dataclass(frozen=True)
class Sentence:
    """The words of one message, in order."""

    words: tuple[Word, ...]
    question: bool = False

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """Stem -> where it stands, without words in another reading."""
        found: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            if not word.verb:
                found.setdefault(word.stem, []).append(index)
        return found

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


def read(text: str) -> Sentence:
    """Return ``text`` analysed; an empty text gives a sentence without words."""
    pieces = _PIECE.findall(fold(text))
    tokens: list[tuple[str, int, int]] = []
    clause = sentence = 0
    for piece in pieces:
        if piece[0].isalnum():
            if piece in lexicon.TURNING_WORDS:
                clause += 1
            tokens.append((piece, clause, sentence))
        else:
            clause += 1
            sentence += piece in _SENTENCE_ENDS
        if len(tokens) >= MAX_WORDS:
            break
    texts = [token for token, _, _ in tokens]
    negated = _negated([(token, part) for token, part, _ in tokens])
    words = tuple(
        Word(
            text=token,
            stem=stem_plural(token),
            clause=part,
            sentence=number,
            negated=index in negated,
            verb=_is_verb(texts, index),
        )
        for index, (token, part, number) in enumerate(tokens)
    )
    return Sentence(words=words, question="?" in pieces)


def _negated(tokens: Sequence[tuple[str, int]]) -> set[int]:
    """Return the indexes of words that the customer says the message is *not* about."""
    found: set[int] = set()
    texts = [token for token, _ in tokens]
    for index, (token, clause) in enumerate(tokens):
        if _negates(texts, index):
            end = index + 1
            while end < len(tokens) and tokens[end][1] == clause:
                end += 1
            rest = [text for text, _ in tokens[index + 1 : end]]
            found.update(index + 1 + offset for offset in _scope(token, rest))
    return found


def _negates(texts: Sequence[str], index: int) -> bool:
    if texts[index] == "no":
        return index + 1 < len(texts) and texts[index + 1] in lexicon.NEGATED_BY_NO
    return texts[index] in lexicon.NEGATORS


def _scope(negator: str, rest: list[str]) -> range:
    """Return which of the words after ``negator``, up to the clause's end, it takes out."""
    start = 0
    while start < len(rest) and rest[start] in lexicon.NEGATION_FILLERS:
        start += 1
    if start == len(rest) or rest[start] not in lexicon.WANTING:
        return _noun_scope(negator, rest)
    start += 1
    after = rest[start:]
    again = next((i for i, text in enumerate(after) if text in lexicon.WANTING), len(after))
    after = after[:again]
    if after and after[0] in lexicon.NO_LONGER and not lexicon.SPEAKING.intersection(after):
        return range(0)
    if after and after[0] == "to":
        start, after = start + 1, after[1:]
        verb_only = bool(after) and after[0] not in lexicon.SPEAKING
    else:
        verb_only = bool(after) and _is_infinitive(after[0])
    return range(start, start + (1 if verb_only else len(after)))


def _is_infinitive(text: str) -> bool:
    return (
        len(text) > 3 and text.endswith(lexicon.INFINITIVE_ENDINGS) and text not in lexicon.SPEAKING
    )


def _noun_scope(negator: str, rest: list[str]) -> range:
    """ "nao e a minha fatura", "nao a fatura", "nem boleto": one noun is taken out, no verb."""
    start = int(bool(rest) and rest[0] in lexicon.COPULAS)
    noun = start
    while noun < len(rest) and noun - start < MAX_DETERMINERS and rest[noun] in lexicon.DETERMINERS:
        noun += 1
    allowed = noun > start or (negator in lexicon.NOUN_NEGATORS and not start)
    return range(noun, noun + 1) if allowed and noun < len(rest) else range(0)


def _is_verb(texts: Sequence[str], index: int) -> bool:
    followers = lexicon.HOMOGRAPHS.get(texts[index])
    if followers is None:
        return False
    before = texts[index - 1] if index else ""
    after = texts[index + 1] if index + 1 < len(texts) else ""
    if before in lexicon.CLITICS:
        return True
    if before in lexicon.DETERMINERS:
        return False
    told = after in lexicon.TOLD_TO and texts[index + 2 : index + 3] != []
    return after in followers or (told and texts[index + 2] in lexicon.LISTENERS)


# -- the shape of what was said ------------------------------------------------------------------


def abandons(sentence: Sentence) -> bool:
    """Whether the customer leaves what was being done ("deixa pra lá", "forget it").

    The phrase must stand whole, start its clause (after interjections) and not be negated
    ("não esquece de mandar").
    """
    clauses: dict[int, list[str]] = {}
    for word in sentence.words:
        clauses.setdefault(word.clause, []).append(word.text)
    return any(_starts_by_abandoning(texts) for texts in clauses.values())


def _starts_by_abandoning(texts: list[str]) -> bool:
    for start in range(len(texts)):
        for phrase in lexicon.ABANDONING:
            end = start + len(phrase)
            if tuple(texts[start:end]) == phrase:
                negated = start and texts[start - 1] in lexicon.NEGATORS
                # "nao quero mais o plano" ends the plan, not the conversation about it.
                whole = phrase[-1] not in lexicon.NO_LONGER or end == len(texts)
                if whole and not negated:
                    return True
        if texts[start] not in lexicon.INTERJECTIONS:
            return False
    return False


def stops(sentence: Sentence) -> bool:
    """Whether the whole message is a wish to stop ("cancelar") or to speak with a person.

    "Cancelar o pedido" names what to cancel, and "não cancelar" is the contrary: neither stops.
    """
    texts = sentence.texts
    wanted = [text for text in texts if text not in lexicon.INTERJECTIONS]
    if not lexicon.STOPPING.isdisjoint(wanted):
        negated = any(
            before.text in lexicon.NEGATORS and before.clause == word.clause
            for before, word in pairwise(sentence.words)
            if word.text in lexicon.STOPPING
        )
        return not negated and set(wanted) <= lexicon.STOPPING | lexicon.STOPPING_FILLERS
    named = [word for word in sentence.words if word.text in lexicon.PERSONS and not word.negated]
    asking = lexicon.SPEAKING | lexicon.REQUESTING
    return bool(named) and (len(wanted) <= SHORT_REPLY or not asking.isdisjoint(texts))


def confirms_or_denies(sentence: Sentence) -> bool:
    """Whether the message answers a yes/no question.

    A leading yes answers whatever follows it; "ok" and "no" only as (almost) the whole reply,
    since "não, quero ver minha fatura" goes on to something new (field case 4.3).
    """
    texts = sentence.texts
    if not texts:
        return False
    short = len(texts) <= SHORT_REPLY
    return texts[0] in lexicon.YES or (
        short and (texts[0] in lexicon.SHORT_YES or texts[0] in lexicon.NO)
    )


def looks_like_value(sentence: Sentence) -> bool:
    """Whether the message fills in something that was asked: it holds a number or begins as an answer.

    A sentence in the shape of a request is none.
    """
    if requests(sentence):
        return False
    texts = sentence.texts
    return any(char.isdigit() for text in texts for char in text) or (
        bool(texts) and texts[0] in lexicon.ANSWERING
    )


def requests(sentence: Sentence) -> bool:
    """Whether the message asks for something rather than answers."""
    return sentence.question or not lexicon.REQUESTING.isdisjoint(sentence.texts)


# -- a person, or the end ------------------------------------------------------------------------


def asks_for_person(sentence: Sentence) -> bool:
    """Whether the customer asks for a person ("quero falar com um atendente", "agent, please").

    Naming one is not asking ("o atendente me deu o número"), nor is denying it.
    """
    texts = sentence.texts
    if _only_a_person(sentence):
        return True
    return any(
        text in lexicon.SOMEBODY
        and (start := _request_start(texts, index)) >= 0
        and not _denied(texts, start)
        for index, text in enumerate(texts)
    )


def _only_a_person(sentence: Sentence) -> bool:
    texts = sentence.texts
    first = next((i for i, text in enumerate(texts) if text in lexicon.ALONE_PERSONS), -1)
    if first < 0 or sentence.words[first].negated:
        return False
    before, after = texts[:first], texts[first + 1 :]
    company = lexicon.PERSON_COMPANY | lexicon.ALONE_PERSONS
    denied = any(
        text in lexicon.NEGATORS and sentence.words[index].clause == sentence.words[first].clause
        for index, text in enumerate(before)
    )
    return (
        not denied
        and set(before) <= company | lexicon.INTERJECTIONS
        and set(after) <= company | {"ok"}
    )


def _request_start(texts: Sequence[str], person: int) -> int:
    """Return where the request begins that ends in the person at ``person``; -1 for none."""
    index, linked = person - 1, False
    while index >= 0 and person - index <= MAX_TO_PERSON:
        text = texts[index]
        if text in lexicon.PASSING or (text in lexicon.TALKING and linked):
            return index
        if text in lexicon.CALLING and texts[person] in lexicon.ONLY_PERSONS:
            return index
        if text not in lexicon.LINKS | lexicon.BETWEEN:
            return -1
        linked = linked or text in lexicon.LINKS
        index -= 1
    return -1


def _denied(texts: Sequence[str], start: int) -> bool:
    index = start - 1
    while index >= 0 and texts[index] in lexicon.DENIED_OVER - lexicon.DENYING:
        index -= 1
    return index >= 0 and (texts[index] in lexicon.DENYING or _negates(texts, index))


def says_farewell(sentence: Sentence, phrases: frozenset[tuple[str, ...]] = frozenset()) -> bool:
    """Whether the message is (almost) nothing but the end: a farewell, a thank-you around it.

    ``phrases`` are a tenant's own, beside those of the languages.
    """
    texts = sentence.texts
    if sentence.question or not texts:
        return False
    known = lexicon.ENDING | phrases
    longest = max(len(phrase) for phrase in known)
    index, ended = 0, False
    while index < len(texts):
        length = next((n for n in range(longest, 0, -1) if texts[index : index + n] in known), 0)
        if length:
            if index and texts[index - 1] in lexicon.NEGATORS and _joined(sentence, index):
                return False
            ended, index = True, index + length
        elif texts[index] in lexicon.FAREWELL_COMPANY:
            index += 1
        else:
            return False
    return ended


def _joined(sentence: Sentence, index: int) -> bool:
    return sentence.words[index - 1].clause == sentence.words[index].clause

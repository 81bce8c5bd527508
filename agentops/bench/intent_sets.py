"""Public intent sets, cut into what a tenant configures and what is asked: the same cut every time.

The files are no part of this repository; ``../shared/material/intents`` has them (JSON lines of ``text``,
``label``, ``lang``; NLU++ with ``intents`` and ``domain``).
"""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agentops.env import BASE_DIR

FOLDER = Path(BASE_DIR).parent / "shared" / "material" / "intents"
# Home Assistant and NLU++ come in one part: a sentence whose sha256 is below this per cent is asked.
ASKED_SHARE = 25
NO_INTENT = "NO_INTENT"
HOME_LANGUAGES = ("pt-BR", "pt-PT", "es", "en")


@dataclass(frozen=True)
class IntentSet:
    """``train`` and ``asked`` are (text, labels): a text of NLU++ has several, others have one.

    ``foreign``: texts that belong to no intent. ``floor``: accuracy of TF-IDF with logistic regression
    on ten examples per intent, where it is known.
    """

    name: str
    language: str
    train: tuple[tuple[str, frozenset[str]], ...]
    asked: tuple[tuple[str, frozenset[str]], ...]
    foreign: tuple[str, ...] = ()
    floor: float | None = None

    def examples(self, per_intent: int | None, seed: int = 0) -> list[tuple[str, list[str]]]:
        """Return intent → examples, ``per_intent`` of each drawn by ``seed``; ``None``: all."""
        by_label: dict[str, list[str]] = defaultdict(list)
        for text, labels in self.train:
            for label in labels:
                by_label[label].append(text)
        drawn = random.Random(seed)  # noqa: S311  # no secret
        return [
            (label, texts if per_intent is None or len(texts) <= per_intent else drawn.sample(texts, per_intent))
            for label, texts in sorted(by_label.items())
        ]  # fmt: skip


@dataclass(frozen=True)
class _Row:
    text: str
    labels: frozenset[str]
    domain: str = field(default="")


def _rows(name: str) -> list[_Row]:
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    found = []
    # A few texts hold U+2028, which is no end of a line here.
    for line in text.split("\n"):
        if line.strip():
            row = json.loads(line)
            labels = frozenset(row.get("intents") or [row["label"]])
            found.append(_Row(row["text"], labels, row.get("domain", "")))
    return found


def _pairs(rows: Iterable[_Row]) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((row.text, row.labels) for row in rows)


def is_asked(text: str) -> bool:
    """Whether a sentence of a set without parts is asked rather than configured."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 100 < ASKED_SHARE


def _cut(rows: Sequence[_Row]) -> tuple[list[_Row], list[_Row]]:
    """Cut a set without parts; labels that only the asked part has are left out of it."""
    train = [row for row in rows if not is_asked(row.text)]
    known = {label for row in train for label in row.labels}
    return train, [row for row in rows if is_asked(row.text) and row.labels & known]


def banking77() -> IntentSet:
    train, asked = _pairs(_rows("banking77_train")), _pairs(_rows("banking77_test"))
    return IntentSet("banking77", "en", train, asked, floor=0.754)


def clinc150() -> IntentSet:
    foreign = tuple(row.text for row in _rows("clinc150_oos_test"))
    train, asked = _pairs(_rows("clinc150_train")), _pairs(_rows("clinc150_test"))
    return IntentSet("clinc150", "en", train, asked, foreign, floor=0.835)


def home_assistant(language: str) -> IntentSet:
    """Sentences that mean something only with a home's own devices (NO_INTENT) are left out."""
    rows = [row for row in _rows(f"ha_{language}") if NO_INTENT not in row.labels]
    train, asked = _cut(rows)
    return IntentSet(f"ha_{language}", language, _pairs(train), _pairs(asked))


def home_assistant_all(language: str) -> IntentSet:
    """One language asked, intents with the examples of all four: as a tenant of several languages has."""
    own = home_assistant(language)
    train = tuple(pair for other in HOME_LANGUAGES for pair in home_assistant(other).train)
    return IntentSet(f"{own.name}+all", language, train, own.asked)


def nlupp(domain: str) -> IntentSet:
    """One domain of NLU++; right is any of a text's intents. ``none`` texts belong to no intent."""
    rows = [row for row in _rows("nlupp") if row.domain == domain]
    meant = [row for row in rows if row.labels != {"none"}]
    train, asked = _cut(meant)
    foreign = tuple(row.text for row in rows if row.labels == {"none"} and is_asked(row.text))
    return IntentSet(f"nlupp_{domain}", "en", _pairs(train), _pairs(asked), foreign)


def intent_sets(only: str = "") -> list[IntentSet]:
    """Return every set whose name begins with ``only``; none where the folder is absent."""
    if not FOLDER.is_dir():
        return []
    makers: dict[str, Callable[[], IntentSet]] = {"banking77": banking77, "clinc150": clinc150}
    for language in HOME_LANGUAGES:
        makers[f"ha_{language}"] = partial(home_assistant, language)
    for language in HOME_LANGUAGES:
        makers[f"ha_{language}+all"] = partial(home_assistant_all, language)
    for domain in ("banking", "hotels"):
        makers[f"nlupp_{domain}"] = partial(nlupp, domain)
    return [make() for name, make in makers.items() if name.startswith(only)]

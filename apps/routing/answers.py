"""Yes, no, and what else an answer to a question says. No model is asked.

A yes or no counts only when a leading part of the message is nothing but that ("sim", "ok, pode",
"não, obrigado"): a "não" inside a sentence says nothing of the question (field case 4.3), and
"ainda não" leaves it open (fault 37).
"""

import re

from apps.routing import lexicon
from apps.routing.sentence import abandons, read, requests, stops
from apps.runtime.dialogue import Sense
from apps.runtime.text import words


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_YES = lexicon.YES | lexicon.SHORT_YES | _set("confirma confirmar certeza perfeito fechado dale")
_NO = lexicon.NO
# What may stand beside a yes or no without changing it.
_POLITE = _set(
    "por favor obrigado obrigada please thanks thank you gracias entao ta tudo bem moca moco senhor"
    " senhora com mesmo isso pode ser que it is that s do go ahead vai em frente seguir prosseguir"
    " fazer confirmar claro mas"
) - {"mas"}
_NO_MORE = _set(
    "quero quis precisa preciso obrigado obrigada thanks thank you gracias por favor please senhor"
    " senhora pode de jeito nenhum claro que ok entao mais isso i do want it don t"
)
# "ainda não", "not yet": the question stays open.
_YET = _set("ainda yet todavia aun agora")
_PART = re.compile(
    r"\s*[,.;:!\n]+\s*|\s+(?:e|and|y|mas|but|pero|porem|porém|só que|so que)\s+", re.I
)
_JOINING = re.compile(r"^(?:e|and|y|mas|but|pero|porem|porém)\s+", re.I)
_TURN = _set("mas but pero porem so")
# A yes that holds only under a condition, later, or of something else first, and one whose next
# word denies it, is none.
_CONDITION = _set(
    "se if si caso desde contanto provided unless salvo exceto except nao no not never don"
)
_LATER = _set(
    "depois amanha espera espere aguarda aguarde calma later wait tomorrow luego despues manana"
)
_FIRST = _set("antes before primeiro first primero")
_HARMLESS = _set("problema problemas problem problems preocupa preocupe worries")


def answer_sense(text: str) -> Sense:
    """Return what ``text`` says as the answer to a yes/no question or to a question for a value."""
    sentence = read(text)
    shape = {
        "abandons": abandons(sentence),
        "stops": stops(sentence),
        "requests": requests(sentence),
    }
    if not sentence.words or sentence.question:
        return Sense(**shape)
    head, rest, turning = _leading(text)
    if not head:
        return Sense(**shape)
    said = words(head)
    if _YET.intersection(said) and _NO.intersection(said):
        return Sense(**shape)
    no = bool(_NO.intersection(said)) and set(said) <= _NO | _NO_MORE
    yes = not no and bool(_YES.intersection(said)) and set(said) <= _YES | _POLITE
    if not (yes or no):
        return Sense(**shape)
    asks = requests(read(rest)) if rest else False
    return Sense(
        yes=yes,
        no=no,
        rest=rest,
        but=turning,
        abandons=shape["abandons"],
        stops=shape["stops"],
        requests=asks,
    )


def _leading(text: str) -> tuple[str, str, bool]:
    """Return the leading parts that are a yes or no, what follows, and whether that takes it back."""
    start = 0
    head_end = 0
    turning = False
    stripped = text.strip()
    for boundary in [*_PART.finditer(stripped), None]:
        end = boundary.start() if boundary else len(stripped)
        part = stripped[start:end]
        said = set(words(part))
        if said and not said <= _YES | _NO | _POLITE | _NO_MORE | _YET:
            break
        head_end = end
        if boundary is None:
            return stripped, "", False
        turning = bool(_TURN.intersection(words(boundary.group())))
        start = boundary.end()
        if turning:
            break
    rest = stripped[start:].strip()
    first = words(rest)[:1]
    if first and first[0] in _TURN:
        turning = True
    turning = turning or _holds_back(rest)
    return stripped[:head_end], _JOINING.sub("", rest), turning


def _holds_back(rest: str) -> bool:
    """Return whether ``rest``, which follows a yes, makes it none: a condition, a denial, a later time."""
    said = words(rest)
    if _HARMLESS.intersection(said):
        return False
    return bool((_CONDITION | _LATER).intersection(said[:2]) or _FIRST.intersection(said))

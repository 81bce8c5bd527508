"""VLOOP: the customer sends the same message again and again."""

from apps.governance.detection.masking import text_mask
from apps.governance.rails.base import Rail, RailContext, RailResult
from apps.governance.vault import PLACEHOLDER
from apps.runtime.text import words

# Reference facts 6.2: the same text at least twice among the last six.
REPEATS = 2
WINDOW = 6

_SHORT_ANSWERS = frozenset(
    [
        "sim",
        "s",
        "nao",
        "n",
        "ok",
        "okay",
        "certo",
        "claro",
        "pode",
        "isso",
        "confirmo",
        "quero",
        "correto",
        "exato",
        "positivo",
        "negativo",
        "yes",
        "y",
        "no",
        "yep",
        "nope",
        "sure",
        "right",
        "confirm",
        "correct",
        "si",
        "vale",
        "por",
        "favor",
        "please",
        "obrigado",
        "obrigada",
        "thanks",
        "cancela",
        "cancelar",
    ]
)


class VerbalLoop(Rail):
    """Counts earlier messages of the customer only: not this one, not the agent's."""

    code = "VLOOP"

    def check(self, text: str, context: RailContext) -> RailResult:
        said = _normalised(text)
        session = context.turn.session
        asked = bool(session.next_state) or session.dialogue.pending
        if not said or (asked and _answers_a_question(said)):
            return self.allow(context)
        earlier = [m.text for m in context.turn.memory if m.role == "user"]
        recent = earlier[-int(context.number("window", WINDOW)) :]
        forms = {said}
        if any(PLACEHOLDER.search(message) for message in recent):
            # Memory holds masked text; MSK may come later in the policy than this rail.
            forms.add(_normalised(text_mask(text, context.vault)))
        repeats = sum(_normalised(message) in forms for message in recent)
        if repeats < context.number("repeats", REPEATS):
            return self.allow(context)
        return self.deny(context, f"said {repeats} times before")


def _normalised(text: str) -> tuple[str, ...]:
    return tuple(words(text))


def _answers_a_question(said: tuple[str, ...]) -> bool:
    return len(said) <= 3 and all(word in _SHORT_ANSWERS for word in said)

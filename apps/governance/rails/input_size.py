"""INPUT_SIZE: a message that would not fit the model's window is refused."""

from apps.governance.rails.base import Rail, RailContext, RailResult

# Reference facts 6.2: four characters count as one token, 4096 tokens at most.
CHARACTERS_PER_TOKEN = 4
MAX_TOKENS = 4096


class InputSize(Rail):
    """Denies texts over ``max_tokens``, and goes on with their beginning only.

    What was cut is never read, masked or stored, so a huge message costs no more than a long one.
    """

    code = "INPUT_SIZE"

    def check(self, text: str, context: RailContext) -> RailResult:
        limit = int(context.number("max_tokens", MAX_TOKENS))
        if len(text) <= limit * CHARACTERS_PER_TOKEN:
            return self.allow(context)
        return self.deny(
            context,
            f"{len(text)} characters are more than {limit} tokens",
            text=_beginning(text, limit * CHARACTERS_PER_TOKEN),
        )


def _beginning(text: str, limit: int) -> str:
    """Cut at the last blank, so that no half of a number is left that masking would not know."""
    cut = text[:limit]
    head, blank, _ = cut.rpartition(" ")
    return head if blank else ""

"""MSK: personal data and secrets are masked, in the message and in the answer."""

from apps.governance.detection.masking import answer_mask, text_mask
from apps.governance.detection.prompts import prompt_contacts
from apps.governance.rails.base import Rail, RailContext, RailResult


class MaskPersonalData(Rail):
    """Input: values go to the session's vault, placeholders take their place. Output: masks.

    Parameters: ``skip`` (entities left alone) and ``allow`` (contacts of the tenant that answers
    may name, a whole domain as ``@acme.com``), both comma-separated.
    """

    code = "MSK"
    denies = "sanitize"
    sanitizes = True

    def check(self, text: str, context: RailContext) -> RailResult:
        skip = context.names("skip")
        if context.phase == "input":
            masked = text_mask(text, context.vault, skip)
        else:
            masked = answer_mask(text, context.vault, skip=skip, nameable=_nameable(context))
        if masked == text:
            return self.allow(context)
        return self.deny(context, "personal data", text=masked)


def _nameable(context: RailContext) -> set[str]:
    """The line and address the turn is about, and contacts the tenant wrote into rule or prompt."""
    subject = context.turn.business_context.values.values()
    return {
        *(value for value in subject if "@" not in value),
        *context.names("allow"),
        *prompt_contacts(context.turn),
    }

"""The question of a turn that is still open.

The conversation stores a message when its turn settles, with placeholders for personal data. Until
then there is only the sealed message as it came, and whoever reloads the page wants to see that it
was not lost.
"""

import uuid

from apps.conversations.inbound import inbound_read
from apps.conversations.models import TurnRecord
from apps.conversations.sealing import unseal
from apps.governance.detection.masking import text_mask
from apps.governance.vault import Vault


def question_masked(*, turn_id: uuid.UUID) -> str:
    """Return the message of the open turn ``turn_id`` with placeholders for all personal data that
    the platform knows, "" when the turn has settled meanwhile."""
    sealed = TurnRecord.objects.filter(pk=turn_id).values_list("inbound", flat=True).first()
    return text_mask(inbound_read(unseal(sealed)).text, Vault()) if sealed else ""

"""The question of a turn that is still open.

The conversation stores a message when its turn settles, with placeholders for personal data. Until
then there is only the sealed message as it came, and whoever reloads the page wants to see that it
was not lost.
"""

import uuid
from collections.abc import Sequence

from cryptography.fernet import InvalidToken

from apps.conversations.inbound import inbound_read
from apps.conversations.models import TurnRecord
from apps.governance.detection.masking import text_mask
from apps.governance.vault import Vault
from apps.tenants.sealing import unseal


def questions_masked(*, turn_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Return the messages of these open turns, with placeholders for all personal data that the
    platform knows. What has settled meanwhile, or was sealed with a key that is gone, is left out.
    """
    if not turn_ids:
        return {}
    sealed = TurnRecord.objects.filter(pk__in=turn_ids).exclude(inbound="")
    return {
        turn_id: text
        for turn_id, inbound in sealed.values_list("id", "inbound")
        if (text := _read(inbound))
    }


def _read(sealed: str) -> str:
    try:
        return text_mask(inbound_read(unseal(sealed)).text, Vault())
    except InvalidToken:
        return ""

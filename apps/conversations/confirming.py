"""Recorded confirmations: asked by one turn, used up by one other, for exactly one call."""

import uuid
from datetime import timedelta

from django.utils import timezone

from apps.conversations.ledger import turn_hold
from apps.conversations.models import Confirmation, TurnRecord
from apps.runtime.canonical import sha256_text
from apps.runtime.dialogue import Transaction
from apps.runtime.outcomes import Answered, Waiting
from apps.runtime.ports import Grant, GrantAnswer
from apps.runtime.turn import Turn
from apps.tenants.scope import tenant_transaction

AWAITING = "AWAITING_CONFIRMATION"


def confirmation_ask(turn: Turn) -> None:
    """Record the question that ``turn`` puts to the customer, if it puts one.

    Call inside the transaction that settles the turn: the question leaves only if it is recorded.
    """
    asked = turn.dialogue.transaction
    if asked is None or asked.status != AWAITING or asked.ask is None:
        return
    if asked.confirmation == _open_confirmation(turn.session.dialogue.transaction):
        return
    if not isinstance(turn.outcome, Waiting | Answered):
        return  # A rail, a judge or a failure took the question back: nobody has read it.
    now = timezone.now()
    Confirmation.objects.create(
        id=uuid.UUID(asked.confirmation),
        session_id=uuid.UUID(turn.session.id),
        release_id=uuid.UUID(turn.release.id),
        tool=asked.tool,
        contract=asked.ask.contract,
        arguments=sha256_text(asked.ask.arguments),
        asked_turn_id=uuid.UUID(turn.id),
        expires_at=now + timedelta(seconds=asked.ask.seconds),
    )


def _open_confirmation(transaction: Transaction | None) -> str:
    return transaction.confirmation if transaction is not None else ""


def confirmation_use(*, turn: Turn, tenant_id: int, grant: Grant) -> GrantAnswer:
    """Use up the confirmation ``grant`` names. See ``runtime.ports.ConfirmationPort``.

    The turn's row is locked and its fence checked first, so an older holder of the turn can use
    nothing. Raises ``LeaseLost``.
    """
    with tenant_transaction(tenant_id):
        turn_hold(turn.id, turn.fence)
        try:
            pk = uuid.UUID(grant.id)
        except ValueError:
            return "absent"
        row = (
            Confirmation.objects.select_for_update()
            .filter(pk=pk, session_id=uuid.UUID(turn.session.id))
            .first()
        )
        if row is None:
            return "absent"
        if row.used_turn_id is not None:
            # The same turn again (its worker died): the call it used it for, and no other.
            again = row.used_turn_id == uuid.UUID(turn.id) and _fits(row, turn, grant)
            return "granted" if again else "used"
        if not _fits(row, turn, grant) or not _answers(row, turn):
            return "mismatch"
        if row.expires_at <= timezone.now():
            return "expired"
        row.used_turn_id = uuid.UUID(turn.id)
        row.used_at = timezone.now()
        row.save(update_fields=["used_turn", "used_at"])
    return "granted"


def _answers(row: Confirmation, turn: Turn) -> bool:
    """Whether the turn's message came after the question: a yes that waited in the queue, from
    another window, was said to something else."""
    sent = TurnRecord.objects.values_list("accepted_at", flat=True).get(pk=turn.id)
    return bool(sent >= row.asked_at)


def _fits(row: Confirmation, turn: Turn, grant: Grant) -> bool:
    return (
        row.tool == grant.tool
        and row.contract == grant.contract
        and row.arguments == sha256_text(grant.arguments)
        and str(row.release_id) == turn.release.id
        and row.asked_turn_id != uuid.UUID(turn.id)
    )

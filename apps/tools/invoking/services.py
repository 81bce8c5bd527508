"""Writes of calls from outside: opened once per caller and request id, ended once.

Each function is one transaction of the tenant it is given, so that async doors can hand it to a
thread.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography.fernet import InvalidToken
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.ports import Grant, GrantAnswer, LeaseLost, LedgerCall, LedgerState
from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal, unseal
from apps.tenants.services import audit_append
from apps.tools.invocation_models import ToolInvocation

CONFIRMATION_REQUIRED = "confirmation_required"
Status = ToolInvocation.Status


class RequestIdReused(Exception):
    """The same caller sent this request id before, with another body."""


class StillRunning(Exception):
    """The same request is being carried out right now."""


@dataclass(frozen=True)
class Invocation:
    """What is asked, by whom, of which release."""

    tenant_id: int
    caller: str
    agent: str
    tool: str
    server: str
    channel: str
    door: str
    request_id: str
    trace_id: str
    digest: str
    environment: str
    release_id: uuid.UUID


@dataclass(frozen=True)
class Opened:
    """An invocation this process may carry out, or (``answer``) one that has ended before.

    ``release_id`` is the one it began with. ``started``: an earlier process had sent it.
    """

    id: uuid.UUID
    fence: int
    release_id: uuid.UUID
    started: bool = False
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Ended:
    """How an invocation ended: what its caller is told, and what is shown of it.

    ``arguments`` is canonical text; ``events`` are ``{event, at, …}`` in order.
    """

    status: str
    answer: Mapping[str, Any]
    reason: str = ""
    arguments: str = "{}"
    contract: str = ""
    events: Sequence[Mapping[str, Any]] = ()
    milliseconds: float | None = None
    expires_at: datetime | None = None


def invocation_open(asked: Invocation, *, lease_seconds: float) -> Opened:
    """Note that ``asked`` is about to be carried out, once per caller and request id.

    Raises ``RequestIdReused`` and ``StillRunning``. One that its process left behind is taken up
    when its lease is over.
    """
    lease = timedelta(seconds=lease_seconds)
    with tenant_transaction(asked.tenant_id):
        known = _known(asked)
        if known is None:
            try:
                with transaction.atomic():
                    row = ToolInvocation.objects.create(
                        caller=asked.caller,
                        agent=asked.agent,
                        tool=asked.tool,
                        server=asked.server,
                        channel=asked.channel,
                        door=asked.door,
                        request_id=asked.request_id,
                        trace_id=asked.trace_id,
                        body_digest=asked.digest,
                        environment=asked.environment,
                        release_id=asked.release_id,
                        lease_until=timezone.now() + lease,
                    )
                return Opened(row.pk, row.fence, row.release_id)
            except IntegrityError:
                known = _known(asked)  # another process was a moment earlier
        if known is None:
            raise StillRunning(asked.request_id)
        return _again(known, asked, lease)


def _known(asked: Invocation) -> ToolInvocation | None:
    found: ToolInvocation | None = (
        ToolInvocation.objects.select_for_update()
        .filter(caller=asked.caller, request_id=asked.request_id)
        .exclude(status=Status.DENIED)
        .first()
    )
    return found


def _again(row: ToolInvocation, asked: Invocation, lease: timedelta) -> Opened:
    if row.body_digest != asked.digest:
        raise RequestIdReused(asked.request_id)
    if row.status != Status.RUNNING:
        return Opened(row.pk, row.fence, row.release_id, answer=_unsealed(row.answer))
    if row.lease_until > timezone.now():
        raise StillRunning(asked.request_id)
    row.fence += 1
    row.lease_until = timezone.now() + lease
    row.save(update_fields=["fence", "lease_until"])
    return Opened(row.pk, row.fence, row.release_id, started=row.started_at is not None)


def _unsealed(text: str) -> dict[str, Any]:
    try:
        return unseal(text)
    except InvalidToken:
        # The key is gone: that it ended is known, its answer is not.
        return {"ok": False, "data": None, "error": "The stored answer can no longer be read."}


def invocation_start(*, tenant_id: int, pk: uuid.UUID, fence: int, call: LedgerCall) -> LedgerState:
    """Note that ``call`` is about to be sent; say what is known of it. Raises ``LeaseLost``."""
    with tenant_transaction(tenant_id):
        row = _held(pk, fence)
        key = sha256_text("\x1f".join((str(pk), call.name, call.contract, call.arguments)))
        if row.started_at is None:
            row.call_key, row.started_at = key, timezone.now()
            row.save(update_fields=["call_key", "started_at"])
            return LedgerState(state="fresh", idempotency_key=key)
        if row.result and row.call_key == key:
            return LedgerState("done", key, str(_unsealed(row.result).get("result", "")))
        if (call.action and not call.idempotent) or row.call_key != key:
            return LedgerState(state="unknown", idempotency_key=row.call_key)
        return LedgerState(state="restarted", idempotency_key=key)


def invocation_result(*, tenant_id: int, pk: uuid.UUID, fence: int, result: str) -> None:
    """Keep what the server answered. Raises ``LeaseLost``."""
    with tenant_transaction(tenant_id):
        row = _held(pk, fence)
        row.result = seal({"result": result})
        row.save(update_fields=["result"])


def invocation_end(*, tenant_id: int, pk: uuid.UUID, fence: int, ended: Ended) -> None:
    """Write the end. Raises ``LeaseLost`` when another process has taken it up."""
    with tenant_transaction(tenant_id):
        row = _held(pk, fence)
        row.status, row.reason = ended.status, ended.reason[:60]
        row.arguments, row.contract = ended.arguments, ended.contract
        row.arguments_sha256 = sha256_text(ended.arguments)
        row.events = canonical_json([dict(event) for event in ended.events])
        row.milliseconds, row.expires_at = ended.milliseconds, ended.expires_at
        row.answer = seal(ended.answer)
        row.ended_at = timezone.now()
        row.save()


def _held(pk: uuid.UUID, fence: int) -> ToolInvocation:
    row: ToolInvocation | None = (
        ToolInvocation.objects.select_for_update()
        .filter(pk=pk, fence=fence, status=Status.RUNNING)
        .first()
    )
    if row is None:
        raise LeaseLost(str(pk))
    return row


def discovery_note(
    *, event: str, server: str, environment: str, actor: str, found: int, error: str
) -> None:
    """Write into the trail that a server was asked what it offers. Inside a tenant's scope."""
    with tenant_transaction():
        audit_append(
            actor=actor,
            action=event,
            entity=f"tool_server:{server}",
            detail={"environment": environment, "tools": found, "error": error or None},
        )


# -- what was confirmed ------------------------------------------------------------------------


def confirmation_find(
    *, tenant_id: int, caller: str, agent: str, tool: str, contract: str, arguments_sha256: str
) -> str:
    """Return the id of the newest question for exactly this call that its caller was put, or ""."""
    with tenant_transaction(tenant_id):
        found = ToolInvocation.objects.filter(
            caller=caller,
            agent=agent,
            tool=tool,
            contract=contract,
            arguments_sha256=arguments_sha256,
            reason=CONFIRMATION_REQUIRED,
        ).order_by("-created_at")
        unused = found.filter(used_by=None, expires_at__gt=timezone.now()).first()
        row = unused or found.first()
        return str(row.pk) if row else ""


def confirmation_use(
    *, tenant_id: int, pk: uuid.UUID, fence: int, release_id: str, grant: Grant
) -> GrantAnswer:
    """Use up the question ``grant`` names for invocation ``pk``, once; see ``ConfirmationPort``."""
    with tenant_transaction(tenant_id):
        mine = _held(pk, fence)
        try:
            question = uuid.UUID(grant.id)
        except ValueError:
            return "absent"
        row = (
            ToolInvocation.objects.select_for_update()
            .filter(pk=question, reason=CONFIRMATION_REQUIRED, caller=mine.caller)
            .first()
        )
        if row is None:
            return "absent"
        fits = (
            (row.tool, row.agent, row.contract) == (grant.tool, mine.agent, grant.contract)
            and row.arguments_sha256 == sha256_text(grant.arguments)
            and str(row.release_id) == release_id
        )
        if row.used_by_id is not None:
            return "granted" if row.used_by_id == pk and fits else "used"
        if not fits:
            return "mismatch"
        if row.expires_at is None or row.expires_at <= timezone.now():
            return "expired"
        row.used_by_id = pk
        row.save(update_fields=["used_by"])
    return "granted"

"""Reads of calls from outside. Inside a tenant's scope."""

from typing import Any

from cryptography.fernet import InvalidToken
from django.db.models import Q, QuerySet

from apps.tenants.sealing import unseal
from apps.tools.invocation_models import ToolInvocation


def invocations_recent(*, status: str = "", search: str = "") -> QuerySet[ToolInvocation]:
    """Return the calls, newest first; ``search`` is part of a tool, a caller or a request id."""
    found: QuerySet[ToolInvocation] = ToolInvocation.objects.defer("answer", "result", "events")
    if status:
        found = found.filter(status=status)
    if search:
        found = found.filter(
            Q(tool__icontains=search) | Q(caller__icontains=search) | Q(request_id=search)
        )
    return found.order_by("-created_at", "-pk")


def answer_of(call: ToolInvocation) -> dict[str, Any]:
    """Return what the caller was told, empty while it runs or when its key is gone."""
    try:
        return unseal(call.answer)
    except InvalidToken:
        return {}

"""The ``AnswerCache`` in the database: it outlives the process and holds no answer in clear."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from cryptography.fernet import InvalidToken
from django.utils import timezone

from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal, unseal
from apps.tenants.threads import in_thread
from apps.tools.caching import Kept
from apps.tools.models import ToolAnswer


class DatabaseAnswers:
    """See ``caching.AnswerCache``."""

    async def find(self, tenant: int, keys: Sequence[str]) -> Mapping[str, str]:
        return await in_thread(answers_find, tenant_id=tenant, keys=keys)

    async def keep(self, tenant: int, answers: Sequence[Kept]) -> None:
        await in_thread(answers_keep, tenant_id=tenant, answers=answers)

    async def drop(self, tenant: int, scopes: Sequence[str]) -> None:
        await in_thread(answers_drop, tenant_id=tenant, scopes=scopes)


def answers_find(*, tenant_id: int, keys: Sequence[str]) -> dict[str, str]:
    """Return key -> text of what is kept and not expired; what another key sealed is not there."""
    with tenant_transaction(tenant_id):
        rows = list(
            ToolAnswer.objects.filter(key__in=keys, expires_at__gt=timezone.now()).values_list(
                "key", "answer"
            )
        )
    found = {}
    for key, sealed in rows:
        try:
            found[key] = str(unseal(sealed)["text"])
        except InvalidToken:
            continue
    return found


def answers_keep(*, tenant_id: int, answers: Sequence[Kept]) -> None:
    """Keep ``answers``; a newer one takes the place of an older one."""
    now = timezone.now()
    rows = [
        ToolAnswer(
            key=answer.key,
            scope=answer.scope,
            tool=answer.tool,
            answer=seal({"text": answer.text}),
            created_at=now,
            expires_at=now + timedelta(seconds=answer.seconds),
        )
        for answer in {answer.key: answer for answer in answers}.values()
    ]
    with tenant_transaction(tenant_id):
        ToolAnswer.objects.bulk_create(
            rows,
            update_conflicts=True,
            update_fields=["scope", "tool", "answer", "created_at", "expires_at"],
            unique_fields=["tenant", "key"],
        )


def answers_drop(*, tenant_id: int, scopes: Sequence[str]) -> None:
    """Forget everything kept under ``scopes``: an action may have changed it."""
    with tenant_transaction(tenant_id):
        ToolAnswer.objects.filter(scope__in=scopes).delete()


def answers_expire(now: datetime) -> None:
    """Delete what is too old to be used. A chore."""
    with tenant_transaction():
        ToolAnswer.objects.filter(expires_at__lte=now).delete()

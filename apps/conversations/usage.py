"""Tokens and cost of settled turns, summed from their records."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.conversations.models import TurnRecord
from apps.conversations.selectors import session_find
from apps.tenants.scope import tenant_transaction

MAX_TURNS = 20_000
"""How many turns are read for one answer; more are said to be left out."""

MAX_SESSIONS = 100
_CHUNK = 500


@dataclass
class Total:
    """Sums over model calls. A call whose price is unknown counts as unknown, never as zero."""

    turns: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated_calls: int = 0
    known_cost_usd: float = 0.0
    unknown_cost_calls: int = 0
    models: set[str] = field(default_factory=set)

    def add(self, calls: list[dict[str, Any]]) -> None:
        """Add one turn's model calls."""
        self.turns += 1
        for call in calls:
            usage = call["usage"]
            self.model_calls += 1
            self.input_tokens += usage["input_tokens"]
            self.output_tokens += usage["output_tokens"]
            self.cached_tokens += usage["cached_tokens"]
            self.estimated_calls += bool(usage["estimated"])
            self.models.add(f"{call['provider']}/{call['model']}")
            if usage["cost"] is None:
                self.unknown_cost_calls += 1
            else:
                self.known_cost_usd += usage["cost"]

    def shown(self) -> dict[str, Any]:
        """Return the sums; ``cost_usd`` is ``None`` as soon as one call's is unknown."""
        complete = not self.unknown_cost_calls
        return {
            "turns": self.turns,
            "model_calls": self.model_calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
            "estimated_calls": self.estimated_calls,
            "cost_usd": round(self.known_cost_usd, 9) if complete else None,
            "cost_complete": complete,
            "known_cost_usd": round(self.known_cost_usd, 9),
            "unknown_cost_calls": self.unknown_cost_calls,
            "models": sorted(self.models),
        }


def usage_totals(*, tenant_id: int, key: str, days: int) -> dict[str, Any] | None:
    """Return the usage of the tenant's last ``days``, or of its session ``key`` alone; ``None`` when
    there is no such session. The ``MAX_SESSIONS`` that used most are listed."""
    if key and session_find(tenant_id=tenant_id, key=key) is None:
        return None
    total, sessions = Total(), dict[str, Total]()
    with tenant_transaction(tenant_id):
        turns = TurnRecord.objects.filter(
            status="settled", settled_at__gte=timezone.now() - timedelta(days=days)
        )
        if key:
            turns = turns.filter(session__key=key)
        rows = turns.order_by("-settled_at").values_list("session__key", "record")
        for session, record in rows[: MAX_TURNS + 1].iterator(chunk_size=_CHUNK):
            if total.turns == MAX_TURNS:
                break
            calls = json.loads(record).get("model_calls") or []
            total.add(calls)
            sessions.setdefault(session, Total()).add(calls)
        truncated = total.turns == MAX_TURNS and turns.count() > MAX_TURNS
    ranked = sorted(
        sessions.items(),
        key=lambda entry: (-entry[1].input_tokens - entry[1].output_tokens, entry[0]),
    )
    return {
        "days": days,
        "totals": total.shown(),
        "sessions": [{"session_id": name, **sums.shown()} for name, sums in ranked[:MAX_SESSIONS]],
        "sessions_total": len(sessions),
        "truncated": truncated,
    }

"""Kills workers in the middle of turns, and knows afterwards what was left behind."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from agentops.tests.services.deployment import Deployment, ServedCall, ToolServer, Web
from agentops.tests.services.processes import Process, until
from agentops.tests.services.tenant import Shop, message
from apps.conversations.models import Event, LedgerEntry, Message, OutboundMessage, TurnRecord
from apps.tenants.scope import tenant_transaction


@dataclass(frozen=True)
class Left:
    """What is stored of a turn at one moment.

    ``open_calls``, ``ended_calls``: ledger entries by kind, actions as "action".
    """

    status: str
    attempts: int
    open_calls: tuple[str, ...]
    ended_calls: tuple[str, ...]
    messages: int
    unsent: int
    sent: int
    served: tuple[ServedCall, ...]

    def __str__(self) -> str:
        ledger = [
            *(f"{c} ended" for c in self.ended_calls),
            *(f"{c} OPEN" for c in self.open_calls),
        ]
        outbox = "sent" if self.sent else "unsent" if self.unsent else "no reply"
        served = [f"{call.tool}:{call.outcome}" for call in self.served]
        parts = [self.status, ", ".join(ledger) or "no calls", outbox]
        return " | ".join([*parts, f"server: {', '.join(served) or 'nothing'}"])


@dataclass
class Killed:
    """A turn, the point at which its worker was killed, and what it had left there."""

    number: int
    point: str
    agent: str
    message_id: str
    turn_id: str
    left: Left
    killed_at: float
    settled_after: float = 0.0
    attempts: int = 0
    calls: list["Called"] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Called:
    """A ledger entry in the end, with how often its server got its key and acted on it."""

    kind: str
    name: str
    action: bool
    idempotent: bool
    starts: int
    ended: bool
    served: int
    effects: int


class Killing:
    """Posts turns one by one, waits until a worker stands still in each, and kills it there."""

    def __init__(
        self,
        deployment: Deployment,
        web: Web,
        shop: Shop,
        servers: Sequence[ToolServer],
        stall_dir: Path,
    ) -> None:
        self._deployment = deployment
        self._web = web
        self._shop = shop
        self._servers = servers
        self._stall_dir = stall_dir
        self._workers: list[Process] = []

    def kill_all(self, plans: Sequence[tuple[str, str]]) -> list[Killed]:
        """Kill a worker at every (point, agent) of ``plans``; a new one takes its place."""
        self._workers = [self._worker(), self._worker()]
        killed = []
        for number, (point, agent) in enumerate(plans, start=1):
            killed.append(self._kill(number, point, agent))
            self._workers = [worker for worker in self._workers if worker.running]
            self._workers.append(self._worker())
        return killed

    def _worker(self) -> Process:
        return self._deployment.worker(concurrency=2, wait=False)

    def _kill(self, number: int, point: str, agent: str) -> Killed:
        message_id = f"m{number:02}"
        (self._stall_dir / message_id).write_text(point)
        turn_id = self._post(number, agent, message_id)
        hit = self._stall_dir / f"{message_id}.hit"
        until(
            hit.exists, lambda: self._state(f"turn {number} to reach {point}", turn_id), seconds=90
        )
        worker = next(w for w in self._workers if w.pid == int(hit.read_text()))
        if point.endswith(".in_flight") and not point.startswith("model"):
            until(lambda: self.left(turn_id).served, "the tool server to have the call")
        left = self.left(turn_id)
        worker.kill()
        return Killed(number, point, agent, message_id, turn_id, left, time.time())

    def _state(self, what: str, turn_id: str) -> str:
        """Return ``what`` with all that explains why it did not happen."""
        logs = [f"{w.name} {w.pid}:\n{w.said()[-2000:]}" for w in self._workers if w.running]
        return "\n".join([what, str(self.left(turn_id)), *logs])

    def _post(self, number: int, agent: str, message_id: str) -> str:
        answer = httpx2.post(
            f"{self._web.url}/gateway/message",
            json=message(agent, session=f"s{number}", message_id=message_id, order=5000 + number),
            headers={**self._shop.headers, "Prefer": "wait=0"},
            timeout=20,
        )
        assert answer.status_code == 202, answer.text
        return str(answer.json()["metadata"]["turn_id"])

    def left(self, turn_id: str) -> Left:
        """Return what is stored of the turn now."""
        with tenant_transaction(self._shop.tenant):
            turn = TurnRecord.objects.get(pk=turn_id)
            entries = list(LedgerEntry.objects.filter(turn=turn).order_by("id"))
            outbox = [row.sent_at for row in OutboundMessage.objects.filter(turn=turn)]
            messages = Message.objects.filter(turn=turn).count()
        keys = {entry.key for entry in entries}
        kinds = [("action" if e.action else e.kind, e.ended_at is not None) for e in entries]
        return Left(
            status=turn.status,
            attempts=turn.attempts,
            open_calls=tuple(kind for kind, ended in kinds if not ended),
            ended_calls=tuple(kind for kind, ended in kinds if ended),
            messages=messages,
            unsent=outbox.count(None),
            sent=len(outbox) - outbox.count(None),
            served=tuple(call for call in self.served() if call.key in keys),
        )

    def served(self) -> list[ServedCall]:
        """Return every call that any server received."""
        return [call for server in self._servers for call in server.calls()]

    def effects(self) -> list[str]:
        """Return the key of every effect at any server."""
        return [key for server in self._servers for key in server.effects()]

    def settle(self, killed: Sequence[Killed], *, seconds: float) -> None:
        """Wait until every turn is settled and its reply has left; note how each ended."""
        until(
            lambda: self._shop.sent() == len(killed), "every turn's reply to leave", seconds=seconds
        )
        served, effects = [call.key for call in self.served()], self.effects()
        for kill in killed:
            with tenant_transaction(self._shop.tenant):
                turn = TurnRecord.objects.get(pk=kill.turn_id)
                entries = list(LedgerEntry.objects.filter(turn=turn).order_by("id"))
            assert turn.settled_at is not None
            kill.settled_after = turn.settled_at.timestamp() - kill.killed_at
            kill.attempts = turn.attempts
            kill.record = json.loads(turn.record)
            kill.calls = [
                Called(
                    kind=entry.kind,
                    name=entry.name,
                    action=entry.action,
                    idempotent=entry.idempotent,
                    starts=entry.starts,
                    ended=entry.ended_at is not None,
                    served=served.count(entry.key),
                    effects=effects.count(entry.key),
                )
                for entry in entries
            ]

    def replies(self, turn_id: str) -> dict[str, int]:
        """Return how often the reply of a turn was said, in each place that holds it."""
        with tenant_transaction(self._shop.tenant):
            messages = Message.objects.filter(turn_id=turn_id)
            events = Event.objects.filter(turn_id=turn_id)
            return {
                "user messages": messages.filter(role="user").count(),
                "assistant messages": messages.filter(role="assistant").count(),
                "message.responded": events.filter(event_type="message.responded").count(),
                "flow.end": events.filter(event_type="flow.end").count(),
                "outbox rows": OutboundMessage.objects.filter(turn_id=turn_id).count(),
            }

    def answer(self, turn_id: str) -> httpx2.Response:
        """Return what the door says of the turn."""
        url = f"{self._web.url}/gateway/turns/{turn_id}"
        return httpx2.get(url, headers=self._shop.headers, timeout=20)

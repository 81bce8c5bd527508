"""The real wiring of a worker, with points at which it stands still until it is killed.

Importing this module puts the points around the real functions. ``STALL_DIR`` holds one file per
message id with the name of a point; the worker that reaches it first renames the file to
``<message id>.hit``, writes its process id into it, and goes no further. A point is thus reached
once, and whoever takes the turn up again walks past it.
"""

import asyncio
import functools
import os
import threading
import uuid
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from agentops import wiring
from apps.agents.providers.scripted import Scripted
from apps.conversations import ledger, services
from apps.conversations.adapters import DatabaseLedger
from apps.conversations.models import TurnRecord
from apps.runtime.ports import LedgerCall
from apps.runtime.turn import Turn
from apps.tenants.scope import tenant_transaction
from apps.tools.transports.dispatch import Transports

STALL_DIR = Path(os.environ["STALL_DIR"])
IN_FLIGHT_SECONDS = 0.05

_message: ContextVar[str] = ContextVar("message", default="")
_calls: ContextVar[str] = ContextVar("calls", default="")
_writing: ContextVar[tuple[str, str] | None] = ContextVar("writing", default=None)


def planned(point: str, message_id: str) -> bool:
    """Whether somebody is to stand still at ``point`` of the turn of ``message_id``."""
    try:
        return bool(message_id) and (STALL_DIR / message_id).read_text() == point
    except FileNotFoundError:
        return False


def reached(point: str, message_id: str) -> bool:
    """Whether it is this thread or task that stands still; the first one there is."""
    if not planned(point, message_id):
        return False
    claimed = STALL_DIR / f"{message_id}.{os.getpid()}"
    try:
        (STALL_DIR / message_id).rename(claimed)
    except FileNotFoundError:
        return False
    claimed.write_text(str(os.getpid()))
    claimed.rename(STALL_DIR / f"{message_id}.hit")
    return True


def stall(point: str, message_id: str) -> None:
    """Stand still in a thread, when told so."""
    if reached(point, message_id):
        threading.Event().wait()


async def stall_async(point: str, message_id: str) -> None:
    """Stand still on the loop, when told so; heartbeats go on."""
    if reached(point, message_id):
        await asyncio.Event().wait()


def written(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Put points around the commit of ``function``, one transaction of a turn."""

    @functools.wraps(function)
    def run(**kwargs: Any) -> Any:
        message_id = _message_id(kwargs)
        token = _writing.set((step or _calls.get(), message_id))
        try:
            result = function(**kwargs)
        finally:
            _writing.reset(token)
        stall(f"{step}.committed", message_id)
        return result

    return run


def _message_id(kwargs: dict[str, Any]) -> str:
    turn = kwargs.get("turn")
    if turn is not None:
        return str(turn.inbound.message_id)
    return _message_id_of(kwargs["tenant_id"], uuid.UUID(str(kwargs["turn_id"])))


@functools.cache
def _message_id_of(tenant_id: int, turn_id: uuid.UUID) -> str:
    with tenant_transaction(tenant_id):
        return str(TurnRecord.objects.values_list("message_id", flat=True).get(pk=turn_id))


def commit(self: BaseDatabaseWrapper) -> None:
    """Commit, unless this is the transaction to die in."""
    writing = _writing.get()
    if writing is not None:
        stall(f"{writing[0]}.uncommitted", writing[1])
    _commit(self)


async def begin(self: DatabaseLedger, turn: Turn, calls: Sequence[LedgerCall]) -> Any:
    """Note which calls of which turn this task makes now."""
    _message.set(turn.inbound.message_id)
    _calls.set("action" if calls[0].action else calls[0].kind)
    return await _begin(self, turn, calls)


async def finish(self: DatabaseLedger, turn: Turn, results: Sequence[Any]) -> None:
    """Record answers, unless the worker is to die with them in its hands."""
    await stall_async(f"{_calls.get()}.unrecorded", turn.inbound.message_id)
    await _finish(self, turn, results)


def in_flight(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a point in the middle of a call: it is sent, and its answer is never seen."""

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        point = f"{_calls.get()}.in_flight"
        if not planned(point, _message.get()):
            return await function(*args, **kwargs)
        sent = asyncio.ensure_future(function(*args, **kwargs))
        await asyncio.sleep(IN_FLIGHT_SECONDS)
        await stall_async(point, _message.get())
        return await sent  # another call of the same turn was first

    return call


_commit = BaseDatabaseWrapper.commit
_begin, _finish = DatabaseLedger.begin, DatabaseLedger.finish
BaseDatabaseWrapper.commit = commit  # type: ignore[method-assign]
DatabaseLedger.begin = begin  # type: ignore[method-assign]
DatabaseLedger.finish = finish  # type: ignore[method-assign]
services.turn_take = written("claim", services.turn_take)
services.turn_settle = written("settle", services.turn_settle)
services.turn_deliver = written("deliver", services.turn_deliver)
ledger.ledger_finish = written("", ledger.ledger_finish)
Transports.call = in_flight(Transports.call)  # type: ignore[method-assign]
Scripted.complete = in_flight(Scripted.complete)  # type: ignore[method-assign]
run_turn_blocking = wiring.run_turn_blocking

"""A server that failed several times in a row is left alone for a while.

Per process: a worker learns from its own calls, and a server that is back is found by each.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import RemoteTool, ToolUnavailable

FAULTS = frozenset({"unreachable", "timeout", "broken"})
"""Codes of ``ToolUnavailable`` that are the server's fault. An answer that says no is none."""

State = Literal["closed", "open", "half_open"]
Key = tuple[str, str, str]


@dataclass(frozen=True)
class CircuitState:
    """What an admin sees of one server: ``retry_in`` seconds until a paused one is tried."""

    tenant: str
    server: str
    address: str
    state: State
    failures: int
    retry_in: float


@dataclass
class _Circuit:
    failures: int = 0
    open_until: float | None = None
    trial: bool = False


class Circuits:
    """One circuit per (tenant, server, address). Only servers that fail are remembered."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._circuits: dict[Key, _Circuit] = {}

    @contextmanager
    def trying(self, remote: RemoteTool) -> Iterator[None]:
        """Hold one request to ``remote``'s server and learn from how it ends.

        Raises ``ToolUnavailable(code="circuit_open", sent=False)`` while the server is paused; after
        the pause one request at a time goes through, and its end decides.
        """
        key = (remote.tenant, remote.server, remote.address)
        trial = self._admit(key)
        try:
            yield
        except ToolUnavailable as failure:
            if failure.code in FAULTS:
                self._failed(key, remote)
            raise
        else:
            self._circuits.pop(key, None)
        finally:
            if trial and (circuit := self._circuits.get(key)) is not None:
                circuit.trial = False

    def states(self) -> list[CircuitState]:
        """Return the servers that failed lately; all others are closed."""
        now = self._clock()
        return [
            CircuitState(*key, _state(circuit, now), circuit.failures, _wait(circuit, now))
            for key, circuit in sorted(self._circuits.items())
        ]

    def _admit(self, key: Key) -> bool:
        """Return whether the request is the trial of a paused server."""
        circuit = self._circuits.get(key)
        if circuit is None or circuit.open_until is None:
            return False
        wait = _wait(circuit, self._clock())
        if wait > 0 or circuit.trial:
            text = _("The server failed several times in a row and is left alone for now.")
            raise ToolUnavailable(text, sent=False, code="circuit_open")
        circuit.trial = True
        return True

    def _failed(self, key: Key, remote: RemoteTool) -> None:
        if not remote.circuit_threshold:
            return
        circuit = self._circuits.setdefault(key, _Circuit())
        circuit.failures += 1
        if circuit.failures >= remote.circuit_threshold:
            circuit.open_until = self._clock() + remote.circuit_recovery_seconds


def _wait(circuit: _Circuit, now: float) -> float:
    return max(0.0, circuit.open_until - now) if circuit.open_until is not None else 0.0


def _state(circuit: _Circuit, now: float) -> State:
    if circuit.open_until is None:
        return "closed"
    return "open" if circuit.open_until > now else "half_open"

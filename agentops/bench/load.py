"""Posts messages and times the answers."""

import asyncio
import statistics
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

TURNS_PER_SESSION = 5
AMOUNT = "214,37"  # of invoice 3000131180 in the telecom demo data


@dataclass(frozen=True)
class Timing:
    """Milliseconds from post to answer, and turns per second over the whole run."""

    turns: int
    p50: float
    p95: float
    per_second: float


def body(session: str, number: int) -> dict[str, object]:
    """Return a message that costs two tool calls; its text differs, or VLOOP would see a loop."""
    return {
        "channel": "web",
        "tenant_id": "default",
        "agent_id": "telecom_contas",
        "payload": {
            "message": f"Quero entender minha fatura, caso {number}",
            "session_id": session,
            "message_id": f"m{number}",
            "customer_key": "11999999999",
            "contract_key": "3000131180",
        },
    }


async def _session(
    client: httpx2.AsyncClient, turns: int, per_session: int, times: list[float]
) -> None:
    session = uuid.uuid4().hex
    for number in range(turns):
        if number and number % per_session == 0:
            session = uuid.uuid4().hex
        started = time.perf_counter()
        answer = await client.post("/gateway/message", json=body(session, number))
        times.append((time.perf_counter() - started) * 1000)
        if answer.status_code != 200 or AMOUNT not in answer.json()["text"]:
            raise RuntimeError(f"{answer.status_code}: {answer.text[:500]}")


async def _run(
    url: str, headers: Mapping[str, str], sessions: int, turns: int, per_session: int
) -> tuple[list[float], float]:
    times: list[float] = []
    limits = httpx2.Limits(max_connections=sessions + 4)
    async with httpx2.AsyncClient(
        base_url=url, headers=dict(headers), timeout=120, limits=limits
    ) as client:
        started = time.perf_counter()
        await asyncio.gather(
            *(_session(client, turns, per_session, times) for _ in range(sessions))
        )
        return times, time.perf_counter() - started


def measure(url: str, headers: Mapping[str, str], *, sessions: int, turns: int) -> Timing:
    """Return the timing of ``sessions`` at once, ``turns`` messages each."""
    times, seconds = asyncio.run(_run(url, headers, sessions, turns, TURNS_PER_SESSION))
    times.sort()
    return Timing(
        turns=len(times),
        p50=times[len(times) // 2],
        p95=times[int(len(times) * 0.95)],
        per_second=len(times) / seconds,
    )


def growth(url: str, headers: Mapping[str, str], *, turns: int = 200) -> tuple[float, float]:
    """Return the medians of the first and the last twenty turns of one session, milliseconds."""
    times, _seconds = asyncio.run(_run(url, headers, 1, turns, turns))
    return statistics.median(times[:20]), statistics.median(times[-20:])

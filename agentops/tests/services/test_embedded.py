"""The one embedded process is killed in the middle of its turns and started again."""

import sqlite3
import time
from collections import Counter

import httpx2
import pytest

from agentops.tests.services.deployment import Deployment, deployed
from agentops.tests.services.processes import until
from agentops.tests.services.tenant import MODEL, ONCE, READS, REPEATABLE, message

pytestmark = pytest.mark.once
AGENTS = (READS, ONCE, REPEATABLE, MODEL)
TURNS, KILLS = 24, 2
# The default lease is 30 s: a restart does not wait for it.
RESTART_SECONDS = 15


def shop_key(deployment: Deployment, *arguments: str) -> str:
    """Make the shop in the deployment's database; return its key."""
    making = deployment.start("setup", "-m", "agentops.tests.services.embedded_setup", *arguments)
    until(lambda: not making.running, "the shop to be made", seconds=90)
    return making.said().split()[-1]


def rows(deployment: Deployment, statement: str) -> list:
    database = sqlite3.connect(f"file:{deployment.folder / 'db.sqlite3'}?mode=ro", uri=True)
    try:
        return database.execute(statement).fetchall()
    finally:
        database.close()


def test_process__killed_in_the_middle_and_restarted__loses_and_repeats_nothing(tmp_path, capsys):
    with deployed(tmp_path / "embedded", DATABASE_URL="", REDIS_URL="") as deployment:
        slow = ("--delay-ms", "200-800", "--delay-after-ms", "100")
        servers = [deployment.tool_server(name, *slow) for name in ("telecom", "retail")]
        key = shop_key(deployment, *(server.address for server in servers), "300")
        headers = {"Authorization": f"Bearer {key}", "Prefer": "wait=0"}

        def count(where: str) -> int:
            [(found,)] = rows(deployment, f"SELECT count(*) FROM conversations_turnrecord {where}")
            return int(found)

        web = deployment.web()
        turn_ids = []
        killed = []
        for number in range(TURNS):
            body = message(
                AGENTS[number % 4],
                session=f"s{number}",
                message_id=f"m{number}",
                order=5001 + number,
            )
            answer = httpx2.post(
                f"{web.url}/gateway/message", json=body, headers=headers, timeout=20
            )
            assert answer.status_code == 202, answer.text
            turn_ids.append(answer.json()["metadata"]["turn_id"])
            if number % (TURNS // KILLS) == TURNS // KILLS - 1:
                until(lambda: count("WHERE status = 'running'") >= 4, "turns to run", every=0.005)
                web.process.kill()
                killed.append((count("WHERE status = 'running'"), count("WHERE status = 'queued'")))
                web = deployment.web()
                started = time.monotonic()
        until(lambda: count("WHERE status <> 'settled'") == 0, "every turn to settle")
        took = time.monotonic() - started
        until(lambda: not rows(deployment, UNSENT), "every reply to leave")
        with capsys.disabled():
            print(
                f"\n\nembedded process killed {KILLS} times, turns then running and queued: {killed}; ",
                end="",
            )
            print(f"{TURNS} settled {took:.1f} s after the last start")
        assert took < RESTART_SECONDS
        assert all(running for running, _queued in killed)
        assert Counter(rows(deployment, REPLIES)) == {("assistant", 1): TURNS, ("user", 1): TURNS}
        assert Counter(rows(deployment, EVENTS)) == {(1,): TURNS}
        assert rows(deployment, "SELECT DISTINCT outcome FROM conversations_turnrecord") == [
            ("answered",)
        ]
        calls_are_as_the_ledger_says(deployment, servers)
        for turn_id in turn_ids:
            answer = httpx2.get(f"{web.url}/gateway/turns/{turn_id}", headers=headers, timeout=20)
            assert answer.status_code == 200


UNSENT = "SELECT 1 FROM conversations_outboundmessage WHERE sent_at IS NULL"
REPLIES = "SELECT role, count(*) FROM conversations_message GROUP BY turn_id, role"
EVENTS = (
    "SELECT count(*) FROM conversations_event WHERE event_type = 'message.responded'"
    " GROUP BY turn_id"
)


def calls_are_as_the_ledger_says(deployment: Deployment, servers: list) -> None:
    """Nothing is sent oftener than the ledger has it started, and no action twice without leave."""
    served = Counter(call.key for server in servers for call in server.calls())
    effects = Counter(key for server in servers for key in server.effects())
    assert set(effects.values()) == {1}
    ledger = rows(
        deployment,
        "SELECT key, starts, action, idempotent, ended_at FROM conversations_ledgerentry"
        " WHERE kind = 'tool'",
    )
    assert set(served) <= {key for key, *_rest in ledger}
    for key, starts, action, idempotent, ended_at in ledger:
        assert served[key] <= starts
        if action and not idempotent:
            assert starts == 1
        if action and ended_at:
            assert effects[key] == 1

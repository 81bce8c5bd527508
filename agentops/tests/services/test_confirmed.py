"""300 confirmed actions while workers die, the tool server restarts and every message comes twice."""

import asyncio
import json
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from agentops.tests.services.conftest import QUICK
from agentops.tests.services.deployment import HOST, Deployment, ToolServer, deployed, free_port
from agentops.tests.services.tenant import ASKED, ASKED_ONCE, Shop, message, shop_make
from apps.conversations.models import Confirmation, Session, TurnRecord
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

CONVERSATIONS = 300
AT_ONCE = 24
KILL_EVERY = (0.8, 1.6)
RESTART_EVERY = (3.0, 5.0)
FIRST_ORDER = 5001


@pytest.mark.timeout(600)
def test_confirmed_actions__workers_die_server_restarts_messages_repeat__none_done_twice(
    tmp_path, capsys
):
    with deployed(tmp_path / "confirmed", **QUICK) as deployment:
        server = Server(deployment, tmp_path / "confirmed" / "retail.sqlite3")
        shop = shop_make(telecom=server.address, retail=server.address)
        web = deployment.web()
        deployment.beat()
        havoc = Havoc(deployment, server)
        havoc.begin()
        try:
            asyncio.run(talk(web.url, shop))
        finally:
            havoc.end()
        said = outcomes(shop)
        done = Done(server)
        with capsys.disabled():
            print(
                f"\n\n{len(said)} confirmed actions, {havoc.kills} workers killed,"
                f" {havoc.restarts} restarts of the tool server: {dict(Counter(said.values()))},"
                f" effects {sum(done.effects.values())}"
            )
        # How many fit in depends on how fast the machine is: some must, or nothing was tried.
        assert havoc.kills >= 4
        assert havoc.restarts >= 2
        assert len(said) == CONVERSATIONS
        assert set(said.values()) <= {"COMPLETED", "UNKNOWN"}, Counter(said.values())
        # Many must have gone through, or the figures above say nothing.
        assert Counter(said.values())["COMPLETED"] >= CONVERSATIONS * 2 // 3
        for order, status in said.items():
            assert done.effects[order] <= 1, (order, status)
            assert len(done.keys[order]) <= 1, (order, status)
            if status == "COMPLETED":
                assert done.effects[order] == 1, order
        with tenant_transaction(shop.tenant):
            asked = Counter(Confirmation.objects.values_list("session_id", flat=True))
            used = Confirmation.objects.exclude(used_turn=None).count()
        assert set(asked.values()) == {1}
        assert used == CONVERSATIONS


async def talk(url: str, shop: Shop) -> None:
    """Ask for an exchange in every conversation, and say yes; each message is sent twice at once."""
    gate = asyncio.Semaphore(AT_ONCE)
    async with httpx2.AsyncClient(base_url=url, headers=shop.headers, timeout=60) as client:

        async def one(number: int) -> None:
            async with gate:
                agent = ASKED if number % 2 else ASKED_ONCE
                body = message(
                    agent,
                    session=f"c{number}",
                    message_id=f"ask-{number}",
                    order=FIRST_ORDER + number,
                )
                await answered(client, body)
                yes = message(agent, session=f"c{number}", message_id=f"yes-{number}")
                yes["payload"] = {
                    "message": "sim",
                    "session_id": f"c{number}",
                    "message_id": f"yes-{number}",
                }
                await answered(client, yes)

        await asyncio.gather(*(one(number) for number in range(CONVERSATIONS)))


async def answered(client: httpx2.AsyncClient, body: dict) -> None:
    """Send ``body`` twice at once, and again until its turn is answered."""
    end = time.monotonic() + 120
    while True:
        answers = await asyncio.gather(
            *(
                client.post("/gateway/message", json=body, headers={"Prefer": "wait=10"})
                for _ in range(2)
            )
        )
        assert {answer.status_code for answer in answers} <= {200, 202}, answers[0].text
        if any(answer.status_code == 200 for answer in answers):
            return
        assert time.monotonic() < end, body


def outcomes(shop: Shop) -> dict[str, str]:
    """Return order -> what its conversation says became of the action."""
    with tenant_transaction(shop.tenant):
        rows = list(Session.objects.values_list("name", "dialogue"))
        turns = TurnRecord.objects.exclude(status="settled").count()
    assert turns == 0
    found = {}
    for name, dialogue in rows:
        last = json.loads(dialogue)["last_transaction"]
        found[f"PED-{FIRST_ORDER + int(name[1:])}"] = last["status"]
    return found


class Server:
    """The retail tool server at one address and one database, stopped and started again."""

    def __init__(self, deployment: Deployment, database: Path) -> None:
        self._deployment = deployment
        self._port = free_port()
        self.database = database
        self.address = f"http://{HOST}:{self._port}/mcp"
        self._current = self._start()

    def _start(self) -> ToolServer:
        process = self._deployment.start(
            "retail", "-m", "examples.mcp_servers.retail", "--host", HOST, "--port",
            str(self._port), "--db", str(self.database), "--delay-ms", "5-40",
        )  # fmt: skip
        return ToolServer(process, self._port, self.database)

    def restart(self) -> None:
        """Kill it in the middle of whatever it does, and start it again."""
        self._current.process.signal(signal.SIGKILL)
        self._current.process.wait(10)
        self._current = self._start()

    def rows(self, statement: str) -> list[tuple]:
        return self._current.rows(statement)


class Done:
    """What the server's own database says: effects and keys of each order."""

    def __init__(self, server: Server) -> None:
        self.effects: Counter[str] = Counter()
        self.keys: dict[str, set[str]] = defaultdict(set)
        for result, key in server.rows("SELECT result, idempotency_key FROM effects"):
            order = json.loads(result)["order_id"]
            self.effects[order] += 1
            self.keys[order].add(key)
        protocols = Counter(order for (order,) in server.rows("SELECT order_id FROM protocolos"))
        assert protocols == self.effects


@dataclass
class Havoc:
    """Kills a worker every second or so, and restarts the server every few."""

    deployment: Deployment
    server: Server
    kills: int = 0
    restarts: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def begin(self) -> None:
        """Start three workers, and the trouble."""
        self.workers = self.deployment.workers(3, concurrency=8)
        for target in (self._kill, self._restart):
            thread = threading.Thread(target=target, daemon=True)
            thread.start()
            self._threads.append(thread)

    def end(self) -> None:
        """Stop the trouble."""
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _kill(self) -> None:
        chance = random.Random(1)
        while not self._over.wait(chance.uniform(*KILL_EVERY)):
            ready = [worker for worker in self.workers if " ready." in worker.said()]
            if len(ready) < 2:
                continue
            ready[0].kill()
            self.workers.remove(ready[0])
            self.workers.append(self.deployment.worker(concurrency=8, wait=False))
            self.kills += 1

    def _restart(self) -> None:
        chance = random.Random(2)
        while not self._over.wait(chance.uniform(*RESTART_EVERY)):
            self.server.restart()
            self.restarts += 1

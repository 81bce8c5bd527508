"""The database's connections break while turns run, as in a failover: nobody notices."""

import asyncio
from collections import Counter

import psycopg
import pytest
from django.db import connection

from agentops.tests.services.posting import callers
from agentops.tests.services.processes import until
from agentops.tests.services.tenant import MODEL, READS, message
from apps.conversations.models import TurnRecord
from apps.tenants.scope import tenant_transaction
from conftest import ADMIN_URL

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
TURNS, AT_ONCE, CUTS = 60, 4, 6
CUT = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = %s AND pid <> pg_backend_pid()"
)


def cut(name: str) -> int:
    """Break every connection to database ``name``; return how many."""
    with psycopg.connect(ADMIN_URL, autocommit=True) as admin:
        row = admin.execute(CUT, [name]).fetchone()
    return row[0] if row else 0


def test_connections__cut_while_turns_run__every_message_is_answered(web, shop, fleet, capsys):
    fleet.workers(1)
    fleet.beat()
    name = connection.settings_dict["NAME"]
    numbers = iter(range(TURNS))
    answers = []
    broken = []

    async def talk(post):
        for number in numbers:
            if number % (TURNS // CUTS) == TURNS // CUTS // 2:
                broken.append(await asyncio.to_thread(cut, name))
            agent = (READS, MODEL)[number % 2]
            body = message(agent, session=f"s{number}", message_id=f"m{number}")
            answers.append(await post(body, wait=30))

    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    callers(web.url, shop, talk, AT_ONCE)
    until(lambda: shop.sent() == TURNS, "every reply to leave")
    with tenant_transaction(shop.tenant):
        turns = list(TurnRecord.objects.values_list("outcome", flat=True))
    with capsys.disabled():
        print(f"\n\nconnections cut {CUTS} times ({broken}): ", end="")
        print(
            f"answers {dict(Counter(a.status_code for a in answers))}, outcomes {dict(Counter(turns))}"
        )
    assert {answer.status_code for answer in answers} <= {200, 202}
    assert set(turns) == {"answered"}

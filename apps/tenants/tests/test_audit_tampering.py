"""A thousand forgeries of an audit trail by somebody who owns the database: each is found.

The forger knows the code: where it helps, they compute the hashes anew.
"""

import json
import random
from collections import Counter
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection

from apps.tenants.audit import entry_hash, trail_verify
from apps.tenants.models import AuditEntry
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append
from conftest import owner_connection

TABLE = "tenants_auditentry"
HASHED = ("sequence", "at", "actor", "action", "entity", "detail", "previous_hash")
COLUMNS = (*HASHED, "hash")
ENTRIES = 60
FORGERIES = 1000


class Forger:
    """Writes to the trail's table as its owner: no trigger, no policy, no service stops it."""

    def __init__(self, tenant):
        self.tenant = tenant
        self.owner = None if settings.EMBEDDED_DATABASE else owner_connection()
        if self.owner:
            self.owner.execute("SET session_replication_role = replica")
        with tenant_transaction(tenant):
            rows = AuditEntry.objects.order_by("sequence").values("pk", *COLUMNS)
            self.rows = list(rows)
        self.end = self.one("SELECT audit_sequence, audit_hash FROM tenants_tenant WHERE id = %s")

    def run(self, statement, *values):
        if self.owner:
            return self.owner.execute(statement, values)
        cursor = connection.cursor()
        cursor.execute(statement, values)
        return cursor

    def one(self, statement):
        return self.run(statement, self.tenant.pk).fetchone()

    def put(self, row):
        names = ", ".join(("id", "tenant_id", *COLUMNS))
        marks = ", ".join(["%s"] * (len(COLUMNS) + 2))
        values = [row["pk"], self.tenant.pk, *(row[name] for name in COLUMNS)]
        self.run(f"INSERT INTO {TABLE} ({names}) VALUES ({marks})", *values)

    def drop(self, row):
        self.run(f"DELETE FROM {TABLE} WHERE id = %s", row["pk"])

    def change(self, row, **fields):
        for name, value in fields.items():
            self.run(f"UPDATE {TABLE} SET {name} = %s WHERE id = %s", value, row["pk"])

    def mend(self):
        self.run(f"DELETE FROM {TABLE} WHERE tenant_id = %s", self.tenant.pk)
        for row in self.rows:
            self.put(row)
        self.run(
            "UPDATE tenants_tenant SET audit_sequence = %s, audit_hash = %s WHERE id = %s",
            *self.end,
            self.tenant.pk,
        )


def hashed(row):
    return entry_hash(**{name: row[name] for name in HASHED})


def other_value(name, value, draw):
    if name == "at":
        return value + timedelta(microseconds=draw.choice([-1, 1, 10**9]))
    if name in ("hash", "previous_hash"):
        place = draw.randrange(64)
        digit = draw.choice([d for d in "0123456789abcdef" if d != value[place : place + 1]])
        return value[:place] + digit + value[place + 1 :]
    if name == "detail":
        return json.dumps({**json.loads(value), "x": draw.random()})
    return value[:-1] + ("y" if value.endswith("x") else "x")


# Each forges one trail, and returns the first sequence that no longer holds.
def a_field(forger, draw):
    row = draw.choice(forger.rows)
    name = draw.choice([n for n in COLUMNS if n != "sequence"])
    forger.change(row, **{name: other_value(name, row[name], draw)})
    return row["sequence"]


def a_field_and_its_hash(forger, draw):
    """The entry itself is consistent again; the next one, or the tenant's row, does not follow."""
    row = draw.choice(forger.rows)
    name = draw.choice(["at", "actor", "action", "entity", "detail"])
    forged = {**row, name: other_value(name, row[name], draw)}
    forger.change(row, **{name: forged[name], "hash": hashed(forged)})
    return min(row["sequence"] + 1, forger.rows[-1]["sequence"])


def the_rest_hashed_anew(forger, draw):
    """Everything from one entry on is consistent; only the tenant's row knows the old end."""
    start = draw.randrange(len(forger.rows))
    previous = forger.rows[start]["previous_hash"]
    for place, row in enumerate(forger.rows[start:]):
        forged = {**row, "previous_hash": previous}
        if place == 0:
            forged["actor"] = "user:nobody"
        previous = forged["hash"] = hashed(forged)
        forger.change(row, **{n: forged[n] for n in ("actor", "previous_hash", "hash")})
    return forger.rows[-1]["sequence"]


def one_deleted(forger, draw):
    row = draw.choice(forger.rows)
    forger.drop(row)
    return row["sequence"]


def one_deleted_and_renumbered(forger, draw):
    place = draw.randrange(len(forger.rows) - 1)
    forger.drop(forger.rows[place])
    for row in forger.rows[place + 1 :]:
        forger.change(row, sequence=row["sequence"] - 1)
    return forger.rows[place]["sequence"]


def two_exchanged(forger, draw):
    first, second = sorted(draw.sample(forger.rows, 2), key=lambda row: row["sequence"])
    forger.change(first, sequence=-1)
    forger.change(second, sequence=first["sequence"])
    forger.change(first, sequence=second["sequence"])
    return first["sequence"]


def some_appended(forger, draw):
    """Genuine in every way but one: the services did not write them."""
    last = forger.rows[-1]
    for step in range(1, draw.randint(1, 3) + 1):
        forged = {
            **last,
            "pk": last["pk"] + 1_000_000,
            "sequence": last["sequence"] + 1,
            "at": last["at"] + timedelta(seconds=step),
            "actor": "user:nobody",
            "previous_hash": last["hash"],
        }
        forged["hash"] = hashed(forged)
        forger.put(forged)
        last = forged
    return forger.rows[-1]["sequence"] + 1


def the_end_cut(forger, draw):
    keep = draw.randrange(len(forger.rows))
    for row in forger.rows[keep:]:
        forger.drop(row)
    return forger.rows[keep]["sequence"]


def the_end_cut_and_the_count(forger, draw):
    """The tenant's count is lowered too, but not the hash the trail ended with."""
    keep = draw.randrange(1, len(forger.rows))
    for row in forger.rows[keep:]:
        forger.drop(row)
    forger.run(
        "UPDATE tenants_tenant SET audit_sequence = %s WHERE id = %s", keep, forger.tenant.pk
    )
    return keep


def the_end_hash(forger, draw):
    forger.run(
        "UPDATE tenants_tenant SET audit_hash = %s WHERE id = %s",
        other_value("hash", forger.end[1], draw),
        forger.tenant.pk,
    )
    return forger.rows[-1]["sequence"]


FORGERIES_OF_EACH = (
    a_field, a_field_and_its_hash, the_rest_hashed_anew, one_deleted, one_deleted_and_renumbered,
    two_exchanged, some_appended, the_end_cut, the_end_cut_and_the_count, the_end_hash,
)  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_verify__of_1000_forged_trails__finds_each_at_its_first_broken_entry(world, capsys):
    with tenant_transaction(world.acme):
        while AuditEntry.objects.count() < ENTRIES:
            number = AuditEntry.objects.count()
            audit_append(
                actor="user:alice",
                action="thing.changed",
                entity=f"thing:{number}",
                detail={"ção": [number, None, 1.5]},
            )
    forger, draw = Forger(world.acme), random.Random(3)
    assert trail_verify(world.acme).broken_at == 0
    found: Counter[str] = Counter()
    wrong = []
    for number in range(FORGERIES):
        forgery = FORGERIES_OF_EACH[number % len(FORGERIES_OF_EACH)]
        expected = forgery(forger, draw)
        state = trail_verify(world.acme)
        if state.broken_at == expected and state.reason:
            found[forgery.__name__] += 1
        else:
            wrong.append((forgery.__name__, expected, state))
        forger.mend()
    assert wrong == []
    assert sum(found.values()) == FORGERIES
    assert set(found.values()) == {FORGERIES // len(FORGERIES_OF_EACH)}
    assert trail_verify(world.acme).broken_at == 0
    assert trail_verify(world.other).broken_at == 0
    with capsys.disabled():
        print(f"\nforged trails found: {sum(found.values())} of {FORGERIES}")

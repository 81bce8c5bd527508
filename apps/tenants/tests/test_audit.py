"""The audit trail: append-only, chained, verifiable."""

import threading
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from apps.tenants import services
from apps.tenants.audit import trail_verify, without_secrets
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction


def append(number, **changes):
    fields = {
        "actor": "user:alice",
        "action": "thing.changed",
        "entity": f"thing:{number}",
        "detail": {"ção": [number, None, 1.5]},
    }
    return services.audit_append(**{**fields, **changes})


@pytest.fixture
def trail(world):
    with tenant_transaction(world.acme):
        return [append(number) for number in range(5)]


@pytest.mark.django_db
def test_trail__of_appended_entries__is_unbroken(world, trail):
    with tenant_transaction(world.acme):
        total = AuditEntry.objects.count()
        assert [entry.sequence for entry in trail] == list(range(total - 4, total + 1))
    state = trail_verify(world.acme)
    assert (state.entries, state.broken_at) == (total, 0)
    assert total >= 8  # the world's own four, and these five


@pytest.mark.django_db(transaction=True)
def test_append__outside_the_transaction_of_its_change__is_refused(world):
    with tenant_scope(world.acme), pytest.raises(services.OutsideTransaction):
        append(1)


@pytest.mark.django_db
def test_append__rolled_back_with_its_change__leaves_no_gap(world, trail):
    with tenant_transaction(world.acme):
        append(6)
        transaction.set_rollback(True)
    with tenant_transaction(world.acme):
        assert append(7).sequence == trail[-1].sequence + 1
    assert trail_verify(world.acme).broken_at == 0


TAMPERINGS = {
    "content": ("UPDATE tenants_auditentry SET detail = '{}' WHERE sequence = %s", "changed"),
    "time": ("UPDATE tenants_auditentry SET at = '2020-01-01' WHERE sequence = %s", "changed"),
    "hash": ("UPDATE tenants_auditentry SET hash = 'x' WHERE sequence = %s", "changed"),
    "link": ("UPDATE tenants_auditentry SET previous_hash = '' WHERE sequence = %s", "follow"),
    "deleted": ("DELETE FROM tenants_auditentry WHERE sequence = %s", "missing"),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", TAMPERINGS)
@pytest.mark.parametrize("place", ["middle", "last"])
def test_verify__tampered_trail__names_the_first_broken_link(world, trail, kind, place, tamper):
    statement, reason = TAMPERINGS[kind]
    at = trail[2 if place == "middle" else -1].sequence
    tamper(statement, world.acme.pk, at)
    out = StringIO()
    with pytest.raises(CommandError) as raised:
        call_command("verify_audit", stdout=out)
    assert raised.value.returncode == 1
    acme, other = out.getvalue().splitlines()
    assert f"acme: broken at entry {at}:" in acme
    if kind == "deleted" and place == "last":
        assert "end is missing" in acme
    else:
        assert reason in acme
    assert "other: 3 entries, unbroken" in other


@pytest.fixture
def tamper():
    """Change the table as somebody who has the database's files or its superuser would."""
    from conftest import owner_connection

    def change(statement, tenant_id, sequence):
        statement += f" AND tenant_id = {tenant_id}"
        if settings.EMBEDDED_DATABASE:
            with connection.cursor() as cursor:
                cursor.execute(statement, [sequence])
            return
        with owner_connection() as owner:
            owner.execute("ALTER TABLE tenants_auditentry DISABLE TRIGGER audit_append_only")
            owner.execute(statement, [sequence])
            owner.execute("ALTER TABLE tenants_auditentry ENABLE TRIGGER audit_append_only")

    return change


@pytest.mark.django_db
def test_verify__of_one_tenant__prints_its_count(world):
    out = StringIO()
    call_command("verify_audit", tenant="other", stdout=out)
    assert out.getvalue().strip() == "other: 3 entries, unbroken"
    with pytest.raises(CommandError):
        call_command("verify_audit", tenant="nobody", stdout=out)


@pytest.mark.django_db(transaction=True)
def test_append__by_eight_writers_at_once__is_one_unbroken_chain(world):
    before = Tenant.objects.get(pk=world.acme.pk).audit_sequence
    errors = []

    def write(number):
        try:
            for step in range(5):
                with tenant_transaction(world.acme):
                    append(number * 100 + step)
        except Exception as error:  # shown by the assertion below
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    state = trail_verify(Tenant.objects.get(pk=world.acme.pk))
    assert (state.entries, state.broken_at) == (before + 40, 0)


def test_detail__with_secrets__is_masked():
    detail = {
        "api_key": "ak_12345678_abcdefghijklmnop",
        "note": "use ak_12345678_abcdefghijklmnop or Bearer abcdefghijkl",
        "nested": [{"password": "x", "name": "kept", "token": ""}],
        "credential": "TELECOM_KEY",
    }
    assert without_secrets(detail) == {
        "api_key": "***",
        "note": "use *** or ***",
        "nested": [{"password": "***", "name": "kept", "token": ""}],
        "credential": "TELECOM_KEY",
    }

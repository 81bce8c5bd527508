"""The checks themselves: each fails when its dependency does."""

import socket

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from kombu.exceptions import OperationalError as BrokerError

from agentops import readiness, wiring


@pytest.fixture
def closed_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.django_db(transaction=True)
async def test_database_and_migrations__of_a_migrated_database__are_usable():
    await readiness.database()
    await readiness.migrations()


@pytest.mark.django_db
def test_database__that_refuses__is_unusable(monkeypatch):
    def refuse(*args, **kwargs):
        raise OperationalError("gone")

    monkeypatch.setattr(connection, "cursor", refuse)
    with pytest.raises(OperationalError):
        readiness._select()


@pytest.mark.django_db
def test_migrations__one_missing__is_unusable_until_it_is_applied(monkeypatch):
    monkeypatch.setattr(readiness, "_migrated", False)
    applied = MigrationRecorder.applied_migrations

    def without_one(recorder):
        found = applied(recorder)
        newest = max(name for app, name in found if app == "conversations")
        found.pop(("conversations", newest))
        return found

    monkeypatch.setattr(MigrationRecorder, "applied_migrations", without_one)
    with pytest.raises(readiness.NotUsable):
        readiness._migrations()
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", applied)
    readiness._migrations()
    assert readiness._migrated


async def test_channel_layer__brings_a_message_back():
    await readiness.channel_layer()


async def test_broker__nobody_listens__is_unusable(settings, closed_port):
    settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{closed_port}/0"
    with pytest.raises(BrokerError):
        await readiness.broker()


async def test_runtime__embedded_and_not_started__is_unusable(settings, monkeypatch):
    settings.EMBEDDED = True
    monkeypatch.setattr(wiring.runtime, "_loop", None)
    with pytest.raises(readiness.NotUsable):
        await readiness.runtime()
    settings.EMBEDDED = False
    await readiness.runtime()

"""The one world the tests share, and the databases they run on.

Tenant *acme* has Alice (tenant admin) and Bob (auditor); tenant *other* has Charlie (tenant admin).

Two runs (``scripts/test`` makes both): without DATABASE_URL on SQLite; and with
``AGENTOPS_SERVICES=1`` on PostgreSQL and Redis, where the test database is migrated as the tables'
owner and every test then connects as the application's role, so row-level security holds in all
of them.
"""

import functools
import inspect
import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import redis
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client, TransactionTestCase
from django.utils import translation
from pytest_django import DjangoDbBlocker

pytest_plugins = ["agentops.tests.live"]
ADMIN_URL = os.environ.get(
    "AGENTOPS_ADMIN_DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres"
)
SERVICES = os.environ.get("AGENTOPS_SERVICES") == "1"
# Migrations fill these; the application's role may not.
KEPT_TABLES = {"django_migrations", "django_content_type", "auth_permission"}


def pytest_configure(config: pytest.Config) -> None:
    # Argon2 is slow on purpose; the tests sign in hundreds of times.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Tool servers of tests live on this machine.
    settings.TOOL_ALLOW_PRIVATE = ["127.0.0.1"]
    if SERVICES and settings.EMBEDDED_DATABASE:
        raise pytest.UsageError("AGENTOPS_SERVICES=1 needs DATABASE_URL=postgres://…")
    if SERVICES and settings.EMBEDDED:
        raise pytest.UsageError("AGENTOPS_SERVICES=1 needs REDIS_URL=redis://…")


def pytest_sessionstart(session: pytest.Session) -> None:
    """A services run without its services fails; it does not skip."""
    if SERVICES:
        try:
            psycopg.connect(ADMIN_URL, connect_timeout=5).close()
            redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2).ping()
        except (psycopg.OperationalError, redis.RedisError) as error:
            pytest.exit(f"AGENTOPS_SERVICES=1, and a service does not answer: {error}", 3)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without the services, leave out the tests that are about them."""
    if SERVICES:
        return
    left_out = [item for item in items if item.get_closest_marker("services")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("services")]


# -- async tests with a rolled-back database ---------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item | pytest.Collector] | None:
    """Run an async test marked ``django_db`` through ``async_to_sync``.

    The ORM then stays on the test's own thread and inside its transaction; on another thread the
    rows would be committed and stay. A test with ``transaction=True`` needs none of this.
    """
    if not inspect.iscoroutinefunction(obj) or not collector.funcnamefilter(name):
        return None
    if not _rolled_back(collector, obj):
        return None

    @functools.wraps(obj)
    def sync(*args: Any, **kwargs: Any) -> Any:
        return async_to_sync(obj)(*args, **kwargs)

    del sync.__wrapped__
    sync.__signature__ = inspect.signature(obj)  # type: ignore[attr-defined]
    setattr(collector.obj, name, sync)
    return list(collector._genfunctions(name, sync))


def _rolled_back(collector: pytest.Module | pytest.Class, obj: object) -> bool:
    marks = [mark for mark in getattr(obj, "pytestmark", []) if mark.name == "django_db"]
    inherited = collector.get_closest_marker("django_db")
    mark = marks[-1] if marks else inherited
    return mark is not None and not mark.kwargs.get("transaction", False)


# -- databases ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest,
    django_test_environment: None,
    django_db_blocker: DjangoDbBlocker,
    django_db_modify_db_settings: None,
) -> Iterator[None]:
    """Make the test database: SQLite as Django does, PostgreSQL with the two roles."""
    make = _sqlite if settings.EMBEDDED_DATABASE else _postgresql
    with django_db_blocker.unblock():
        database = make()
        next(database)
    yield
    with django_db_blocker.unblock():
        next(database, None)


def _sqlite() -> Iterator[None]:
    from django.test.utils import setup_databases, teardown_databases

    made = setup_databases(verbosity=0, interactive=False, serialized_aliases=set())
    yield
    teardown_databases(made, verbosity=0)


def _postgresql() -> Iterator[None]:
    from apps.tenants import database_roles
    from apps.tenants.row_security import APP_ROLE, OWNER_ROLE

    name = connection.settings_dict["TEST"]["NAME"]
    passwords = {
        "owner_password": os.environ.get("AGENTOPS_OWNER_PASSWORD", ""),
        "app_password": os.environ.get("AGENTOPS_APP_PASSWORD", ""),
    }
    database_roles.drop_database(ADMIN_URL, database=name)
    database_roles.ensure(ADMIN_URL, database=name, **passwords)
    _connect_as(name, OWNER_ROLE, passwords["owner_password"])
    call_command("migrate", verbosity=0, interactive=False)
    _connect_as(name, APP_ROLE, passwords["app_password"])
    TransactionTestCase._fixture_teardown = _empty  # type: ignore[attr-defined]
    yield
    _connect_as(name, APP_ROLE, passwords["app_password"])
    database_roles.drop_database(ADMIN_URL, database=name)


def _connect_as(name: str, role: str, password: str) -> None:
    """Point Django's connection at database ``name`` as ``role``; what was open is closed."""
    connections.close_all()
    connection.close_pool()  # type: ignore[attr-defined]
    for entry in (connection.settings_dict, settings.DATABASES["default"]):
        entry.update(NAME=name, USER=role, PASSWORD=password or entry["PASSWORD"])


def owner_connection() -> psycopg.Connection:
    """Return a superuser's connection to the test database: what the application may not do."""
    return psycopg.connect(ADMIN_URL, dbname=connection.settings_dict["NAME"], autocommit=True)


def _empty(case: TransactionTestCase) -> None:
    """Empty the tables after a test that committed, as somebody who may.

    DELETE without triggers: TRUNCATE of some thirty tables takes a second, this a few ms.
    """
    connections.close_all()
    with owner_connection() as owner:
        # A connection that a test left in a transaction is an error to see, not to wait for.
        owner.execute("SET lock_timeout = '20s'; SET session_replication_role = replica")
        found = owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in found if name not in KEPT_TABLES]
        owner.execute("; ".join(f'DELETE FROM "{name}"' for name in tables))


# -- the world ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """Two tenants, three people, and a key of each tenant holding every scope."""

    acme: Any
    other: Any
    alice: Any
    bob: Any
    charlie: Any
    acme_key: str
    other_key: str

    def bearer(self, key: str | None = None) -> dict[str, str]:
        """Return the test client's headers for ``key`` (acme's unless given)."""
        return {"HTTP_AUTHORIZATION": f"Bearer {key or self.acme_key}"}


@pytest.fixture
def world(db: None) -> World:
    """Make the world. No scope is open afterwards; see ``in_acme`` and ``in_other``."""
    from apps.tenants.models import Role, User
    from apps.tenants.scope import tenant_transaction
    from apps.tenants.services import membership_grant, tenant_create

    acme = tenant_create(slug="acme", name="Acme", actor="world")
    other = tenant_create(slug="other", name="Other", actor="world")
    people = {}
    for name, tenant, role in (
        ("alice", acme, Role.TENANT_ADMIN),
        ("bob", acme, Role.AUDITOR),
        ("charlie", other, Role.TENANT_ADMIN),
    ):
        people[name] = User.objects.create_user(name, f"{name}@example.com", f"{name} knows")
        with tenant_transaction(tenant):
            membership_grant(user=people[name], role=role, actor="world")
    return World(
        acme=acme,
        other=other,
        acme_key=_key_of(acme),
        other_key=_key_of(other),
        **people,
    )


def _key_of(tenant: Any) -> str:
    from apps.tenants.roles import KEY_SCOPES
    from apps.tenants.scope import tenant_transaction
    from apps.tenants.services import api_key_issue

    with tenant_transaction(tenant):
        _key, text = api_key_issue(
            name="every scope",
            scopes=KEY_SCOPES,
            environment=settings.DEFAULT_ENVIRONMENT,
            expires_at=None,
            actor="world",
        )
    return text


@pytest.fixture
def in_acme(world: World) -> Iterator[World]:
    """Run the test inside acme's scope and transaction."""
    from apps.tenants.scope import tenant_transaction

    with tenant_transaction(world.acme):
        yield world


@pytest.fixture
def in_other(world: World) -> Iterator[World]:
    """Run the test inside the other tenant's scope and transaction."""
    from apps.tenants.scope import tenant_transaction

    with tenant_transaction(world.other):
        yield world


@pytest.fixture
def issue_key(world: World) -> Callable[..., str]:
    """Return a function that issues a key: ``issue_key("message:write", tenant=world.other)``."""
    from apps.tenants.scope import tenant_transaction
    from apps.tenants.services import api_key_issue

    def issue(*scopes: str, tenant: Any = None, **fields: Any) -> str:
        given: dict[str, Any] = {
            "name": "test",
            "environment": settings.DEFAULT_ENVIRONMENT,
            "expires_at": None,
            "actor": "test",
            **fields,
        }
        with tenant_transaction(tenant or world.acme):
            return api_key_issue(scopes=scopes, **given)[1]

    return issue


@pytest.fixture
def as_alice(world: World) -> Client:
    """A browser in which Alice is signed in."""
    return _signed_in(world.alice)


@pytest.fixture
def as_bob(world: World) -> Client:
    """A browser in which Bob is signed in."""
    return _signed_in(world.bob)


@pytest.fixture
def as_charlie(world: World) -> Client:
    """A browser in which Charlie, of the other tenant, is signed in."""
    return _signed_in(world.charlie)


def _signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def _no_scope_left() -> Generator[None]:
    """A test that leaves a tenant's scope open would make the next one pass."""
    from django_scopes.state import get_scope

    yield
    assert not get_scope(), f"a tenant scope was left open: {get_scope()}"


@pytest.fixture(autouse=True)
def _setting_up(request: pytest.FixtureRequest) -> Generator[None]:
    """Tests make their worlds directly; those marked ``governed`` may not, as in production."""
    from apps.releases.authority import setting_up

    if request.node.get_closest_marker("governed"):
        yield
        return
    with setting_up("a test's world"):
        yield


@pytest.fixture(autouse=True)
def _english() -> None:
    """A request in Portuguese leaves its language to the thread, as Django does."""
    translation.activate(settings.LANGUAGE_CODE)


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Generator[None]:
    """A rolled-back database gives primary keys out again; what a process keeps by them must go."""
    from apps.releases.selectors import caches_clear

    caches_clear()
    yield
    caches_clear()

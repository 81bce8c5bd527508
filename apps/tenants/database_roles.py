"""Creates the database's two roles: the owner of the tables and the application's own.

Neither is a superuser nor bypasses row-level security; the application's owns nothing.
"""

from collections.abc import Iterator

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from apps.tenants.row_security import APP_ROLE, OWNER_ROLE

_ATTRIBUTES = "NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION LOGIN"


class Unreachable(RuntimeError):
    """The server did not answer, or refused the administrator."""


def ensure(
    admin_url: str, *, database: str, owner_password: str = "", app_password: str = ""
) -> list[str]:
    """Create or correct both roles and create ``database`` (when empty: the one that ``admin_url``
    names); return what was done, line by line.

    An empty password leaves the role's password as it is. Raises ``Unreachable``.
    """
    try:
        database = database or str(conninfo_to_dict(admin_url).get("dbname", "postgres"))
        with psycopg.connect(admin_url, autocommit=True) as admin:
            lines = [
                _role(admin, OWNER_ROLE, owner_password),
                _role(admin, APP_ROLE, app_password),
                _database(admin, database),
            ]
        with psycopg.connect(admin_url, dbname=database, autocommit=True) as admin:
            for statement in _database_rights(database):
                admin.execute(statement)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise Unreachable(str(error).strip()) from error
    return lines


def drop_database(admin_url: str, *, database: str) -> None:
    """Drop ``database``, whoever is still connected to it."""
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database))
        )


def _role(admin: psycopg.Connection, name: str, password: str) -> str:
    known = admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone()
    role = sql.Identifier(name)
    if known is None:
        try:
            admin.execute(sql.SQL("CREATE ROLE {}").format(role))
        except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            known = (1,)  # another process was faster
    # Every test process corrects the same rows; they queue instead of "tuple concurrently updated".
    with admin.transaction():
        admin.execute("SELECT pg_advisory_xact_lock(hashtext('agentops_roles'))")
        admin.execute(sql.SQL("ALTER ROLE {} " + _ATTRIBUTES).format(role))
        if password:
            admin.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(password)))
    return f"role {name}: {'kept' if known else 'created'}"


def _database(admin: psycopg.Connection, name: str) -> str:
    known = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
    database, owner = sql.Identifier(name), sql.Identifier(OWNER_ROLE)
    if known is None:
        # template0: a local template1 may hold tables, or another collation.
        admin.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} ENCODING 'UTF8' TEMPLATE template0").format(
                database, owner
            )
        )
        return f"database {name}: created"
    admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, owner))
    return f"database {name}: kept"


def _database_rights(name: str) -> Iterator[sql.SQL | sql.Composed]:
    database, owner, app = map(sql.Identifier, (name, OWNER_ROLE, APP_ROLE))
    yield sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database)
    yield sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, app)
    yield sql.SQL("ALTER SCHEMA public OWNER TO {}").format(owner)
    yield sql.SQL("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    yield sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(app)

"""The one builder of names that live outside the database: cache keys, groups, files, vectors."""

import hashlib
import string

from apps.tenants.scope import current_tenant_id

# Channels allows ASCII letters, digits, "-", "_" and "." in a group's name, under 100 of them.
_PLAIN = frozenset((string.ascii_letters + string.digits + "-").encode())
_LONGEST = 95


def scoped_key(*parts: str, tenant_id: int | None = None) -> str:
    """Return a name that only this tenant and these ``parts`` have.

    ``tenant_id`` is the current tenant's unless given; raises ``NoTenant`` without one. Different
    parts never give the same name: everything outside ``[A-Za-z0-9-]`` is escaped, and a name too
    long for a channels group is replaced by its sha256, marked by the two dots no other name has.
    """
    prefix = f"t{current_tenant_id() if tenant_id is None else tenant_id}"
    name = ".".join([prefix, *(_escape(part) for part in parts)])
    if len(name) <= _LONGEST:
        return name
    return f"{prefix}..{hashlib.sha256(name.encode()).hexdigest()}"


def _escape(part: str) -> str:
    encoded = part.encode("utf-8", "surrogatepass")
    # An empty part is a lone escape character: two dots in a row mark a hashed name.
    return "".join(chr(b) if b in _PLAIN else f"_{b:02X}" for b in encoded) or "_"

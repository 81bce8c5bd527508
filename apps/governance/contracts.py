"""Contracts by name and version (``gateway-request-v1``), and where each is in its life.

What this product itself speaks is built in (``settings.CONTRACTS``) and active until a tenant keeps a
row of the same name and version that says otherwise.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.governance.approval_models import ContractVersion
from apps.governance.governing import GovernanceRefused, governor_required
from apps.releases.services import configuration_locked
from apps.runtime.canonical import canonical_json
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append

Status = ContractVersion.Status
LIFE = (Status.ACTIVE, Status.DEPRECATED, Status.RETIRED)
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MAX_SCHEMA = 200_000


class InvalidContract(GovernanceRefused):
    """A contract cannot be saved. ``errors``: field → sentence."""

    code = "invalid_contract"

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__(" ".join(self.errors.values()))


@dataclass(frozen=True)
class ShownContract:
    """A contract as it holds in this tenant; ``pk`` is None for one that is only built in."""

    name: str
    version: int
    status: str
    schema: str = ""
    deprecated_on: date | None = None
    retired_on: date | None = None
    owner: str = ""
    pk: int | None = None

    def __str__(self) -> str:
        return f"{self.name}-v{self.version}"

    @property
    def status_label(self) -> str:
        return str(Status(self.status).label)


def contracts_shown() -> list[ShownContract]:
    """Return the tenant's contracts and the built-in ones, by name, newest version first."""
    rows = [
        ShownContract(
            name=row.name,
            version=row.version,
            status=row.status,
            schema=row.schema,
            deprecated_on=row.deprecated_on,
            retired_on=row.retired_on,
            owner=row.owner,
            pk=row.pk,
        )
        for row in ContractVersion.objects.all()
    ]
    kept = {(row.name, row.version) for row in rows}
    rows += [found for found in built_in() if (found.name, found.version) not in kept]
    return sorted(rows, key=lambda row: (row.name, -row.version))


def built_in() -> list[ShownContract]:
    """Return the contracts of ``settings.CONTRACTS``: "name-vN" → dotted name of a pydantic class."""
    found = []
    for label, schema in settings.CONTRACTS.items():
        name, _v, version = label.rpartition("-v")
        text = canonical_json(import_string(schema).model_json_schema())
        found.append(ShownContract(name, int(version), Status.ACTIVE, schema=text))
    return found


def contract_save(
    *,
    name: str,
    version: int,
    status: str,
    actor: str,
    schema: str = "",
    deprecated_on: date | None = None,
    retired_on: date | None = None,
    owner: str = "",
) -> ContractVersion:
    """Add the contract ``name``-v``version`` or change what is said of it.

    A contract's life goes forward only, and the schema of one that is there does not change: that
    is another version. Raises ``InvalidContract`` and what ``governor_required`` raises.
    """
    governor_required(actor)
    with tenant_transaction():
        configuration_locked()
        before = ContractVersion.objects.filter(name=name, version=version).first()
        known = before or next(
            (c for c in built_in() if (c.name, c.version) == (name, version)), None
        )
        schema = schema or (known.schema if known else "")
        _checked(name, version, status, schema, deprecated_on, retired_on, owner, known)
        row = before or ContractVersion(name=name, version=version)
        row.status, row.schema, row.owner = status, schema, owner
        row.deprecated_on, row.retired_on, row.updated_by = deprecated_on, retired_on, actor
        row.save()
        audit_append(
            actor=actor,
            action="contract.changed",
            entity=f"contract:{row}",
            detail={"status": status, "owner": owner, "before": known.status if known else ""},
        )
    return row


def _checked(
    name: str,
    version: int,
    status: str,
    schema: str,
    deprecated_on: date | None,
    retired_on: date | None,
    owner: str,
    known: Any,
) -> None:
    errors: dict[str, str] = {}
    if not _NAME.fullmatch(name) or len(name) > 80:
        errors["name"] = _("Use small letters, digits and hyphens, e.g. gateway-request.")
    if not 1 <= version <= 9_999:
        errors["version"] = _("Give a whole number from 1 on.")
    if len(owner) > 200:
        errors["owner"] = _("At most %(limit)s characters.") % {"limit": 200}
    errors |= _schema_errors(schema, known) | _life_errors(status, deprecated_on, retired_on, known)
    if errors:
        raise InvalidContract(errors)


def _schema_errors(schema: str, known: Any) -> dict[str, str]:
    if known and known.schema and schema != known.schema:
        return {"schema": _("A contract that is there does not change: add the next version.")}
    if len(schema) > MAX_SCHEMA:
        return {"schema": _("At most %(limit)s characters.") % {"limit": MAX_SCHEMA}}
    try:
        is_object = isinstance(json.loads(schema), dict) if schema else True
    except (ValueError, RecursionError):
        is_object = False
    return {} if is_object else {"schema": _("Give a JSON schema, which is a JSON object.")}


def _life_errors(
    status: str, deprecated_on: date | None, retired_on: date | None, known: Any
) -> dict[str, str]:
    if status not in LIFE:
        return {"status": _("Use one of %(known)s.") % {"known": ", ".join(LIFE)}}
    errors = {}
    if known and LIFE.index(status) < LIFE.index(known.status):
        errors["status"] = _("A contract does not come back to life: add the next version.")
    if status == Status.DEPRECATED and deprecated_on is None:
        errors["deprecated_on"] = _("Give the day from which it is deprecated.")
    if status == Status.RETIRED and retired_on is None:
        errors["retired_on"] = _("Give the day on which it was retired.")
    if deprecated_on and retired_on and retired_on < deprecated_on:
        errors["retired_on"] = _("It cannot be retired before it is deprecated.")
    return errors

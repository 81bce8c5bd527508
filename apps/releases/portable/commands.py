"""What ``config_plan``, ``config_apply`` and ``config_import`` share: who, which files, which tenant."""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from apps.releases.api.refusals import refusal_of
from apps.releases.change_models import ChangeRequest
from apps.releases.portable.files import sources_read
from apps.releases.portable.native import Portable, native_parse
from apps.releases.portable.yaml_source import SourceRefused
from apps.tenants.models import Membership, Tenant
from apps.tenants.roles import permissions_of
from apps.tenants.scope import tenant_transaction

NOTHING, CHANGES, WAITING = 0, 2, 3
"""Exit codes beside 1, an error: nothing differs or it is done; something differs; who must approve
has not yet."""
TERMS = ("title", "reason", "environment", "bump", "declared_risk", "in_flight")


class FilesCommand(BaseCommand):
    """A command that compares files with a tenant."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, help="YAML files, folders or .zip files")
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument(
            "--replace", action="store_true", help="archive the items that the files do not name"
        )
        parser.add_argument(
            "--ref",
            default="",
            help="the name to find the open request by again, a branch (default: the file names)",
        )
        parser.add_argument(
            "--actor",
            default=f"command:{type(self).__module__.rpartition('.')[2]}",
            help="who writes: user:<name> of the commit's author, who then cannot approve it",
        )
        parser.add_argument("--title", help="title of the request")
        parser.add_argument("--reason", help="why the change is made")
        parser.add_argument(
            "--environment", choices=settings.RELEASE_ENVIRONMENTS, help="where it shall run"
        )
        parser.add_argument("--bump", choices=ChangeRequest.Bump.values, help="version step")
        parser.add_argument(
            "--risk",
            dest="declared_risk",
            choices=ChangeRequest.Risk.values,
            help="what the change is declared as (default: behaviour)",
        )
        parser.add_argument(
            "--in-flight",
            choices=ChangeRequest.InFlight.values,
            help="what becomes of open conversations",
        )


def tenant_named(slug: str) -> Tenant:
    """Return the tenant. Raises ``CommandError``."""
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        raise CommandError(f"There is no tenant {slug!r}.")
    return tenant


def actor_check(actor: str) -> None:
    """Raise ``CommandError`` unless ``actor`` is a command, or a member who may edit."""
    kind, _colon, name = actor.partition(":")
    if kind == "command" and name:
        return
    with tenant_transaction():
        held = Membership.objects.filter(user__username=name, user__is_active=True)
        roles = frozenset(held.values_list("role", flat=True))
    if kind != "user" or not roles:
        raise CommandError(
            f"--actor {actor[:100]}: give user:<name> of an active member, or command:<name>."
        )
    if "config.change" not in permissions_of(roles):
        raise CommandError(f"--actor {actor[:100]}: their role may not edit configuration.")


def portable_of(paths: Sequence[Path]) -> Portable:
    """Return what all files say together. Raises ``SourceRefused``."""
    return native_parse([source for path in paths for source in sources_read(path)])


def reference_of(options: Mapping[str, Any]) -> str:
    """Return the name the open request is found by."""
    names = ", ".join(path.name for path in options["files"])
    return str(options["ref"] or f"files: {names}")[:200]


def terms_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said of the request, by the names of ``request_open``."""
    return {name: options[name] for name in TERMS if options.get(name) is not None}


@contextmanager
def refusals_told() -> Iterator[None]:
    """Turn what a service refuses into the command's error, every wrong field on its line."""
    try:
        yield
    except SourceRefused as refused:
        raise CommandError(_("Nothing was written.") + f"\n{refused}") from None
    except Exception as error:
        told = refusal_of(error)
        if told is None:
            raise
        lines = [f"{wrong['field']}: {wrong['message']}" for wrong in told.errors]
        lines += [
            f"{found['level']} {found['kind']} {found['slug']} {found['path']}: {found['message']}"
            for found in told.extra.get("problems", [])
            if found["message"]
        ]
        raise CommandError("\n".join([told.detail or told.code, *lines])) from None


def leave(code: int) -> NoReturn:
    """End the command with ``code``."""
    raise SystemExit(code)

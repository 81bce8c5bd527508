"""``manage.py release_record TENANT RELEASE``: the signed record of a release."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.releases.evidence.record import record_sign, release_record
from apps.releases.freezing import CorruptRelease
from apps.releases.models import Release
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction

SHORTEST_SHA = 8


class Command(BaseCommand):
    help = "Write the signed record of a release: what it is, who approved it, where it ran."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the tenant's slug")
        parser.add_argument("release", help="the release's number, or the beginning of its sha256")
        parser.add_argument("path", nargs="?", default="-", help="a file, or - for the output")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.")
        with tenant_scope(tenant), tenant_transaction():
            release = _found(options["release"])
            if release is None:
                raise CommandError(f"{tenant.slug} has no release {options['release']!r}.")
            try:
                text = record_sign(release_record(release))
            except CorruptRelease as corrupt:
                raise CommandError(str(corrupt)) from None
        data = text.encode("utf-8", "surrogatepass")
        if options["path"] == "-":
            self.stdout.write(text, ending="")
            return
        try:
            Path(options["path"]).write_bytes(data)
        except OSError as error:
            raise CommandError(f"{options['path']}: {error.strerror or error}") from None
        self.stderr.write(f"release #{release.number} of {tenant.slug}: {options['path']}")


def _found(given: str) -> Release | None:
    releases = Release.objects.defer("manifest")
    found: Release | None = None
    if given.isascii() and given.isdigit() and len(given) < 10:
        found = releases.filter(number=int(given)).first()
    if found is None and len(given) >= SHORTEST_SHA:
        matching = list(releases.filter(sha256__startswith=given.lower())[:2])
        found = matching[0] if len(matching) == 1 else None
    return found

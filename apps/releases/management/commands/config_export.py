"""``manage.py config_export TENANT [PATH]``: a whole tenant as YAML."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.releases.portable.files import files_write
from apps.releases.portable.native import native_files, native_text
from apps.releases.portable.transfer import tenant_export
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope


class Command(BaseCommand):
    help = "Export a tenant's configuration as YAML: one file, a folder, or a .zip."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the tenant's slug")
        parser.add_argument(
            "path",
            nargs="?",
            default="-",
            help="a file, a folder (existing, or ending in /), a .zip, or - for the output",
        )
        parser.add_argument(
            "--binding-values",
            action="store_true",
            help="add the addresses and credential names of every environment",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.")
        with tenant_scope(tenant):
            portable = tenant_export(binding_values=options["binding_values"])
        given = options["path"]
        path = Path(given)
        if given == "-":
            self.stdout.write(native_text(portable), ending="")
            return
        try:
            if given.endswith("/") or path.is_dir() or path.suffix == ".zip":
                files_write(path, native_files(portable))
            else:
                path.write_text(native_text(portable), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{given}: {error.strerror or error}") from None
        self.stderr.write(f"{len(portable.items)} items of {tenant.slug} written to {given}")

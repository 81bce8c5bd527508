"""``manage.py verify_record FILE``: is this release record exactly what was signed?"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.releases.evidence.record import RecordRefused, record_trail_holds, record_verify
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction


class Command(BaseCommand):
    help = (
        "Verify a release's record: its signature, its manifest's sha256. Exits 1 unless genuine."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--public-key",
            action="append",
            help="whose signature counts, in base64; without it, this installation's own",
        )
        parser.add_argument(
            "--trail",
            action="store_true",
            help="check too that the tenant's audit trail here still holds what it held then",
        )
        parser.add_argument("--manifest", action="store_true", help="print the manifest inside")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            record = record_verify(path.read_bytes(), public_keys=options["public_key"])
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror or error}") from None
        except RecordRefused as refused:
            raise CommandError(f"{path}: NOT GENUINE. {refused}") from None
        if options["manifest"]:
            self.stdout.write(record["manifest"], ending="")
            return
        if options["trail"]:
            _trail_checked(path, record)
        release, approvals = record["release"], _approvals(record)
        self.stdout.write(
            f"{path}: genuine. Release #{release['number']} of {record['tenant']}, "
            f"sha256 {release['sha256']}, published by {release['published_by']} "
            f"at {release['published_at']}; {approvals}."
        )


def _trail_checked(path: Path, record: dict[str, Any]) -> None:
    tenant = Tenant.objects.filter(slug=record["tenant"]).first()
    if tenant is None:
        raise CommandError(f"{path}: there is no tenant {record['tenant']!r} here.")
    with tenant_scope(tenant), tenant_transaction():
        if not record_trail_holds(record):
            raise CommandError(
                f"{path}: the record is genuine, but the audit trail of {tenant.slug} no longer has "
                f"entry {record['audit_trail']['sequence']} as it was then."
            )


def _approvals(record: dict[str, Any]) -> str:
    people = sorted(
        {
            f"{approval['person']} ({', '.join(map(str, approval['duties']))})"
            for request in record["requests"]
            for approval in request["approvals"]
            if approval["decision"] in ("approve", "ratify") and approval["is_of_this_manifest"]
        }
    )
    return f"approved by {', '.join(people)}" if people else "no approvals"

"""``manage.py verify_record FILE``: is this release record exactly what was signed?"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.releases.record import RecordRefused, record_verify


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
        release, approvals = record["release"], _approvals(record)
        self.stdout.write(
            f"{path}: genuine. Release #{release['number']} of {record['tenant']}, "
            f"sha256 {release['sha256']}, published by {release['published_by']} "
            f"at {release['published_at']}; {approvals}."
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

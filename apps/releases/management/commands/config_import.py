"""``manage.py config_import PATH --tenant SLUG``: YAML into a change request, all or nothing."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.releases.portable.commands import actor_check, tenant_named
from apps.releases.portable.files import SUFFIXES, sources_read
from apps.releases.portable.native import FORMAT, Portable, native_parse
from apps.releases.portable.proposing import Proposed, request_of_files, terms_of_import
from apps.releases.portable.report import Report, problems_json
from apps.releases.portable.seed.importer import seed_read
from apps.releases.portable.yaml_source import SourceRefused
from apps.tenants.scope import tenant_scope


class Command(BaseCommand):
    help = (
        "Import a tenant's configuration: this product's YAML (a file, a folder, a .zip) or a folder "
        "of agents.yaml, routing.yaml, tools.yaml and the like. It becomes a draft of a change "
        "request; nothing that was accepted is changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        parser.add_argument("--dry-run", action="store_true", help="say what would happen")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument(
            "--replace", action="store_true", help="archive the items that the files do not name"
        )
        parser.add_argument("--actor", default="command:config_import", help="for the audit trail")
        parser.add_argument("--note", default="", help="note on the changes")
        for option, default, text in (
            ("--environment", "dev", "mcp_servers.yaml and llm_profiles.yaml"),
            ("--docker-environment", "production", "mcp_servers.docker.yaml"),
        ):
            parser.add_argument(
                option,
                default=default,
                choices=settings.RELEASE_ENVIRONMENTS,
                help=f"where the addresses of {text} are bound (default {default})",
            )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        try:
            portable, report = self._read(options)
            with tenant_scope(tenant):
                actor_check(options["actor"])
                done = request_of_files(
                    portable=portable,
                    actor=options["actor"],
                    terms=terms_of_import(options["path"].name, options["note"]),
                    note=options["note"],
                    replace=options["replace"],
                    dry_run=options["dry_run"],
                )
        except SourceRefused as refused:
            if options["json"]:
                self.stdout.write(json.dumps({"problems": problems_json(refused.problems)}))
            raise CommandError(f"Nothing was imported.\n{refused}") from None
        self._tell(portable, report, done, options)

    def _read(self, options: dict[str, Any]) -> tuple[Portable, Report]:
        path: Path = options["path"]
        if path.is_dir() and not _holds_native(path):
            return seed_read(
                path,
                environment=options["environment"],
                docker_environment=options["docker_environment"],
            )
        return native_parse(sources_read(path)), Report()

    def _tell(
        self, portable: Portable, report: Report, done: Proposed, options: dict[str, Any]
    ) -> None:
        counts = done.counts()
        if options["json"]:
            document = {
                "dry_run": options["dry_run"],
                "counts": counts,
                "items": [
                    {"kind": kind, "slug": slug, "change": change}
                    for (kind, slug), change in sorted(done.changes.items())
                ],
                "bindings": [
                    {"environment": b.environment, "what": b.what, "name": b.name}
                    for b in portable.bindings
                ],
                "report": report.as_json(),
                "dangling": done.dangling(),
                "request": done.request.number if done.request and not options["dry_run"] else None,
            }
            self.stdout.write(json.dumps(document, ensure_ascii=False, indent=2))
            return
        if report.lines:
            self.stdout.write(report.as_table())
            told = ", ".join(f"{count} {name}" for name, count in report.counts().items())
            self.stdout.write(f"\n{told}")
        for line in done.dangling():
            self.stdout.write(f"not there: {line} (publishing refuses it)")
        would = "would be " if options["dry_run"] else ""
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        self.stdout.write(
            f"{options['tenant']}: items {would}{told}; {done.bound} bindings {would}set or proposed. "
            + _end(done, dry_run=options["dry_run"])
        )


def _end(done: Proposed, *, dry_run: bool) -> str:
    if dry_run:
        return "Nothing was written."
    if done.request is None:
        return "Nothing to change."
    return f"Drafted as request #{done.request.number}: submit it for review."


def _holds_native(path: Path) -> bool:
    """Return whether a folder holds this product's files rather than foreign ones."""
    found = [entry for suffix in SUFFIXES for entry in path.glob(f"*{suffix}")]
    return any(FORMAT.encode() in entry.read_bytes() for entry in found if entry.is_file())

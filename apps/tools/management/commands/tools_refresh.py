"""``manage.py tools_refresh --tenant SLUG``: ask tool servers what they offer now.

What differs from what was accepted becomes a draft change request; nothing that runs is changed.
Exit code 1 when a server could not be asked.
"""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.releases.portable.commands import actor_check, tenant_named
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tools.contracts.refreshing import server_refresh
from apps.tools.contracts.selectors import UnknownServer, servers_list
from apps.tools.contracts.services import SYSTEM, Refreshed


class Command(BaseCommand):
    help = "Ask tool servers for their tools; what differs from what was accepted becomes a draft."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        parser.add_argument(
            "--server", default="", help="one server (default: all that have an address)"
        )
        parser.add_argument(
            "--environment",
            choices=settings.RELEASE_ENVIRONMENTS,
            default=settings.DEFAULT_ENVIRONMENT,
        )
        parser.add_argument("--actor", default=SYSTEM, help="whose draft it becomes")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        with tenant_scope(tenant_named(options["tenant"])):
            actor_check(options["actor"])
            names = [options["server"]] if options["server"] else _bound(options["environment"])
            done = [self._refresh(name, options) for name in names]
        if options["json"]:
            self.stdout.write(json.dumps([asdict(found) for found in done], ensure_ascii=False))
        if any(found.state != "listed" for found in done):
            raise CommandError("Not every server could be asked.")

    def _refresh(self, server: str, options: dict[str, Any]) -> Refreshed:
        try:
            done = server_refresh(
                server=server, environment=options["environment"], actor=options["actor"]
            )
        except UnknownServer:
            raise CommandError(f"There is no tool server {server!r}.") from None
        if not options["json"]:
            self.stdout.write("\n".join(_lines(done)))
        return done


def _bound(environment: str) -> list[str]:
    with tenant_transaction():
        return [found.server for found in servers_list(environment) if found.is_bound]


def _lines(done: Refreshed) -> list[str]:
    where = f"{done.server} {done.environment}"
    if done.state != "listed":
        return [f"{where}: {done.state}: {done.error}"]
    lines = [f"{where}: {done.count} tools in {done.milliseconds} ms"]
    for word, names in (
        ("new", done.added),
        ("drifted", done.drifted),
        ("gone", done.gone),
        ("as accepted again", done.released),
    ):
        if names:
            lines.append(f"  {word}: {', '.join(names)}")
    if done.request is not None:
        lines.append(f"  proposed in change request #{done.request}")
    return lines

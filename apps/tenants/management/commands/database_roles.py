"""``manage.py database_roles``: makes the two PostgreSQL roles and the database they share."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from apps.tenants import database_roles


class Command(BaseCommand):
    help = "Create the roles agentops_owner and agentops_app and the database. Repeatable."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--admin-url", required=True, help="a superuser's postgres:// address")
        parser.add_argument("--database", default="", help="its name; else the address's own")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = database_roles.ensure(
                options["admin_url"],
                database=options["database"],
                owner_password=os.environ.get("AGENTOPS_OWNER_PASSWORD", ""),
                app_password=os.environ.get("AGENTOPS_APP_PASSWORD", ""),
            )
        except database_roles.Unreachable as error:
            raise CommandError(_("PostgreSQL cannot be reached: %s") % error) from error
        for line in done:
            self.stdout.write(line)

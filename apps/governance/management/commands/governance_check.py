"""``manage.py governance_check``: what is wrong with a tenant's own rules of approval."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from apps.governance.responsibility_selectors import governance_problems
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction


class Command(BaseCommand):
    help = "List what is wrong with who must approve what in every tenant; exit 1 with findings."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", help="only this one, by its slug")

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = Tenant.objects.order_by("slug")
        if options["tenant"]:
            tenants = tenants.filter(slug=options["tenant"])
            if not tenants.exists():
                raise CommandError(_("There is no tenant %s.") % options["tenant"])
        count = 0
        for tenant in tenants:
            with tenant_transaction(tenant):
                found = governance_problems()
            count += len(found)
            for problem in found:
                self.stdout.write(f"{tenant.slug}: {problem.code}: {problem.message}")
            if not found:
                self.stdout.write(_("%s: nothing is wrong") % tenant.slug)
        if count:
            raise CommandError(_("%d problem(s) with rules of approval.") % count, returncode=1)

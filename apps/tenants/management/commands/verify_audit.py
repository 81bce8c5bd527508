"""``manage.py verify_audit``: walks the audit trail and says where it first breaks."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from apps.tenants.audit import trail_verify
from apps.tenants.models import Tenant


class Command(BaseCommand):
    help = "Verify the hash chain of every tenant's audit trail; exit 1 when one is broken."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", help="only this one, by its slug")

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = Tenant.objects.order_by("slug")
        if options["tenant"]:
            tenants = tenants.filter(slug=options["tenant"])
            if not tenants.exists():
                raise CommandError(_("There is no tenant %s.") % options["tenant"])
        broken = 0
        for tenant in tenants:
            state = trail_verify(tenant)
            if state.broken_at:
                broken += 1
                line = _(
                    "%(tenant)s: broken at entry %(at)d: %(reason)s (%(count)d before it hold)"
                )
            else:
                line = _("%(tenant)s: %(count)d entries, unbroken")
            self.stdout.write(
                line
                % {
                    "tenant": state.tenant,
                    "count": state.entries,
                    "at": state.broken_at,
                    "reason": state.reason,
                }
            )
        if broken:
            raise CommandError(_("%d audit trail(s) broken.") % broken, returncode=1)

"""``manage.py demo_load``: the demo tenants, people and keys. Idempotent."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agentops import demo_data
from apps.tenants.models import Tenant


class Command(BaseCommand):
    help = "Load the demo tenants, people and keys. What somebody edited since stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--telecom-url", default="http://127.0.0.1:8100/mcp")
        parser.add_argument("--retail-url", default="http://127.0.0.1:8200/mcp")
        parser.add_argument("--password", default="demo", help="of the people that are created")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError(
                "demo_load creates people with a known password and a tenant that answers without "
                "a key; it needs DEMO=1."
            )
        addresses = {"telecom_mcp": options["telecom_url"], "retail_mcp": options["retail_url"]}
        for slug in demo_data.TENANTS:
            said = demo_data.tenant_load(slug, addresses)
            self.stdout.write(f"    tenant {slug}: {'; '.join(said) or 'no changes'}")
        tenant = Tenant.objects.get(slug="default")
        if people := demo_data.people_load(tenant, options["password"]):
            self.stdout.write(f"    people: {', '.join(people)}")
        for name, text in demo_data.keys_load(tenant):
            self.stdout.write(f"    key '{name}', shown only now: {text}")

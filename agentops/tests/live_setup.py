"""Run as a module in a process of its own: migrates, or loads the demo tenants and prints keys.

python -m agentops.tests.live_setup migrate
python -m agentops.tests.live_setup load TELECOM_URL RETAIL_URL     (the last line is JSON)
"""

import json
import os
import sys
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps.tenants.models import ApiKey, Tenant  # noqa: E402
from apps.tenants.roles import KEY_SCOPES  # noqa: E402
from apps.tenants.scope import tenant_transaction  # noqa: E402
from apps.tenants.services import api_key_issue, tenant_create  # noqa: E402

KEYS = {
    "full": ("default", KEY_SCOPES),
    "channel": ("default", ("message:write", "session:read", "identity:assert")),
    "plain": ("default", ("message:write", "session:read")),
    "writer": ("default", ("message:write",)),
    "reader": ("default", ("session:read",)),
    "debugger": ("default", ("debug",)),
    "expired": ("default", KEY_SCOPES),
    "loja": ("loja", KEY_SCOPES),
    "empty": ("empty", KEY_SCOPES),
}


def load(telecom: str, retail: str) -> dict[str, str]:
    """Load the demo tenants and return the text of every key of ``KEYS``."""
    call_command("demo_load", telecom_url=telecom, retail_url=retail, password="demo")  # noqa: S106
    tenant_create(slug="empty", name="Nothing deployed", actor="test")
    return {name: _key(name, *what) for name, what in KEYS.items()}


def _key(name: str, slug: str, scopes: tuple[str, ...]) -> str:
    with tenant_transaction(Tenant.objects.get(slug=slug)):
        key, text = api_key_issue(
            name=name, scopes=scopes, environment="production", expires_at=None, actor="test"
        )
        if name == "expired":
            ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(days=1))
    return text


if __name__ == "__main__":
    if sys.argv[1] == "migrate":
        call_command("migrate", verbosity=0, interactive=False)
    else:
        print(json.dumps(load(*sys.argv[2:4])))

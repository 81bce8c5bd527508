"""Run as a module in a process of its own: migrates, or loads the demo tenants and prints keys.

python -m agentops.tests.live_setup migrate
python -m agentops.tests.live_setup load TELECOM_URL RETAIL_URL     (the last line is JSON)
"""

import json
import os
import sys
from datetime import timedelta
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps.releases.authority import setting_up  # noqa: E402
from apps.releases.environments.services import release_deploy  # noqa: E402
from apps.releases.services import item_save, release_publish  # noqa: E402
from apps.tenants.models import ApiKey, Tenant  # noqa: E402
from apps.tenants.roles import KEY_SCOPES  # noqa: E402
from apps.tenants.scope import tenant_transaction  # noqa: E402
from apps.tenants.services import api_key_issue, tenant_create  # noqa: E402

# A long answer with accents and emoji, without anything a judge could ask evidence for.
CHATTER = (
    "Olá! Coração, maçã, ação e órgãos: “tudo” em ordem… 🎉 Ñandú, ß, Ωmega, 日本語. "
    "Família 👩‍👩‍👧‍👦, bandeira 🇧🇷, polegar 👍🏽 e café ☕️. "
) * 14
# The tenant `papo`: agents that say CHATTER, at once or after a while.
DELAYS = {"falador": 0, "lento": 1200}

TOOLS = ("tool:read", "tool:invoke", "tool:confirm", "identity:assert")
# Name → tenant, scopes, and the agent it is bound to.
KEYS: dict[str, tuple[str, tuple[str, ...]] | tuple[str, tuple[str, ...], str]] = {
    "full": ("default", KEY_SCOPES),
    "channel": ("default", ("message:write", "session:read", "identity:assert")),
    "plain": ("default", ("message:write", "session:read")),
    "writer": ("default", ("message:write",)),
    "reader": ("default", ("session:read",)),
    "debugger": ("default", ("debug",)),
    "expired": ("default", KEY_SCOPES),
    "loja": ("loja", KEY_SCOPES),
    "revoked": ("default", KEY_SCOPES),
    "papo": ("papo", KEY_SCOPES),
    "empty": ("empty", KEY_SCOPES),
    "support": ("default", TOOLS, "support_agent"),
    "orders": ("default", TOOLS, "orders_agent"),
    "loja_support": ("loja", TOOLS, "support_agent"),
}


def load(telecom: str, retail: str) -> dict[str, str]:
    """Load the demo tenants and return the text of every key of ``KEYS``."""
    call_command("demo_load", telecom_url=telecom, retail_url=retail, password="demo")
    tenant_create(slug="empty", name="Nothing deployed", actor="test")
    _chatting()
    return {name: _key(name, *what) for name, what in KEYS.items()}


def _chatting() -> None:
    tenant = tenant_create(slug="papo", name="Papo", actor="test")
    items: list[tuple[str, str, dict[str, Any]]] = [
        ("prompt", "livre", {"system": "Converse.", "require_evidence": False}),
        ("model_profile", "default", {"provider": "scripted", "prices": {"input": 1}}),
        ("routing_policy", "default", {"default_agent": "falador"}),
        *((kind, "default", {}) for kind in ("rail_policy", "judge_policy", "memory_policy")),
    ]
    for slug, delay in DELAYS.items():
        profile = {"provider": "scripted", "script": [CHATTER], "delay_ms": delay}
        items.append(("model_profile", slug, profile))
        items.append(("agent", slug, {"prompt": "livre", "model_profile": slug}))
    with tenant_transaction(tenant), setting_up("a test's world"):
        for kind, slug, content in items:
            item_save(kind=kind, slug=slug, content=content, actor="test")
        release = release_publish(actor="test")
        for environment in ("dev", "staging", "production"):
            release_deploy(release=release, environment=environment, actor="test")


def _key(name: str, slug: str, scopes: tuple[str, ...], agent: str = "") -> str:
    with tenant_transaction(Tenant.objects.get(slug=slug)):
        key, text = api_key_issue(
            name=name, scopes=scopes, environment="production", expires_at=None, actor="test",
            agent=agent,
        )  # fmt: skip
        if name == "expired":
            ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(days=1))
    return text


if __name__ == "__main__":
    if sys.argv[1] == "migrate":
        call_command("migrate", verbosity=0, interactive=False)
    else:
        print(json.dumps(load(*sys.argv[2:4])))

"""A process that runs the webhook chore once, as a worker would; prints how many it posted."""

import os
import sys
from unittest.mock import patch


def environment_of() -> dict[str, str]:
    """Return the variables that point a process at the test's own database."""
    from django.db import connection

    found = connection.settings_dict
    login = f"{found['USER']}:{found['PASSWORD']}@{found['HOST']}:{found['PORT'] or 5432}"
    return {
        "DATABASE_URL": f"postgres://{login}/{found['NAME']}",
        "WEBHOOK_ALLOW_PRIVATE": "127.0.0.1",
        "AGENTOPS_SECRET__ACME__HOOK": "acme signs",
    }


def main() -> None:
    """Count the posts while the real ones are made."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
    import django

    django.setup()
    from django.conf import settings

    from apps.governance.posting import post_signed
    from apps.tenants.chores import chores_run

    posted = 0

    def counting(*args: object, **more: object) -> int:
        nonlocal posted
        posted += 1
        return post_signed(*args, **more)  # type: ignore[arg-type]

    settings.TENANT_CHORES = ["apps.governance.webhooks.webhooks_send"]
    with patch("apps.governance.webhooks.post_signed", counting):
        chores_run()
    sys.stdout.write(f"posted {posted}\n")


if __name__ == "__main__":
    main()

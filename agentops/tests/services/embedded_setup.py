"""Makes the shop in a fresh embedded database and prints its key.

``python -m agentops.tests.services.embedded_setup TELECOM_URL RETAIL_URL MODEL_MS``
"""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")


def main() -> None:
    django.setup()
    from django.core.management import call_command

    from agentops.tests.services.tenant import shop_make

    telecom, retail, model_ms = sys.argv[1:]
    call_command("migrate", interactive=False, verbosity=0)
    print(shop_make(telecom=telecom, retail=retail, model_ms=int(model_ms)).key)


if __name__ == "__main__":
    main()

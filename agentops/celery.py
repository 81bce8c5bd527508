"""The Celery application. Workers run turns on one long-lived event loop per process."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")

app = Celery("agentops")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def runtime_import(**signal: Any) -> None:
    """Import what runs turns while the worker starts, or the first turn would wait for it.

    Only imports: a pool may fork from here, and loops and connections do not survive that.
    """
    from django.conf import settings
    from django.utils.module_loading import import_string

    import_string(settings.TURN_RUNTIME_BLOCKING)
    from agentops import wiring

    wiring.warm()

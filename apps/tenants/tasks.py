"""The clock's doorbell."""

from celery import shared_task

from apps.tenants.chores import chores_run


@shared_task(name="tenants.chores", ignore_result=True)
def chores() -> None:
    """Do what is due in every tenant; see ``chores``."""
    chores_run()

"""A task that does nothing: what a doorbell costs by itself."""

from celery import shared_task


@shared_task(name="bench.noop", ignore_result=True)
def noop(tenant_id: int, turn_id: str) -> None:
    """Do nothing."""

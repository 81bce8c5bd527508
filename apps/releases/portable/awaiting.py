"""Wait until people have decided on a request: for a command that CI runs."""

from argparse import ArgumentTypeError
from time import monotonic, sleep

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.states import IN_REVIEW
from apps.tenants.scope import release_connection, tenant_transaction

POLL_SECONDS = 2.0
LONGEST = 7 * 24 * 3600


def seconds_of(text: str) -> int:
    """Return how long to wait, as an option of a command. Raises ``ArgumentTypeError``."""
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= LONGEST and len(text) < 9):
        raise ArgumentTypeError(f"give whole seconds, 0 to {LONGEST}")
    return int(text)


def decision_awaited(request: ChangeRequest, *, seconds: float) -> ChangeRequest:
    """Look every two seconds whether ``request`` is still in review; return it as it is when it no
    longer is, or when the time is over. In a tenant's scope, outside a transaction: between two
    looks it holds no connection."""
    until = monotonic() + seconds
    while True:
        with tenant_transaction():
            request.refresh_from_db()
        left = until - monotonic()
        if request.status != IN_REVIEW or left <= 0:
            return request
        release_connection()
        sleep(min(POLL_SECONDS, left))

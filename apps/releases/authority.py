"""Who may move a head, publish, or point an environment elsewhere past a change request.

Everything live is changed by ``changes.services`` and ``environments.services``, which check approvals,
hops and windows. Below them stand functions that just do it; each begins with ``authority_required``.
``setting_up`` is the only other way to them: for the first configuration of a tenant, by an operator's
command. It is one name to look for, and what it does is in the audit trail like anything else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.utils.translation import gettext as _

_SETTING_UP = "setting up: "
_authority: ContextVar[str] = ContextVar("configuration_authority", default="")


class ChangeRequestRequired(RuntimeError):
    """What runs would be changed without a change request."""


@contextmanager
def setting_up(reason: str) -> Iterator[None]:
    """Let the block change heads, publish and deploy directly. ``reason``: for whom reads the code."""
    with authority(f"{_SETTING_UP}{reason}"):
        yield


@contextmanager
def authority(of: str) -> Iterator[None]:
    """Let the block do what a checked request or act (``of``) allows. For this app's services only."""
    token = _authority.set(of)
    try:
        yield
    finally:
        _authority.reset(token)


def authority_held() -> str:
    """Return what is under way that allows it, "" when nothing is."""
    return _authority.get()


def is_setting_up() -> bool:
    """Return whether the block is one of ``setting_up``, where windows and duties do not hold."""
    return _authority.get().startswith(_SETTING_UP)


def authority_required() -> None:
    """Raise ``ChangeRequestRequired`` unless a checked act or ``setting_up`` is under way."""
    if not _authority.get():
        raise ChangeRequestRequired(
            _("What runs changes only through a change request that was approved.")
        )

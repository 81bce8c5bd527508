"""Where a transport gets the token of a request from."""

import time
from collections.abc import Callable
from typing import Protocol

from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import RemoteTool, ToolUnavailable

PAUSE_SECONDS = 60.0


class TokenSource(Protocol):
    """Gives the bearer token for ``remote``.

    A transport asks before each request, so an answer from memory must be cheap. It passes the token
    a server answered 401 to as ``rejected``, at most once per call: the source then fetches another
    (once, however many calls ask at the same time) or raises.
    """

    async def token(self, remote: RemoteTool, *, rejected: str = "") -> str:
        """Return a token, "" for none. Raises ``ToolUnavailable(code="needs_sign_in", sent=False)``
        when somebody must sign in (again) first, and ``ToolUnavailable`` when the authorisation
        server cannot be reached."""
        ...


class BoundTokens:
    """The token is the bound credential itself; there is no other when it is rejected.

    A rejected one is not shown again for ``PAUSE_SECONDS``: a server that counts failures would lock
    the account.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rejected: dict[tuple[str, str], float] = {}

    async def token(self, remote: RemoteTool, *, rejected: str = "") -> str:
        """See ``TokenSource``."""
        now = self._clock()
        key = (remote.address, remote.credential)
        if rejected and rejected == remote.credential:
            self._rejected = {k: at for k, at in self._rejected.items() if at > now}
            self._rejected[key] = now + PAUSE_SECONDS
        if remote.auth != "bearer" or self._rejected.get(key, now) > now:
            raise needs_sign_in()
        return remote.credential


def needs_sign_in() -> ToolUnavailable:
    """Return the failure that tells the agent, and an admin, that a sign-in is missing."""
    text = _("The server wants a sign-in; until then its tools cannot be used.")
    return ToolUnavailable(text, sent=False, code="needs_sign_in")

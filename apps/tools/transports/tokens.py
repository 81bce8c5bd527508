"""Where a transport gets the token of a request from."""

from typing import Protocol

from apps.runtime.ports import RemoteTool, ToolUnavailable


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
    """The token is the bound credential itself; there is no other when it is rejected."""

    async def token(self, remote: RemoteTool, *, rejected: str = "") -> str:
        """See ``TokenSource``."""
        if remote.auth != "bearer" or (rejected and rejected == remote.credential):
            raise needs_sign_in()
        return remote.credential


def needs_sign_in() -> ToolUnavailable:
    """Return the failure that tells the agent, and an admin, that a sign-in is missing."""
    text = "The server wants a sign-in; until then its tools cannot be used."
    return ToolUnavailable(text, sent=False, code="needs_sign_in")

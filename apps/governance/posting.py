"""One signed POST to an address that a tenant chose. Knows neither Django's models nor tenants.

The address is resolved once and checked (``runtime.addresses``), and the connection goes to what was
checked. No redirect is followed. Signed as
Standard Webhooks say (standardwebhooks.com): headers ``webhook-id``, ``webhook-timestamp`` and
``webhook-signature: v1,<base64 of HMAC-SHA256 of "id.timestamp.body">``.
"""

import base64
import hashlib
import hmac
import http.client
import socket
import ssl
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from apps.runtime.addresses import AddressRefused, AllowList, addresses_check, host_check

SECONDS = 5.0
"""How long a name, a connection, or an answer may take, each."""


def address_parse(url: str, *, private: Collection[str]) -> SplitResult:
    """Return the parts of ``url``; raise ``AddressRefused`` unless it is https without credentials,
    and where it names an IP address, a public one. What a name leads to is asked when it is sent.

    ``private``: what an operator trusts although it is inside (see ``AllowList.of``); it may speak
    plain http.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, _port_of(parts)
    except ValueError:
        raise AddressRefused("not_an_address") from None
    if not host or parts.scheme not in ("https", "http"):
        raise AddressRefused("not_an_address")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise AddressRefused("credentials_in_address")
    allowed = AllowList.of(private)
    if parts.scheme == "http" and not allowed.names(host, port):
        raise AddressRefused("https_only")
    host_check(host, port, allowed)
    return parts


def signature(*, secret: str, identity: str, timestamp: int, body: bytes) -> str:
    """Return the value of ``webhook-signature``. ``whsec_…`` secrets are base64, others their bytes."""
    key = (
        base64.b64decode(secret.removeprefix("whsec_"))
        if secret.startswith("whsec_")
        else secret.encode()
    )
    signed = f"{identity}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def post_signed(
    url: str,
    *,
    secret: str,
    identity: str,
    timestamp: int,
    body: bytes,
    private: Collection[str] = (),
) -> int:
    """POST ``body`` and return the HTTP status.

    Raises ``AddressRefused``, and ``OSError`` or ``http.client.HTTPException`` when nobody answers.
    """
    parts = address_parse(url, private=private)
    host = parts.hostname or ""
    port = _port_of(parts)
    connection = _connection(parts.scheme, host, port, _resolve(host, port, private))
    headers = {
        "content-type": "application/json",
        "user-agent": "agentops-webhooks/1",
        "webhook-id": identity,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(
            secret=secret, identity=identity, timestamp=timestamp, body=body
        ),
    }
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def _resolve(host: str, port: int, private: Collection[str]) -> str:
    """Return one IP address of ``host``. Raises ``AddressRefused``."""
    found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    return addresses_check(host, port, found, AllowList.of(private))[0]


def _port_of(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _connection(scheme: str, host: str, port: int, address: str) -> http.client.HTTPConnection:
    """Return a connection that goes to ``address`` and asks for (and verifies) ``host``."""
    if scheme == "http":
        connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    else:
        connection = http.client.HTTPSConnection(
            host, port, timeout=SECONDS, context=ssl.create_default_context()
        )
    # What http.client itself calls to open its socket.
    connection._create_connection = lambda _address, *rest: socket.create_connection(  # type: ignore[attr-defined]
        (address, port), *rest
    )
    return connection

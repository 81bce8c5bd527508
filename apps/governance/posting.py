"""One signed POST to an address that a tenant chose. Knows neither Django's models nor tenants.

The address is resolved once and checked, and the connection goes to what was checked: a name that
answers differently the second time reaches nothing inside. No redirect is followed. Signed as
Standard Webhooks say (standardwebhooks.com): headers ``webhook-id``, ``webhook-timestamp`` and
``webhook-signature: v1,<base64 of HMAC-SHA256 of "id.timestamp.body">``.
"""

import base64
import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

SECONDS = 5.0
"""How long a name, a connection, or an answer may take, each."""


class AddressRefused(ValueError):
    """The address is not one that may be posted to. The text is a short code, never the address."""


def address_parse(url: str, *, private: Collection[str]) -> SplitResult:
    """Return the parts of ``url``; raise ``AddressRefused`` unless it is https without credentials,
    and where it names an IP address, a public one. What a name leads to is asked when it is sent.

    ``private``: host names an operator trusts although they are inside; they may speak plain http.
    """
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise AddressRefused("not_an_address") from None
    if not host or parts.scheme not in ("https", "http"):
        raise AddressRefused("not_an_address")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise AddressRefused("credentials_in_address")
    if parts.scheme == "http" and host not in private:
        raise AddressRefused("https_only")
    if host not in private and _is_inside(host):
        raise AddressRefused("private_address")
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
    port = parts.port or (443 if parts.scheme == "https" else 80)
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
    """Return one IP address of ``host``; refuse it when any of them is not on the public internet."""
    found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if host not in private and not all(_is_public(address) for address in found):
        raise AddressRefused("private_address")
    return found[0]


def _is_inside(host: str) -> bool:
    try:
        return not _is_public(host)
    except ValueError:  # A name.
        return False


def _is_public(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(parsed, "ipv4_mapped", None) or getattr(parsed, "sixtofour", None)
    if inner is not None:
        parsed = inner
    inside = parsed.is_multicast or parsed.is_reserved or getattr(parsed, "is_site_local", False)
    return parsed.is_global and not inside


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

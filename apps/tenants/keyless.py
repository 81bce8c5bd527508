"""Whether a request may do without a credential: only in the demo, only from this machine.

A web page of another site reaches a local server too, so besides the peer's address the Host
header (DNS rebinding), the Origin and Sec-Fetch-Site headers (cross-site calls) and any trace of
a proxy (whose peer address is not the caller's) are looked at.
"""

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORWARDING = ("HTTP_X_FORWARDED", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA", "HTTP_CF_", "HTTP_TRUE_CLIENT_IP",
    "HTTP_X_CLIENT_IP", "HTTP_X_CLUSTER_CLIENT_IP", "HTTP_FASTLY_CLIENT_IP",
)  # fmt: skip


def keyless_allowed(request: HttpRequest) -> bool:
    """Return whether ``request`` comes from this machine, directly, not on behalf of a foreign
    page, while the process runs as a demo (DEMO=1 and DEBUG off)."""
    return (
        settings.DEMO
        and not settings.DEBUG
        and _from_loopback(request)
        and _to_local_host(request)
        and not any(name.startswith(_FORWARDING) for name in request.META)
        and _same_origin(request)
    )


def _from_loopback(request: HttpRequest) -> bool:
    try:
        peer = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    mapped = peer.ipv4_mapped if isinstance(peer, ipaddress.IPv6Address) else None
    return (mapped or peer).is_loopback


def _to_local_host(request: HttpRequest) -> bool:
    host = request.META.get("HTTP_HOST", "")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return name.lower() in LOCAL_NAMES


def _same_origin(request: HttpRequest) -> bool:
    if request.META.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin"):
        return False
    origin = request.META.get("HTTP_ORIGIN")
    return origin is None or urlsplit(origin).netloc == request.META.get("HTTP_HOST")

"""Whether the process lives, whether it can work, and what it is. Open to everybody: no names of
tenants, no addresses, no versions of what is underneath."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.gateway.doors import door
from apps.gateway.problems import Problem

logger = logging.getLogger(__name__)
Check = Callable[[], Awaitable[None]]


@door("GET", "HEAD")
async def health(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The process answers. Asks nothing else, so a restart is no cure for a database that is down."""
    return JsonResponse(
        {
            "status": "ok",
            "service": "agentops",
            "version": settings.VERSION,
            "contract_version": settings.CONTRACT_VERSION,
            "channels": list(settings.GATEWAY_CHANNELS),
            "channel_input_mode": "external",
            "sse_enabled": True,
        }
    )


@door("GET", "HEAD")
async def ready(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """Everything a message needs is usable: 200, else 503 with the names of what is not."""
    names = list(settings.READY_CHECKS)
    outcomes = await asyncio.gather(*(_usable(name) for name in names))
    checks = {name: "ok" if ok else "unusable" for name, ok in zip(names, outcomes, strict=True)}
    failed = [name for name, ok in zip(names, outcomes, strict=True) if not ok]
    if not failed:
        return JsonResponse({"status": "ready", "checks": checks})
    raise Problem(
        503,
        "NOT_READY",
        _("Not usable: %(names)s.") % {"names": ", ".join(failed)},
        errors=[{"field": name, "message": _("is not usable")} for name in failed],
        headers={"Retry-After": "5"},
        extra={"checks": checks},
    )


async def _usable(name: str) -> bool:
    """Return whether one dependency is; why not is in the log, never in the answer."""
    check: Check = import_string(settings.READY_CHECKS[name])
    try:
        async with asyncio.timeout(settings.READY_SECONDS):
            await check()
    except Exception as error:  # whatever a driver raises
        logger.warning("not ready: %s (%s)", name, type(error).__name__)
        return False
    return True


@door("GET", "HEAD")
async def version(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """What runs here."""
    return JsonResponse(
        {
            "service": "agentops",
            "version": settings.VERSION,
            "revision": settings.REVISION or None,
            "contract_version": settings.CONTRACT_VERSION,
        }
    )

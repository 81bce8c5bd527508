"""Which real adapter stands behind each port. Nothing else knows embedded from production."""

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

from agentops import celery, policies
from agentops.pipeline import turn_pipeline
from agentops.runtime import SECRET_PREFIX, LoopThread, Runtime, secret_variable
from apps.agents.calling import ModelCaller
from apps.agents.code.registry import agent_class
from apps.agents.code.running import CodeAgentParts
from apps.agents.code.stores import KeptAnswers
from apps.agents.providers.registry import Providers
from apps.conversations import tasks
from apps.conversations.adapters import (
    DatabaseConfirmations,
    DatabaseHistory,
    DatabaseLedger,
    DatabaseTurnStore,
)
from apps.routing.embedding.source import DatabaseMeanings
from apps.runtime.addresses import AllowList
from apps.runtime.pipeline import Pipeline
from apps.runtime.ports import ConfirmationPort, CoveragePort, Ledger
from apps.runtime.release import Release
from apps.runtime.turn import Turn
from apps.tools.cache_services import DatabaseAnswers
from apps.tools.calling import ToolCaller
from apps.tools.contracts.refreshing import changed_noticed
from apps.tools.oauth.source import OAuthTokens
from apps.tools.transports.changes import Changed, nobody
from apps.tools.transports.dispatch import Transports
from apps.tools.workflows.adapters import DatabaseWorkflows
from apps.tools.workflows.engine import Workflows

logger = logging.getLogger(__name__)
_loop_thread: LoopThread | None = None
_starting = threading.Lock()


def secret(variable: str) -> str:
    """Return the value of a variable that ``runtime.secret_variable`` named, "" when it is not set."""
    return os.environ.get(variable, "") if variable.startswith(SECRET_PREFIX) else ""


def tenant_secret(tenant_slug: str, name: str) -> str:
    """Return a tenant's secret by the name a binding or webhook has; named by ``TENANT_SECRET``."""
    return secret(secret_variable(tenant_slug, name))


def tool_transport(on_changed: Changed = nobody) -> Transports:
    """Return what speaks to tool servers, for the event loop it is made on; named by ``TOOL_TRANSPORT``.

    ``on_changed`` is told of a server whose tools changed.
    """
    allowed = AllowList.of(settings.TOOL_ALLOW_PRIVATE)
    return Transports(
        allowed=allowed,
        programs=settings.STDIO_PROGRAMS,
        tokens=OAuthTokens(allowed),
        on_changed=on_changed,
    )


def tag_key() -> str:
    """Return the key of the tags that stand for restricted values in the ledger."""
    return salted_hmac("agentops.ledger", "tag").hexdigest()


def tool_caller(
    transport: Transports,
    ledger: Ledger,
    confirmations: ConfirmationPort | None = None,
    coverage: CoveragePort | None = None,
) -> ToolCaller:
    """Return the tool port of a turn, of the gateway and of the debug door: the same rules for all."""
    return ToolCaller(
        transport,
        ledger,
        secret,
        tag_key=tag_key(),
        confirmations=confirmations,
        coverage=coverage,
        answers=DatabaseAnswers() if settings.ENABLE_MCP_CACHE else None,
        turn_seconds=settings.TURN_TOOL_SECONDS,
    )


def build() -> tuple[Pipeline, Callable[[], Coroutine[Any, Any, None]]]:
    """Return the pipeline over the real adapters, and what closes them. Call on the turns' loop."""
    ledger = DatabaseLedger()
    confirmations = DatabaseConfirmations()
    runs = DatabaseWorkflows()
    transports = tool_transport(changed_noticed)
    providers = Providers()
    tools = tool_caller(transports, ledger, confirmations, runs)
    pipeline = turn_pipeline(
        history=DatabaseHistory(),
        tools=tools,
        workflows=Workflows(tools, runs, confirmations=confirmations, tag_key=tag_key()),
        models=ModelCaller(providers, ledger, secret=secret),
        store=DatabaseTurnStore(),
        embeddings=meanings,
        code=CodeAgentParts(
            find=agent_class, cache=KeptAnswers(), seconds=settings.CODE_AGENT_SECONDS
        ),
        observers=[import_string(name)() for name in settings.TURN_OBSERVERS],
        on_error=turn_broke,
    )

    async def close() -> None:
        await transports.aclose()
        await providers.aclose()

    return pipeline, close


def warm() -> None:
    """Import what a first turn would wait for. Only imports: a worker's pool may fork after it."""
    for module in ("apps.tools.transports.mcp", "jsonschema"):
        import_module(module)


def turn_broke(turn: Turn, error_id: str, error: BaseException) -> None:
    """Log a surprise under the error id that the customer sees; never what was said."""
    logger.error("turn %s failed, error %s", turn.id, error_id, exc_info=error)


meanings = DatabaseMeanings()
runtime = Runtime(build)


def worker_runtime() -> Runtime:
    """Return this worker process's runtime, its loop started on first use."""
    global _loop_thread
    # The first tasks come at once: two loops would share one process's kept connections.
    with _starting:
        if not runtime.started:
            _loop_thread = LoopThread()
            _loop_thread.call(runtime.start())
    return runtime


def run_turn_blocking(tenant_id: int, turn_id: uuid.UUID) -> None:
    """Run it from a worker's task thread and wait for its end."""
    worker_runtime().submit(tenant_id, turn_id).result()


_silent_until = 0.0


def ring(tenant_id: int, turn_id: uuid.UUID) -> None:
    """The doorbell: wake this process's loop, or tell a worker through the broker.

    A broker that is down does not fail an accepted message: the sweeper finds the turn. Until its
    next sweep nobody rings either, so that only one message waits for a broker that does not answer.
    """
    global _silent_until
    if settings.EMBEDDED:
        if runtime.started:
            runtime.ring(tenant_id, turn_id)
        return
    if time.monotonic() < _silent_until:
        return
    try:
        tasks.run_turn.apply_async((tenant_id, str(turn_id)), retry=False)
    except (OperationalError, OSError) as error:
        _silent_until = time.monotonic() + settings.TURN_SWEEP_SECONDS
        logger.warning("doorbell for turn %s not heard: %s", turn_id, type(error).__name__)


def requested_agent(release: Release, agent: str | None) -> str | None:
    """See ``policies.requested_agent``; named by ``TURN_AGENT_RESOLVER``."""
    return policies.requested_agent(release, agent)


def failure_text(release: Release) -> str:
    """The tenant's words for a turn that no worker survived; named by ``TURN_FAILURE_TEXT``."""
    return policies.routing_policy(release).failure_text


celery_app = celery.app

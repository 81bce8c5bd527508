"""Settings of a worker that stops dead where ``stalling`` is told."""

from agentops.settings import *  # noqa: F403

TURN_RUNTIME_BLOCKING = "agentops.tests.services.stalling.run_turn_blocking"

"""What every model provider looks like."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from apps.agents.config import Prices
from apps.runtime.ports import ModelMessage, ModelReply


@dataclass(frozen=True)
class ModelProfile:
    """A profile with everything inherited filled in.

    ``address`` and ``credential`` are names of bindings; ``max_retries`` counts calls after the first;
    ``message_shape`` is a name of ``shapes.SHAPES``.
    """

    name: str
    provider: str
    model: str
    address: str
    credential: str
    temperature: float
    max_tokens: int
    timeout_seconds: float
    max_retries: int
    prices: Prices
    script: tuple[str, ...] = ()
    delay_ms: int = 0
    message_shape: str = "tools"


@dataclass(frozen=True)
class ProviderCall:
    """One chat request on its way out: a provider sees this and nothing else of the turn.

    ``base_url`` is the address binding's value in the turn's environment, ``key`` the value of the
    secret that the credential binding names ("" where none is wanted).
    """

    profile: ModelProfile
    messages: tuple[ModelMessage, ...]
    tools: tuple[Mapping[str, Any], ...]
    ordinal: int = 0
    base_url: str = ""
    key: str = field(default="", repr=False)


class Provider(Protocol):
    """Completes one chat request with the profile's model, and no other.

    The reply's ``usage`` has no cost yet. Raises ``ModelFailed``; its text holds no secret.
    """

    async def complete(self, call: ProviderCall) -> ModelReply: ...


def message_dump(message: ModelMessage) -> dict[str, Any]:
    """Return ``message`` as one entry of an OpenAI-shaped chat request."""
    entry: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        entry["content"] = message.content or None
        entry["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        entry["tool_call_id"] = message.tool_call_id
    return entry

"""What an agent in code knows of its turn, and in which order it is trusted. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.agents.config import AgentConfig, PromptConfig
from apps.agents.evidence import Mask, masked_value
from apps.runtime.turn import Turn

Extract = Callable[[str], Any] | str
"""A function of the message, or a regular expression whose first group (or whole) is the value."""


@dataclass(frozen=True)
class RuntimeContext:
    """The facts of one turn, masked: values of the vault are there as their placeholders.

    ``tool_arguments``, ``context``, ``session`` and ``session_metadata`` are what the client sent;
    ``business_context`` is what the platform resolved; ``state`` the platform's own facts.
    """

    text: str
    intent: str
    domain: str
    agent: str
    channel: str
    language: str
    tool_arguments: Mapping[str, Any]
    business_context: Mapping[str, str]
    context: Mapping[str, Any]
    session: Mapping[str, Any]
    session_metadata: Mapping[str, Any]
    state: Mapping[str, Any]
    guidance: tuple[str, ...] = ()

    def pick(self, name: str, *aliases: str, extract: Extract | None = None) -> Any:
        """Return the first value that is not empty, ``None`` when there is none.

        For ``name``, then each alias in order: tool arguments, business context, context, session,
        the session's metadata, state. ``extract`` reads the message, when all of these say nothing.
        """
        places = (
            self.tool_arguments,
            self.business_context,
            self.context,
            self.session,
            self.session_metadata,
            self.state,
        )
        for wanted in (name, *aliases):
            for place in places:
                value = place.get(wanted)
                if not empty(value):
                    return value
        return _extracted(self.text, extract) if extract is not None else None


def empty(value: Any) -> bool:
    """Whether ``value`` says nothing: 0 and false do say something."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or value in ([], {}, ())


def _extracted(text: str, extract: Extract) -> Any:
    if callable(extract):
        return extract(text)
    found = re.search(extract, text)
    if found is None:
        return None
    return found[1] if found.re.groups else found[0]


def context_of(
    turn: Turn, slug: str, agent: AgentConfig, prompt: PromptConfig, mask: Mask
) -> RuntimeContext:
    """Return what the agent ``slug`` may know of ``turn``."""
    route, payload = turn.route, turn.inbound.payload
    context = _mapping(payload.get("context"))
    session = _mapping(context.get("session")) or _mapping(payload.get("session"))
    state = {
        "channel": turn.inbound.channel,
        "user_id": turn.inbound.user_id,
        "message_id": turn.inbound.message_id,
        "agent_id": slug,
        "intent": route.intent if route else "",
        "domain": (route.domain if route else "") or agent.domain,
        "next_state": turn.session.next_state,
        "active_agent": turn.session.active_agent,
    }
    return RuntimeContext(
        text=mask(turn.text),
        intent=state["intent"],
        domain=state["domain"],
        agent=slug,
        channel=turn.inbound.channel,
        language=prompt.language,
        tool_arguments=masked_value(_mapping(turn.inbound.tool_arguments), mask),
        business_context=masked_value(dict(turn.business_context.values), mask),
        context=masked_value({k: v for k, v in context.items() if k != "session"}, mask),
        session=masked_value({k: v for k, v in session.items() if k != "metadata"}, mask),
        session_metadata=masked_value(_mapping(session.get("metadata")), mask),
        state=masked_value(state, mask),
        guidance=turn.guidance,
    )


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}

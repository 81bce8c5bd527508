"""A route as an operator reads it."""

from typing import Any

from apps.runtime.turn import Route


def explain(route: Route, mode: str = "router") -> dict[str, Any]:
    """Return ``route`` as JSON types for a debugging answer.

    ``mode`` is the routing policy's. ``agents`` lists whom a question back is about; ``route`` is
    the agent that speaks. ``strategies`` is what each one asked found, ``notes`` what else the
    decision left on record.
    """
    return {
        "mode": mode,
        "route": route.agent,
        "intent": route.intent,
        "domain": route.domain,
        "confidence": route.confidence,
        "method": route.method,
        "margin": route.margin,
        "threshold": route.threshold,
        "agents": list(dict.fromkeys(c.agent for c in route.candidates)) or [route.agent],
        "mcp_tools": list(route.tools),
        "candidates": [
            {"intent": c.intent, "agent": c.agent, "score": c.score, "matches": list(c.matches)}
            for c in route.candidates
        ],
        "control": route.control,
        "plan": [{"agent": p.agent, "intent": p.intent, "text": p.text} for p in route.plan],
        "strategies": list(route.metadata.get("strategies", ())),
        "notes": {key: value for key, value in route.metadata.items() if key != "strategies"},
    }

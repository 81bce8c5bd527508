"""Ends any ping-pong: how often one message may be passed on before who has it must answer."""

from collections.abc import Mapping

from apps.routing.index import AgentFacts


def hop_cap(budget: int, agents: Mapping[str, AgentFacts]) -> int:
    """Return how many hops a message has, of a policy's ``budget``.

    However large that is, there are never more than one above the agents that can take part: more
    would be a message going round (field case 3.12). Who asks the same agent the same thing again is
    refused where it is asked (``agents/delegation/desk.py``).
    """
    return min(budget, sum(facts.enabled for facts in agents.values()) + 1)

"""System check: every agent in code that the operator allows can be loaded."""

from typing import Any

from django.core.checks import Error, register

from apps.agents.code.registry import AgentUnusable, agent_class, agent_names


@register()
def agents_load(app_configs: Any = None, **kwargs: Any) -> list[Error]:
    """Return an error for each entry of ``AGENT_CLASSES`` that is no agent."""
    found = []
    for name in agent_names():
        try:
            agent_class(name)
        except AgentUnusable as error:
            found.append(Error(str(error), hint="See AGENT_CLASSES.", id="agents.E001"))
    return found

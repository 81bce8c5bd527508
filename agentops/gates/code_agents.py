"""Gate: agents in code are ones the operator allows."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.agents.code.registry import AgentNotAllowed, AgentUnusable, agent_class, agent_names
from apps.agents.config import AgentConfig
from apps.releases.gates import GateContext, Problem, release_gate


@release_gate(
    title=gettext_lazy("Agents in code"),
    description=gettext_lazy(
        "An implementation that an agent names is one the operator allows, and it can be loaded."
    ),
)
def implementations_allowed(context: GateContext) -> list[Problem]:
    """Gate: an agent without its implementation would fail at every message."""
    problems = []
    for slug, agent in context.release.all(AgentConfig).items():
        if not agent.implementation or not agent.may_answer:
            continue
        try:
            agent_class(agent.implementation)
        except AgentNotAllowed:
            text = _(
                "agent %(slug)s: the operator allows no implementation %(name)s. Allowed: %(known)s."
            )
            words = {"known": ", ".join(agent_names()) or "–"}
        except AgentUnusable as error:
            text = _("agent %(slug)s: its implementation %(name)s cannot be used: %(error)s")
            words = {"error": str(error)}
        else:
            continue
        message = text % {"slug": slug, "name": agent.implementation, **words}
        problems.append(Problem(kind="agent", slug=slug, path="implementation", message=message))
    return problems

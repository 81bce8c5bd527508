"""Gates: who asks whom can be asked, and hands back what the asking agent needs."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.agents.config import AgentConfig, Delegate
from apps.agents.delegation.functions import END, REPORT, REQUEST, function_name, role_of
from apps.agents.evidence import wire_name
from apps.releases.gates import GateContext, Level, Problem, release_gate

# What a scoped sub-agent has to be able to report, by whether it speaks to the customer.
NEEDED = {False: ("answered", "findings"), True: ("answered", "interactionSummary")}
RESERVED = (REQUEST, END, REPORT)


@release_gate(
    title=gettext_lazy("Delegation"),
    description=gettext_lazy(
        "Scoped sub-agents declare outputs; no agent asks itself; functions and roles have one"
        " meaning (block). The purpose of asking is said (warn)."
    ),
    level="block",
)
def delegates_ready(context: GateContext) -> list[Problem]:
    """Gate: a sub-agent without outputs hands nothing back, so its part would be lost."""
    agents = context.release.all(AgentConfig)
    return [problem for slug, agent in agents.items() for problem in _of(slug, agent, agents)]


def _of(slug: str, agent: AgentConfig, agents: dict[str, AgentConfig]) -> Iterator[Problem]:
    for index, delegate in enumerate(agent.delegates):
        path = f"delegates[{index}]"
        words = {"slug": slug, "agent": delegate.agent}
        if delegate.agent == slug:
            yield _problem(slug, path, _("agent %(slug)s asks itself.") % words)
        asked = agents.get(delegate.agent)
        if asked is None:
            continue  # references are another gate's
        if asked.implementation:
            text = _("agent %(slug)s: %(agent)s is an agent in code; its record alone is asked.")
            yield _problem(slug, path, text % words, "warn")
        if not delegate.purpose.strip():
            text = _("agent %(slug)s: nothing tells the model when to ask %(agent)s.")
            yield _problem(slug, f"{path}.purpose", text % words, "warn")
        if delegate.kind == "scoped":
            yield from _outputs(slug, path, delegate, asked)
    yield from _ambiguous(slug, agent)


def _outputs(slug: str, path: str, delegate: Delegate, asked: AgentConfig) -> Iterator[Problem]:
    words = {"slug": slug, "agent": delegate.agent}
    if not asked.outputs:
        text = _("agent %(agent)s declares no outputs, so %(slug)s gets nothing back from it.")
        yield _problem(delegate.agent, "outputs", text % words)
        return
    missing = [name for name in NEEDED[delegate.speaks] if name not in asked.outputs]
    if missing:
        voice = _("speaks to the customer") if delegate.speaks else _("is silent")
        text = _("agent %(agent)s %(voice)s for %(slug)s and lacks the outputs %(missing)s.")
        more = {"voice": voice, "missing": ", ".join(missing)}
        yield _problem(delegate.agent, "outputs", text % {**words, **more})


def _ambiguous(slug: str, agent: AgentConfig) -> Iterator[Problem]:
    """Yield functions that mean two things to the agent's model, and roles of two specialists."""
    taken = {wire_name(tool) for tool in agent.tools}
    roles: set[str] = set()
    for index, delegate in enumerate(agent.delegates):
        path = f"delegates[{index}]"
        if delegate.kind == "sub_conversation":
            role = role_of(delegate)
            if role in roles:
                text = _("agent %(slug)s: two specialists have the role %(role)s.")
                yield _problem(slug, f"{path}.role", text % {"slug": slug, "role": role})
            roles.add(role)
            continue
        name = function_name(agent, delegate)
        if name in taken or name in RESERVED:
            text = _("agent %(slug)s: the function %(name)s is there already.")
            yield _problem(slug, path, text % {"slug": slug, "name": name})
        taken.add(name)
    for name in sorted(taken & set(RESERVED)) if agent.delegates or agent.outputs else ():
        text = _("agent %(slug)s: the tool %(name)s has the name of a function of delegation.")
        yield _problem(slug, "tools", text % {"slug": slug, "name": name})


def _problem(slug: str, path: str, message: str, level: Level = "block") -> Problem:
    return Problem(kind="agent", slug=slug, path=path, level=level, message=message)

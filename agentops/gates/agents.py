"""Gates: every agent is reached, and none is that should not answer."""

from collections.abc import Iterator
from datetime import date

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.agents.config import AgentConfig
from apps.releases.gates import GateContext, Level, Problem, release_gate
from apps.routing.config import IntentConfig, RoutingPolicyConfig, StatePolicyConfig
from apps.runtime.release import Release

DEFAULT = "default"
# From deprecation to retirement, so that whoever depends on the agent has time to leave.
YEAR_DAYS = 365
Naming = tuple[str, str, str, str]
"""kind, slug and path of who sends turns to an agent, and that agent."""


@release_gate(
    title=gettext_lazy("Agents nobody reaches"),
    description=gettext_lazy(
        "An intent, a member, a delegation, a state policy or the default leads to every agent, or it"
        " has members or delegates itself."
    ),
    level="warn",
)
def unreachable_agents(context: GateContext) -> list[Problem]:
    """Gate: only a client that asks for it by name would ever reach such an agent."""
    release = context.release
    reached = {agent for _kind, _slug, _path, agent in leading(release)}
    return [
        Problem(
            kind="agent",
            slug=slug,
            message=_(
                "agent %(slug)s: no intent, member, delegation, state policy or default leads to it; only a client"
                " that asks for it by name reaches it."
            )
            % {"slug": slug},
        )
        for slug, agent in release.all(AgentConfig).items()
        if agent.may_answer and not (agent.members or agent.delegates) and slug not in reached
    ]


def leading(release: Release) -> Iterator[Naming]:
    """Yield whatever may lead a turn to an agent, without what is off or never happens."""
    agents = release.all(AgentConfig)
    for slug, intent in release.all(IntentConfig).items():
        if intent.enabled:
            yield "intent", slug, "agent", intent.agent
    for slug, agent in agents.items():
        if agent.may_answer:
            for index, member in enumerate(agent.members):
                yield "agent", slug, f"members[{index}]", member
            for index, delegate in enumerate(agent.delegates):
                yield "agent", slug, f"delegates[{index}].agent", delegate.agent
    states = _states_set(release)
    for slug, policy in release.all(StatePolicyConfig).items():
        if policy.state in states:
            yield "state_policy", slug, "agent", policy.agent
    routing = release.find(RoutingPolicyConfig, DEFAULT)
    if routing is not None:
        yield "routing_policy", DEFAULT, "default_agent", routing.default_agent
        yield "routing_policy", DEFAULT, "fallback_agent", routing.fallback_agent


def _states_set(release: Release) -> set[str]:
    """Return the states that an answer of an agent or intent can lead to."""
    maps = [
        *(agent.next_state for agent in release.all(AgentConfig).values()),
        *(intent.next_state for intent in release.all(IntentConfig).values()),
    ]
    return {state for states in maps for state in states.values()}


@release_gate(
    title=gettext_lazy("Agents out of service"),
    description=gettext_lazy(
        "Nothing leads to a retired agent (blocks) or to a disabled one (warns); a deprecated agent"
        " that still answers is shown."
    ),
)
def agents_in_service(context: GateContext) -> list[Problem]:
    """Gate: who is routed to answers. A deprecated agent is told, with what still leads to it."""
    agents = context.release.all(AgentConfig)
    problems: list[Problem] = []
    deprecated: dict[str, list[str]] = {
        slug: [] for slug, agent in agents.items() if agent.lifecycle.status == "deprecated"
    }
    for kind, slug, path, name in leading(context.release):
        agent = agents.get(name)
        if agent is None:
            continue
        if name in deprecated:
            deprecated[name].append(f"{kind}:{slug}")
        if agent.lifecycle.status == "retired":
            text = _("%(kind)s %(slug)s: %(path)s leads to the retired agent %(agent)s.")
            problems.append(_leads(kind, slug, path, name, text, "block"))
        elif not agent.enabled:
            text = _("%(kind)s %(slug)s: %(path)s leads to the disabled agent %(agent)s.")
            problems.append(_leads(kind, slug, path, name, text, "warn"))
    problems += [_deprecated(slug, agents[slug], users) for slug, users in deprecated.items()]
    for slug, agent in agents.items():
        problems += _odd_life(slug, agent, agents)
    return problems


def _leads(kind: str, slug: str, path: str, agent: str, text: str, level: Level) -> Problem:
    words = {"kind": kind, "slug": slug, "path": path, "agent": agent}
    return Problem(kind=kind, slug=slug, path=path, level=level, message=text % words)


def _deprecated(slug: str, agent: AgentConfig, users: list[str]) -> Problem:
    life = agent.lifecycle
    words = {
        "slug": slug,
        "day": life.deprecated_on,
        "users": ", ".join(users[:5]) or "–",
        "next": life.replaced_by or "–",
    }
    text = _(
        "agent %(slug)s is deprecated since %(day)s and still answers (%(users)s). Replaced by: %(next)s."
    )
    return Problem(
        kind="agent", slug=slug, path="lifecycle.status", level="warn", message=text % words
    )


def _odd_life(slug: str, agent: AgentConfig, agents: dict[str, AgentConfig]) -> Iterator[Problem]:
    life = agent.lifecycle
    heir = agents.get(life.replaced_by)
    if life.replaced_by == slug or (heir is not None and not heir.may_answer):
        text = _("agent %(slug)s is replaced by %(next)s, which does not answer.")
        yield _life_problem(slug, "replaced_by", text % {"slug": slug, "next": life.replaced_by})
    if life.deprecated_on and life.retired_on:
        days = (date.fromisoformat(life.retired_on) - date.fromisoformat(life.deprecated_on)).days
        if days < YEAR_DAYS:
            text = _("agent %(slug)s retires %(days)s days after its deprecation, not a year.")
            yield _life_problem(slug, "retired_on", text % {"slug": slug, "days": days})
    overdue = life.status != "retired" and life.retired_on
    if overdue and overdue < timezone.localdate().isoformat():
        text = _("agent %(slug)s was to be retired on %(day)s and is not.")
        yield _life_problem(slug, "status", text % {"slug": slug, "day": life.retired_on})


def _life_problem(slug: str, field: str, message: str) -> Problem:
    return Problem(
        kind="agent", slug=slug, path=f"lifecycle.{field}", level="warn", message=message
    )

"""Gate: states that are led to exist."""

from django.utils.translation import gettext_lazy

from apps.agents.config import AgentConfig
from apps.releases.gates import GateContext, Problem, missing_problem, release_gate
from apps.routing.config import IntentConfig, StatePolicyConfig


@release_gate(
    title=gettext_lazy("Next states"),
    description=gettext_lazy("Every state that an agent or intent leads to has a state policy."),
)
def next_states_exist(context: GateContext) -> list[Problem]:
    """Gate: every state that an agent or intent leads to is the state of a state policy.

    A state that no policy answers would be kept for the session and never reached again.
    """
    release = context.release
    known = {policy.state for policy in release.all(StatePolicyConfig).values()}
    leading = [
        *(("agent", slug, agent.next_state) for slug, agent in release.all(AgentConfig).items()),
        *(
            ("intent", slug, intent.next_state)
            for slug, intent in release.all(IntentConfig).items()
        ),
    ]
    return [
        missing_problem(kind, slug, f"next_state.{outcome}", f"state_policy:{state}")
        for kind, slug, states in leading
        for outcome, state in states.items()
        if state and state not in known
    ]

"""Gates that look across apps; named in ``settings.RELEASE_GATES``."""

from django.utils.translation import gettext as _

from apps.agents.config import AgentConfig
from apps.releases.gates import GateContext, Problem
from apps.routing.config import IntentConfig, StatePolicyConfig


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
        Problem(
            kind=kind,
            slug=slug,
            path=f"next_state.{outcome}",
            missing=f"state_policy:{state}",
            message=_("%(kind)s %(slug)s: %(path)s names the missing %(missing)s.")
            % {
                "kind": kind,
                "slug": slug,
                "path": f"next_state.{outcome}",
                "missing": f"state_policy:{state}",
            },
        )
        for kind, slug, states in leading
        for outcome, state in states.items()
        if state and state not in known
    ]

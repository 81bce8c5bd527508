"""No message is passed on for ever (fault 18; field case 3.12; pain 23)."""

import pytest

from apps.routing.hops import hop_cap
from apps.routing.index import AgentFacts


@pytest.mark.parametrize(
    ("budget", "enabled", "disabled", "hops"),
    [(2, 3, 0, 2), (10, 3, 0, 4), (10, 1, 5, 2), (1, 0, 0, 1), (10, 0, 0, 1)],
)
def test_hops__are_the_policys_but_at_most_one_more_than_there_are_agents(
    budget, enabled, disabled, hops
):
    agents = {f"a{n}": AgentFacts() for n in range(enabled)}
    agents |= {f"d{n}": AgentFacts(enabled=False) for n in range(disabled)}
    assert hop_cap(budget, agents) == hops

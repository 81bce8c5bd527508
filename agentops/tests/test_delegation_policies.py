"""Whose rails an answer passes and whose name stands before it when agents ask each other."""

from dataclasses import replace

import pytest

from agentops.policies import answer_label, rails
from apps.agents.config import AgentConfig
from apps.governance.config import RailPolicyConfig
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import Draft, Route, Turn

RELEASE = release_of(
    agent={
        "main": AgentConfig(prompt="p", rails="lax", label_answers=True),
        "expert": AgentConfig(prompt="p", rails="strict", label_answers=True),
    },
    rail_policy={
        "lax": RailPolicyConfig(block_text="lax"),
        "strict": RailPolicyConfig(block_text="strict"),
    },
)
ROUTE = Route(agent="main", intent="i", method="keyword", confidence=1.0)


def answered_by(agent: str, route: Route = ROUTE) -> Turn:
    return turn_of("oi", release=RELEASE, route=route, draft=Draft("texto", agent))


def test_specialists_words__pass_the_specialists_own_rails() -> None:
    assert rails(turn_of("oi", release=RELEASE, route=ROUTE)).block_text == "lax"
    assert rails(answered_by("main")).block_text == "lax"
    assert rails(answered_by("expert")).block_text == "strict"


@pytest.mark.parametrize(
    ("agent", "route", "label"),
    [
        ("main", ROUTE, "main"),
        ("expert", ROUTE, ""),
        ("expert", replace(ROUTE, agent="expert", method="delegation"), ""),
    ],
)
def test_label__of_a_specialist__is_not_shown(agent: str, route: Route, label: str) -> None:
    assert answer_label(answered_by(agent, route)) == label

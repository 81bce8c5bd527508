from apps.governance.config import RailPolicyConfig
from apps.governance.steps.guard_output import GuardOutput
from apps.runtime.testing import turn_of
from apps.runtime.turn import Draft

GUARD = GuardOutput(policy_for=lambda turn: RailPolicyConfig())


async def test_guard_output__personal_data_in_the_draft__draft_leaves_masked():
    draft = Draft(text="E-mail ana@exemplo.com, <CPF_7>", agent="a", outcome="waiting")
    turn = await GUARD(turn_of("oi", draft=draft, attempt=2))
    assert turn.draft == Draft(
        text="E-mail a•••••@exemplo.com, ••••••", agent="a", outcome="waiting"
    )
    assert [(d.code, d.action, d.metadata["attempt"]) for d in turn.decisions] == [
        ("MSK", "sanitize", 2),
        ("DLEX_OUT", "sanitize", 2),
        ("REVPREC", "allow", 2),
    ]
    assert turn.outcome is None
    assert turn.vault == {}


async def test_guard_output__no_draft__nothing_to_do():
    turn = turn_of("oi")
    assert await GUARD(turn) is turn

import pytest
from pydantic import ValidationError

from apps.governance.config import RailPolicyConfig, RailRule


@pytest.mark.parametrize(
    "content",
    [
        {"code": "PINJ", "parameters": {"max_tokens": 5}},
        {"code": "INPUT_SIZE", "parameters": {"max_tokens": "many"}},
        {"code": "INPUT_SIZE", "parameters": {"max_tokens": 0}},
        {"code": "INPUT_SIZE", "parameters": {"max_tokens": True}},
        {"code": "PINJ", "on_deny": "sanitize"},
    ],
)
def test_rail_rule__setting_the_rail_does_not_have__is_refused(content):
    with pytest.raises(ValidationError):
        RailRule.model_validate(content)


def test_rail_policy__retry_on_a_message__is_refused():
    with pytest.raises(ValidationError, match="no retry on input"):
        RailPolicyConfig.model_validate({"input": [{"code": "PINJ", "on_deny": "retry"}]})


def test_rail_policy__defaults__run_every_rail():
    policy = RailPolicyConfig()
    assert [rule.code for rule in policy.input] == ["INPUT_SIZE", "MSK", "PINJ", "VLOOP"]
    assert [rule.code for rule in policy.output] == ["MSK", "DLEX_OUT", "REVPREC"]

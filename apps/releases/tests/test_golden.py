"""Releases published by earlier versions stay loadable, byte for byte.

A failure here means that a class changed in a way old releases do not survive: upgrade the old shape
in a ``model_validator(mode="before")`` beside the class. A golden file is never edited; a new
version adds a new one.
"""

import hashlib
import json
from pathlib import Path

import pytest

from apps.agents.config import AgentConfig, ModelProfileConfig, PromptConfig
from apps.conversations.config import IdentityKeyConfig
from apps.governance.config import RailPolicyConfig
from apps.routing.config import IntentConfig, StatePolicyConfig
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.config import KINDS
from apps.runtime.release import Release, release_parse
from apps.tools.config import ParameterMappingConfig, ToolConfig

GOLDEN = Path(__file__).parent / "golden"
SHA256 = {
    "0001.json": "5b28e3f1291c02ebdf036939fe3f39ac1da01b398f12d1718b7877435ed221cd",
    "0002.json": "befbd4420941c7205a48ba27729de8d6657950c8f4c56ba469185aafd09839cb",
}


def load(name: str) -> Release:
    return release_parse(manifest=(GOLDEN / name).read_text(encoding="utf-8"))


def test_golden__every_file__has_its_hash_in_this_test() -> None:
    assert sorted(SHA256) == sorted(path.name for path in GOLDEN.iterdir())


@pytest.mark.parametrize("name", sorted(SHA256))
def test_golden__stored_bytes__are_loadable_and_have_the_same_sha256(name: str) -> None:
    assert hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest() == SHA256[name]
    assert load(name).sha256 == SHA256[name]


def test_golden__first_version__covers_the_kinds_of_its_time_and_reads_their_values() -> None:
    release = load("0001.json")
    assert {kind for kind, _slug in release.items} <= set(KINDS)
    assert len({kind for kind, _slug in release.items}) == 13
    assert release.get(AgentConfig, "billing_agent").tools == ["consultar_fatura"]
    assert release.get(PromptConfig, "billing").system == "Você explica faturas. “Seja breve.”\n"
    assert release.get(ModelProfileConfig, "default").temperature == 0.2
    assert release.get(IntentConfig, "billing_invoice_explanation").keywords == ["fatura", "conta"]
    assert release.get(StatePolicyConfig, "waiting_billing").state == "WAITING_BILLING"
    assert release.get(ToolConfig, "consultar_fatura").requires == ["msisdn"]
    assert release.get(ToolConfig, "consultar_fatura").args_schema["msisdn"].type == "string"
    mapping = release.get(ParameterMappingConfig, "consultar_fatura")
    assert mapping.defaults == {"limite": 9007199254740993, "aberta": True, "taxa": 0.5}
    assert release.get(IdentityKeyConfig, "customer_key").required is True
    rails = release.get(RailPolicyConfig, "default")
    assert [rule.code for rule in rails.input] == ["MSK", "INPUT_SIZE"]
    assert rails.input[1].parameters == {"max_tokens": 4000}


def test_golden__agents_from_before_they_had_a_life__are_active_without_an_objective() -> None:
    agent = load("0001.json").get(AgentConfig, "billing_agent")
    assert (agent.lifecycle.status, agent.lifecycle.retired_on, agent.objective) == (
        "active",
        "",
        "",
    )
    assert agent.may_answer


def test_golden__second_version__reads_an_agents_life_and_objective() -> None:
    agent = load("0002.json").get(AgentConfig, "billing_agent")
    assert agent.objective == "Explicar faturas na mesma conversa."
    assert agent.lifecycle.model_dump() == {
        "status": "deprecated",
        "deprecated_on": "2026-01-31",
        "retired_on": "2027-01-31",
        "replaced_by": "bills",
    }
    assert agent.may_answer


@pytest.mark.parametrize("name", sorted(SHA256))
def test_golden__canonical_text__is_what_this_version_writes(name: str) -> None:
    text = (GOLDEN / name).read_text(encoding="utf-8")
    assert canonical_json(json.loads(text)) == text
    assert sha256_text(text) == SHA256[name]

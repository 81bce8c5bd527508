"""Each gate on a release of its own: what it finds, and what it leaves alone."""

import time
from collections.abc import Mapping
from typing import Any

import pytest

from agentops.demo_data import FOLDER
from agentops.gates.agents import agents_in_service, unreachable_agents
from agentops.gates.delegation import delegates_ready
from agentops.gates.intents import intents_overlap, intents_shadowed
from agentops.gates.items import kinds_named, missing_owners, unused_items
from agentops.gates.states import next_states_exist
from agentops.gates.texts import prompt_variables, translations
from agentops.gates.tools import actions_confirmed, arguments_filled, contract_pins, tool_pins
from apps.agents.config import PromptConfig
from apps.releases.gates import GateContext, ItemLabels, Problem, references_resolve, schema
from apps.releases.portable.native import native_parse
from apps.releases.portable.yaml_source import source_read
from apps.runtime.config import KINDS, KindConfig
from apps.runtime.release import Release

Items = Mapping[str, Mapping[str, Any]]
FULL: Items = {
    "prompt:main": {
        "system": "You help {{ agent }}.",
        "language": "en",
    },
    "model_profile:default": {"provider": "scripted"},
    "memory_policy:default": {},
    "rail_policy:default": {},
    "judge_policy:default": {},
    "routing_policy:default": {"default_agent": "door"},
    "agent:door": {"prompt": "main", "members": ["bills", "orders"], "objective": "Opens."},
    "agent:bills": {"prompt": "main", "tools": ["get_bill"], "objective": "Explains bills."},
    "agent:orders": {"prompt": "main", "objective": "Finds orders."},
    "intent:bill": {
        "agent": "bills",
        "keywords": ["bill"],
        "examples": ["My bill is high."],
        "mcp_tools": ["get_bill"],
    },
    "intent:order": {"agent": "orders", "keywords": ["order"], "examples": ["Where is it?"]},
    "tool_server:crm": {"endpoint": "crm"},
    "tool:get_bill": {
        "mcp_server": "crm",
        "requires": ["phone"],
        "args_schema": {"phone": {"description": "The line."}},
    },
    "parameter_mapping:get_bill": {"tool": "get_bill", "map": {"customer_key": "phone"}},
}
OWNERS: dict[tuple[str, str], ItemLabels] = {
    (kind, slug): {"name": "", "owner": "olga", "technical_owner": "otto"}
    for kind, _colon, slug in (key.partition(":") for key in FULL)
}


def parsed(items: Items) -> Release:
    found: dict[tuple[str, str], KindConfig] = {}
    for key, content in items.items():
        kind, _colon, slug = key.partition(":")
        found[kind, slug] = KINDS[kind].model_validate(content)
    return Release(sha256="0" * 64, items=found)


def context(changes: Items | None = None, **more: Any) -> GateContext:
    release = parsed({**FULL, **(changes or {})})
    given = {"labels": OWNERS, **more}
    return GateContext(tenant_id=1, actor="test", note="", release=release, parent_id="", **given)


def places(problems: list[Problem]) -> list[tuple[str, str, str]]:
    return [(problem.kind, problem.slug, problem.path) for problem in problems]


def changed(key: str, **fields: Any) -> Items:
    return {key: {**FULL.get(key, {}), **fields}}


GATES = (
    schema, references_resolve, next_states_exist, unreachable_agents, agents_in_service,
    delegates_ready,
    intents_overlap, intents_shadowed, arguments_filled, actions_confirmed, contract_pins,
    unused_items, missing_owners, prompt_variables, translations,
)  # fmt: skip


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
def test_gate__a_release_in_order__has_nothing_against_it(gate: Any) -> None:
    found = gate(context(parent=parsed(FULL)))
    assert [problem for problem in found if problem.level != "passed"] == []


@pytest.mark.parametrize(
    ("tenant", "warned"), [("default", ["intents_overlap"]), ("tim", []), ("loja", [])]
)
def test_gates__demo_tenants__pass_with_the_one_overlap_that_they_demonstrate(
    tenant: str, warned: list[str]
) -> None:
    portable = native_parse([source_read(FOLDER / f"{tenant}.yaml", tenant)])
    items = {
        (item.kind, item.slug): KINDS[item.kind].model_validate(dict(item.content))
        for item in portable.items
    }
    none: ItemLabels = {"name": "", "owner": "", "technical_owner": ""}
    labels: Any = {(i.kind, i.slug): {**none, **i.labels} for i in portable.items}
    given = GateContext(1, "test", "", Release(sha256="", items=items), "", labels=labels)
    found = {gate.__name__: gate(given) for gate in GATES}
    objected = [
        name for name, problems in found.items() if any(p.level != "passed" for p in problems)
    ]
    assert objected == warned


# -- form and references -----------------------------------------------------------------------
def test_schema__slug_and_empty_reference_that_parse__are_found() -> None:
    bad = parsed(FULL)
    items = {**bad.items, ("prompt", "has blank"): PromptConfig(system="x")}
    items["agent", "bills"] = KINDS["agent"].model_validate({"prompt": ""})
    found = schema(GateContext(1, "test", "", Release(sha256="", items=items), ""))
    assert places(found) == [("agent", "bills", "prompt"), ("prompt", "has blank", "slug")]


def test_references__absent_tool__is_named() -> None:
    (problem,) = references_resolve(context(changed("intent:bill", mcp_tools=["gone"])))
    assert (problem.path, problem.missing) == ("mcp_tools[0]", "tool:gone")


def test_next_states__state_without_policy__is_named() -> None:
    (problem,) = next_states_exist(context(changed("intent:bill", next_state={"waiting": "W"})))
    assert problem.missing == "state_policy:W"


# -- agents ------------------------------------------------------------------------------------
def test_unreachable__agent_nothing_leads_to__is_found_and_each_way_to_it_counts() -> None:
    alone = {"agent:alone": {"prompt": "main"}}
    assert places(unreachable_agents(context(alone))) == [("agent", "alone", "")]
    for way in (
        {"intent:x": {"agent": "alone"}},
        changed("agent:door", members=["bills", "orders", "alone"]),
        {"routing_policy:default": {"default_agent": "door", "fallback_agent": "alone"}},
        {"agent:alone": {"prompt": "main", "members": ["bills"]}},
        {"agent:alone": {"prompt": "main", "enabled": False}},
        {
            "state_policy:W": {"state": "W", "agent": "alone"},
            **changed("agent:bills", next_state={"waiting": "W"}),
        },
    ):
        assert unreachable_agents(context({**alone, **way})) == []


def test_unreachable__intent_that_is_off_or_state_nobody_sets__leads_nowhere() -> None:
    alone = {"agent:alone": {"prompt": "main"}}
    for no_way in (
        {"intent:x": {"agent": "alone", "enabled": False}},
        {"state_policy:W": {"state": "W", "agent": "alone"}},
    ):
        assert len(unreachable_agents(context({**alone, **no_way}))) == 1


RETIRED = {"status": "retired", "deprecated_on": "2025-01-01", "retired_on": "2026-01-01"}
DEPRECATED = {"status": "deprecated", "deprecated_on": "2026-01-01", "replaced_by": "orders"}


def test_service__retired_agent_that_is_led_to__blocks_at_each_place() -> None:
    found = agents_in_service(context(changed("agent:bills", lifecycle=RETIRED)))
    assert places(found) == [("intent", "bill", "agent"), ("agent", "door", "members[0]")]
    assert {problem.level for problem in found} == {"block"}


def test_service__disabled_agent_that_is_led_to__warns() -> None:
    found = agents_in_service(context(changed("agent:bills", enabled=False)))
    assert {problem.level for problem in found} == {"warn"}
    assert len(found) == 2


def test_service__deprecated_agent__is_shown_with_who_leads_to_it_and_who_replaces_it() -> None:
    (problem,) = agents_in_service(context(changed("agent:bills", lifecycle=DEPRECATED)))
    assert problem.level == "warn"
    for said in ("2026-01-01", "intent:bill", "agent:door", "orders"):
        assert said in problem.message


@pytest.mark.parametrize(
    ("life", "path"),
    [
        ({**DEPRECATED, "replaced_by": "bills"}, "lifecycle.replaced_by"),
        ({**DEPRECATED, "retired_on": "2026-06-01"}, "lifecycle.retired_on"),
        ({**DEPRECATED, "deprecated_on": "2020-01-01", "retired_on": "2021-06-01"}, "lifecycle.status"),
    ],
)  # fmt: skip
def test_service__odd_life__warns(life: dict[str, str], path: str) -> None:
    found = agents_in_service(context(changed("agent:bills", lifecycle=life)))
    assert ("agent", "bills", path) in places(found)
    assert {problem.level for problem in found} == {"warn"}


# -- intents -----------------------------------------------------------------------------------
def test_overlap__same_keyword_in_another_number_and_case__is_one_finding() -> None:
    (problem,) = intents_overlap(context(changed("intent:order", keywords=["order", "BILLS"])))
    assert places([problem]) == [("intent", "bill", "keywords")]
    assert "order" in problem.message
    assert "“bill”" in problem.message


def test_overlap__same_example__is_found() -> None:
    (problem,) = intents_overlap(context(changed("intent:order", examples=["my BILL is high!"])))
    assert problem.path == "examples"


@pytest.mark.parametrize(
    "harmless",
    [
        changed("intent:order", keywords=["bill"], agent="bills"),
        changed("intent:order", keywords=["bill"], enabled=False),
        {**changed("intent:order", keywords=["bill"]), **changed("agent:orders", enabled=False)},
        {**changed("intent:order", keywords=["bill"]), **changed("agent:door", members=["bills"])},
    ],
    ids=["one agent", "intent off", "agent off", "never asked together"],
)
def test_overlap__intents_that_never_compete__are_left_alone(harmless: Items) -> None:
    assert intents_overlap(context(harmless)) == []


def test_shadow__equal_keywords_and_examples__names_who_always_wins() -> None:
    twin = {"intent:twin": {**FULL["intent:bill"], "keywords": ["Bills"], "priority": 5}}
    (problem,) = intents_shadowed(context(twin))
    assert problem.slug == "bill"
    assert "twin" in problem.message
    twin["intent:twin"]["examples"] = ["Something else."]
    assert intents_shadowed(context(twin)) == []


# -- tools -------------------------------------------------------------------------------------
NO_MAPPING = {"parameter_mapping:get_bill": {"tool": "get_bill"}}


def test_arguments__required_one_nothing_fills__is_found() -> None:
    assert places(arguments_filled(context(NO_MAPPING))) == [
        ("tool", "get_bill", "args_schema.phone")
    ]


@pytest.mark.parametrize(
    "filled",
    [
        changed("tool:get_bill", args_schema={"phone": {"user_prompt": "Which line?"}}),
        changed("tool:get_bill", args_schema={"phone": {"aliases": ["customer_key"]}}),
        changed("tool:get_bill", enabled=False),
        changed("agent:bills", tool_use="model"),
        {"parameter_mapping:_global": {"map": {"customer_key": "phone"}}},
        changed("tool:get_bill", args_schema={"phone": {"source": "constant", "constant": "1"}}),
        changed("tool:get_bill", args_schema={"phone": {"source": "secret", "secret": "crm"}}),
    ],
    ids=[
        "question",
        "canonical alias",
        "tool off",
        "model asks",
        "global mapping",
        "constant",
        "secret",
    ],
)
def test_arguments__whatever_fills_it__is_enough(filled: Items) -> None:
    assert arguments_filled(context({**NO_MAPPING, **filled})) == []


def test_arguments__required_one_that_a_model_does_not_see__is_not_filled_by_it() -> None:
    hidden = {
        **changed("agent:bills", tool_use="model"),
        **changed("tool:get_bill", args_schema={"phone": {"source": "context"}}),
    }
    assert places(arguments_filled(context({**NO_MAPPING, **hidden}))) == [
        ("tool", "get_bill", "args_schema.phone")
    ]


def test_arguments__mapping_in_vain__warns() -> None:
    mapping = {
        "map": {"customer_key": "phone", "contract_key": "typo"},
        "defaults": {"phone": "1", "typo": 2},
        "extract": {"month": {"strategy": "month_name_pt"}},
        "tool": "get_bill",
    }
    found = arguments_filled(context({"parameter_mapping:get_bill": mapping}))
    assert [(p.path, p.level) for p in found] == [
        ("map.contract_key", "warn"),
        ("extract.month", "warn"),
        ("defaults.phone", "warn"),
    ]


def test_actions__without_confirmation__warn() -> None:
    assert places(actions_confirmed(context(changed("tool:get_bill", tool_type="action")))) == [
        ("tool", "get_bill", "confirmation_required")
    ]
    confirmed = changed("tool:get_bill", tool_type="action", confirmation_required=True)
    assert actions_confirmed(context(confirmed)) == []


def test_pins__changed_description__lists_who_uses_the_tool() -> None:
    after = changed("tool:get_bill", description="Reads any bill.")
    (problem,) = contract_pins(context(after, parent=parsed(FULL)))
    assert problem.path == "description"
    for user in ("agent:bills", "intent:bill", "parameter_mapping:get_bill"):
        assert user in problem.message
    assert tool_pins(parsed(FULL))["get_bill"][:12] in problem.message


def test_pins__without_a_change__are_noted_by_one_hash() -> None:
    (first,) = contract_pins(context())
    (same,) = contract_pins(context(parent=parsed(FULL)))
    assert (first.level, first.message) == ("passed", same.message)
    assert "Contracts of 1 tools" in first.message


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({"args_schema": {"phone": {"description": "Any line."}}}, True),
        ({"args_schema": {"phone": {"description": "The line."}, "x": {}}}, True),
        ({"requires": []}, True),
        ({"remote_name": "read_bill"}, True),
        ({"confirmation_required": True}, True),
        ({"timeout_seconds": 5}, False),
        ({"selection_keywords": ["bill"]}, False),
        ({"args_schema": {"phone": {"description": "The line.", "label": "line"}}}, False),
    ],
)
def test_pin__is_of_what_a_model_or_server_sees_and_of_nothing_else(
    fields: dict[str, Any], changes: bool
) -> None:
    before, after = parsed(FULL), parsed({**FULL, **changed("tool:get_bill", **fields)})
    assert (tool_pins(before) != tool_pins(after)) is changes


# -- items -------------------------------------------------------------------------------------
def test_unused__items_nobody_names__are_found_and_defaults_are_not() -> None:
    idle = {
        "prompt:idle": {"system": "x"},
        "tool:idle": {"mcp_server": "crm"},
        "tool_server:idle": {"endpoint": "x"},
        "model_profile:idle": {},
        "memory_policy:idle": {},
        "rail_policy:idle": {},
        "judge_policy:idle": {},
        "routing_policy:idle": {},
        "parameter_mapping:get_order": {},
        "parameter_mapping:_global": {},
    }
    found = {f"{p.kind}:{p.slug}" for p in unused_items(context(idle))}
    assert found == set(idle) - {"parameter_mapping:_global"}


def test_unused__kinds_that_can_be_named__are_read_from_the_classes() -> None:
    assert {"agent", "prompt", "tool", "tool_server", "rail_policy"} <= kinds_named()
    assert "intent" not in kinds_named()


def test_owners__what_is_missing__is_named_field_by_field() -> None:
    labels = {**OWNERS, ("agent", "bills"): {"name": "", "owner": "", "technical_owner": ""}}
    del labels["tool", "get_bill"]
    found = missing_owners(context(changed("agent:bills", objective=" "), labels=labels))
    assert sorted(places(found)) == [
        ("agent", "bills", "objective"),
        ("agent", "bills", "owner"),
        ("agent", "bills", "technical_owner"),
        ("tool", "get_bill", "owner"),
    ]


# -- texts -------------------------------------------------------------------------------------
def test_variables__unknown_one_that_got_past_the_class__is_found() -> None:
    release = parsed(FULL)
    prompt = release.items["prompt", "main"].model_copy(update={"system": "{{ customer }} {% if"})
    items = {**release.items, ("prompt", "main"): prompt}
    (problem,) = prompt_variables(GateContext(1, "test", "", Release(sha256="", items=items), ""))
    assert "not a valid template" in problem.message
    items["prompt", "main"] = prompt.model_copy(update={"system": "{{ customer }}"})
    (problem,) = prompt_variables(GateContext(1, "test", "", Release(sha256="", items=items), ""))
    assert "unknown variable customer" in problem.message


def test_variables__mark_in_a_text_that_is_sent_as_it_is__is_found() -> None:
    found = prompt_variables(
        context(
            {
                **changed("rail_policy:default", block_texts={"PINJ": "No, {{ agent }}."}),
                **changed("routing_policy:default", fallback_text="{% if x %}Hi{% endif %}"),
            }
        )
    )
    assert sorted(places(found)) == [
        ("rail_policy", "default", "block_texts.PINJ"),
        ("routing_policy", "default", "fallback_text"),
    ]


def test_translations__english_defaults_where_agents_answer_in_portuguese__are_found() -> None:
    found = translations(context(changed("prompt:main", language="pt-BR")))
    assert sorted(places(found)) == [
        ("prompt", "main", "no_evidence_text"),
        ("rail_policy", "default", "block_text"),
        ("rail_policy", "default", "handover_text"),
        ("routing_policy", "default", "clarify_text"),
        ("routing_policy", "default", "failure_text"),
        ("routing_policy", "default", "fallback_text"),
    ]


def test_translations__one_rail_policy_for_two_languages__is_found() -> None:
    said = {"block_text": "Não.", "handover_text": "Um momento."}
    two = {
        **changed("rail_policy:default", **said),
        **changed("routing_policy:default", fallback_text="a", clarify_text="b", failure_text="c"),
        "prompt:pt": {"system": "x", "language": "pt-BR", "no_evidence_text": "Não sei."},
        **changed("agent:orders", prompt="pt"),
    }
    (problem,) = translations(context(two))
    assert "en, pt" in problem.message
    own = {"rail_policy:pt": said, **changed("agent:orders", prompt="pt", rails="pt")}
    assert translations(context({**two, **own})) == []


# -- scale -------------------------------------------------------------------------------------
def _large(count: int) -> Release:
    """A tenant of ``5 * count`` items, where nothing is in order."""
    items: dict[str, Mapping[str, Any]] = {**FULL}
    for number in range(count):
        items |= {
            f"agent:a{number}": {"prompt": f"p{number}", "tools": [f"t{number}"]},
            f"prompt:p{number}": {"system": "x"},
            f"intent:i{number}": {
                "agent": f"a{number}",
                "keywords": ["bill", f"word{number}"],
                "examples": ["My bill is high."],
            },
            f"tool:t{number}": {
                "mcp_server": "crm",
                "requires": ["x"],
                "args_schema": {"x": {}},
            },
            f"parameter_mapping:m{number}": {"tool": f"t{number}", "map": {"x": "y"}},
        }
    return parsed(items)


def _seconds(count: int) -> float:
    """Return the processor time of all gates, the best of three: the machine has other work too."""
    best = []
    for _repetition in range(3):
        given = GateContext(1, "test", "", _large(count), "", parent=_large(count), labels=OWNERS)
        began = time.process_time()
        for gate in GATES:
            gate(given)
        best.append(time.process_time() - began)
    return min(best)


def test_gates__five_times_the_items__take_about_five_times_as_long() -> None:
    small, large = _seconds(200), _seconds(1_000)
    assert large < 12 * small, (small, large)
    assert large < 2, large


# -- delegation --------------------------------------------------------------------------------
def asking(outputs: list[str] | None = None, **delegate: Any) -> Items:
    """Bills asks orders, which reports ``outputs``."""
    entry = {"kind": "scoped", "agent": "orders", "purpose": "Orders.", **delegate}
    return {
        **changed("agent:bills", delegates=[entry]),
        **changed("agent:orders", outputs=outputs or []),
    }


@pytest.mark.parametrize(
    ("outputs", "speaks", "missing"),
    [
        ([], False, "no outputs"),
        ([], True, "no outputs"),
        (["findings"], False, "answered"),
        (["answered", "openQuestions"], False, "findings"),
        (["answered", "findings"], True, "interactionSummary"),
    ],
)
def test_delegates__sub_agent_that_hands_back_too_little__blocks(
    outputs: list[str], speaks: bool, missing: str
) -> None:
    (problem,) = delegates_ready(context(asking(outputs, speaks=speaks)))
    assert (problem.kind, problem.slug, problem.path) == ("agent", "orders", "outputs")
    assert problem.level == "block"
    assert missing in problem.message


@pytest.mark.parametrize(
    ("outputs", "delegate"),
    [
        (["answered", "findings"], {}),
        (["answered", "interactionSummary"], {"speaks": True}),
        ([], {"kind": "consult"}),
        ([], {"kind": "sub_conversation"}),
    ],
)
def test_delegates__that_hand_back_what_is_needed__pass(
    outputs: list[str], delegate: Mapping[str, Any]
) -> None:
    assert delegates_ready(context(asking(outputs, **delegate))) == []


def test_delegates__asking_oneself_without_a_purpose__is_found() -> None:
    entry = {"kind": "consult", "agent": "bills"}
    found = delegates_ready(context(changed("agent:bills", delegates=[entry])))
    assert [(p.path, p.level) for p in found] == [
        ("delegates[0]", "block"), ("delegates[0].purpose", "warn"),
    ]  # fmt: skip


def test_delegates__function_or_role_that_is_there_already__blocks() -> None:
    twice = [
        {"kind": "sub_conversation", "agent": a, "role": "r", "purpose": "p"}
        for a in ("orders", "door")
    ]
    found = delegates_ready(context(changed("agent:bills", delegates=twice)))
    assert [(p.path, p.level) for p in found] == [("delegates[1].role", "block")]
    same = {"kind": "consult", "agent": "orders", "purpose": "p"}
    taken = changed("agent:bills", delegates=[same], tools=["get_bill", "consult_orders"])
    assert places(delegates_ready(context(taken))) == [("agent", "bills", "delegates[0]")]


def test_unreachable__agent_that_another_one_asks__is_reached() -> None:
    items = {
        **changed("agent:bills", delegates=[{"kind": "consult", "agent": "alone"}]),
        "agent:alone": {"prompt": "main"},
    }
    assert unreachable_agents(context(items)) == []
    retired = {"lifecycle": {"status": "retired", "retired_on": "2026-01-01"}, "prompt": "main"}
    (problem, *_) = agents_in_service(context({**items, "agent:alone": retired}))
    assert (problem.path, problem.level) == ("delegates[0].agent", "block")

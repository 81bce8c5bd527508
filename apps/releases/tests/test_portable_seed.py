"""Foreign configuration files in their documented shapes, and what the report says of them."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment

from apps.releases.environments.services import UnboundBindings, release_deploy
from apps.releases.models import Binding
from apps.releases.portable.native import Portable
from apps.releases.portable.report import Report, summary
from apps.releases.portable.seed.importer import seed_read
from apps.releases.portable.seed.profiles import profile_slug
from apps.releases.portable.seed.prompts import literal
from apps.releases.portable.seed.record import as_slug
from apps.releases.portable.transfer import tenant_import
from apps.releases.portable.yaml_source import SourceRefused
from apps.releases.services import release_publish
from apps.releases.tests.conftest import ALICE
from apps.runtime.config import KINDS
from apps.tenants.models import Tenant

FILES = Path(__file__).parent / "seed_files"


@pytest.fixture(scope="module")
def seed() -> tuple[Portable, Report]:
    return seed_read(FILES)


def content(seed: tuple[Portable, Report], kind: str, slug: str) -> dict[str, Any]:
    item = next(i for i in seed[0].items if (i.kind, i.slug) == (kind, slug))
    return KINDS[kind].model_validate(dict(item.content)).model_dump(mode="json")


def told(seed: tuple[Portable, Report], action: str) -> set[tuple[str, str]]:
    """Return (file, path) of the report's lines of ``action``."""
    return {(line.file, line.path) for line in seed[1].lines if line.action == action}


def rendered(template: str) -> str:
    return Environment(keep_trailing_newline=True).from_string(template).render()


def in_folder(tmp_path: Path, **files: str) -> tuple[Portable, Report]:
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return seed_read(tmp_path)


def refusals(tmp_path: Path, **files: str) -> list[str]:
    with pytest.raises(SourceRefused) as refused:
        in_folder(tmp_path, **files)
    return [str(problem) for problem in refused.value.problems]


# -- what becomes of each file -------------------------------------------------------------------
def test_seed__tools__both_server_keys_and_all_confirmation_spellings(seed: Any) -> None:
    bill = content(seed, "tool", "consultar_fatura")
    assert (bill["mcp_server"], bill["tool_type"]) == ("telecom", "read_only")
    assert bill["cache"] == {"enabled": True, "ttl_seconds": 600}
    assert content(seed, "tool", "consultar_pagamentos")["mcp_server"] == "telecom"
    assert content(seed, "tool", "consultar_pagamentos")["cache"]["enabled"] is True
    assert content(seed, "tool", "consultar_pagamentos_financeiro")["cache"]["ttl_seconds"] == 300
    for name in ("solicitar_troca", "solicitar_devolucao"):
        action = content(seed, "tool", name)
        assert (action["tool_type"], action["confirmation_required"]) == ("action", True)
        assert action["requires"] == ["order_id", "reason"]
        assert action["cache"]["enabled"] is False


def test_seed__tool_arguments__short_long_and_json_schema_shapes(seed: Any) -> None:
    line = content(seed, "tool", "consultar_pagamentos")["args_schema"]["msisdn"]
    assert (line["type"], line["label"]) == ("string", "número da linha")
    assert line["user_prompt"] == "Qual é o número da linha?"
    assert line["aliases"] == ["telefone"]
    order = content(seed, "tool", "consultar_pedido")
    assert {name: a["type"] for name, a in order["args_schema"].items()} == {
        "order_id": "string",
        "quantity": "integer",
    }
    assert order["requires"] == ["order_id"]


def test_seed__tool_without_a_type__acting_name_becomes_a_confirmed_action(seed: Any) -> None:
    visit = content(seed, "tool", "registrar_visita")
    assert (visit["tool_type"], visit["confirmation_required"]) == ("action", True)
    assert visit["args_schema"]["technician"]["type"] == "string"
    assert ("config/tools.yaml", "tools.registrar_visita") in told(seed, "derived")
    assert ("config/tools.yaml", "tools.registrar_visita.requires") in told(seed, "warning")


def test_seed__servers__addresses_become_bindings_of_two_environments(seed: Any) -> None:
    assert content(seed, "tool_server", "telecom")["endpoint"] == "telecom_mcp"
    assert content(seed, "tool_server", "telecom")["transport"] == "http"
    assert content(seed, "tool_server", "telecom")["timeout_seconds"] == 20
    assert content(seed, "tool_server", "retail")["transport"] == "streamable_http"
    assert {
        (b.environment, b.name): b.value for b in seed[0].bindings if b.name.endswith("_mcp")
    } == {
        ("dev", "telecom_mcp"): "http://localhost:8100/mcp",
        ("dev", "retail_mcp"): "http://localhost:8200/mcp",
        ("production", "telecom_mcp"): "http://telecom-mcp:8100/mcp",
        ("production", "retail_mcp"): "http://retail-mcp:8200/mcp",
    }


def test_seed__secrets__are_neither_taken_nor_shown(seed: Any) -> None:
    shown = f"{seed[1].as_table()}{seed[1].as_json()}{seed[0]}"
    for secret in ("not-a-real-key-1234", "Bearer abc", "user:secret", "tok-1234567890"):
        assert secret not in shown
    assert ("llm_profiles.yaml", "profiles.default.api_key") in told(seed, "dropped")
    assert ("config/mcp_servers.yaml", "servers.legacy_mcp.endpoint") in told(seed, "dropped")


def test_seed__mapping__undeclared_arguments_mocks_and_business_defaults_are_dropped(
    seed: Any,
) -> None:
    mapping = content(seed, "parameter_mapping", "consultar_fatura")
    assert mapping["map"] == {"customer_key": "msisdn", "contract_key": "invoice_id"}
    assert content(seed, "parameter_mapping", "solicitar_troca")["defaults"] == {}
    assert content(seed, "parameter_mapping", "_global")["defaults"] == {"channel": "web"}
    root = "mcp_parameter_mapping"
    assert {
        path for file, path in told(seed, "dropped") if file == "config/mcp_parameter_mapping.yaml"
    } == {
        f"{root}.defaults.use_mock",
        f"{root}.defaults.locale",
        f"{root}.tools.consultar_fatura.map.interaction_key",
        f"{root}.tools.consultar_fatura.map.session_key",
        f"{root}.tools.solicitar_troca.defaults.reason",
        f"{root}.tools.solicitar_troca.defaults.priority",
        f"{root}.tools.consultar_fatura.extract.mes_referencia",
        f"{root}.tools.consultar_consumo",
    }


def test_seed__report_line__says_file_line_path_value_and_why(seed: Any) -> None:
    line = next(x for x in seed[1].lines if x.path.endswith("solicitar_troca.defaults.reason"))
    assert (line.action, line.file, line.line, line.value, line.reason) == (
        "dropped",
        "config/mcp_parameter_mapping.yaml",
        20,
        "Solicitado pelo cliente",
        "A required argument is never filled by a default.",
    )


def test_seed__identity__version_two_and_aliases_together(seed: Any) -> None:
    customer = content(seed, "identity_key", "customer_key")
    assert customer["sources"][0] == "business_context.customer_key"
    assert customer["identifies_customer"] is True
    assert content(seed, "identity_key", "session_key")["required"] is True
    assert content(seed, "identity_key", "interaction_key")["sources"] == [
        "business_context.interaction_key", "interaction_key", "ura_call_id", "call_id",
    ]  # fmt: skip
    assert ("config/identity.yaml", "identity.aliases.customer_key") in told(seed, "dropped")


def test_seed__rails__known_codes_are_taken_others_kept_for_later(seed: Any) -> None:
    policy = content(seed, "rail_policy", "default")
    assert [rule["code"] for rule in policy["input"]] == ["MSK", "VLOOP"]
    assert {rule["code"]: (rule["enabled"], rule["on_deny"]) for rule in policy["output"]} == {
        "REVPREC": (True, "retry"),
        "DLEX_OUT": (False, ""),
    }
    assert {path for file, path in told(seed, "later") if file == "config/guardrails.yaml"} == {
        "input[2]",
        "output[1]",
        "retrieval",
    }


def test_seed__agents_own_rails__add_to_the_global_ones_and_override(seed: Any) -> None:
    policy = content(seed, "rail_policy", "financeiro_agent")
    assert {rule["code"]: (rule["enabled"], rule["on_deny"]) for rule in policy["input"]} == {
        "MSK": (True, ""),
        "VLOOP": (False, ""),
        "PINJ": (True, "observe"),
    }
    assert content(seed, "agent", "financeiro_agent")["rails"] == "financeiro_agent"
    assert content(seed, "agent", "billing_agent")["rails"] == "default"


def test_seed__judges__aliases_are_known_and_those_not_built_are_listed(seed: Any) -> None:
    policy = content(seed, "judge_policy", "default")
    assert policy["fail_closed"] is False
    assert [(judge["name"], judge["threshold"]) for judge in policy["judges"]] == [
        ("groundedness", 0.8)
    ]
    assert ("config/judges.yaml", "judges[0]") in told(seed, "later")
    assert content(seed, "agent", "financeiro_agent")["judges"] == "financeiro_agent"


def test_seed__routing__intents_states_and_policy(seed: Any) -> None:
    intent = content(seed, "intent", "billing_invoice_explanation")
    assert (intent["agent"], intent["priority"], intent["domain"]) == (
        "billing_agent",
        10,
        "telecom",
    )
    assert intent["mcp_tools"] == ["consultar_fatura", "consultar_pagamentos"]
    policy = content(seed, "routing_policy", "default")
    assert (policy["default_agent"], policy["fallback_agent"]) == (
        "telecom_contas",
        "billing_agent",
    )
    assert policy["confidence_threshold"] == 0.65
    state = content(seed, "state_policy", "WAITING_BILLING_CONFIRMATION")
    assert (state["state"], state["agent"]) == ("WAITING_BILLING_CONFIRMATION", "billing_agent")
    assert {
        ("config/routing.yaml", "router.allow_handoff"),
        ("config/routing.yaml", "intents[0].mcp_tools[2]"),
        ("config/routing.yaml", "intents[0].llm_hint"),
    } <= told(seed, "dropped")


def test_seed__agents__declared_ones_with_members_and_named_ones_are_made(seed: Any) -> None:
    portable = seed[0]
    contas = content(seed, "agent", "telecom_contas")
    assert contas["members"] == ["billing_agent"]
    assert contas["metadata"] == {"tier": "1"}
    item = next(i for i in portable.items if (i.kind, i.slug) == ("agent", "telecom_contas"))
    assert (item.labels["name"], item.labels["owner"]) == ("Telecom Contas", "Ana")
    billing = content(seed, "agent", "billing_agent")
    assert (billing["prompt"], billing["model_profile"]) == ("default", "billing_agent")
    assert billing["tools"] == ["consultar_fatura", "consultar_pagamentos"]
    assert content(seed, "agent", "financeiro_agent")["tools"] == [
        "consultar_titulo_financeiro", "consultar_pagamentos_financeiro",
    ]  # fmt: skip


def test_seed__prompts__prefix_file_and_braces(seed: Any) -> None:
    assert content(seed, "prompt", "telecom_contas")["system"] == (
        "Você está executando o telecom_contas.\n\nVocê cuida de contas e produtos."
    )
    system = content(seed, "prompt", "financeiro_agent")["system"]
    assert rendered(system) == ("Você atende {{finanças}} da empresa.\nPeça só o dado que falta.\n")
    assert content(seed, "prompt", "default")["response_style"] == "objetivo"


def test_seed__model_profiles__providers_names_and_inheritance(seed: Any) -> None:
    default = content(seed, "model_profile", "default")
    assert (default["provider"], default["base_url"], default["credential"]) == (
        "openai_compatible",
        "llm",
        "llm",
    )
    router = content(seed, "model_profile", "router")
    assert (router["provider"], router["max_tokens"], router["temperature"]) == ("", 500, 0)
    assert content(seed, "model_profile", "billing_agent")["base_url"] == "llm_billing_agent"
    assert content(seed, "model_profile", "local")["provider"] == "scripted"


def test_seed__later_kinds__are_listed_entry_by_entry(seed: Any) -> None:
    assert {
        ("config/backends.yaml", "default_backend"),
        ("config/backends.yaml", "backends.contas"),
        ("config/backends.yaml", "backends.ofertas"),
        ("config/gateway_governance.yaml", "rate_limits.default"),
        ("config/gateway_governance.yaml", "model_governance.profiles"),
        ("config/mcp_gateway.yaml", "auth"),
        ("config/mcp_gateway.yaml", "tools.consultar_fatura"),
    } <= told(seed, "later")


def test_seed__mcp_gateway__tool_fields_are_merged_where_tools_yaml_is_silent(seed: Any) -> None:
    bill = content(seed, "tool", "consultar_fatura")
    assert (bill["idempotent"], bill["timeout_seconds"]) == (True, 12)
    assert bill["cache"]["ttl_seconds"] == 600
    gateway = "config/mcp_gateway.yaml"
    assert (gateway, "tools.consultar_fatura.cache_ttl_seconds") in told(seed, "warning")
    assert (gateway, "tools.solicitar_troca.cache_ttl_seconds") in told(seed, "dropped")
    assert (gateway, "tools.emitir_nota") in told(seed, "warning")


def test_seed__files_nobody_reads__are_listed(seed: Any) -> None:
    assert {file for file, path in told(seed, "dropped") if not path} == {
        "settings.env",
        "config/observability.yaml",
        "config/agents/financeiro_agent/notes.md",
    }


# -- the whole way -------------------------------------------------------------------------------
def test_seed__imported_and_published__only_what_the_report_named_is_missing(
    seed: Any, acme: Tenant
) -> None:
    done = tenant_import(portable=seed[0], actor=ALICE)
    assert done.dangling == ["tool registrar_visita: mcp_server → tool_server:campo"]
    assert Binding.objects.count() == 6
    again = tenant_import(portable=seed[0], actor=ALICE)
    assert set(again.changes.values()) == {"unchanged"}


def test_seed__without_contradictions__publishes_and_names_what_is_unbound(
    acme: Tenant, tmp_path: Path
) -> None:
    root = tmp_path / "seed"
    shutil.copytree(FILES, root)
    tools = root / "config" / "tools.yaml"
    tools.write_text(tools.read_text().replace("mcp_server: campo", "mcp_server: retail"))

    tenant_import(portable=seed_read(root)[0], actor=ALICE)
    release = release_publish(actor=ALICE)

    with pytest.raises(UnboundBindings) as unbound:
        release_deploy(release=release, environment="production", actor=ALICE)
    assert {entry["name"] for entry in unbound.value.missing} == {
        "legacy_mcp",
        "llm",
        "llm_billing_agent",
    }


# -- other documented shapes ---------------------------------------------------------------------
def test_seed__routing_as_a_map_with_routes__is_read_like_the_list(tmp_path: Path) -> None:
    portable, _report = in_folder(
        tmp_path,
        routing="""
routing:
  mode: supervisor
  intents:
    consulta:
      route: contas
      keywords: [fatura]
      tools: []
""",
    )
    intent = next(i for i in portable.items if i.kind == "intent")
    assert (intent.slug, intent.content["agent"]) == ("consulta", "contas")
    policy = next(i for i in portable.items if i.kind == "routing_policy")
    assert policy.content["mode"] == "supervisor"
    assert [i.slug for i in portable.items if i.kind == "agent"] == ["contas"]


def test_seed__identity_version_one__aliases_become_sources(tmp_path: Path) -> None:
    portable, report = in_folder(
        tmp_path, identity="identity:\n  aliases:\n    customer_key: [customer_key, cpf]\n"
    )
    key = next(i for i in portable.items if i.kind == "identity_key")
    assert key.content["sources"] == ["business_context.customer_key", "customer_key", "cpf"]
    assert key.content["identifies_customer"] is True
    assert not [line for line in report.lines if line.file == "identity.yaml"]


def test_seed__tool_policies__win_over_tools(tmp_path: Path) -> None:
    portable, _report = in_folder(
        tmp_path,
        tools="tools:\n  mudar: {mcp_server: x, args_schema: {id: string}}\n",
        tool_policies="""
version: 1
tools:
  mudar: {operation_type: transactional, require_confirmation: true, requires: [id]}
""",
    )
    tool = next(i for i in portable.items if i.kind == "tool")
    assert (tool.content["tool_type"], tool.content["confirmation_required"]) == ("action", True)
    assert tool.content["requires"] == ["id"]


def test_seed__judges_as_plain_names__are_taken(tmp_path: Path) -> None:
    portable, _report = in_folder(tmp_path, judges="judges: [groundedness]\n")
    policy = next(i for i in portable.items if i.kind == "judge_policy")
    assert policy.content["judges"] == [{"name": "groundedness"}]


def test_seed__agents_own_routing_file__is_a_warning_and_listed(tmp_path: Path) -> None:
    portable, report = in_folder(
        tmp_path,
        agents="agents:\n  - {agent_id: a, routing_config_path: ./a_routing.yaml}\n",
        a_routing="intents: []\n",
    )
    assert {(line.action, line.file, line.path) for line in report.lines} >= {
        ("warning", "agents.yaml", "agents[0].routing_config_path"),
        ("dropped", "a_routing.yaml", ""),
    }
    assert [i.slug for i in portable.items if i.kind == "agent"] == ["a"]


def test_seed__aliases_that_disagree__are_a_warning(tmp_path: Path) -> None:
    portable, report = in_folder(
        tmp_path, tools="tools:\n  t: {mcp_server: a, server: b, args_schema: {}}\n"
    )
    assert next(i for i in portable.items if i.kind == "tool").content["mcp_server"] == "a"
    assert ("warning", "tools.t.server", "b") in {(x.action, x.path, x.value) for x in report.lines}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"agents": "agents:\n  - agent_id: a\n  - agent_id: a\n"},
            "agents.yaml:3 agents[1]: agent a stands twice; first in agents.yaml, line 2.",
        ),
        (
            {"tools": "tools:\n  t: {server: x}\n  t: {server: x}\n"},
            "tools.yaml:3 tools.t: The key stands twice; first on line 2.",
        ),
        ({"tools": "tools:\n  t: {}\n"}, "tools.yaml:2 tools.t: The tool names no mcp_server."),
        ({"routing": "intents:\n  - name: i\n"}, "routing.yaml:2 intents[0]: The intent names no"),
        ({"routing": "intents:\n  - agent: a\n"}, "routing.yaml:2 intents[0]: It has no name"),
        (
            {"routing": "intents:\n  - {name: i, agent: a, priority: high}\n"},
            "routing.yaml:2 intents[0].priority: A number is expected.",
        ),
        (
            {"routing": "intents:\n  - {name: i, agent: a, priority: -1}\n"},
            "routing.yaml:2 intents[0]: intent i, priority: Input should be greater than",
        ),
        (
            {"routing": "intents:\n  - {name: i, agent: a, enabled: maybe}\n"},
            "routing.yaml:2 intents[0].enabled: true or false is expected.",
        ),
        (
            {"routing": "intents:\n  - {name: i, agent: a, keywords: [{a: b}]}\n"},
            "routing.yaml:2 intents[0].keywords: A list of texts is expected.",
        ),
        ({"guardrails": "input: MSK\n"}, "guardrails.yaml:1 input: A list of rails is expected."),
        ({"agents": "agents: nobody\n"}, "agents.yaml:1 agents: A list or a map is expected."),
        ({"judges": "- name: x\n"}, "judges.yaml:1: Expected a map of fields."),
    ],
)
def test_seed__bad_file__is_refused_with_file_line_and_path(
    tmp_path: Path, files: dict[str, str], expected: str
) -> None:
    found = refusals(tmp_path, **files)
    assert any(line.startswith(expected) for line in found), found


def test_seed__prompt_file_outside_the_folder__is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("outside")
    inside = tmp_path / "config"
    inside.mkdir()
    found = refusals(inside, prompt_policy="system_prompt_path: ../secret.txt\n")
    assert found == [
        "prompt_policy.yaml:1 system_prompt_path: There is no such file in the folder.",
        "prompt_policy.yaml:1: The file has no system text.",
    ]


def test_seed__folder_without_a_known_file__is_refused(tmp_path: Path) -> None:
    assert "No known file in this folder." in refusals(tmp_path, other="a: 1\n")[0]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("segunda via", "segunda_via"),
        ("Devolução/Troca", "Devolucao_Troca"),
        ("_global", "_global"),
        ("a:b.c-d", "a:b.c-d"),
    ],
)
def test_as_slug__odd_name__becomes_a_valid_slug(name: str, slug: str) -> None:
    assert as_slug(name) == slug


@pytest.mark.parametrize(
    ("name", "slug"),
    [("billingAgent", "billing_agent"), ("rag-generation", "rag_generation"), ("a.b", "a_b")],
)
def test_profile_slug__other_spellings__are_the_same_name(name: str, slug: str) -> None:
    assert profile_slug(name) == slug


@pytest.mark.parametrize("text", ["{{ x }}", "{% if %}", "{# no #}", "{{{%{#", "a } %} #}"])
def test_literal__template_marks__come_out_as_they_were(text: str) -> None:
    assert rendered(literal(text)) == text


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("a.api_key", "k", "(hidden)"),
        ("a.password", "k", "(hidden)"),
        ("a.max_tokens", 5, "5"),
        ("a.customer_key", "msisdn", "msisdn"),
        ("a.b", "x" * 80, "x" * 59 + "…"),
        ("a.b", [1, 2], "list of 2"),
        ("a.b", "http://u:p@h/", "http://…@h/"),
        ("a.b", True, "true"),
    ],
)
def test_summary__value__is_short_and_hides_secrets(path: str, value: Any, shown: str) -> None:
    assert summary(path, value) == shown


POLICY_FILES = {
    "mcp_servers": "servers: {crm: {endpoint: 'http://127.0.0.1:9/mcp', transport: streamable_http}}",
    "tools": """
tools:
  cancelar_pedido:
    server: crm
    tool_type: action
    confirmation_required: true
    allowed_channels: [web]
    retry: {enabled: true, max_attempts: 3, backoff_ms: 100}
    sla: 99.5 %
    args_schema:
      order_id: {type: string, pattern: '^PED-[0-9]+$'}
      quando: {type: [string, "null"], format: date}
      itens: {type: array, items: {type: object, required: [sku]}}
      valor: number
    requires: [order_id]
  ver_pedido:
    mcp_server: crm
    tool_type: read_only
    cache: true
    args_schema: {order_id: string}
""",
    "tool_policies": """
version: 1
defaults: {operation_type: read_only, require_confirmation: false}
tools:
  cancelar_pedido:
    requires: [motivo]
    pre_validation: {enabled: true, tool: ver_pedido, fail_open: true}
    execution: {mode: direct_tool, version: active}
  ver_pedido: {}
""",
    "mcp_parameter_mapping": """
tools:
  cancelar_pedido:
    extract:
      quando: {from: message, type: string, strategy: date}
      valor: {from: message, strategy: hybrid, pattern: 'R\\$ (\\d+)', group: 1, description: amount}
      motivo: {strategy: llm}
      fora: {strategy: llm}
""",
}


def test_seed__tool_policies__are_taken_and_defaults_weaken_nothing(tmp_path: Path) -> None:
    read = in_folder(tmp_path, **POLICY_FILES)

    action = content(read, "tool", "cancelar_pedido")
    assert (action["tool_type"], action["confirmation_required"]) == ("action", True)
    assert action["requires"] == ["order_id", "motivo"]
    assert action["pre_validation"] == {"tool": "ver_pedido", "fail_open": True}
    assert action["execution"]["mode"] == "direct_tool"
    assert action["allowed_channels"] == ["web"]
    assert action["retry"] == {"max_attempts": 3, "backoff_ms": 100}
    assert action["sla"] == "99.5 %"
    query = content(read, "tool", "ver_pedido")
    assert (query["tool_type"], query["mcp_server"], query["cache"]["enabled"]) == (
        "read_only", "crm", True,
    )  # fmt: skip


def test_seed__argument_schemas__keep_their_rules(tmp_path: Path) -> None:
    arguments = content(in_folder(tmp_path, **POLICY_FILES), "tool", "cancelar_pedido")[
        "args_schema"
    ]

    assert arguments["order_id"]["json_schema"] == {"pattern": "^PED-[0-9]+$"}
    assert (arguments["quando"]["nullable"], arguments["quando"]["json_schema"]) == (
        True, {"format": "date"},
    )  # fmt: skip
    assert arguments["itens"]["items"] == "object"
    assert arguments["itens"]["json_schema"] == {"items": {"type": "object", "required": ["sku"]}}


def test_seed__extract_blocks__become_extractions_of_declared_arguments(tmp_path: Path) -> None:
    read = in_folder(tmp_path, **POLICY_FILES)

    extract = content(read, "parameter_mapping", "cancelar_pedido")["extract"]
    assert {name: how["strategy"] for name, how in extract.items()} == {
        "quando": "date", "valor": "hybrid", "motivo": "llm",
    }  # fmt: skip
    assert (extract["valor"]["pattern"], extract["valor"]["group"]) == (r"R\$ (\d+)", 1)
    path = "tools.cancelar_pedido.extract"
    assert ("mcp_parameter_mapping.yaml", f"{path}.fora") in told(read, "dropped")
    assert ("mcp_parameter_mapping.yaml", f"{path}.motivo") in told(read, "warning")


@pytest.mark.parametrize(
    ("entry", "at"),
    [
        ("{strategy: guess}", ".strategy"),
        ("{strategy: llm, from: session}", ".from"),
        ("{strategy: regex, pattern: '(?=x)'}", ""),
        ("{strategy: regex}", ""),
    ],
)
def test_seed__extract_that_cannot_be_meant__is_refused_at_its_place(
    tmp_path: Path, entry: str, at: str
) -> None:
    mapping = f"tools: {{cancelar_pedido: {{extract: {{quando: {entry}}}}}}}"

    with pytest.raises(SourceRefused) as refused:
        in_folder(tmp_path, **{**POLICY_FILES, "mcp_parameter_mapping": mapping})

    (problem,) = refused.value.problems
    assert problem.path.startswith("tools.cancelar_pedido")
    assert problem.path.endswith(at)


def test_seed__check_by_a_tool_there_is_not__is_refused(tmp_path: Path) -> None:
    policies = "tools: {cancelar_pedido: {pre_validation: {enabled: true, tool: nenhuma}}}"

    with pytest.raises(SourceRefused, match="no such tool"):
        in_folder(tmp_path, **{**POLICY_FILES, "tool_policies": policies})

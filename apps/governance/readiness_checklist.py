"""What an agent needs before and while it serves customers: reference 13.3, 13.4, 13.5 and 13.8.

Data only. A *topic* is one question; a *section* is a list of topics somebody goes through. The same
topic stands in several sections and is answered once.
"""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Text = str | Promise

TOPICS: dict[str, Text] = {
    # -- does it fit -----------------------------------------------------------------------------
    "fits": _("It is conversational, of several agents, uses tools or documents, is regulated or on"
              " corporate channels (one is enough)"),
    "not_excluded": _("It is none of these: plain forms over a table, a data pipeline, a scheduled"
                      " job, a utility, a proxy"),
    # -- business --------------------------------------------------------------------------------
    "owner": _("Owner"),
    "technical_owner": _("Technical owner"),
    "goal": _("Objective"),
    "in_scope": _("What it does"),
    "out_of_scope": _("What it does not do"),
    "business_problem": _("Business problem"),
    "users": _("Users"),
    "channels": _("Channels"),
    "systems": _("Systems"),
    "documents": _("Documents"),
    "success": _("Measure of success"),
    "risks": _("Risks"),
    # -- architecture ----------------------------------------------------------------------------
    "structure": _("Structure of the configuration"),
    "contracts": _("Contracts"),
    "runtime": _("Runtime"),
    "gateways": _("Gateways"),
    "gateway_request": _("GatewayRequest"),
    "business_context": _("BusinessContext"),
    "health": _("Health"),
    "logs": _("Logs"),
    "traces": _("Traces"),
    # -- security --------------------------------------------------------------------------------
    "authn": _("Authentication"),
    "authz": _("Authorisation"),
    "external_secrets": _("Secrets kept outside"),
    "pii_mask": _("Personal data masked"),
    "audit": _("Audit"),
    "risk_review": _("Risk review"),
    "security": _("Security review"),
    "identity": _("Identity"),
    "sensitive_data": _("Sensitive data"),
    "external_mcp": _("External tool servers"),
    # -- quality ---------------------------------------------------------------------------------
    "unit_tests": _("Unit tests"),
    "integration_tests": _("Integration tests"),
    "contract_tests": _("Contract tests"),
    "mcp_tests": _("Tests of tools"),
    "rag_tests": _("Tests of retrieval"),
    "guardrail_tests": _("Tests of rails"),
    "judge_tests": _("Tests of judges"),
    "runtime_tests": _("Tests of the runtime"),
    "channel_tests": _("Tests of channels"),
    "tests": _("Test report"),
    "dataset": _("Regression dataset"),
    "evaluator": _("Evaluator report"),
    "thresholds": _("Thresholds"),
    "certification": _("Certification report"),
    "certification_plan": _("Certification plan"),
    # -- operation -------------------------------------------------------------------------------
    "metrics": _("Metrics"),
    "dashboards": _("Dashboards"),
    "alerts": _("Alerts"),
    "runbook": _("Runbook"),
    "rollback": _("Rollback tried"),
    "slo": _("Service levels (SLO)"),
    "observability_plan": _("Observability plan"),
    "approved_deploy": _("Approved deployment in production"),
    # -- design ----------------------------------------------------------------------------------
    "registered": _("Registered"),
    "routes": _("Routed"),
    "intents": _("Intents"),
    "tools": _("Tools declared"),
    "mapping": _("Parameter mapping"),
    "namespaces": _("Namespaces"),
    "prompt": _("Versioned prompt"),
    "guardrails": _("Rails"),
    "judges": _("Judges"),
    "mcp_owner": _("Owner of each tool"),
    "mcp_sla": _("Service level of each tool"),
    "mcp_timeout": _("Timeout of each tool"),
    "mcp_retry": _("Retries of each tool"),
    "mcp_cache": _("Cache of each tool"),
    "mcp_mutable": _("Actions confirmed or idempotent"),
    "rag_design": _("Design of retrieval"),
    "implementation": _("Implementation"),
    "documentation": _("Documentation"),
    # -- what may be left out, with a reason -----------------------------------------------------
    "rag": _("Retrieval (RAG)"),
    "mcp": _("Tools (MCP)"),
    "memory": _("Memory"),
    "handoff": _("Handover to a person"),
    "external_channel": _("External channel"),
    # -- acceptance ------------------------------------------------------------------------------
    "accepted_business": _("Accepted by the business"),
    "accepted_architecture": _("Accepted by architecture"),
    "accepted_security": _("Accepted by security"),
    "accepted_operation": _("Accepted by operations"),
    "accepted_integration": _("Accepted by integration"),
    # -- artefacts -------------------------------------------------------------------------------
    "image": _("Image"),
    "package": _("Package"),
    "release_notes": _("Release notes"),
    "matrix": _("Compatibility matrix"),
    "migration_guide": _("Migration guide"),
    "sbom": _("Bill of materials (SBOM)"),
    "scan_evidence": _("Evidence of scans"),
    "changelog": _("Changelog"),
}  # fmt: skip
"""Topic → its name."""

EXEMPTIBLE = ("rag", "mcp", "memory", "handoff", "external_channel")
"""What an agent may go without; each with a reason, who approved it and until when."""


@dataclass(frozen=True)
class Section:
    """A list somebody goes through: ``source`` is where the reference has it."""

    code: str
    title: Text
    source: str
    topics: tuple[str, ...]


def _section(code: str, title: Text, source: str, topics: str) -> Section:
    return Section(code, title, source, tuple(topics.split()))


CHECKLIST: tuple[Section, ...] = (
    _section("fit", _("Fit"), "13.3", "fits not_excluded"),
    _section(
        "entry_business", _("Entry: business"), "13.3",
        "owner technical_owner goal in_scope out_of_scope channels systems documents success risks",
    ),
    _section(
        "entry_architecture", _("Entry: architecture"), "13.3",
        "contracts health logs traces dataset evaluator certification",
    ),
    _section(
        "entry_security", _("Entry: security"), "13.3",
        "authn authz external_secrets pii_mask audit risk_review",
    ),
    _section(
        "entry_quality", _("Entry: quality"), "13.3",
        "unit_tests integration_tests dataset evaluator thresholds certification",
    ),
    _section(
        "entry_operation", _("Entry: operation"), "13.3",
        "metrics dashboards alerts runbook rollback slo",
    ),
    _section("exceptions", _("What it may go without"), "13.3", " ".join(EXEMPTIBLE)),
    _section(
        "adoption", _("Adoption: eleven points"), "13.3",
        "owner technical_owner in_scope out_of_scope gateway_request business_context security"
        " dataset evaluator certification_plan observability_plan",
    ),
    _section(
        "discovery", _("Life: discovery"), "13.4",
        "business_problem users channels systems documents risks",
    ),
    _section("scope", _("Life: scope"), "13.4", "in_scope out_of_scope"),
    _section(
        "agent_design", _("Life: agent design"), "13.4",
        "registered routes intents business_context tools namespaces memory handoff",
    ),
    _section("prompt_design", _("Life: prompt design"), "13.4", "prompt"),
    _section(
        "mcp_design", _("Life: tool design"), "13.4",
        "mcp mcp_owner mcp_sla mcp_timeout mcp_retry mcp_cache mcp_mutable",
    ),
    _section("rag_design", _("Life: retrieval design"), "13.4", "rag rag_design"),
    _section("implementation", _("Life: implementation"), "13.4", "implementation"),
    _section(
        "testing", _("Life: testing"), "13.4",
        "unit_tests integration_tests contract_tests mcp_tests rag_tests guardrail_tests"
        " judge_tests runtime_tests channel_tests",
    ),
    _section("evaluation", _("Life: evaluation"), "13.4", "dataset evaluator thresholds"),
    _section("certification", _("Life: certification"), "13.4", "certification"),
    _section(
        "homologation", _("Life: homologation"), "13.4",
        "accepted_business accepted_architecture accepted_security accepted_operation"
        " accepted_integration",
    ),
    _section(
        "production", _("Life: production"), "13.4",
        "approved_deploy alerts dashboards rollback runbook",
    ),
    _section(
        "gate_architecture", _("Gate: architecture"), "13.5", "structure contracts runtime gateways"
    ),
    _section(
        "gate_security", _("Gate: security"), "13.5",
        "external_secrets identity sensitive_data external_mcp",
    ),
    _section("gate_quality", _("Gate: quality"), "13.5", "tests evaluator certification"),
    _section(
        "gate_operations", _("Gate: operations"), "13.5", "dashboards alerts runbook rollback"
    ),
    _section(
        "artefacts", _("Artefacts"), "13.5",
        "image package release_notes matrix migration_guide evaluator certification sbom"
        " scan_evidence changelog",
    ),
    _section(
        "done", _("Definition of done"), "13.8",
        "registered routes tools mapping prompt guardrails judges dataset tests traces certification"
        " documentation",
    ),
)  # fmt: skip

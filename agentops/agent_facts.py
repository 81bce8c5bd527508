"""What the product knows by itself of an agent's readiness. ``READINESS_FACTS`` names it.

Read from the newest release (parsed once per process), the labels of the tenant's items, and what its
environments did. A topic that is not here is answered by people.
"""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from agentops.gates.agents import leading
from agentops.gates.tools import arguments_filled
from apps.agents.config import AgentConfig, MemoryPolicyConfig, PromptConfig
from apps.conversations.config import IdentityKeyConfig
from apps.evals.config import JudgePolicyConfig
from apps.governance.approval_models import Evidence
from apps.governance.compatibility import is_supported
from apps.governance.config import RailPolicyConfig
from apps.governance.contracts import contracts_shown
from apps.governance.evidence import evidence_newest
from apps.governance.readiness import Fact
from apps.releases.change_models import DeploymentEvent
from apps.releases.gates import GateContext, item_labels
from apps.releases.models import Deployment, Release
from apps.releases.selectors import release_load
from apps.routing.config import IntentConfig
from apps.runtime import release as runtime_release
from apps.tenants.scope import current_tenant_id
from apps.tools.config import ToolConfig, ToolServerConfig

Facts = dict[str, Fact]


def facts_of_agent(agent: str) -> Mapping[str, Fact]:
    """Return topic → fact of the agent ``agent`` (see ``readiness_checklist.TOPICS``)."""
    labels = item_labels()
    own = labels.get(("agent", agent), {"name": "", "owner": "", "technical_owner": ""})
    facts: Facts = {
        "owner": Fact(bool(own["owner"]), own["owner"] or _("No owner is set.")),
        "technical_owner": Fact(
            bool(own["technical_owner"]), own["technical_owner"] or _("None is set.")
        ),
        **_by_design(),
        **_deployed(agent),
    }
    newest = Release.objects.defer("manifest").order_by("-number").first()
    if newest is None:
        facts["registered"] = Fact(False, _("Nothing is published yet."))
        return facts
    release = release_load(current_tenant_id(), newest.pk)
    config = release.find(AgentConfig, agent)
    where = _("Release #%(number)s.") % {"number": newest.number}
    facts["registered"] = Fact(config is not None, where)
    facts |= _proved(newest)
    if config is None:
        return facts
    owned = {slug for (kind, slug), label in labels.items() if kind == "tool" and label["owner"]}
    return {
        **facts,
        **_designed(release, agent, config),
        **_tooled(release, agent, config, owned),
        **_guarded(release, config),
    }


def _by_design() -> Facts:
    """What every agent of this product has, whatever its configuration."""
    return {
        "authn": Fact(True, _("Every call proves who it is: key, login or signed token.")),
        "authz": Fact(True, _("Roles and scopes; a tool runs only from the agent's allow-list.")),
        "external_secrets": Fact(True, _("Configuration holds names of secrets, never secrets.")),
        "audit": Fact(True, _("Every change is in the hash-chained audit trail.")),
        "health": Fact(True, "/health, /ready, /version"),
        "logs": Fact(True, _("Structured logs of the product.")),
        "gateway_request": Fact(True, "gateway-request-v1"),
        "matrix": Fact(is_supported(_version()), _("Compatibility matrix of the tenant.")),
        "contracts": Fact(
            any(c.status == "active" for c in contracts_shown()),
            ", ".join(str(c) for c in contracts_shown()[:5]),
        ),
        "structure": Fact(True, _("Every release passed its gates.")),
    }


def _version() -> str:
    from django.conf import settings

    return str(settings.VERSION)


def _deployed(agent: str) -> Facts:
    rolled = DeploymentEvent.objects.filter(verb=DeploymentEvent.Verb.ROLL_BACK).first()
    facts = {
        "rollback": Fact(
            rolled is not None,
            _("Rolled back in %(environment)s by %(actor)s.")
            % {"environment": rolled.environment, "actor": rolled.actor}
            if rolled
            else _("No environment was ever rolled back."),
        )
    }
    live = Deployment.objects.select_related("release").filter(environment="production").first()
    has = False
    if live is not None:
        release = release_load(current_tenant_id(), live.release_id)
        has = release.find(AgentConfig, agent) is not None
    text = _("Production runs release #%(number)s.") % {
        "number": live.release.number if live else 0
    }
    facts["approved_deploy"] = Fact(has, text if live else _("Production runs nothing."))
    return facts


def _proved(newest: Release) -> Facts:
    """Results about the newest release; without any, people answer."""
    facts: Facts = {}
    for topic, what in (
        ("tests", Evidence.What.TESTS),
        ("evaluator", Evidence.What.EVALUATION),
        ("certification", Evidence.What.CERTIFICATION),
        ("security", Evidence.What.SECURITY),
    ):
        row = evidence_newest(newest.sha256, what)
        if row is not None:
            facts[topic] = Fact(row.passed, row.summary or row.link or row.result_sha256[:12])
    return facts


def _designed(release: runtime_release.Release, agent: str, config: AgentConfig) -> Facts:
    intents = [s for s, i in release.all(IntentConfig).items() if i.agent == agent and i.enabled]
    led = [f"{k}:{s}" for k, s, _path, to in leading(release) if to == agent]
    memory = release.find(MemoryPolicyConfig, config.memory)
    prompt = release.find(PromptConfig, config.prompt)
    keys = list(release.all(IdentityKeyConfig))
    return {
        "goal": Fact(bool(config.objective.strip()), config.objective or _("None is set.")),
        "routes": Fact(bool(led) or bool(config.members), ", ".join(led[:5]) or "–"),
        "intents": Fact(bool(intents) or bool(config.members), ", ".join(intents[:5]) or "–"),
        "memory": Fact(memory is not None and memory.strategy != "none", config.memory),
        "prompt": Fact(prompt is not None, config.prompt),
        "business_context": Fact(bool(keys), ", ".join(keys[:6]) or _("No identity keys.")),
        "identity": Fact(
            any(k.identifies_customer for k in release.all(IdentityKeyConfig).values()),
            _("A key identifies the customer by credential only."),
        ),
    }


def _tooled(
    release: runtime_release.Release, agent: str, config: AgentConfig, owned: set[str]
) -> Facts:
    tools = {slug: tool for slug in config.tools if (tool := release.find(ToolConfig, slug))}
    if not tools:
        return {"mcp": Fact(False, _("It has no tools."))}
    named = ", ".join(list(tools)[:5])
    servers = release.all(ToolServerConfig)
    timed = all(
        tool.timeout_seconds
        or (tool.mcp_server in servers and servers[tool.mcp_server].timeout_seconds)
        for tool in tools.values()
    )
    unmapped = [
        problem.path
        for problem in arguments_filled(GateContext(current_tenant_id(), "", "", release, ""))
        if problem.slug in tools and problem.kind == "tool"
    ]
    promised_not = [slug for slug, tool in tools.items() if not tool.sla.strip()]
    loose = [
        slug
        for slug, tool in tools.items()
        if tool.tool_type == "action" and not (tool.confirmation_required or tool.idempotent)
    ]
    return {
        "mcp": Fact(True, named),
        "tools": Fact(True, named),
        "mapping": Fact(not unmapped, ", ".join(unmapped[:5]) or _("Every argument is filled.")),
        "mcp_owner": Fact(set(tools) <= owned, ", ".join(sorted(set(tools) - owned)[:5]) or named),
        "mcp_sla": Fact(not promised_not, ", ".join(promised_not[:5]) or named),
        "mcp_timeout": Fact(timed, named),
        "mcp_mutable": Fact(not loose, ", ".join(loose[:5]) or named),
    }


def _guarded(release: runtime_release.Release, config: AgentConfig) -> Facts:
    rails = release.find(RailPolicyConfig, config.rails) or RailPolicyConfig()
    judges = release.find(JudgePolicyConfig, config.judges) or JudgePolicyConfig()
    on = [rule.code for rule in (*rails.input, *rails.output) if rule.enabled]
    scoring = [judge.name for judge in judges.judges if judge.enabled] if judges.enabled else []
    masked = all(
        any(rule.code == "MSK" and rule.enabled for rule in side)
        for side in (rails.input, rails.output)
    )
    return {
        "guardrails": Fact(bool(on), ", ".join(dict.fromkeys(on)) or "–"),
        "judges": Fact(bool(scoring), ", ".join(scoring) or "–"),
        "thresholds": Fact(
            bool(scoring), ", ".join(f"{j.name} {j.threshold}" for j in judges.judges)
        ),
        "pii_mask": Fact(masked, _("Rail MSK on what comes in and what goes out.")),
        "sensitive_data": Fact(masked, _("Rail MSK on what comes in and what goes out.")),
    }

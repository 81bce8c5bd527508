"""How risky a change is: one table, a line for each way to weaken, and for what is only cosmetic.

Pure: contents in, findings out. A change no line knows is ``behaviour``, never cosmetic by accident.
A weakening counts wherever it hides: each line compares items field by field and entry by entry, a
new item with what its kind says by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.governance.weakening import (
    allowances,
    connections,
    cosmetic,
    delegation,
    identity,
    judges,
    locked,
    rails,
    routing,
    tools,
    workflows,
)
from apps.governance.weakening.edited import Content, Edited, Finder, defaults
from apps.releases.changes.policy import RISKS, ItemEdit, Risk
from apps.releases.patches.diff import content_diff

COSMETIC, BEHAVIOUR, WEAKENING = RISKS
# Without an item of these kinds, what their class says by itself holds.
FALLS_BACK = ("routing_policy",)


@dataclass(frozen=True)
class Rule:
    """One line: for items of ``kinds``, ``find`` yields the paths where a change is of ``risk``.

    ``on_archive``: the line is about items that leave, the others about those that stay.
    ``unless_found``: only where no line above has found anything.
    """

    code: str
    kinds: tuple[str, ...]
    find: Finder
    message: Any
    risk: str = WEAKENING
    on_archive: bool = False
    unless_found: bool = False


FLOW = ("workflow",)
RAILS, JUDGES, TOOL, AGENT = ("rail_policy",), ("judge_policy",), ("tool",), ("agent",)
PROFILE, SERVER, IDENTITY, MAPPING = (
    ("model_profile",), ("tool_server",), ("identity_key",), ("parameter_mapping",)
)  # fmt: skip
DESCRIBED = ("agent", "intent", "identity_key", "state_policy", "tool_server")

# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("rail_removed", RAILS, rails.removed, _("A rail was taken out of the policy.")),
    Rule("rail_disabled", RAILS, rails.disabled, _("A rail was switched off.")),
    Rule("rail_action_relaxed", RAILS, rails.action_relaxed, _("A rail that denies does less about it.")),
    Rule("rail_fails_open", RAILS, rails.fails_open, _("When the rail breaks, the text passes.")),
    Rule("pinj_threshold_raised", RAILS, rails.pinj_threshold_raised, _("More of an injection is tolerated before PINJ denies.")),
    Rule("input_size_raised", RAILS, rails.input_size_raised, _("Longer messages are accepted.")),
    Rule("vloop_repeats_raised", RAILS, rails.vloop_repeats_raised, _("A message may be repeated more often.")),
    Rule("vloop_window_lowered", RAILS, rails.vloop_window_lowered, _("Repetitions are looked for in fewer messages.")),
    Rule("msk_skip_widened", RAILS, rails.msk_skip_widened, _("Another sort of personal data is left unmasked.")),
    Rule("msk_allow_widened", RAILS, rails.msk_allow_widened, _("Another contact may be named in answers.")),
    Rule("prompt_words_raised", RAILS, rails.prompt_words_raised, _("A longer quotation of the prompt passes.")),
    Rule("rail_policy_archived", RAILS, locked.archived, _("A rail policy leaves the configuration."), on_archive=True),
    Rule("rail_policy_replaced", AGENT, allowances.rails_replaced, _("The agent answers under another rail policy, laxer or not known to be as strict.")),
    Rule("judges_off", JUDGES, judges.switched_off, _("No judge of the policy runs any more.")),
    Rule("judges_fail_open", JUDGES, judges.fails_open, _("When a judge breaks, the answer passes.")),
    Rule("judge_removed", JUDGES, judges.removed, _("A judge was taken out of the policy.")),
    Rule("judge_disabled", JUDGES, judges.disabled, _("A judge was switched off.")),
    Rule("judge_threshold_lowered", JUDGES, judges.threshold_lowered, _("Worse answers pass the judge.")),
    Rule("judge_action_relaxed", JUDGES, judges.action_relaxed, _("Less is done about an answer that fails.")),
    Rule("judge_policy_archived", JUDGES, locked.archived, _("A judge policy leaves the configuration."), on_archive=True),
    Rule("judge_policy_replaced", AGENT, allowances.judges_replaced, _("The agent is judged by another policy, laxer or not known to be as strict.")),
    Rule("confidence_lowered", ("routing_policy",), allowances.confidence_lowered, _("An agent answers that is less sure to be the right one.")),
    Rule("margin_lowered", ("routing_policy",), allowances.margin_lowered, _("The customer is asked less often which subject is meant.")),
    Rule("person_unheard", ("routing_policy",), routing.person_unheard, _("A customer who asks for a person is not heard any more.")),
    Rule("routed_by_model", ("routing_policy",), routing.routed_by_model, _("A model says who answers where rules did.")),
    Rule("likeness_lowered", ("routing_policy",), routing.likeness_lowered, _("An agent answers for a message that is less like its examples.")),
    Rule("continuity_lowered", ("routing_policy",), routing.continuity_lowered, _("The last agent is kept by a model that is less sure.")),
    Rule("messages_sent_elsewhere", ("routing_policy",), routing.messages_sent_elsewhere, _("Messages are sent to another service to be compared by meaning.")),
    Rule("hops_raised", ("routing_policy",), routing.hops_raised, _("A message is passed on more often before it is answered.")),
    Rule("yes_by_model", ("routing_policy",), routing.yes_by_model, _("A model may read an unclear answer as a yes.")),
    Rule("confirmation_dropped", TOOL, tools.confirmation_dropped, _("The customer is not asked for a yes any more.")),
    Rule("action_added", TOOL, tools.action_added, _("A tool that changes something becomes available.")),
    Rule("action_declared_read_only", TOOL, tools.action_declared_read_only, _("A tool that changed something would be called like one that only reads.")),
    Rule("idempotent_claimed", TOOL, tools.idempotent_claimed, _("An action with an unknown outcome may be sent again.")),
    Rule("requires_shortened", TOOL, tools.requires_shortened, _("The tool is called without an argument it required.")),
    Rule("argument_restricted", TOOL, tools.argument_restricted, _("The tool gets real document numbers instead of masked ones.")),
    Rule("enum_widened", TOOL, tools.enum_widened, _("An argument accepts values it did not.")),
    Rule("contract_unpinned", TOOL, tools.contract_unpinned, _("A change of the tool at its server is no longer noticed.")),
    Rule("tool_agents_widened", TOOL, tools.agents_widened, _("More agents may call the tool.")),
    Rule("tool_channels_widened", TOOL, tools.channels_widened, _("The tool is called from more channels.")),
    Rule("business_keys_shortened", TOOL, tools.business_keys_shortened, _("The tool is called although less is known of who it is about.")),
    Rule("argument_source_relaxed", TOOL, tools.source_relaxed, _("An argument that nobody could give is filled from elsewhere.")),
    Rule("secret_sent", TOOL, tools.secret_sent, _("A secret is sent to the tool's server.")),
    Rule("argument_rules_changed", TOOL, tools.rules_loosened, _("An argument's values are checked by other rules.")),
    Rule("action_check_dropped", TOOL, tools.check_dropped, _("The action is not checked first, or by another tool.")),
    Rule("action_check_fails_open", TOOL, tools.check_fails_open, _("The action goes on when its check cannot be reached.")),
    Rule("execution_replaced", TOOL, tools.execution_replaced, _("What the customer confirms is carried out by something else.")),
    Rule("confirmation_kept_longer", TOOL, tools.confirmation_kept_longer, _("A yes of the customer counts longer.")),
    Rule("tool_server_replaced", TOOL, tools.server_changed, _("The tool's arguments go to another server.")),
    Rule("remote_name_changed", TOOL, tools.remote_name_changed, _("Under the same name the server does something else.")),
    Rule("agent_tools_widened", AGENT, allowances.agent_tools_widened, _("The agent may call more tools.")),
    Rule("agent_members_widened", AGENT, allowances.members_widened, _("More agents may answer in this one's place.")),
    Rule("intent_tools_widened", ("intent",), allowances.intent_tools_widened, _("The intent may use more tools.")),
    Rule("model_calls_tools", AGENT, allowances.model_calls_tools, _("The model decides which tools are called.")),
    Rule("tool_rounds_raised", AGENT, allowances.tool_rounds_raised, _("The model may ask for tools more often.")),
    Rule("delegates_widened", AGENT, delegation.delegates_widened, _("The agent may ask another agent, or ask it in another way.")),
    Rule("delegate_speaks", AGENT, delegation.delegate_speaks, _("A sub-agent that was silent may speak to the customer.")),
    Rule("delegate_sees", AGENT, delegation.delegate_sees, _("An agent that is asked sees the conversation, not only its question.")),
    Rule("delegations_raised", AGENT, delegation.delegations_raised, _("Other agents may be asked more often for one message.")),
    Rule("implementation_changed", AGENT, workflows.implementation_changed, _("The agent answers by Python code that it did not answer by.")),
    Rule("workflow_tool_added", FLOW, workflows.node_tool_added, _("A workflow calls a tool that it did not call there.")),
    Rule("workflow_question_dropped", FLOW, workflows.question_dropped, _("A workflow goes on without asking the customer.")),
    Rule("workflow_answers_widened", FLOW, workflows.answers_widened, _("More answers of the customer let a workflow go on.")),
    Rule("workflow_compensation_dropped", FLOW, workflows.compensation_dropped, _("What a workflow did is not taken back when it fails.")),
    Rule("workflow_repeats_sooner", FLOW, workflows.repeats_sooner, _("The same request is carried out again sooner.")),
    Rule("tool_usage_allowed", ("prompt",), allowances.tool_usage_allowed, _("Agents with this prompt may call tools.")),
    Rule("evidence_dropped", ("prompt",), allowances.evidence_dropped, _("Answers may state facts without evidence.")),
    Rule("prompt_replaced", AGENT, allowances.prompt_replaced, _("The agent gets a prompt that is laxer about evidence or tools.")),
    Rule("identity_assertable", IDENTITY, identity.assertable, _("A caller may state what only a credential could.")),
    Rule("identity_source_added", IDENTITY, identity.source_added, _("Identity is taken from one more place of what callers send.")),
    Rule("identity_kept_longer", IDENTITY, identity.kept_longer, _("Identity is carried into later turns.")),
    Rule("identity_protection_archived", IDENTITY, identity.protection_archived, _("A key that only a credential could set leaves the configuration."), on_archive=True),
    Rule("identity_unmapped", MAPPING, identity.key_unmapped, _("An argument is not filled from the verified identity any more.")),
    Rule("identity_key_beside", MAPPING, identity.key_beside, _("An argument is filled from one more key, which a caller may be able to state.")),
    Rule("mapping_added", MAPPING, identity.mapping_added, _("Another mapping comes for a tool: it may take the place of the one that protects its arguments.")),
    Rule("mapping_moved", MAPPING, identity.mapping_moved, _("The mapping protects another tool's arguments.")),
    Rule("mapping_archived", MAPPING, identity.mapping_archived, _("Arguments are not filled from the verified identity any more."), on_archive=True),
    Rule("profile_address_changed", PROFILE, connections.profile_address_changed, _("What customers write goes to another address.")),
    Rule("profile_credential_changed", PROFILE, connections.profile_credential_changed, _("The model is asked with another credential.")),
    Rule("provider_changed", PROFILE, connections.provider_changed, _("Another sort of model reads what customers write.")),
    Rule("profile_replaced", AGENT, allowances.profile_replaced, _("The agent's model is asked at another address.")),
    Rule("server_address_changed", SERVER, connections.server_address_changed, _("Tools are called at another address.")),
    Rule("server_credential_changed", SERVER, connections.server_credential_changed, _("Tools are called with another credential.")),
    Rule("server_authorisation_changed", SERVER, connections.authorisation_changed, _("Tools are called with another right.")),
    Rule("transport_changed", SERVER, connections.transport_changed, _("Tools are called in another protocol.")),
    Rule("locked_field", (*IDENTITY, *PROFILE, *MAPPING, *TOOL, *SERVER), locked.touched, _("A field that decides whose data goes where was touched."), unless_found=True),
    Rule("description", DESCRIBED, cosmetic.description, _("A text for colleagues."), risk=COSMETIC),
    Rule("metadata", AGENT, cosmetic.metadata, _("A free label."), risk=COSMETIC),
    Rule("order", ("agent", "intent", "tool"), cosmetic.order, _("Another order, which means nothing here."), risk=COSMETIC),
)
# fmt: on


def risks(edits: Sequence[ItemEdit]) -> list[Risk]:
    """Return what the table finds in ``edits``, item by item in the table's order."""
    beside = {(edit.kind, edit.slug): edit for edit in edits}
    return [risk for edit in edits for risk in _found(edit, beside)]


def risk_class(edits: Sequence[ItemEdit]) -> str:
    """Return the gravest class of ``edits``; cosmetic when nothing but labels changes."""
    beside = {(edit.kind, edit.slug): edit for edit in edits}
    classes = [_class(edit, _found(edit, beside)) for edit in edits]
    return max(classes, key=RISKS.index, default=COSMETIC)


def _class(edit: ItemEdit, found: Sequence[Risk]) -> str:
    if any(risk.risk == WEAKENING for risk in found):
        return WEAKENING
    if edit.before is None or edit.after is None:
        return BEHAVIOUR
    known = {risk.path for risk in found if risk.risk == COSMETIC}
    # Stored contents on purpose: what the defaults of a kind would hide is a change, too.
    changed = {change["path"] for change in content_diff(dict(edit.before), dict(edit.after))}
    return COSMETIC if changed <= known else BEHAVIOUR


def _found(edit: ItemEdit, beside: Mapping[tuple[str, str], ItemEdit]) -> list[Risk]:
    edited = _edited(edit, beside)
    if edited is None:
        return []
    found: list[Risk] = []
    for rule in RULES:
        if edit.kind not in rule.kinds or rule.on_archive != edited.is_archived:
            continue
        seen = {risk.path for risk in found} if rule.unless_found else set()
        found += [_risk(edit, rule, path) for path in rule.find(edited) if path not in seen]
    return found


def _edited(edit: ItemEdit, beside: Mapping[tuple[str, str], ItemEdit]) -> Edited | None:
    """Return the edit with defaults written out; ``None`` when nothing was and nothing is there."""
    if edit.before is None and edit.after is None:
        return None
    falls_back = edit.after is None and edit.kind in FALLS_BACK
    return Edited(
        kind=edit.kind,
        before=_filled(edit.kind, edit.before or {}),
        slug=edit.slug,
        after={} if edit.after is None and not falls_back else _filled(edit.kind, edit.after or {}),
        is_new=edit.before is None,
        is_archived=edit.after is None and not falls_back,
        beside=beside,
    )


def _filled(kind: str, content: Content) -> Content:
    return {**defaults(kind), **content}


def _risk(edit: ItemEdit, rule: Rule, path: str) -> Risk:
    return Risk(
        kind=edit.kind,
        slug=edit.slug,
        path=path,
        risk=rule.risk,
        rule=rule.code,
        message=str(rule.message),
    )

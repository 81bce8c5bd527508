"""``routing.yaml`` → intents, state policies and the routing policy.

Two shapes: ``router`` with a list of intents that name an ``agent``, and ``routing.intents``, a map
of intents that name a ``route``.
"""

from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Drafts
from apps.releases.portable.seed.record import Record, as_slug
from apps.releases.portable.yaml_source import Source, join

POLICY = "default"


def routing_read(source: Source, drafts: Drafts) -> None:
    """Take intents, state policies and the policy of ``source``."""
    root = Record(source, "", source.value, drafts.report)
    body = root.record("routing") if "routing" in root.fields else root
    router = body.record("router") if "router" in body.fields else body
    _policy(router, body, drafts)
    for name, record in body.records("intents", "name", "intent"):
        _intent(name, record, drafts)
    states = "state_policies" if "state_policies" in body.fields else "states"
    for name, record in body.records(states, "state", "name"):
        _state(name, record, drafts)
    for record in (router, body, root):
        record.drop("version", _("Revisions carry the version."))
        record.finish()


def _policy(router: Record, body: Record, drafts: Drafts) -> None:
    content: dict[str, Any] = {}
    mode = router.text("mode", "routing_mode").strip().lower()
    if mode in ("router", "supervisor"):
        content["mode"] = mode
    elif mode:
        router.warn("mode", _("Unknown mode; taken as router."))
    fallback = as_slug(router.text("fallback_agent", "default_route", "fallback_route"))
    if fallback:
        content["fallback_agent"] = fallback
    threshold = router.number("confidence_threshold")
    if threshold is not None:
        content["confidence_threshold"] = threshold
    default = as_slug(router.text("default_agent", "default_agent_id"))
    if default:
        content["default_agent"] = default
    router.drop("allow_handoff", _("Nothing reads this switch."))
    for field in ("transaction_confirmation", "continuity", "stickiness"):
        router.later(field, _("Not built yet."))
    for field in ("supervisor", "llm_router"):
        body.later(field, _("Routing by a model is not built yet."))
    drafts.add("routing_policy", POLICY, content, router)


def _intent(name: str, record: Record, drafts: Drafts) -> None:
    agent = as_slug(record.text("agent", "route", "agent_id"))
    if not agent:
        record.refuse("", _("The intent names no agent."))
    content: dict[str, Any] = {
        "description": record.text("description"),
        "agent": agent,
        "domain": record.text("domain"),
        "keywords": record.texts("keywords"),
        "examples": record.texts("examples"),
        "mcp_tools": _tools(record, drafts),
    }
    priority, enabled = record.number("priority"), record.flag("enabled")
    if priority is not None:
        content["priority"] = priority
    if enabled is not None:
        content["enabled"] = enabled
    drafts.add("intent", name, content, record, label=record.text("label", "title"))
    record.finish()


def _tools(record: Record, drafts: Drafts) -> list[str]:
    known, found = drafts.of("tool"), []
    field = "mcp_tools" if "mcp_tools" in record.fields else "tools"
    for index, name in enumerate(record.texts("mcp_tools", "tools")):
        slug = as_slug(name)
        if slug in known:
            found.append(slug)
        else:
            drafts.report.add(
                "dropped",
                record.source,
                join(join(record.path, field), index),
                _("tools.yaml has no such tool."),
                name,
            )
    return list(dict.fromkeys(found))


def _state(name: str, record: Record, drafts: Drafts) -> None:
    agent = as_slug(record.text("agent", "route"))
    if not agent:
        record.refuse("", _("The state names no agent."))
    content: dict[str, Any] = {
        "state": name,
        "agent": agent,
        "description": record.text("description"),
    }
    terminal = record.flag("terminal")
    if terminal is not None:
        content["terminal"] = terminal
    drafts.add("state_policy", name, content, record)
    record.finish()

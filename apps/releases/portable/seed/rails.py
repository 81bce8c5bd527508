"""``guardrails.yaml`` → rail policies: the global one, and one for each agent that has a file."""

from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Draft, Drafts, takes
from apps.releases.portable.seed.record import Record
from apps.releases.portable.yaml_source import Source, join

_ALIASES = {
    "SIZE": "INPUT_SIZE", "MSIZE": "INPUT_SIZE", "PII": "MSK", "MSK_OUT": "MSK",
    "OUTPUT_MSK": "MSK", "PII_OUT": "MSK", "JAILBREAK": "PINJ", "JBRK": "PINJ", "LOOP": "VLOOP",
    "PREMATURE_ACTION": "REVPREC",
}  # fmt: skip
_ON_DENY = {"block", "retry", "handover", "sanitize", "observe"}
_LATER_SECTIONS = ("retrieval", "tool")


def rails_read(
    source: Source, drafts: Drafts, slug: str, base: Draft | None = None
) -> Draft | None:
    """Take ``source`` as the rail policy ``slug``. An agent's file adds to ``base`` and overrides it."""
    root = Record(source, "", source.value, drafts.report)
    body = root.record("guardrails") if "guardrails" in root.fields else root
    all_on = body.flag("enabled")
    content: dict[str, Any] = {}
    for section in ("input", "output"):
        rules = {rule["code"]: rule for rule in (base.content.get(section, []) if base else [])}
        for rule in _rules(body, section):
            if all_on is False:
                rule["enabled"] = False
            rules[rule["code"]] = rule
        content[section] = list(rules.values())
    for section in _LATER_SECTIONS:
        body.later(section, _("Rails for this phase are not built yet."))
    for name in ("fail_fast", "parallel"):
        body.drop(name, _("Rails run one after the other; the first that ends the turn ends it."))
    body.drop("version", _("Revisions carry the version."))
    draft = drafts.add("rail_policy", slug, content, body)
    body.finish()
    root.finish()
    return draft


def _rules(body: Record, section: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for index, fields in enumerate(_list(body, section)):
        path = join(join(body.path, section), index)
        fields = {"code": fields} if isinstance(fields, str) else fields
        record = Record(body.source, path, fields, body.report)
        given = record.text("code", "name", "rail").strip()
        code = _ALIASES.get(given.upper(), given.upper())
        if not takes("rail_policy", {section: [{"code": code}]}):
            reason = _("The rail %(code)s does not exist for %(phase)s yet.")
            body.report.add(
                "later", body.source, path, reason % {"code": given, "phase": section}, given
            )
            continue
        if any(rule["code"] == code for rule in found):
            record.warn("", _("The rail stands twice; the first counts."))
            continue
        found.append(_rule(code, record))
    return found


def _rule(code: str, record: Record) -> dict[str, Any]:
    rule: dict[str, Any] = {"code": code}
    enabled = record.flag("enabled")
    if enabled is not None:
        rule["enabled"] = enabled
    policy = record.record("policy")
    action = policy.text("on_deny") or record.text("on_deny")
    mode = record.text("mode")
    if action in _ON_DENY:
        rule["on_deny"] = action
    elif action == "allow" or mode == "observe":
        rule["on_deny"] = "observe"
    elif action:
        policy.warn("on_deny", _("Unknown action; the rail's own counts."))
    if mode in ("fail_open", "fail_closed"):
        rule["on_error"] = "observe" if mode == "fail_open" else "block"
    elif mode not in ("", "enforce", "observe"):
        record.warn("mode", _("Unknown mode; the rail is enforced."))
    if record.text("type") == "external" or "class" in record.fields:
        record.warn("type", _("Only the code of the rail counts; its class is not run."))
    policy.finish()
    for name in ("phase", "version", "owner", "severity"):
        record.drop(name, _("There is no such field of a rail here."))
    record.finish()
    return rule


def _list(body: Record, section: str) -> list[Any]:
    value = body.take(section)
    if isinstance(value, list):
        return value
    if value is not None:
        body.refuse(section, _("A list of rails is expected."))
    return []

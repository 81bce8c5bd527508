"""``mcp_parameter_mapping.yaml`` → parameter mappings; the slug is the tool's."""

from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Draft, Drafts
from apps.releases.portable.seed.record import Record, as_slug
from apps.releases.portable.yaml_source import Source

EVERY_TOOL = "_global"


def mapping_read(source: Source, drafts: Drafts) -> None:
    """Take the mappings: only arguments that the tools declare, no default of what is required."""
    root = Record(source, "", source.value, drafts.report)
    body = root.record("mcp_parameter_mapping") if "mcp_parameter_mapping" in root.fields else root
    defaults = _global(body.record("defaults"), drafts)
    if defaults:
        drafts.add("parameter_mapping", EVERY_TOOL, {"defaults": defaults}, body, at="defaults")
    for name, record in body.records("tools", "name"):
        tool = drafts.of("tool").get(as_slug(name))
        if tool is None:
            drafts.report.add(
                "dropped", source, record.path, _("tools.yaml has no such tool."), record.fields
            )
            continue
        content = {
            "tool": tool.slug,
            "map": _map(record.record("map"), tool, drafts),
            "defaults": _defaults(record.record("defaults"), tool),
            "extract": _extract(record.record("extract"), tool),
        }
        if not content["extract"]:
            del content["extract"]
        if content["map"] or content["defaults"] or "extract" in content:
            drafts.add("parameter_mapping", tool.slug, content, record)
        record.finish()
    body.finish()
    root.finish()


def _map(record: Record, tool: Draft, drafts: Drafts) -> dict[str, str]:
    keys, declared = drafts.of("identity_key"), tool.content["args_schema"]
    found: dict[str, str] = {}
    for key in record.fields:
        argument = record.text(key)
        if argument not in declared:
            reason = _("%(tool)s declares no argument '%(argument)s'.")
            record.drop(key, reason % {"tool": tool.slug, "argument": argument})
            continue
        if keys and key not in keys:
            record.warn(key, _("identity.yaml has no such key; nothing will fill it."))
        found[key] = argument
    return found


def _defaults(record: Record, tool: Draft) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for argument, value in record.fields.items():
        if _mock(argument):
            record.drop(argument, _("There are no mock answers here."))
        elif argument not in tool.content["args_schema"]:
            reason = _("%(tool)s declares no argument '%(argument)s'.")
            record.drop(argument, reason % {"tool": tool.slug, "argument": argument})
        elif argument in tool.content["requires"]:
            record.drop(argument, _("A required argument is never filled by a default."))
        else:
            if tool.content["tool_type"] == "action":
                record.warn(
                    argument, _("A default of an action: is it really the customer's wish?")
                )
            found[argument] = value
    return found


_STRATEGIES = {
    "regex": "regex", "pattern": "regex", "llm": "llm", "hybrid": "hybrid", "date": "date",
    "month_name_pt": "month_name_pt", "amount": "amount", "money": "amount",
}  # fmt: skip


def _extract(record: Record, tool: Draft) -> dict[str, Any]:
    """Take how arguments are read in the message; types are the arguments' own."""
    found: dict[str, Any] = {}
    for argument in record.fields:
        if argument not in tool.content["args_schema"]:
            reason = _("%(tool)s declares no argument '%(argument)s'.")
            record.drop(argument, reason % {"tool": tool.slug, "argument": argument})
            continue
        one = record.record(argument)
        if one.text("from", default="message") != "message":
            one.refuse("from", _("Only the message is read."))
        content = _extraction(one)
        if content is not None:
            found[argument] = content
        if argument in tool.content["requires"]:
            record.warn(argument, _("Required: read only while the customer is asked for it."))
        one.finish()
    return found


def _extraction(record: Record) -> dict[str, Any] | None:
    pattern = record.text("pattern", "regex")
    named = record.text("strategy", default="regex" if pattern else "llm").strip().lower()
    group, hint = record.number("group"), record.text("description")
    record.take("type")
    if named not in _STRATEGIES:
        record.refuse("strategy", _("Unknown strategy."))
        return None
    content: dict[str, Any] = {"strategy": _STRATEGIES[named]}
    if content["strategy"] in ("regex", "hybrid"):
        content["pattern"] = pattern
        content["group"] = int(group) if group is not None else 0
    if hint:
        content["description"] = hint
    return content


def _global(record: Record, drafts: Drafts) -> dict[str, Any]:
    tools = drafts.of("tool").values()
    found: dict[str, Any] = {}
    for argument, value in record.fields.items():
        if _mock(argument):
            record.drop(argument, _("There are no mock answers here."))
        elif not any(argument in tool.content["args_schema"] for tool in tools):
            record.drop(argument, _("No tool declares such an argument."))
        elif any(argument in tool.content["requires"] for tool in tools):
            record.drop(argument, _("A required argument is never filled by a default."))
        else:
            found[argument] = value
    return found


def _mock(argument: str) -> bool:
    return "mock" in argument.lower().split("_")

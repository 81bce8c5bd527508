"""``tools.yaml`` → tools."""

from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Drafts
from apps.releases.portable.seed.record import Record, as_slug
from apps.releases.portable.yaml_source import Source

_TYPES = {
    "string": "string", "str": "string", "text": "string",
    "integer": "integer", "int": "integer", "long": "integer",
    "number": "number", "float": "number", "decimal": "number", "double": "number",
    "boolean": "boolean", "bool": "boolean",
    "array": "array", "list": "array", "object": "object", "dict": "object", "map": "object",
}  # fmt: skip
_ACTION_TYPES = {"action", "transactional", "mutation", "write"}
_READ_TYPES = {"read_only", "readonly", "read", "query", "consulta"}
# Without a declared type, a name that begins with one of these acts on something. Running an action
# because a query was meant costs more than asking for a confirmation too many.
_ACTING = {
    "solicitar", "registrar", "cancelar", "criar", "abrir", "alterar", "atualizar", "excluir",
    "contratar", "trocar", "devolver", "enviar", "gerar", "pagar", "bloquear", "desbloquear",
    "create", "update", "delete", "cancel", "register", "request", "open", "send", "set", "pay",
}  # fmt: skip


def tools_read(source: Source, drafts: Drafts) -> None:
    """Take the tools of ``source``."""
    root = Record(source, "", source.value, drafts.report)
    for name, record in root.records("tools", "name", "tool_name"):
        _tool(name, record, drafts)
    root.finish()


def _tool(name: str, record: Record, drafts: Drafts) -> None:
    policy = record.record("execution_policy")
    server = as_slug(record.text("mcp_server", "server"))
    if not server:
        record.refuse("", _("The tool names no mcp_server."))
    elif server not in drafts.of("tool_server"):
        record.warn("mcp_server", _("mcp_servers.yaml has no such server."))
    arguments, required = _arguments(record)
    requires = list(
        dict.fromkeys([*required, *record.texts("requires"), *policy.texts("requires")])
    )
    for argument in requires:
        if argument not in arguments:
            record.warn("requires", _("%(a)s is not declared; declared as text.") % {"a": argument})
            arguments[argument] = {"type": "string"}
    confirmed = _confirmation(record, policy)
    content: dict[str, Any] = {
        "description": record.text("description"),
        "mcp_server": server,
        "args_schema": arguments,
        "requires": requires,
        "tool_type": _type(name, record, confirmed),
        "selection_keywords": record.texts("selection_keywords"),
    }
    _switches(content, name, record, confirmed)
    cache = _cache(record, policy)
    if cache and content["tool_type"] == "action":
        record.warn("cache", _("Answers of actions are never reused; left out."))
    elif cache:
        content["cache"] = cache
    drafts.add("tool", name, content, record, label=record.text("label", "title"))
    policy.finish()
    record.drop("version", _("Revisions carry the version."))
    record.later("sla", _("There is no field for it yet."))
    record.later("response", _("Presentation by renderers is not built yet."))
    record.finish()


def _switches(content: dict[str, Any], name: str, record: Record, confirmed: bool | None) -> None:
    remote = record.text("remote_name")
    if remote and remote != name:
        content["remote_name"] = remote
    for field, value in (
        ("enabled", record.flag("enabled")),
        ("idempotent", record.flag("idempotent")),
        ("timeout_seconds", record.number("timeout_seconds", "timeout")),
        ("confirmation_required", confirmed),
    ):
        if value is not None:
            content[field] = value
    if content["tool_type"] == "action" and confirmed is None:
        content["confirmation_required"] = True
        record.derive("", _("An action without a word on confirmation asks for one."), name)


def _confirmation(record: Record, policy: Record) -> bool | None:
    names = ("confirmation_required", "requires_confirmation", "require_confirmation")
    own, general = record.flag(*names), policy.flag(*names)
    return general if own is None else own


def _type(name: str, record: Record, confirmed: bool | None) -> str:
    declared = record.text("tool_type", "operation_type", "type").strip().lower()
    if declared in _ACTION_TYPES:
        return "action"
    if declared in _READ_TYPES:
        return "read_only"
    if declared:
        record.warn("tool_type", _("Unknown type; taken as an action."))
        return "action"
    acting = confirmed or name.lower().replace("-", "_").split("_")[0] in _ACTING
    if acting:
        record.derive("", _("No tool_type; taken as an action. Check it."), name)
    return "action" if acting else "read_only"


def _arguments(record: Record) -> tuple[dict[str, Any], list[str]]:
    schema = record.take("args_schema", "input_schema")
    name = "args_schema" if "args_schema" in record.fields else "input_schema"
    found = Record(record.source, f"{record.path}.{name}", schema, record.report)
    required: list[str] = []
    if isinstance(found.fields.get("properties"), dict) and found.fields.get("type") == "object":
        required = found.texts("required")
        found.taken.update(("type", "additionalProperties", "$schema", "title"))
        inner = found.record("properties")
        found.finish()
        found = inner
    arguments = {}
    for argument, declared in found.fields.items():
        path = f"{found.path}.{argument}"
        if isinstance(declared, str) or declared is None:
            declared = {"type": declared or "string"}
        one = Record(record.source, path, declared, record.report)
        if one.flag("required"):
            required.append(argument)
        arguments[argument] = _argument(one)
    return arguments, required


def _argument(record: Record) -> dict[str, Any]:
    declared = record.text("type", default="string").strip().lower()
    if declared not in _TYPES:
        record.warn("type", _("Unknown type; taken as text."))
    content: dict[str, Any] = {"type": _TYPES.get(declared, "string")}
    for field, value in (
        ("description", record.text("description")),
        ("label", record.text("label", "title")),
        ("user_prompt", record.text("user_prompt")),
        ("aliases", record.texts("aliases")),
        ("enum", record.texts("enum", "allowed_values")),
    ):
        if value:
            content[field] = value
    record.finish()
    return content


def _cache(record: Record, policy: Record) -> dict[str, Any]:
    ttl = record.number("cache_ttl_seconds")
    for holder in (record, policy):
        declared = holder.take("cache", "cacheable")
        if isinstance(declared, dict):
            cache = Record(record.source, f"{holder.path}.cache", declared, record.report)
            enabled = cache.flag("enabled")
            seconds = cache.number("ttl_seconds", "ttl", "cache_ttl_seconds")
            cache.finish()
            return _cached(bool(enabled), seconds if seconds is not None else ttl)
        if isinstance(declared, bool):
            return _cached(declared, ttl)
        if declared is not None:
            holder.refuse("cache", _("A map, true or false is expected."))
    return _cached(bool(ttl), ttl)


def _cached(enabled: bool, seconds: float | None) -> dict[str, Any]:
    if not enabled:
        return {}
    return {"enabled": True} if not seconds else {"enabled": True, "ttl_seconds": int(seconds)}


def policies_merge(source: Source, drafts: Drafts) -> None:
    """Merge ``tool_policies.yaml``, which wins over ``tools.yaml``, into the tools."""
    root = Record(source, "", source.value, drafts.report)
    root.drop("version", _("Revisions carry the version."))
    defaults = root.record("defaults")
    for name, record in root.records("tools", "name"):
        tool = drafts.of("tool").get(as_slug(name))
        if tool is None:
            root.report.add(
                "warning", source, record.path, _("tools.yaml has no such tool; dropped.")
            )
            continue
        _policy(tool.content, record, defaults)
        record.later("pre_validation", _("Pre-validation is not built yet."))
        record.later("execution", _("Workflows are not built yet."))
        record.finish()
    defaults.finish()
    root.finish()


def _policy(content: dict[str, Any], record: Record, defaults: Record) -> None:
    kind = record.text("operation_type") or defaults.text("operation_type")
    confirmed = record.flag("require_confirmation", "confirmation_required")
    if kind:
        content["tool_type"] = "action" if kind in _ACTION_TYPES else "read_only"
    if confirmed is not None:
        content["confirmation_required"] = confirmed
    for argument in record.texts("requires"):
        content["args_schema"].setdefault(argument, {"type": "string"})
        if argument not in content["requires"]:
            content["requires"].append(argument)

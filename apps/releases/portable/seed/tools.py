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
    _limits(content, record, policy)
    cache = _cache(record, policy)
    if cache and content["tool_type"] == "action":
        record.warn("cache", _("Answers of actions are never reused; left out."))
    elif cache:
        content["cache"] = cache
    drafts.add("tool", name, content, record, label=record.text("label", "title"))
    policy.finish()
    record.drop("version", _("Revisions carry the version."))
    record.later("response", _("Presentation by renderers is not built yet."))
    record.finish()


def _limits(content: dict[str, Any], record: Record, policy: Record) -> None:
    """Take who may call the tool, where from, about whom, and how often again."""
    for field in ("allowed_agents", "allowed_channels", "required_business_keys"):
        named = list(dict.fromkeys([*record.texts(field), *policy.texts(field)]))
        if named:
            content[field] = [as_slug(n) for n in named] if field == "allowed_agents" else named
    if retry := retry_read(record):
        content["retry"] = retry
    if sla := record.text("sla"):
        content["sla"] = sla


def retry_read(record: Record) -> dict[str, int]:
    """Return the retry policy that ``record`` declares; switched off is one attempt."""
    declared = record.take("retry")
    if not isinstance(declared, dict):
        if declared is not None:
            record.refuse("retry", _("Expected a map of fields."))
        return {}
    retry = Record(record.source, f"{record.path}.retry", declared, record.report)
    enabled = retry.flag("enabled")
    attempts, pause = retry.number("max_attempts"), retry.number("backoff_ms")
    retry.finish()
    if enabled is False:
        return {"max_attempts": 1}
    found = {"max_attempts": attempts, "backoff_ms": pause}
    return {field: int(value) for field, value in found.items() if value is not None}


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
        if not isinstance(one.fields.get("required"), list) and one.flag("required"):
            required.append(argument)
        arguments[argument] = _argument(one)
    return arguments, required


# What a JSON schema says beyond a type; the validation of arguments reads it as it stands.
_RULES = (
    "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "properties",
    "additionalProperties", "patternProperties",
)  # fmt: skip


def _argument(record: Record) -> dict[str, Any]:
    nullable = _or_null(record)
    declared = record.text("type", default="string").strip().lower()
    if declared not in _TYPES:
        record.warn("type", _("Unknown type; taken as text."))
    content: dict[str, Any] = {"type": _TYPES.get(declared, "string")}
    if nullable:
        content["nullable"] = True
    _rules(content, record)
    for field, value in (
        ("source", record.text("source")),
        ("constant", record.text("constant")),
        ("secret", record.text("secret")),
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


def _or_null(record: Record) -> bool:
    """Return whether null is taken; a type that is a list with "null" becomes its other entry."""
    declared = record.fields.get("type")
    nullable = bool(record.flag("nullable"))
    if isinstance(declared, list) and len(declared) == 2 and "null" in declared:
        [record.fields["type"]] = [entry for entry in declared if entry != "null"]
        return True
    return nullable


def _rules(content: dict[str, Any], record: Record) -> None:
    rules = {name: value for name in _RULES if (value := record.take(name)) is not None}
    if content["type"] == "object" and isinstance(needed := record.fields.get("required"), list):
        record.taken.add("required")
        rules["required"] = needed
    items = record.take("items")
    kind = items.get("type") if isinstance(items, dict) else items
    if isinstance(kind, str) and _TYPES.get(kind) not in (None, "array"):
        content["items"] = _TYPES[kind]
    if isinstance(items, dict) and set(items) - {"type"}:
        rules["items"] = items
    if rules:
        content["json_schema"] = rules


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
        _checked(tool.content, record, drafts)
        _carried_out(tool.content, record, drafts)
        record.finish()
    defaults.finish()
    root.finish()


def _policy(content: dict[str, Any], record: Record, defaults: Record) -> None:
    """Take type, confirmation and required arguments. What holds for every tool never weakens one:
    it makes no query of a declared action and drops no confirmation."""
    kind = record.text("operation_type")
    general = defaults.text("operation_type")
    if kind or general in _ACTION_TYPES:
        content["tool_type"] = "action" if (kind or general) in _ACTION_TYPES else "read_only"
    confirmed = record.flag("require_confirmation", "confirmation_required")
    always = defaults.flag("require_confirmation", "confirmation_required")
    if confirmed is not None:
        content["confirmation_required"] = confirmed
    elif always and content["tool_type"] == "action":
        content["confirmation_required"] = True
    if content["tool_type"] == "action" and content.pop("cache", None):
        record.warn("", _("Answers of actions are never reused; left out."))
    for argument in record.texts("requires"):
        content["args_schema"].setdefault(argument, {"type": "string"})
        if argument not in content["requires"]:
            content["requires"].append(argument)


def _checked(content: dict[str, Any], record: Record, drafts: Drafts) -> None:
    check = record.record("pre_validation")
    enabled, tool, open_ = (
        check.flag("enabled"),
        as_slug(check.text("tool")),
        check.flag("fail_open"),
    )
    check.finish()
    if enabled is False or not tool:
        return
    if tool not in drafts.of("tool"):
        record.refuse("pre_validation", _("tools.yaml has no such tool."))
        return
    content["pre_validation"] = {"tool": tool, "fail_open": bool(open_)}


def _carried_out(content: dict[str, Any], record: Record, drafts: Drafts) -> None:
    execution = record.record("execution")
    mode, workflow = (
        execution.text("mode", default="direct_tool"),
        as_slug(execution.text("workflow")),
    )
    execution.drop("version", _("A release pins the workflow."))
    execution.finish()
    if mode == "workflow" and workflow in drafts.of("workflow"):
        content["execution"] = {"mode": "workflow", "workflow": workflow}
    elif mode == "workflow":
        record.warn("execution", _("No such workflow was imported; the tool is called directly."))
    elif mode != "direct_tool":
        record.warn("execution", _("Unknown mode; the tool is called directly."))

"""Files of kinds that do not exist yet: recognised, listed, not imported.

What they say about tools and has a meaning here is merged into the tools.
"""

import re
from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Drafts
from apps.releases.portable.seed.record import Record, as_slug
from apps.releases.portable.seed.tools import retry_read
from apps.releases.portable.yaml_source import Source

_PRIVATE = re.compile("auth|token|secret|key|credential", re.I)

LATER_FILES = ("backends.yaml", "gateway_governance.yaml", "mcp_gateway.yaml")


def later_list(source: Source, drafts: Drafts) -> None:
    """List what ``source`` holds: entry by entry of its maps, one level down."""
    root = Record(source, "", source.value, drafts.report)
    reason = _("Kept for a later kind, not imported.")
    for name, value in root.fields.items():
        # The keys below may be secrets themselves (token -> agents).
        inner = value if isinstance(value, dict) and not _PRIVATE.search(name) else None
        for key in inner or ():
            drafts.report.add("later", source, f"{name}.{key}", reason, (inner or {})[key])
        if not inner:
            root.later(name, reason)


def gateway_tools_merge(source: Source, drafts: Drafts) -> None:
    """Merge the tools of ``mcp_gateway.yaml``: what ``tools.yaml`` says itself counts."""
    root = Record(source, "", source.value, drafts.report)
    for name, record in root.records("tools", "name", "tool_name"):
        tool = drafts.of("tool").get(as_slug(name))
        if tool is None:
            record.warn("", _("tools.yaml has no such tool; its fields are not merged."))
            continue
        action = tool.content["tool_type"] == "action"
        idempotent, timeout = record.flag("idempotent"), record.number("timeout_seconds")
        if idempotent and action and "idempotent" not in tool.content:
            record.warn("idempotent", _("Taken over; the server must honour the idempotency key."))
        _merge(tool.content, "idempotent", idempotent, record)
        _merge(tool.content, "timeout_seconds", timeout, record)
        ttl = record.number("cache_ttl_seconds")
        if ttl and action:
            record.drop("cache_ttl_seconds", _("Answers of actions are never reused."))
        elif ttl and idempotent is not False:
            cache = {"enabled": True, "ttl_seconds": int(ttl)}
            _merge(tool.content, "cache", cache, record, "cache_ttl_seconds")
        for field in ("allowed_agents", "allowed_channels", "required_business_keys"):
            named = record.texts(field)
            if field == "allowed_agents":
                named = [as_slug(name) for name in named]
            _merge(tool.content, field, named or None, record)
        _merge(tool.content, "retry", retry_read(record) or None, record)
        server = as_slug(record.text("server", "mcp_server"))
        if server and server != tool.content["mcp_server"]:
            record.warn("server", _("Differs from tools.yaml, which counts."))


def _merge(content: dict[str, Any], field: str, value: Any, record: Record, at: str = "") -> None:
    if value is None:
        return
    if field not in content:
        content[field] = value
        record.derive(at or field, _("Merged into the tool."), value if not at else None)
    elif content[field] != value:
        record.warn(at or field, _("Differs from tools.yaml, which counts."))

"""``mcp_servers.yaml`` → tool servers; addresses become bindings of an environment."""

from typing import Any

from django.utils.translation import gettext as _

from apps.releases.environments.binding_values import InvalidBinding, address_check
from apps.releases.portable.seed.drafts import Drafts
from apps.releases.portable.seed.record import Record, as_slug
from apps.releases.portable.yaml_source import Source

_TRANSPORTS = {
    "http": "http",
    "fastmcp": "streamable_http",
    "streamable_http": "streamable_http",
    "streamable-http": "streamable_http",
}


def servers_read(source: Source, drafts: Drafts) -> None:
    """Take the servers of ``source``. A server named ``telecom`` is bound as ``telecom_mcp``."""
    for name, record in _servers(source, drafts):
        transport = record.text("transport", "protocol", default="http").strip().lower()
        if transport not in _TRANSPORTS:
            record.warn("transport", _("This transport is not built; taken as streamable_http."))
        content: dict[str, Any] = {
            "description": record.text("description"),
            "transport": _TRANSPORTS.get(transport, "streamable_http"),
            "endpoint": binding_name(name),
        }
        enabled, timeout = record.flag("enabled"), record.number("timeout_seconds", "timeout")
        if enabled is not None:
            content["enabled"] = enabled
        if timeout is not None:
            content["timeout_seconds"] = timeout
        drafts.add("tool_server", name, content, record)
        _bind(name, record, drafts, drafts.environment)
        record.finish()


def addresses_read(source: Source, drafts: Drafts, environment: str) -> None:
    """Take only the addresses of ``source``: the same servers in another environment."""
    for name, record in _servers(source, drafts):
        if as_slug(name) not in drafts.of("tool_server"):
            record.warn("", _("mcp_servers.yaml has no such server; the address is not kept."))
            continue
        _bind(name, record, drafts, environment)
        declared = drafts.items[("tool_server", as_slug(name))]
        transport = record.text("transport")
        if transport and _TRANSPORTS.get(transport) != declared.content["transport"]:
            record.warn("transport", _("Differs from mcp_servers.yaml, which counts."))
        record.taken.update(("description", "enabled", "timeout_seconds", "timeout"))
        record.finish()


def binding_name(server: str) -> str:
    """Return the name of the binding that holds ``server``'s address."""
    slug = as_slug(server)
    return slug if slug.endswith("mcp") else f"{slug}_mcp"


def _servers(source: Source, drafts: Drafts) -> list[tuple[str, Record]]:
    root = Record(source, "", source.value, drafts.report)
    key = "servers" if "servers" in root.fields else "mcp_servers"
    found = list(root.records(key, "name", "id"))
    root.finish()
    return found


def _bind(name: str, record: Record, drafts: Drafts, environment: str) -> None:
    address = record.text("endpoint", "url")
    if not address:
        record.warn("", _("No address; bind %(n)s before deploying.") % {"n": binding_name(name)})
        return
    try:
        address_check(address)
    except InvalidBinding as error:
        field = "endpoint" if "endpoint" in record.fields else "url"
        record.drop(field, str(error))
        return
    drafts.bind("address", binding_name(name), address, environment)

"""``identity.yaml`` → identity keys: version 2 (sources) and version 1 (aliases)."""

from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Drafts
from apps.releases.portable.seed.record import Record
from apps.releases.portable.yaml_source import Source, join

CUSTOMER = "customer_key"


def identity_read(source: Source, drafts: Drafts) -> None:
    """Take the keys. ``customer_key`` identifies the customer: only a credential may set it."""
    root = Record(source, "", source.value, drafts.report)
    body = root.record("identity") if "identity" in root.fields else root
    version = body.text("version")
    if version not in ("", "1", "2", "1.0", "2.0"):
        body.warn("version", _("Unknown version; read by its fields."))
    required = body.texts("required")
    names = []
    for name, record in body.records("keys", "name"):
        content = {
            "description": record.text("description"),
            "sources": record.texts("sources"),
            **_rules(name, required),
        }
        if record.flag("required"):
            content["required"] = True
        drafts.add("identity_key", name, content, record)
        names.append(name)
        record.finish()
    aliases = body.record("aliases")
    for name in aliases.fields:
        if name in names:
            aliases.drop(name, _("'keys' names this one too, and counts."))
            continue
        sources = [f"business_context.{name}", name, *aliases.texts(name)]
        content = {"sources": list(dict.fromkeys(sources)), **_rules(name, required)}
        drafts.add("identity_key", name, content, aliases, at=name)
        names.append(name)
    for name in required:
        if name not in names:
            message = _("%(key)s is required, but nothing says where it is found.")
            drafts.report.add(
                "warning", source, join(body.path, "required"), message % {"key": name}
            )
    body.finish()
    root.finish()


def _rules(name: str, required: list[str]) -> dict[str, Any]:
    rules = {"required": name in required, "identifies_customer": name == CUSTOMER}
    return {rule: True for rule, on in rules.items() if on}

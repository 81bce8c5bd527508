"""``llm_profiles.yaml`` → model profiles."""

import re
from typing import Any

from django.utils.translation import gettext as _

from apps.releases.environments.binding_values import InvalidBinding, address_check
from apps.releases.portable.seed.drafts import Drafts
from apps.releases.portable.seed.record import Record
from apps.releases.portable.yaml_source import Source

BINDING = "llm"
"""Name of the bindings of the default address and key."""
_COMPATIBLE = {"openai_compatible", "openai", "oci_openai", "azure_openai"}


def profiles_read(source: Source, drafts: Drafts) -> None:
    """Take the profiles. Addresses become bindings; keys are never read."""
    root = Record(source, "", source.value, drafts.report)
    key = "profiles" if "profiles" in root.fields else "llm_profiles"
    for name, record in root.records(key, "name", "profile"):
        drafts.add("model_profile", profile_slug(name), _profile(name, record, drafts), record)
        record.finish()
    root.finish()


def profile_slug(name: str) -> str:
    """Return ``name`` in small letters with ``_``: camel case, dashes and dots are the same name."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^a-z0-9_]+", "_", parted.lower())


def _profile(name: str, record: Record, drafts: Drafts) -> dict[str, Any]:
    content: dict[str, Any] = {}
    provider = _provider(record)
    if provider:
        content["provider"] = provider
    model = record.text("model", "model_name")
    if model and provider != "scripted":
        content["model"] = model
    elif model:
        record.drop("model", _("The scripted provider has no model."))
    for field, value in (
        ("temperature", record.number("temperature")),
        ("max_tokens", record.number("max_tokens")),
        ("timeout_seconds", record.number("timeout_seconds", "timeout")),
        ("max_retries", record.number("max_retries")),
    ):
        if value is not None:
            content[field] = value
    if provider == "openai_compatible":
        _bindings(name, content, record, drafts)
    record.drop("api_key", _("Keys are not read; bind the name of an environment variable."))
    return content


def _provider(record: Record) -> str:
    given = record.text("provider").strip().lower()
    if given in ("mock", "scripted"):
        if given == "mock":
            record.derive("provider", _("mock becomes scripted: answers from evidence, no model."))
        return "scripted"
    if given in _COMPATIBLE or not given:
        return "openai_compatible" if given else ""
    if given == "oci_sdk":
        record.warn("provider", _("Taken as openai_compatible; give its OpenAI-style address."))
    else:
        record.warn("provider", _("Unknown provider; taken as openai_compatible."))
    return "openai_compatible"


def _bindings(name: str, content: dict[str, Any], record: Record, drafts: Drafts) -> None:
    """Name the address and key; a profile without an address of its own shares the default's."""
    address = record.text("base_url", "endpoint", "url")
    own = bool(address) and name != "default"
    binding = f"{BINDING}_{profile_slug(name)}" if own else BINDING
    content |= {"base_url": binding, "credential": binding}
    if not address:
        return
    try:
        address_check(address)
        drafts.bind("address", binding, address)
    except InvalidBinding as error:
        record.drop("base_url", str(error))

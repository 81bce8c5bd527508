"""``agents.yaml`` and ``config/agents/<id>/`` → agents with their prompts, rails and judges.

An agent that only intents or states name becomes an item too: in the files it was code.
"""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Draft, Drafts
from apps.releases.portable.seed.folder import Folder
from apps.releases.portable.seed.judges import judges_read
from apps.releases.portable.seed.profiles import profile_slug
from apps.releases.portable.seed.prompts import literal, prompt_read
from apps.releases.portable.seed.rails import rails_read
from apps.releases.portable.seed.record import Record, as_slug
from apps.releases.portable.seed.routing import POLICY
from apps.releases.portable.yaml_source import Source

DEFAULT = "default"
_OWN_FILES = ("prompt_policy", "guardrails", "judges")
_SHARED_PATHS = ("routing_config_path", "mcp_servers_config_path", "tools_config_path")
_PLAIN_PROMPT = "You are {{ agent }}. Answer only from the evidence you are given."


def agents_read(source: Source, drafts: Drafts, folder: Folder) -> None:
    """Take the agents of ``source`` with their own files, and those that intents name."""
    root = Record(source, "", source.value, drafts.report)
    declared: list[tuple[Draft, Record]] = []
    for name, record in root.records("agents", "agent_id", "id"):
        draft = _agent(name, record, drafts, folder)
        if draft is not None:
            declared.append((draft, record))
        record.finish()
    _named_only(root, drafts, folder)
    for draft, record in declared:
        _members(draft, record, drafts)
    _default_agent(root, drafts)
    root.drop("version", _("Revisions carry the version."))
    root.finish()


def _agent(name: str, record: Record, drafts: Drafts, folder: Folder) -> Draft | None:
    metadata = record.record("metadata")
    slug = as_slug(name)
    content: dict[str, Any] = {
        "description": record.text("description"),
        "domain": metadata.text("domain") or record.text("domain"),
        "tools": _tools(slug, record, drafts),
        **_own_files(slug, record, _prefix(metadata, record), drafts, folder),
    }
    profile = profile_slug(record.text("profile", "model_profile", "llm_profile"))
    if profile and profile in drafts.of("model_profile"):
        content["model_profile"] = profile
    elif profile:
        record.warn("profile", _("llm_profiles.yaml has no such profile; 'default' is used."))
    elif profile_slug(name) in drafts.of("model_profile"):
        content["model_profile"] = profile_slug(name)
    enabled = record.flag("enabled")
    if enabled is not None:
        content["enabled"] = enabled
    content["metadata"] = _labels(metadata)
    _shared_paths(record, folder)
    record.later("rag_namespace", _("Knowledge bases are not built yet."))
    record.drop("version", _("Revisions carry the version."))
    return drafts.add("agent", name, content, record, label=record.text("name"))


def _prefix(metadata: Record, record: Record) -> str:
    return metadata.text("system_prefix") or record.text("system_prefix")


def _shared_paths(record: Record, folder: Folder) -> None:
    for field in _SHARED_PATHS:
        path = folder.follow(record.text(field)) if field in record.fields else None
        if path is not None and path.resolve() not in folder.used:
            record.warn(field, _("A file of its own; only the folder's general one is read."))
        else:
            record.drop(field, _("A release holds everything; files are found by their names."))


def _labels(metadata: Record) -> dict[str, str]:
    found = {}
    for key in metadata.fields:
        if key not in metadata.taken and not isinstance(metadata.fields[key], (dict, list)):
            found[key] = metadata.text(key)
    metadata.finish(_("Only plain labels are kept."))
    return found


def _tools(slug: str, record: Record, drafts: Drafts) -> list[str]:
    """Return the agent's allow-list: its own, else what its intents may call."""
    if "allowed_tools" not in record.fields:
        return _intent_tools(slug, drafts)
    found = []
    for name in record.texts("allowed_tools"):
        if as_slug(name) in drafts.of("tool"):
            found.append(as_slug(name))
        else:
            record.warn("allowed_tools", _("tools.yaml has no %(n)s; left out.") % {"n": name})
    return found


def _intent_tools(slug: str, drafts: Drafts) -> list[str]:
    names = (
        tool
        for intent in drafts.of("intent").values()
        if intent.content["agent"] == slug
        for tool in intent.content["mcp_tools"]
    )
    return list(dict.fromkeys(names))


def _own_files(
    slug: str, record: Record, prefix: str, drafts: Drafts, folder: Folder
) -> dict[str, str]:
    """Read the agent's own prompt, rails and judges; return what the agent names."""
    found: dict[str, str] = {"prompt": slug}
    sources = {name: _own_file(name, slug, record, folder) for name in _OWN_FILES}
    prompt, rails, judges = (sources[name] for name in _OWN_FILES)
    if prompt is not None:
        prompt_read(prompt, drafts, folder, slug, prefix)
    elif prefix:
        text = f"{literal(prefix.rstrip())}\n\n{_plain_prompt(drafts)}"
        drafts.add("prompt", slug, {"system": text}, record, at="metadata")
    else:
        found["prompt"] = _shared_prompt(record, drafts)
    if rails is not None and rails_read(rails, drafts, slug, drafts.of("rail_policy").get(DEFAULT)):
        found["rails"] = slug
    if judges is not None and judges_read(judges, drafts, slug):
        found["judges"] = slug
    return found


def _own_file(name: str, slug: str, record: Record, folder: Folder) -> Source | None:
    """Return the agent's file: where its path says, else in its folder. A global file is not its own."""
    field = f"{name}_path" if name == "prompt_policy" else f"{name}_config_path"
    reference = record.text(field)
    path = folder.follow(reference) if reference else None
    if reference and path is None:
        record.warn(field, _("There is no such file in the folder; the global one is used."))
    path = path or folder.find(f"agents/{slug}/{name}.yaml")
    if path is None or path == folder.find(f"{name}.yaml"):
        return None
    if path.resolve() in folder.used:
        record.warn(field, _("Another agent's file; it is read for each."))
    return folder.read_path(path)


def _plain_prompt(drafts: Drafts) -> str:
    shared = drafts.of("prompt").get(DEFAULT)
    return str(shared.content["system"]) if shared else _PLAIN_PROMPT


def _shared_prompt(record: Record, drafts: Drafts) -> str:
    if DEFAULT not in drafts.of("prompt"):
        drafts.add("prompt", DEFAULT, {"system": _PLAIN_PROMPT}, record)
        record.derive("", _("No prompt_policy.yaml; a plain prompt 'default' was made."))
    return DEFAULT


def _named_only(root: Record, drafts: Drafts, folder: Folder) -> None:
    """Make an agent of every name that intents and states use and agents.yaml does not declare."""
    for slug, user in _names(drafts):
        if not slug or slug in drafts.of("agent"):
            continue
        record = Record(user.source, user.path, {}, drafts.report)
        content = {
            "domain": user.content.get("domain", ""),
            "tools": _intent_tools(slug, drafts),
            **_own_files(slug, record, "", drafts, folder),
        }
        if slug in drafts.of("model_profile"):
            content["model_profile"] = slug
        drafts.add("agent", slug, content, record)
        record.derive("", _("agents.yaml has no such agent; it was made."), slug)


def _names(drafts: Drafts) -> Iterable[tuple[str, Draft]]:
    for draft in [*drafts.of("intent").values(), *drafts.of("state_policy").values()]:
        yield draft.content["agent"], draft
    for draft in drafts.of("routing_policy").values():
        yield draft.content.get("fallback_agent", ""), draft


def _members(draft: Draft, record: Record, drafts: Drafts) -> None:
    """Give an agent without intents the agents of its domain's intents; without any, all of them."""
    intents = [i.content for i in drafts.of("intent").values()]
    if not intents or any(intent["agent"] == draft.slug for intent in intents):
        return
    domain = draft.content["domain"]
    agents = [i["agent"] for i in intents if domain and i["domain"] == domain]
    members = list(dict.fromkeys(agents or [i["agent"] for i in intents]))
    draft.content["members"] = members
    reason = _("No intent names this agent; these may answer for it.")
    record.derive("", reason, ", ".join(members))


def _default_agent(root: Record, drafts: Drafts) -> None:
    name = as_slug(root.text("default_agent_id", "default_agent"))
    policy = drafts.of("routing_policy").get(POLICY)
    if not name or policy is None:
        return
    if name not in drafts.of("agent"):
        root.warn("default_agent_id", _("agents.yaml has no such agent; left out."))
        return
    if policy.content.get("default_agent", name) != name:
        root.warn("default_agent_id", _("Differs from routing.yaml; this one counts."))
    policy.content["default_agent"] = name

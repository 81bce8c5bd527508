"""``judges.yaml`` → judge policies: the global one, and one for each agent that has a file."""

from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Draft, Drafts, takes
from apps.releases.portable.seed.record import Record
from apps.releases.portable.yaml_source import Source

_ALIASES = {"aluc": "groundedness", "hallucination": "groundedness"}


def judges_read(source: Source, drafts: Drafts, slug: str) -> Draft | None:
    """Take ``source`` as the judge policy ``slug``."""
    root = Record(source, "", source.value, drafts.report)
    content: dict[str, Any] = {}
    for field in ("enabled", "fail_closed"):
        value = root.flag(field)
        if value is not None:
            content[field] = value
    blocks = root.flag("fallback_on_block")
    content["judges"] = _judges(root, bool(blocks))
    root.later("profile", _("Judges that ask a model are not built yet."))
    root.later("sample_rate", _("Only judges before the reply are built; they see every answer."))
    root.later("always_run_for_transactional", _("Judges before the reply see every answer."))
    root.drop("max_context_chars", _("The judge sees all evidence of the turn."))
    root.drop("version", _("Revisions carry the version."))
    draft = drafts.add("judge_policy", slug, content, root)
    root.finish()
    return draft


def _judges(root: Record, blocks: bool) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for given, record in root.records("judges", "name", "code"):
        name = _ALIASES.get(given.lower(), given.lower())
        if not takes("judge_policy", {"judges": [{"name": name}]}):
            reason = _("The judge %(name)s is not built yet.") % {"name": given}
            root.report.add("later", root.source, record.path, reason, given)
            continue
        if name in found:
            record.warn("", _("The judge stands twice; the first counts."))
            continue
        found[name] = _judge(name, record, blocks)
    return list(found.values())


def _judge(name: str, record: Record, blocks: bool) -> dict[str, Any]:
    judge: dict[str, Any] = {"name": name}
    if blocks:
        judge["on_fail"] = "block"
    enabled, threshold = record.flag("enabled"), record.number("threshold")
    if enabled is not None:
        judge["enabled"] = enabled
    if threshold is not None:
        judge["threshold"] = threshold
    if record.text("type", "mode") not in ("", "deterministic"):
        record.later("type", _("It is judged without a model; others are not built yet."))
    record.later("profile", _("Judges that ask a model are not built yet."))
    record.later("profile_name", _("Judges that ask a model are not built yet."))
    record.drop("fail_closed", _("The policy's own fail_closed counts for all its judges."))
    record.drop("version", _("Revisions carry the version."))
    record.finish()
    return judge

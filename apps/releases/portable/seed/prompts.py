"""``prompt_policy.yaml`` → prompts."""

import re
from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.seed.drafts import Draft, Drafts
from apps.releases.portable.seed.folder import Folder
from apps.releases.portable.seed.record import Record
from apps.releases.portable.yaml_source import Source

_TEMPLATE_MARK = re.compile(r"\{[{%#]")


def prompt_read(
    source: Source, drafts: Drafts, folder: Folder, slug: str, prefix: str = ""
) -> Draft | None:
    """Take ``source`` as the prompt ``slug``; ``prefix`` (of agents.yaml) stands before its text."""
    root = Record(source, "", source.value, drafts.report)
    body = root.record("prompt_policy") if "prompt_policy" in root.fields else root
    text = body.text("system_prefix", "system_prompt", "system", "prompt")
    text = _joined(text, _from_file(body, folder))
    if not text and not prefix:
        body.refuse("", _("The file has no system text."))
    text = _joined(prefix, text)
    content: dict[str, Any] = {"system": literal(text)}
    if content["system"] != text:
        body.warn("system_prefix", _("Braces that look like a template are taken literally."))
    for field in ("response_style", "no_evidence_text", "language"):
        value = body.text(field)
        if value:
            content[field] = value
    for field in ("require_evidence", "allow_tool_usage"):
        flag = body.flag(field)
        if flag is not None:
            content[field] = flag
    body.drop("version", _("Revisions carry the version."))
    body.drop("description", _("There is no such field of a prompt here."))
    for field in ("reviewed_at", "status"):
        body.later(field, _("Reviews are not built yet."))
    draft = drafts.add("prompt", slug, content, body, label=body.text("name", "id"))
    body.finish()
    root.finish()
    return draft


def literal(text: str) -> str:
    """Return ``text`` so that a template engine gives it back as it is."""
    return _TEMPLATE_MARK.sub(lambda mark: "{{ '" + mark[0] + "' }}", text)


def _joined(first: str, second: str) -> str:
    if not first.strip() or first.strip() in second:
        return second
    if not second.strip() or second.strip() in first:
        return first
    return f"{first.rstrip()}\n\n{second}"


def _from_file(body: Record, folder: Folder) -> str:
    reference = body.text("system_prompt_path", "system_prefix_path")
    if not reference:
        return ""
    path = folder.follow(reference, near=folder.root / body.source.file)
    if path is None:
        body.refuse("system_prompt_path", _("There is no such file in the folder."))
        return ""
    return folder.text(path)

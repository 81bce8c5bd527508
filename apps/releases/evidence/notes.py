"""Release notes, drafted from the difference to the parent: plain sentences, no one writes them.

In the reader's language; user texts inside them stay as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.releases.changes.policy import Risk
from apps.releases.pages.diff_view import field_title, value_text
from apps.releases.pages.links import kind_label
from apps.releases.patches.comparing import ItemChange
from apps.releases.patches.diff import FieldChange
from apps.releases.patches.word_diff import word_diff
from apps.runtime.config import KINDS, Config

LONGEST_VALUE = 80
SHOWN_FIELDS = 12


@dataclass(frozen=True)
class NoteGroup:
    """Sentences of one sort, under their heading."""

    code: str
    title: str
    sentences: list[str]


def notes_drafted(changes: Sequence[ItemChange], risks: Sequence[Risk] = ()) -> list[NoteGroup]:
    """Return what ``changes`` mean in sentences: what weakens safety first, then by sort."""
    groups = [
        NoteGroup(
            "weakening",
            _("Weakens safety"),
            [_weakening(risk) for risk in risks if risk.risk == "weakening"],
        ),
        NoteGroup(
            "added",
            _("New"),
            [_("%(item)s is new.") % {"item": _named(c)} for c in changes if c.change == "added"],
        ),
        NoteGroup(
            "changed",
            _("Changed"),
            [line for c in changes if c.change == "changed" for line in _changed(c)],
        ),
        NoteGroup(
            "removed",
            _("Removed"),
            [
                _("%(item)s is gone.") % {"item": _named(c)}
                for c in changes
                if c.change == "removed"
            ],
        ),
    ]
    return [group for group in groups if group.sentences]


def _weakening(risk: Risk) -> str:
    place = f" ({risk.path})" if risk.path else ""
    return f"{_item(risk.kind, risk.slug)}{place}: {risk.message}"


def _changed(item: ItemChange) -> list[str]:
    if item.fields is None:
        return [_("%(item)s has changed.") % {"item": _named(item)}]
    config_class = KINDS.get(item.kind, Config)
    lines = [
        f"{_named(item)}: {_sentence(config_class, change)}"
        for change in item.fields[:SHOWN_FIELDS]
    ]
    more = len(item.fields) - SHOWN_FIELDS
    if more > 0:
        text = ngettext("%(count)s more change.", "%(count)s more changes.", more)
        lines.append(f"{_named(item)}: {text % {'count': more}}")
    return lines


def _sentence(config_class: type[Config], change: FieldChange) -> str:
    title, entry = field_title(config_class, change["path"]), _entry(change)
    place = title if entry or "[" not in change["path"] else f"{title} ({change['path']})"
    names = {
        "field": place,
        "before": entry or _short(value_text(change["before"])),
        "after": entry or _short(value_text(change["after"])),
    }
    match change["change"]:
        case "added":
            return _("%(field)s gained “%(after)s”.") % names
        case "removed":
            return _("%(field)s lost “%(before)s”.") % names
        case "moved":
            return _("%(field)s stands in another order.") % names
        case "text":
            return _reworded(place, change)
        case _:
            return _("%(field)s went from “%(before)s” to “%(after)s”.") % names


def _entry(change: FieldChange) -> str:
    """Return the name of the list entry that came or went; "" when it is something else."""
    whole = change["before"] if change["after"] is None else change["after"]
    path = change["path"]
    if change["change"] not in ("added", "removed") or not path.endswith("]"):
        return ""
    return path[path.rindex("[") + 1 : -1] if isinstance(whole, dict) else ""


def _reworded(place: str, change: FieldChange) -> str:
    pieces = word_diff(change["before"], change["after"])
    counts = {
        "field": place,
        "out": sum(len(text.split()) for mark, text in pieces if mark == "removed"),
        "in": sum(len(text.split()) for mark, text in pieces if mark == "added"),
    }
    return _("%(field)s was reworded: %(out)s words out, %(in)s in.") % counts


def _named(change: ItemChange) -> str:
    return _item(change.kind, change.slug)


def _item(kind: str, slug: str) -> str:
    return f"{kind_label(kind)} {slug}"


def _short(text: str) -> str:
    return Truncator(" ".join(text.split())).chars(LONGEST_VALUE)

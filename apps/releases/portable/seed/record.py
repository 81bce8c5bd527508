"""One map of a foreign file, read field by field: what nobody takes is reported at the end."""

import contextlib
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from apps.releases.portable.report import Report
from apps.releases.portable.yaml_source import Source, join

# How YAML 1.1 and people write switches.
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def as_slug(name: str) -> str:
    """Return ``name`` as an item's slug: accents off, everything else that is odd a ``_``."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return re.sub(r"[^A-Za-z0-9_.:-]+", "_", plain.strip()).lstrip(".:-")[:120]


class Record:
    """``fields`` at ``path`` of ``source``. Reading a field takes it."""

    def __init__(self, source: Source, path: str, fields: Any, report: Report) -> None:
        self.source = source
        self.path = path
        self.report = report
        self.taken: set[str] = set()
        self.fields: dict[str, Any] = fields if isinstance(fields, dict) else {}
        if fields is not None and not isinstance(fields, dict):
            report.refuse(source, path, _("Expected a map of fields."))

    # -- values --------------------------------------------------------------------------------
    def take(self, *names: str) -> Any:
        """Return the value of the first of ``names`` that is there; several are aliases."""
        present = [name for name in names if self.fields.get(name) is not None]
        self.taken.update(name for name in names if name in self.fields)
        if not present:
            return None
        for other in present[1:]:
            if self.fields[other] != self.fields[present[0]]:
                self.warn(other, _("Differs from '%(n)s', which counts.") % {"n": present[0]})
        return self.fields[present[0]]

    def text(self, *names: str, default: str = "") -> str:
        value = self.take(*names)
        if value is None:
            return default
        if isinstance(value, (dict, list)):
            self.refuse(names[0], _("Text is expected."))
            return default
        return str(value).lower() if isinstance(value, bool) else str(value)

    def flag(self, *names: str) -> bool | None:
        """Return a switch, or ``None`` when it is not there."""
        value = self.take(*names)
        if isinstance(value, str):
            value = _SWITCHES.get(value.strip().lower(), value)
        if value is None or isinstance(value, bool):
            return value
        self.refuse(names[0], _("true or false is expected."))
        return None

    def number(self, *names: str) -> float | int | None:
        value = self.take(*names)
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = float(value) if "." in value else int(value)
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return value
        self.refuse(names[0], _("A number is expected."))
        return None

    def texts(self, *names: str) -> list[str]:
        value = self.take(*names)
        if value is None:
            return []
        values = value if isinstance(value, list) else [value]
        if any(isinstance(item, (dict, list)) or item is None for item in values):
            self.refuse(names[0], _("A list of texts is expected."))
            return []
        return [str(v).lower() if isinstance(v, bool) else str(v) for v in values]

    # -- below ---------------------------------------------------------------------------------
    def record(self, *names: str) -> "Record":
        """Return the map below the first of ``names``; an empty one when it is not there."""
        name = next((n for n in names if self.fields.get(n) is not None), names[0])
        return Record(self.source, join(self.path, name), self.take(*names), self.report)

    def records(self, name: str, *keys: str) -> Iterator[tuple[str, "Record"]]:
        """Yield (name, record) of a map of maps, or of a list of maps that name themselves in ``keys``.

        A text in the list is a map that has nothing but the name.
        """
        value, path = self.take(name), join(self.path, name)
        if isinstance(value, dict):
            for key, fields in value.items():
                record = Record(self.source, join(path, key), fields, self.report)
                for other in keys:
                    if record.take(other) not in (None, key):
                        record.warn(other, _("Differs from the key, which counts."))
                yield key, record
        elif isinstance(value, list):
            for index, fields in enumerate(value):
                fields = {keys[0]: fields} if isinstance(fields, str) else fields
                record = Record(self.source, join(path, index), fields, self.report)
                found = record.text(*keys)
                if found:
                    yield found, record
                else:
                    message = _("It has no name; expected '%(key)s'.") % {"key": keys[0]}
                    self.report.refuse(self.source, record.path, message)
        elif value is not None:
            self.refuse(name, _("A list or a map is expected."))

    # -- report --------------------------------------------------------------------------------
    def drop(self, name: str, reason: str) -> None:
        """Report the field as dropped; nothing when it is not there."""
        self._report("dropped", name, reason)

    def later(self, name: str, reason: str) -> None:
        self._report("later", name, reason)

    def warn(self, name: str, reason: str) -> None:
        where = join(self.path, name) if name else self.path
        self.report.add("warning", self.source, where, reason, self.fields.get(name))

    def derive(self, name: str, reason: str, value: Any = None) -> None:
        where = join(self.path, name) if name else self.path
        self.report.add("derived", self.source, where, reason, value)

    def refuse(self, name: str, message: str) -> None:
        self.report.refuse(self.source, join(self.path, name) if name else self.path, message)

    def finish(self, reason: str = "") -> None:
        """Report every field that nobody took."""
        for name in self.fields:
            if name not in self.taken:
                self.drop(name, reason or _("This field has no meaning here."))

    def _report(self, action: Any, name: str, reason: str) -> None:
        if name in self.fields:
            self.taken.add(name)
            value = self.fields[name]
            shown = "null" if value is None else value
            self.report.add(action, self.source, join(self.path, name), reason, shown)

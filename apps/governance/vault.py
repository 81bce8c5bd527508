"""The vault of a session: placeholders that stand for restricted values.

A model, a log, a trace and the stored conversation see ``<CPF_1>``; a tool that may get the real
value resolves it here. The mapping lives in ``turn.vault`` and is sealed when it is stored.
"""

import re
from collections.abc import Iterator, Mapping

PLACEHOLDER = re.compile(r"<([A-Z]{2,16})_([1-9]\d{0,5})>")
_NOT_ALNUM = re.compile(r"[\W_]+")


def canonical(entity: str, value: str) -> str:
    """Return what makes two spellings of ``value`` the same one: its letters and digits, folded."""
    if entity in ("TOKEN", "SECRET"):
        return value
    if entity == "EMAIL":
        return value.casefold()
    return _NOT_ALNUM.sub("", value).casefold()


class Vault:
    """Numbers placeholders per entity; the same value always gets the same placeholder.

    ``known`` maps placeholder -> real value as an earlier turn of the session left it.
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = dict(known or {})
        self._by_value: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}
        for placeholder, value in self.values.items():
            if (found := PLACEHOLDER.fullmatch(placeholder)) is None:
                continue
            entity, number = found.group(1), int(found.group(2))
            self._by_value.setdefault((entity, canonical(entity, value)), placeholder)
            self._last[entity] = max(self._last.get(entity, 0), number)

    def placeholder(self, entity: str, value: str) -> str:
        """Return the placeholder of ``value``, a new one when the session has not seen it."""
        key = (entity, canonical(entity, value))
        if key not in self._by_value:
            self._last[entity] = self._last.get(entity, 0) + 1
            self._by_value[key] = f"<{entity}_{self._last[entity]}>"
            self.values[self._by_value[key]] = value
        return self._by_value[key]

    def entries(self) -> Iterator[tuple[str, str, str]]:
        """Yield (placeholder, entity, value) of everything kept."""
        for placeholder, value in self.values.items():
            if found := PLACEHOLDER.fullmatch(placeholder):
                yield placeholder, found.group(1), value

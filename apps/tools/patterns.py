"""Regular expressions of tenants and of foreign schemas, matched in linear time (RE2).

The standard library's engine can be made to run for hours by a short pattern and a short text; a
tenant's pattern runs on the loop of every tenant. RE2 has no look-around and no back references.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Protocol

import re2

MAX_BYTES = 1 << 21
"""Memory that one compiled pattern may take."""

# RE2's own \w is ASCII: "a(ç)ão" would fall apart.
_WORD = r"\p{L}\p{M}\p{N}_"


class PatternInvalid(ValueError):
    """The pattern is no regular expression that is matched here."""


class Found(Protocol):
    """A match."""

    def group(self, index: int = 0, /) -> str | None: ...
    def groups(self) -> Sequence[str | None]: ...


class Pattern:
    """A compiled pattern; ``groups`` is how many groups it has."""

    def __init__(self, source: str) -> None:
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_BYTES
        try:
            self._compiled = re2.compile(_unicode(source), options)
        except re2.error as error:
            said = error.args[0] if error.args else ""
            text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            raise PatternInvalid(text) from None
        self.groups: int = self._compiled.groups

    def search(self, text: str) -> Found | None:
        """Return the first match in ``text``."""
        found: Found | None = self._compiled.search(text.encode("utf-8", "replace").decode())
        return found

    def all(self, text: str) -> Iterator[Found]:
        """Yield the matches in ``text``, none over another."""
        found: Iterator[Found] = self._compiled.finditer(text.encode("utf-8", "replace").decode())
        return found


@lru_cache(maxsize=1024)
def pattern(source: str) -> Pattern:
    """Return the compiled ``source``. Raises ``PatternInvalid``."""
    return Pattern(source)


def _unicode(source: str) -> str:
    r"""Return ``source`` with ``\w`` and ``\W`` meaning the letters of every language."""
    out: list[str] = []
    inside = escaped = False
    for char in source:
        if escaped:
            escaped = False
            if char == "w":
                out[-1] = _WORD if inside else f"[{_WORD}]"
                continue
            if char == "W" and not inside:
                out[-1] = f"[^{_WORD}]"
                continue
        elif char == "\\":
            escaped = True
        elif char == "[":
            inside = True
        elif char == "]":
            inside = False
        out.append(char)
    return "".join(out)

"""Writes JSON types as YAML that every YAML reader understands the same way.

Texts with several lines become literal blocks; a text stands without quotes only when YAML 1.1 and
1.2 agree that it is text. Same value, same bytes.
"""

import io
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

_TEXT = "tag:yaml.org,2002:str"
_PLAIN = re.compile(r"[^\W\d][\w ./()+,?!'%-]*")
# Words that YAML 1.1 or 1.2 reads as something else.
_RESERVED = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
# A literal block keeps these poorly: other line breaks, tabs, the byte order mark.
_NOT_LITERAL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


def yaml_text(value: Any) -> str:
    """Return ``value`` (JSON types) as a YAML document; keys stand in the order given."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # typed as None
    yaml.allow_unicode = True
    yaml.width = 2**31  # no folding: a folded line may lose blanks
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()


class _Representer(SafeRepresenter):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> ScalarNode:
        return self.represent_scalar(_TEXT, data, style=_style(data))

    def represent_float(self, data: float) -> ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:float", repr(data))


_Representer.add_representer(str, _Representer.represent_str)
_Representer.add_representer(float, _Representer.represent_float)


def _style(text: str) -> str | None:
    if "\n" in text and _literal(text):
        return "|"
    plain = _PLAIN.fullmatch(text) and text == text.rstrip() and text.lower() not in _RESERVED
    return None if plain else '"'


def _literal(text: str) -> bool:
    if _NOT_LITERAL.search(text) or text.startswith((" ", "\n")):
        return False
    return not any(line.endswith(" ") for line in text.split("\n"))

"""What a message names in a form the release describes: an order, an invoice, no customer.

The form is the pattern of a parameter mapping's ``extract``. It tells a new order from the one the
conversation was about (reference fault 7), and an order from an invoice where one canonical key
holds either.
"""

from collections.abc import Mapping

from apps.runtime.turn import Turn
from apps.tools.config import ToolConfig
from apps.tools.mapping import extractor_of, sources_of


def keys_named(turn: Turn, slug: str) -> Mapping[str, str]:
    """Return canonical key -> what the message names of it, for the arguments of tool ``slug``.

    Only where the mapping has both the key and a pattern; never a key of the customer.
    """
    tool = turn.release.find(ToolConfig, slug)
    if tool is None:
        return {}
    read = extractor_of(turn, slug)
    sources = sources_of(turn.release, slug, tool)
    found = {
        keys[0]: read(name, turn.text)
        for name, keys in sources.context.items()
        if name in sources.forms
    }
    return {key: value for key, value in found.items() if isinstance(value, str) and value}

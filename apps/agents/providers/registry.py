"""The providers a profile may name."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from apps.agents.providers.base import Provider
from apps.agents.providers.scripted import Scripted

if TYPE_CHECKING:
    from apps.agents.providers.openai_compatible import OpenAICompatible

NAMES = ("openai_compatible", "scripted")


class Providers(Mapping[str, Provider]):
    """Every provider by name; each is made when it is first asked for.

    The OpenAI client costs most of a second and 50 MB to import: an installation without it never
    pays for it.
    """

    def __init__(self) -> None:
        self._scripted = Scripted()
        self._openai: OpenAICompatible | None = None

    def __getitem__(self, name: str) -> Provider:
        if name == "scripted":
            return self._scripted
        if name != "openai_compatible":
            raise KeyError(name)
        if self._openai is None:
            from apps.agents.providers.openai_compatible import OpenAICompatible

            self._openai = OpenAICompatible()
        return self._openai

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        if self._openai is not None:
            await self._openai.aclose()

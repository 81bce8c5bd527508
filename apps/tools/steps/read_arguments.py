"""Lets a model read, once, what the chosen tools need of the message and no pattern reads."""

from collections.abc import Callable, Sequence

from apps.runtime.turn import Turn
from apps.tools.model_extraction import ModelExtraction


class ReadArguments:
    """Sets ``turn.extracted``. ``tools_of`` gives the tools that the turn is going to call."""

    def __init__(
        self, extraction: ModelExtraction, tools_of: Callable[[Turn], Sequence[str]]
    ) -> None:
        self._extraction = extraction
        self._tools_of = tools_of

    async def __call__(self, turn: Turn) -> Turn:
        if turn.prepared is not None or turn.route is None:
            return turn
        return await self._extraction(turn, self._tools_of(turn))

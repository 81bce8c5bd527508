"""What an agent in code is: one method that turns what it is given into an answer. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from apps.agents.code.facade import AgentRuntime


@dataclass(frozen=True)
class Answer:
    """What the agent says. ``waiting``: it asks the customer for something."""

    text: str
    waiting: bool = False


class CodeAgent:
    """Base of agents written in Python; one object serves one message and is then thrown away.

    ``default_tools_by_intent``: intent -> tools, for a turn whose route names none. The prompt, the
    allowed tools, the model profile, rails and judges are those of the agent's record.
    """

    default_tools_by_intent: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    async def run(self, runtime: AgentRuntime) -> Answer | str:
        """Return the answer, a draft that rails and judges still look at.

        What is raised ends the turn as failed, with an error id for the customer and the log.
        """
        raise NotImplementedError

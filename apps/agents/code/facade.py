"""What an agent in code may do. Pure.

Everything goes through the ports that data agents use: the tool port's policies and ledger, the model
port's ledger. There is no way here to a release, a vault, an outcome or a row.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from apps.agents.code.context import Extract, RuntimeContext
from apps.agents.code.knowledge import Retrieved
from apps.runtime.ports import ModelMessage
from apps.runtime.turn import ChatMessage, ToolCall

if TYPE_CHECKING:
    from apps.agents.code.work import Work


class AgentRuntime:
    """The platform as the agent sees it, for one message."""

    __slots__ = ("__work",)

    def __init__(self, work: "Work") -> None:
        self.__work = work

    @property
    def context(self) -> RuntimeContext:
        """The facts of this turn."""
        return self.__work.context

    def pick(self, name: str, *aliases: str, extract: Extract | None = None) -> Any:
        """Return a value by the order of trust; see ``RuntimeContext.pick``."""
        return self.context.pick(name, *aliases, extract=extract)

    @property
    def memory(self) -> tuple[ChatMessage, ...]:
        """What was said before, masked, as far as this agent remembers it."""
        return self.__work.memory

    @property
    def results(self) -> tuple[ToolCall, ...]:
        """The tool calls this agent made for this message so far."""
        return self.__work.calls

    def tools_by_intent(
        self, defaults: Mapping[str, Sequence[str]] | None = None, default_intent: str = ""
    ) -> tuple[str, ...]:
        """Return the tools the route chose; without any, ``defaults`` of the intent.

        Each once, in order, and only those the agent's record allows.
        """
        return self.__work.tools_by_intent(defaults, default_intent)

    def build_arguments(
        self, tool: str, *, aliases: Mapping[str, Sequence[str]] | None = None, **explicit: Any
    ) -> dict[str, Any]:
        """Return what this turn knows of the arguments ``tool`` declares, and ``explicit``.

        ``aliases``: canonical key -> names of arguments it fills, where the parameter mapping does
        not. What is left out here the mapping may still fill.
        """
        return self.__work.build_arguments(tool, aliases or {}, explicit)

    async def call_tool(self, tool: str, **arguments: Any) -> ToolCall:
        """Call one tool and return how it ended; a refusal or a failure is in the result.

        An action that the customer has to confirm is not called: the question is put to them, and it
        is this turn's answer whatever the agent returns. One action a turn.
        """
        return (await self.__work.call([(tool, arguments)]))[0]

    async def call_tools(
        self,
        tools: Sequence[str] | None = None,
        *,
        aliases: Mapping[str, Sequence[str]] | None = None,
    ) -> list[ToolCall]:
        """Call ``tools``, by default those of the intent that only read, with what is known."""
        return await self.__work.collect(tools, aliases or {})

    async def retrieve(self, query: str = "") -> Retrieved:
        """Return passages of documents for ``query``, by default the message."""
        return await self.__work.retrieve(query)

    def build_messages(
        self, *, notes: Sequence[str] = (), retrieved: Retrieved | None = None
    ) -> tuple[ModelMessage, ...]:
        """Return the chat request: the record's prompt and rules, memory, message, tool results.

        ``notes`` are told in the system's voice; passages go in as data.
        """
        return self.__work.messages(notes, retrieved)

    async def ask_model(
        self,
        messages: Sequence[ModelMessage] | None = None,
        *,
        operation: str = "agent.answer",
        cached: bool = False,
    ) -> str:
        """Return what the model of the agent's profile says to ``messages``.

        ``cached``: an equal request of the last minutes may answer it. Never after an action: that
        something was done is for its tool to say. Raises ``ModelFailed``.
        """
        return await self.__work.ask(messages, operation, cached=cached)

    def emit_ic(self, code: str, **data: Any) -> bool:
        """Write a business event; returns whether it was written. Never raises."""
        return self.__work.emit("IC", code, data)

    def emit_noc(self, code: str, **data: Any) -> bool:
        """Write an operations event; returns whether it was written. Never raises."""
        return self.__work.emit("NOC", code, data)

    def emit_grl(self, code: str, **data: Any) -> bool:
        """Write a governance event; returns whether it was written. Never raises."""
        return self.__work.emit("GRL", code, data)

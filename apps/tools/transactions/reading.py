"""What may be read out of a message for one tool: its arguments, and how each is found."""

from apps.runtime.dialogue import Transaction
from apps.runtime.turn import Turn
from apps.tools.config import ToolConfig
from apps.tools.mapping import may_name_customer, sources_of
from apps.tools.transactions.values import Asked

# An argument with one of these sources is never read from what is said.
NOT_SAID = ("context", "constant", "secret")


def asked_of(turn: Turn, tool: ToolConfig, transaction: Transaction) -> Asked:
    """Return what the open transaction may still be told.

    Who the customer is comes from the credential: only a caller that may name the customer fills it.
    """
    sources = sources_of(turn.release, transaction.tool, tool)
    closed = frozenset(n for n, arg in tool.args_schema.items() if arg.source in NOT_SAID)
    still = transaction.missing or tuple(n for n in tool.requires if n not in transaction.values)
    return Asked(
        tool=tool,
        open=tuple(name for name in still if name not in closed),
        known=transaction.values,
        asked=transaction.asked,
        identifiers=frozenset(sources.context) - closed,
        customer=closed if may_name_customer(turn) else sources.customer | closed,
    )


def opened(tool: ToolConfig, slug: str) -> Transaction:
    """Return a transaction of which nothing is known yet."""
    return Transaction(
        id="", status="COLLECTING_PARAMETERS", tool=slug, agent="", missing=tuple(tool.requires)
    )

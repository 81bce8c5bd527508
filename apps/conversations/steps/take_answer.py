"""Takes what the customer's own words name: what was asked for, or what is now talked about."""

import re
from collections.abc import Callable, Mapping

from apps.conversations.config import IdentityKeyConfig
from apps.conversations.steps.identify import CREDENTIAL, CUSTOMER, NOT_TRUSTED
from apps.runtime.identifiers import answer_value
from apps.runtime.turn import SAID, BusinessContext, Decision, Turn

AskedKey = Callable[[Turn], str]
"""The canonical key that feeds the argument a turn's route still lacks; "" for none."""

NamedKeys = Callable[[Turn], Mapping[str, str]]
"""Canonical key -> what the message names of it, in a form the release knows; no customer's key."""

# What the input rails may have masked and an answer still be taken: a line is named by its number.
# Documents and cards stay in the vault, so nothing takes them into the open business context.
_MASKED = re.compile(r"<([A-Z_]+?)_?\d+>")
PLAIN_KINDS = frozenset({"PHONE"})


def _nothing_named(turn: Turn) -> Mapping[str, str]:
    return {}


class TakeAnswer:
    """Adds to ``turn.business_context`` the one value the session waits for, or what is named.

    ``asked_key`` says what is waited for. A key that identifies the customer is taken only when
    the caller may name the customer; else ``IDENTITY_NOT_TRUSTED`` is decided. An answer never
    changes a value already known; what ``named_keys`` finds does (fault 7): another order is meant.
    """

    def __init__(self, asked_key: AskedKey, named_keys: NamedKeys = _nothing_named) -> None:
        self._asked_key = asked_key
        self._named_keys = named_keys

    async def __call__(self, turn: Turn) -> Turn:
        for key, value in self._named_keys(turn).items():
            known = turn.business_context
            if known.get(key) != value and known.sources.get(key) != CREDENTIAL:
                turn = _with(turn, key, value)
        if turn.route is None or turn.route.method != "state":
            return turn
        value = answer_value(turn.inbound.text)
        if not value or not PLAIN_KINDS.issuperset(_MASKED.findall(turn.text)):
            return turn
        key = self._asked_key(turn)
        if not key or turn.business_context.get(key):
            return turn
        caller = turn.inbound.caller
        config = turn.release.find(IdentityKeyConfig, key)
        names_customer = key == CUSTOMER or (config is not None and config.identifies_customer)
        if names_customer and not (caller.may_name_customer or caller.demo):
            return turn.decide(
                Decision(
                    phase="identity", code=NOT_TRUSTED, action="observe",
                    reason="the caller's credential does not let it name this",
                    metadata={"key": key, "source": SAID},
                )
            )  # fmt: skip
        return _with(turn, key, value)


def _with(turn: Turn, key: str, value: str) -> Turn:
    known = turn.business_context
    return turn.evolve(
        business_context=BusinessContext(
            values={**known.values, key: value},
            sources={**known.sources, key: SAID},
            missing=tuple(name for name in known.missing if name != key),
        )
    )

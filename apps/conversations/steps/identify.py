"""Finds out who and what a turn is about."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.conversations.config import IdentityKeyConfig
from apps.runtime.dialogue import Dialogue
from apps.runtime.turn import BusinessContext, Decision, Turn

CUSTOMER = "customer_key"
SESSION = "session_key"
# ``BusinessContext.sources`` of a value that no path of this turn's payload gave.
CARRIED = "session"
CREDENTIAL = "credential"
NOT_TRUSTED = "IDENTITY_NOT_TRUSTED"
CHANGED = "IDENTITY_CHANGED"
# Longer than any identifier; what is longer is no key and is taken for absent.
MAX_VALUE_CHARS = 200
# A JSON number above this may have lost digits on its way through a float.
EXACT_FLOAT = 2**53


@dataclass(frozen=True)
class Found:
    """A value of one key and the path it was found under."""

    value: str
    source: str


class Identify:
    """Sets ``turn.business_context``; never fails, whatever the payload holds.

    A key's value comes from the caller's credential, else from the first of its sources that is
    not empty, else from the session. What identifies the customer is taken from the payload only
    when the caller may name the customer (scope ``identity:assert``, or the demo); otherwise it
    is ignored and ``IDENTITY_NOT_TRUSTED`` is decided. When the customer changes within a
    session, nothing that was carried for the former one stays: no value, no open action that the
    new one could say yes to, no state, no evidence, no word of it, and no placeholder leads to the
    former one's documents.
    """

    async def __call__(self, turn: Turn) -> Turn:
        context, decisions = identify(turn)
        if any(decision.code == CHANGED for decision in decisions):
            session = replace(turn.session, next_state="", active_agent="")
            begun = Dialogue(since=session.turn_number)
            turn = turn.evolve(session=session, dialogue=begun, vault={})
        return turn.evolve(business_context=context).decide(*decisions)


def identify(turn: Turn) -> tuple[BusinessContext, tuple[Decision, ...]]:
    """Return the business context of ``turn`` and what was decided about it."""
    keys = turn.release.all(IdentityKeyConfig)
    customer_keys = {key for key, config in keys.items() if _names_customer(key, config)}
    customer_keys.add(CUSTOMER)
    found, decisions = _named(turn, keys, customer_keys)
    carried = _carried(turn, keys)
    before = turn.session.business_context
    changed = sorted(
        key for key in customer_keys & found.keys()
        if before.get(key) and found[key].value != before[key]
    )  # fmt: skip
    if changed:
        carried = {}
        decisions += tuple(
            Decision(
                phase="identity", code=CHANGED, action="observe",
                reason="another customer than in the turns before", metadata={"key": key},
            )
            for key in changed
        )  # fmt: skip
    known = {**carried, **found}
    known.setdefault(SESSION, Found(turn.inbound.session, CARRIED))
    return _context(known, keys), decisions


def _context(known: Mapping[str, Found], keys: Mapping[str, IdentityKeyConfig]) -> BusinessContext:
    return BusinessContext(
        values={key: found.value for key, found in sorted(known.items()) if found.value},
        sources={key: found.source for key, found in sorted(known.items()) if found.value},
        missing=tuple(
            key for key, config in keys.items() if config.required and not _has(known, key)
        ),
    )


def _has(known: Mapping[str, Found], key: str) -> bool:
    return key in known and bool(known[key].value)


def _names_customer(key: str, config: IdentityKeyConfig) -> bool:
    return config.identifies_customer or key == CUSTOMER


def _named(
    turn: Turn, keys: Mapping[str, IdentityKeyConfig], customer_keys: set[str]
) -> tuple[dict[str, Found], tuple[Decision, ...]]:
    """Return what this turn says itself: the credential first, then the payload where it may."""
    caller = turn.inbound.caller
    trusted = caller.may_name_customer or caller.demo
    named = {
        key: Found(text, CREDENTIAL)
        for key, value in caller.customer.items()
        if (text := identifier(value))
    }
    decisions = []
    for key, config in keys.items():
        said = _first(turn.inbound.payload, config.sources)
        if said is None:
            continue
        if key in named:
            ignored = said.value != named[key].value
        else:
            ignored = key in customer_keys and not trusted
            if not ignored:
                named[key] = said
        if ignored:
            decisions.append(_ignored(key, said.source))
    return named, tuple(decisions)


def _ignored(key: str, source: str) -> Decision:
    return Decision(
        phase="identity",
        code=NOT_TRUSTED,
        action="observe",
        reason="the caller's credential does not let it name this",
        metadata={"key": key, "source": source},
    )


def _carried(turn: Turn, keys: Mapping[str, IdentityKeyConfig]) -> dict[str, Found]:
    """Return what earlier turns of the session left for the keys that are kept for the next ones."""
    return {
        key: Found(value, CARRIED)
        for key, value in turn.session.business_context.items()
        if value and (key == SESSION or (key in keys and keys[key].scope == "session"))
    }


def _first(payload: Mapping[str, Any], sources: list[str]) -> Found | None:
    """Return the first source that is not empty.

    After all of them, bare names are looked up in the free ``context`` object of older channels.
    """
    paths = [source.removeprefix("payload.") for source in sources]
    for path in (*paths, *(f"context.{path}" for path in paths if "." not in path)):
        if value := identifier(_at(payload, path)):
            return Found(value, path)
    return None


def _at(payload: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(payload, Mapping):
            return None
        payload = payload.get(name)
    return payload


def identifier(value: Any) -> str:
    """Return ``value`` as the text of a key; "" for what is none.

    Whole numbers keep every digit. Booleans, lists, objects, fractions and texts longer than
    ``MAX_VALUE_CHARS`` are no identifiers.
    """
    if isinstance(value, bool):
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < EXACT_FLOAT else ""
    text = str(value).strip() if isinstance(value, (str, int)) else ""
    return text if len(text) <= MAX_VALUE_CHARS else ""

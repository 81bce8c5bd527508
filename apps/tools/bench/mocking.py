"""A transport that answers from a script instead of asking a server. Pure.

A mock is a list of steps, tried in order: the first whose ``when`` fits the arguments answers. A
step with no ``when`` fits everything, so one such step is a fixed result. Used in the bench, in
tests and in evaluations; never for a customer.
"""

import asyncio
import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.runtime.canonical import canonical_json
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import RemoteResult, RemoteTool, ToolUnavailable

MOST_STEPS = 50
LONGEST_DELAY_MS = 30_000
FIELDS = ("when", "result", "error", "unavailable", "delay_ms")

Fault = tuple[str, dict[str, str]]
"""A sentence, and what fills its placeholders."""


@dataclass(frozen=True)
class MockStep:
    """One answer: ``result``, or ``error`` (the tool says no), or ``unavailable`` (no answer comes).

    ``when``: argument → the value it must have; in a text ``*`` and ``?`` stand for anything.
    """

    when: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    error: str = ""
    unavailable: bool = False
    delay_ms: int = 0

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether this step answers a call with ``arguments``."""
        return all(
            name in arguments and _same(wanted, arguments[name])
            for name, wanted in self.when.items()
        )

    def content(self) -> dict[str, Any]:
        """Return the step as it is stored, without what says nothing."""
        shown: dict[str, Any] = {"when": dict(self.when)} if self.when else {}
        if self.unavailable:
            shown["unavailable"] = True
        elif self.error:
            shown["error"] = self.error
        else:
            shown["result"] = self.result
        return {**shown, **({"delay_ms": self.delay_ms} if self.delay_ms else {})}


class MockRefused(ValueError):
    """The steps are no mock; ``faults`` say why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(text % words for text, words in faults))
        self.faults = tuple(faults)


class MockTransport:
    """A ``ToolTransport`` whose tools answer from ``scripts`` (name of the tool → its steps).

    ``calls`` keeps what was asked, in order. A tool without a script, or a call that no step fits,
    is an error of the tool: nothing is ever made up.
    """

    def __init__(
        self,
        scripts: Mapping[str, Sequence[MockStep]],
        listed: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._scripts = scripts
        self._listed = list(listed)
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult:
        """Answer as the first step that fits says. Raises ``ToolUnavailable``."""
        self.calls.append((tool.name, dict(arguments)))
        steps = self._scripts.get(tool.name, ())
        step = next((found for found in steps if found.fits(arguments)), None)
        if step is None:
            return RemoteResult(ok=False, error=_("No step of the mock fits these arguments."))
        await asyncio.sleep(min(step.delay_ms / 1000, tool.timeout_seconds))
        if step.delay_ms / 1000 >= tool.timeout_seconds:
            raise ToolUnavailable(
                _("The server did not answer in time."), sent=True, code="timeout"
            )
        if step.unavailable:
            raise ToolUnavailable(_("The server cannot be reached."), sent=False)
        if step.error:
            return RemoteResult(ok=False, error=step.error)
        return RemoteResult(ok=True, result=step.result)

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        """Return what it was told to list."""
        return self._listed

    async def aclose(self) -> None:
        """Nothing is open."""


def steps_read(text: str) -> list[MockStep]:
    """Return the steps that ``steps_write`` wrote."""
    return [MockStep(**step) for step in json.loads(text)]


def steps_write(steps: Sequence[MockStep]) -> str:
    """Return ``steps`` as canonical text."""
    return canonical_json([step.content() for step in steps])


def steps_check(value: Any, output_schema: Mapping[str, Any]) -> list[MockStep]:
    """Return JSON ``value`` as steps whose results are as ``output_schema`` says. Raises ``MockRefused``."""
    if not isinstance(value, list):
        raise MockRefused([(_("A mock is a list of steps."), {})])
    if len(value) > MOST_STEPS:
        raise MockRefused([(_("At most %(most)s steps."), {"most": str(MOST_STEPS)})])
    faults = [fault for number, step in enumerate(value, 1) for fault in _faults(number, step)]
    if not faults:
        for number, step in enumerate(value, 1):
            faults += list(_misfits(number, step, output_schema))
    if faults:
        raise MockRefused(faults)
    return [MockStep(**step) for step in value]


def _same(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, str) and isinstance(given, str):
        return fnmatch.fnmatchcase(given.casefold(), wanted.casefold())
    return canonical_json(wanted) == canonical_json(given)


def _faults(number: int, step: Any) -> Iterator[Fault]:
    words = {"number": str(number)}
    if not isinstance(step, Mapping):
        yield _("Step %(number)s is no object."), words
        return
    unknown = [str(name) for name in step if name not in FIELDS]
    if unknown:
        text = _("Step %(number)s has the unknown field %(field)s.")
        yield text, {**words, "field": ", ".join(unknown)}
    if not isinstance(step.get("when", {}), Mapping):
        yield _("Step %(number)s: when must be an object of arguments."), words
    if not isinstance(step.get("error", ""), str):
        yield _("Step %(number)s: error must be text."), words
    if not isinstance(step.get("unavailable", False), bool):
        yield _("Step %(number)s: unavailable must be true or false."), words
    delay = step.get("delay_ms", 0)
    if isinstance(delay, bool) or not isinstance(delay, int) or not 0 <= delay <= LONGEST_DELAY_MS:
        text = _("Step %(number)s: delay_ms must be a whole number from 0 to %(most)s.")
        yield text, {**words, "most": str(LONGEST_DELAY_MS)}
    given = [name for name in ("result", "error", "unavailable") if step.get(name)]
    if len(given) > 1:
        yield _("Step %(number)s has more than one of result, error, unavailable."), words


def _misfits(number: int, step: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield where a result is not as the tool's output schema says."""
    if not schema or step.get("error") or step.get("unavailable"):
        return
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
        found = list(Draft202012Validator(schema).iter_errors(step.get("result")))
    except (SchemaError, RecursionError):
        return  # The server's schema is none: nothing can be said against it.
    for error in found[:5]:
        text = _(
            "Step %(number)s: the result is not as the output schema says at %(path)s: %(what)s"
        )
        yield text, {"number": str(number), "path": error.json_path, "what": error.message[:200]}

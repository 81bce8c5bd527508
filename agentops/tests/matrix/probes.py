"""How a route is probed. Every probe returns what it found wrong, line by line.

``Thing``: the owner's answer is 200 and holds their canary; a foreign id and an absent one are
answered with 404 and the same bytes. ``Listing``: only the caller's own canary is in it.
``Closed``: nobody gets in, and the refusal is the same for own, foreign and absent. ``Shared``:
holds nothing of any tenant.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponseBase
from django.test import Client

from agentops.tests.matrix.sides import Side

# Varies with every request by design; everything else must be equal.
REQUEST_ID = "x-request-id"
Address = Callable[[str], str]


@dataclass(frozen=True)
class Answer:
    """A response, as far as a caller can see it."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]


def answer_of(response: HttpResponseBase) -> Answer:
    headers = {k.lower(): v for k, v in response.items() if k.lower() != REQUEST_ID}
    body = b"" if response.streaming else response.content  # type: ignore[attr-defined]
    return Answer(response.status_code, body, tuple(sorted(headers.items())))


@dataclass(frozen=True)
class Call:
    """How a route is called: as the signed-in person or with the key, and with what."""

    method: str = "get"
    by_key: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    json: bool = False

    def __call__(self, side: Side, browser: Client, address: str) -> Answer:
        client = Client() if self.by_key else browser
        headers = side.bearer() if self.by_key else {}
        extra: dict[str, Any] = {"headers": headers}
        if self.json:
            extra["content_type"] = "application/json"
        response = getattr(client, self.method)(address, dict(self.data), **extra)
        return answer_of(response)


def canary(side: Side) -> str:
    return side.canary


@dataclass(frozen=True)
class Thing:
    """A route with an id. ``own`` and ``foreign``: the address for a side's row."""

    address: Callable[[Side], str]
    absent: str
    call: Call = Call()
    status: int = 200
    # What the owner's answer must contain; None when it shows nothing of the owner's.
    shows: Callable[[Side], str] | None = canary

    def __call__(self, me: Side, other: Side, browser: Client) -> list[str]:
        mine = self.call(me, browser, self.address(me))
        foreign = self.call(me, browser, self.address(other))
        absent = self.call(me, browser, self.absent)
        wrong = []
        if mine.status != self.status:
            wrong.append(f"the owner got {mine.status}, not {self.status}")
        if self.shows and self.shows(me).encode() not in mine.body:
            wrong.append("the owner's canary is missing")
        if foreign.status != 404:
            wrong.append(f"a foreign id got {foreign.status}, not 404")
        if foreign != absent:
            wrong.append("a foreign and an absent id are answered differently")
        return wrong + leaks(other, mine, foreign, absent)


@dataclass(frozen=True)
class Listing:
    """A route without an id that shows the caller's rows."""

    address: str
    call: Call = Call()
    status: int = 200
    # What the owner's answer must contain; None when it shows nothing of the owner's.
    shows: Callable[[Side], str] | None = canary

    def __call__(self, me: Side, other: Side, browser: Client) -> list[str]:
        mine = self.call(me, browser, self.address)
        wrong = []
        if mine.status != self.status:
            wrong.append(f"got {mine.status}, not {self.status}")
        if self.shows and self.shows(me).encode() not in mine.body:
            wrong.append("the owner's canary is missing")
        return wrong + leaks(other, mine)


@dataclass(frozen=True)
class Closed:
    """A route that lets nobody of a tenant in: one and the same refusal."""

    address: Callable[[Side], str]
    absent: str
    status: int = 403
    call: Call = Call()

    def __call__(self, me: Side, other: Side, browser: Client) -> list[str]:
        answers = [
            self.call(me, browser, address)
            for address in (self.address(me), self.address(other), self.absent)
        ]
        wrong = [f"got {a.status}, not {self.status}" for a in answers if a.status != self.status]
        if len(set(answers)) != 1:
            wrong.append("own, foreign and absent are refused differently")
        return wrong + leaks(other, *answers)


@dataclass(frozen=True)
class Shared:
    """A route that knows no tenant. ``why`` says what it is about instead; ``status`` None: any."""

    address: str
    why: str
    status: int | None = 200
    call: Call = Call()

    def __call__(self, me: Side, other: Side, browser: Client) -> list[str]:
        answer = self.call(me, browser, self.address)
        wrong = []
        if self.status is not None and answer.status != self.status:
            wrong.append(f"got {answer.status}, not {self.status}")
        return wrong + leaks(other, answer)


@dataclass(frozen=True)
class Redirects:
    """A route that sends every id on without looking it up."""

    address: Callable[[str], str]

    def __call__(self, me: Side, other: Side, browser: Client) -> list[str]:
        absent = str(uuid.uuid4())
        response = browser.get(self.address(absent))
        location = response.headers.get("Location", "")
        return [] if response.status_code == 302 and absent in location else ["it did not redirect"]


@dataclass(frozen=True)
class Custom:
    """Anything else: a function that returns what is wrong."""

    probe: Callable[[Side, Side, Client], list[str]]

    def __call__(self, me: Side, other: Side, browser: Client) -> list[str]:
        return self.probe(me, other, browser)


def kind_of(probe: "Probe") -> str:
    """Return what is counted of ``probe`` for the printed figures."""
    if isinstance(probe, Thing):
        return "by id, owner's canary seen" if probe.shows else "by id"
    if isinstance(probe, Listing):
        return "listing, owner's canary seen" if probe.shows else "page without an id"
    return {
        Custom: "by body or stream, own, foreign and absent compared",
        Closed: "closed to every tenant",
        Redirects: "redirects without a look-up",
        Shared: "knows no tenant",
    }[type(probe)]


Probe = Thing | Listing | Closed | Shared | Redirects | Custom


def leaks(other: Side, *answers: Answer) -> list[str]:
    found = any(other.canary.encode() in answer.body for answer in answers)
    return ["the other tenant's canary is shown"] if found else []

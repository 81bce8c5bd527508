"""Two environments whose releases change all the time, and who talks to them meanwhile.

Each release answers with its own number, so an answer says what it ran on. What was legal for a
message follows from ``choosing`` and from what the environment ran between the moment the message was
sent and the moment its acceptance was known.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from agentops.tests.services.tenant import ACTOR
from apps.conversations.choosing import Standing, release_choose, release_target
from apps.releases.authority import setting_up
from apps.releases.environments.pointers import Pointer
from apps.releases.environments.services import (
    canary_change,
    canary_finish,
    canary_start,
    canary_stop,
    release_deploy,
    release_roll_back,
)
from apps.releases.models import Release
from apps.releases.selectors import deployed_pointer
from apps.releases.services import item_save, release_publish
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tenants.services import api_key_issue, tenant_create

ENVIRONMENTS = ("staging", "production")
SHARES = (1, 5)
STATIONS = ("alfa", "beta", "gama", "delta", "ômega")
FOREVER = float("inf")
CHOOSING_SECONDS = 0.03
"""How long before a turn's row says it was accepted its release was chosen, at most: for counting only."""


@dataclass(frozen=True)
class Era:
    """What an environment ran from some moment in ``begins`` to some moment in ``ends``.

    Both are (before, after) the transaction that changed it, in seconds since the epoch.
    """

    pointer: Pointer
    begins: tuple[float, float]
    ends: tuple[float, float] = (FOREVER, FOREVER)

    def held_in(self, start: float, end: float) -> bool:
        """Return whether it may have held at some moment from ``start`` to ``end``."""
        return self.begins[0] <= end and start <= self.ends[1]

    def held_all(self, start: float, end: float) -> bool:
        """Return whether it surely held all the time from ``start`` to ``end``."""
        return self.begins[1] <= start and end <= self.ends[0]


@dataclass
class Place:
    """A tenant with releases that differ in what they say, and what its environments ran."""

    tenant: Tenant
    releases: list[Release]
    keys: dict[str, str]
    eras: dict[str, list[Era]] = field(default_factory=lambda: {name: [] for name in ENVIRONMENTS})
    taken_back: dict[str, list[tuple[UUID, float]]] = field(
        default_factory=lambda: {name: [] for name in ENVIRONMENTS}
    )
    acts: dict[str, int] = field(default_factory=dict)

    def text(self, release_id: UUID) -> str:
        """Return what a release answers."""
        number = next(release.number for release in self.releases if release.pk == release_id)
        return said_by(number)

    def change(self, environment: str, act: str, do: Callable[[], Any]) -> None:
        """Do one act and write down what the environment runs since then."""
        started = time.time()
        with tenant_scope(self.tenant), setting_up("a test's world"):
            do()
            with tenant_transaction():
                pointer = deployed_pointer(environment)
        ended = time.time()
        assert pointer is not None
        self.acts[act] = self.acts.get(act, 0) + 1
        eras = self.eras[environment]
        if eras:
            last = eras[-1]
            eras[-1] = Era(last.pointer, last.begins, (started, ended))
        eras.append(Era(pointer, (started, ended)))


def said_by(number: int) -> str:
    """Return what release ``number`` answers."""
    return f"Olá! Tudo em ordem na estação {STATIONS[number - 1]}."


def place_make(slug: str = "mudanca", releases: int = 5) -> Place:
    """Create the tenant; both environments run the first release, conversations are pinned."""
    tenant = tenant_create(slug=slug, name="Mudança", actor=ACTOR)
    with tenant_transaction(tenant), setting_up("a test's world"):
        for kind in ("rail_policy", "judge_policy", "memory_policy"):
            item_save(kind=kind, slug="default", content={}, actor=ACTOR)
        item_save(kind="prompt", slug="fala", content={"system": "Diga a versão.", "require_evidence": False}, actor=ACTOR)  # fmt: skip
        item_save(kind="agent", slug="fala", content={"prompt": "fala"}, actor=ACTOR)
        item_save(kind="routing_policy", slug="default", content={"default_agent": "fala"}, actor=ACTOR)  # fmt: skip
        made = [_release(number) for number in range(1, releases + 1)]
        keys = {
            environment: api_key_issue(
                name=environment,
                scopes=("message:write", "session:read"),
                environment=environment,
                expires_at=None,
                actor=ACTOR,
            )[1]
            for environment in ENVIRONMENTS
        }
    place = Place(tenant, made, keys)
    for environment in ENVIRONMENTS:
        place.change(environment, "deploy", partial(_arrive, made[0], environment))
    return place


def _release(number: int) -> Release:
    profile = {"provider": "scripted", "script": [said_by(number)]}
    item_save(kind="model_profile", slug="default", content=profile, actor=ACTOR)
    return release_publish(actor=ACTOR)


def _arrive(release: Release, environment: str) -> None:
    release_deploy(release=release, environment=environment, actor=ACTOR, in_flight="pin")


# -- who changes --------------------------------------------------------------------------------


class Changer(threading.Thread):
    """Changes what one environment runs, without pause, until it is told to stop."""

    def __init__(self, place: Place, environment: str, seed: int, pause: float) -> None:
        super().__init__(name=f"changes {environment}", daemon=True)
        self.place, self.environment, self.pause = place, environment, pause
        self.random = random.Random(seed)  # the same acts in every run
        self.stopping = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        from django.db import connections

        try:
            while not self.stopping.is_set():
                self.act()
                time.sleep(self.pause)
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def act(self) -> None:
        """Do one act: what is possible now, a canary most of the time."""
        pointer = self.place.eras[self.environment][-1].pointer
        others = [release for release in self.place.releases if release.pk != pointer.release]
        if pointer.canary is None:
            self._alone(pointer, others)
        else:
            self._beside_a_canary(pointer, others)

    def _alone(self, pointer: Pointer, others: Sequence[Release]) -> None:
        act = self.random.choice(("canary",) * 4 + ("deploy", "roll_back"))
        release, environment = self.random.choice(list(others)), self.environment
        if act == "canary":
            share = self.random.choice(SHARES)
            self._do("canary_start", lambda: canary_start(
                release=release, environment=environment, share=share, actor=ACTOR,
            ))  # fmt: skip
        elif act == "deploy":
            self._do("deploy", lambda: _arrive(release, environment))
        else:
            ran = {era.pointer.release for era in self.place.eras[environment]} - {pointer.release}
            before = [other for other in others if other.pk in ran]
            if before:
                self._roll_back(pointer, self.random.choice(before))

    def _beside_a_canary(self, pointer: Pointer, others: Sequence[Release]) -> None:
        act = self.random.choice(("change",) * 4 + ("finish", "stop", "deploy"))
        environment = self.environment
        if act == "change":
            share = self.random.choice([share for share in SHARES if share != pointer.share])
            self._do("canary_change", lambda: canary_change(
                environment=environment, share=share, actor=ACTOR
            ))  # fmt: skip
        elif act == "finish":
            self._do("canary_finish", lambda: canary_finish(environment=environment, actor=ACTOR))
        elif act == "stop":
            self._taken_back(pointer.canary)
            self._do("canary_stop", lambda: canary_stop(
                environment=environment, actor=ACTOR, reason="worse"
            ))  # fmt: skip
        else:
            self._do("deploy", lambda: _arrive(self.random.choice(list(others)), environment))

    def _roll_back(self, pointer: Pointer, release: Release) -> None:
        self._taken_back(pointer.release)
        self._do("roll_back", lambda: release_roll_back(
            release=release, environment=self.environment, actor=ACTOR, reason="worse"
        ))  # fmt: skip

    def _taken_back(self, release_id: UUID | None) -> None:
        if release_id is not None:
            self.place.taken_back[self.environment].append((release_id, time.time()))

    def _do(self, act: str, do: Callable[[], Any]) -> None:
        self.place.change(self.environment, act, do)


# -- who talks, and whether it was right --------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """One message of a conversation: when it was on its way in, and what answered it."""

    environment: str
    session: str
    sent: float
    known: float
    release: UUID
    answer: str
    turn: UUID


@dataclass
class Verdict:
    """What the messages of a run show."""

    turns: int = 0
    illegal: list[str] = field(default_factory=list)
    wrong_answers: list[str] = field(default_factory=list)
    new_in_canary: int = 0
    new_beside_canary: int = 0
    against_the_hash: int = 0
    configured: float = 0.0
    finished_on_theirs: int = 0
    moved_legally: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return 100 * self.new_in_canary / max(1, self.new_beside_canary)

    @property
    def configured_share(self) -> float:
        return self.configured / max(1, self.new_beside_canary)


def verdict_of(place: Place, conversations: Sequence[Sequence[Said]]) -> Verdict:
    """Judge every message of every conversation, each given in order."""
    verdict = Verdict()
    for conversation in conversations:
        standing: UUID | None = None
        for said in conversation:
            verdict.turns += 1
            if said.answer != place.text(said.release):
                verdict.wrong_answers.append(said.answer)
            if said.release not in legal(place, said, standing):
                verdict.illegal.append(f"{said} from {standing}")
            if standing is None:
                _count_share(verdict, place, said)
            standing = said.release
        _count_pinned(verdict, place, conversation)
    return verdict


def legal(place: Place, said: Said, standing: UUID | None) -> set[UUID]:
    """Return every release the message may have been accepted for."""
    return {
        release_choose(
            era.pointer,
            place.tenant.pk,
            Standing(said.session, standing, at_boundary=False),
            said.known,
        )
        for era in place.eras[said.environment]
        if era.held_in(said.sent, said.known)
    }


def _count_share(verdict: Verdict, place: Place, said: Said) -> None:
    for era in place.eras[said.environment]:
        pointer = era.pointer
        if pointer.canary is not None and era.held_all(said.known - CHOOSING_SECONDS, said.known):
            verdict.new_beside_canary += 1
            verdict.configured += pointer.share
            verdict.new_in_canary += said.release == pointer.canary
            verdict.against_the_hash += said.release != release_target(
                pointer, place.tenant.pk, said.session
            )


def _count_pinned(verdict: Verdict, place: Place, conversation: Sequence[Said]) -> None:
    first = conversation[0].release
    if {said.release for said in conversation} == {first}:
        verdict.finished_on_theirs += 1
        return
    leaving = next(said for said in conversation if said.release != first)
    begun = conversation[0].sent
    if any(
        release == first and begun <= at + 60 and at <= leaving.known
        for release, at in place.taken_back[leaving.environment]
    ):
        verdict.moved_legally += 1
    else:
        verdict.lost.append(leaving.session)

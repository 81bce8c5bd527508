"""Gates: intents that answer to the same words.

Words are compared as routing compares them (case, accents and number do not count).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.agents.config import AgentConfig
from apps.releases.gates import GateContext, Problem, release_gate
from apps.routing.config import IntentConfig, RoutingPolicyConfig
from apps.runtime.release import Release
from apps.runtime.text import stem_plural, words

SHOWN = 5
Stems = tuple[str, ...]


@release_gate(
    title=gettext_lazy("Intents that overlap"),
    description=gettext_lazy(
        "No two agents that can be asked together have the same keyword or example."
    ),
    level="warn",
)
def intents_overlap(context: GateContext) -> list[Problem]:
    """Gate: the same keyword or example on intents of different agents: the customer is asked which."""
    release = context.release
    intents = intents_chosen(release)
    doors = Doors(release)
    found: dict[tuple[str, tuple[str, ...], str], list[str]] = defaultdict(list)
    for path in ("keywords", "examples"):
        owners: dict[Stems, list[tuple[str, str]]] = defaultdict(list)
        for slug, intent in intents.items():
            for stems, text in {stems_of(text): text for text in getattr(intent, path)}.items():
                if stems:
                    owners[stems].append((slug, text))
        for declared in owners.values():
            rivals = doors.meeting([(slug, intents[slug].agent) for slug, _text in declared])
            if rivals:
                first, text = next(d for d in declared if d[0] == rivals[0])
                found[(first, tuple(rivals[1:]), path)].append(text)
    return [_overlap(*key, texts) for key, texts in found.items()]


def _overlap(slug: str, others: Sequence[str], path: str, texts: Sequence[str]) -> Problem:
    words_shown = {
        "slug": slug,
        "others": ", ".join(others[:SHOWN]) + (" …" if len(others) > SHOWN else ""),
        "texts": ", ".join(f"“{text}”" for text in texts[:SHOWN]),
    }
    text = _("intent %(slug)s has the same words as %(others)s of another agent: %(texts)s.")
    return Problem(kind="intent", slug=slug, path=path, message=text % words_shown)


@release_gate(
    title=gettext_lazy("Intents that are never chosen"),
    description=gettext_lazy(
        "No intent stands in the shadow of another one with the same keywords and examples."
    ),
)
def intents_shadowed(context: GateContext) -> list[Problem]:
    """Gate: equal keywords and examples. By its priority one of the intents always wins."""
    groups: dict[Hashable, list[tuple[int, str]]] = defaultdict(list)
    for slug, intent in intents_chosen(context.release).items():
        said = (_all_stems(intent.keywords), _all_stems(intent.examples))
        if any(said):
            groups[said].append((intent.priority, slug))
    problems = []
    for group in groups.values():
        (_first, winner), *shadowed = sorted(group)
        text = _("intent %(slug)s is never chosen: %(winner)s has the same keywords and examples.")
        problems += [
            Problem(
                kind="intent",
                slug=slug,
                path="keywords",
                message=text % {"slug": slug, "winner": winner},
            )
            for _priority, slug in shadowed
        ]
    return problems


def intents_chosen(release: Release) -> dict[str, IntentConfig]:
    """Return the intents that may be chosen: on, and of an agent that answers."""
    agents = release.all(AgentConfig)
    return {
        slug: intent
        for slug, intent in release.all(IntentConfig).items()
        if intent.enabled and intent.agent in agents and agents[intent.agent].may_answer
    }


# Two gates compare every text of every intent, and most are those of the last publication.
@lru_cache(maxsize=50_000)
def stems_of(text: str) -> Stems:
    """Return ``text`` as routing compares it."""
    return tuple(stem_plural(word) for word in words(text))


def _all_stems(texts: Iterable[str]) -> frozenset[Stems]:
    return frozenset(stems for text in texts if (stems := stems_of(text)))


class Doors:
    """Through which requested agents an agent's intents can be chosen: itself, and who has it as a
    member. Without a default agent a message that requests nobody may reach all of them."""

    def __init__(self, release: Release) -> None:
        self._users: dict[str, list[str]] = defaultdict(list)
        for slug, agent in release.all(AgentConfig).items():
            for member in agent.members:
                self._users[member].append(slug)
        policy = release.find(RoutingPolicyConfig, "default") or RoutingPolicyConfig()
        self._all_at_once = not policy.default_agent
        self._known: dict[str, frozenset[str]] = {}

    def meeting(self, declared: Sequence[tuple[str, str]]) -> list[str]:
        """Return those of the (intent, agent) that one door leads to beside another agent's."""
        if len({agent for _intent, agent in declared}) < 2:
            return []
        if self._all_at_once:
            return [intent for intent, _agent in declared]
        rooms: Mapping[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for intent, agent in declared:
            for door in self._of(agent):
                rooms[door][agent].add(intent)
        meeting = {
            intent
            for by_agent in rooms.values()
            if len(by_agent) > 1
            for intents in by_agent.values()
            for intent in intents
        }
        return [intent for intent, _agent in declared if intent in meeting]

    def _of(self, agent: str) -> frozenset[str]:
        if agent not in self._known:
            seen, waiting = {agent}, [agent]
            while waiting:
                for user in self._users.get(waiting.pop(), ()):
                    if user not in seen:
                        seen.add(user)
                        waiting.append(user)
            self._known[agent] = frozenset(seen)
        return self._known[agent]

"""Everything routing compiles from a release, once per process and release."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from apps.routing.config import IntentConfig, RoutingPolicyConfig, StatePolicyConfig
from apps.routing.examples import ExampleModel, example_model
from apps.routing.keywords import KeywordIndex, keyword_index
from apps.runtime.release import Release
from apps.runtime.text import words

DERIVED_KEY = "routing.index"


@dataclass(frozen=True)
class Budget:
    """How long a specialist may keep the conversation: answers, and minutes since it began."""

    turns: int = 6
    minutes: int = 60


@dataclass(frozen=True)
class AgentFacts:
    """What routing has to know of an agent; ``wiring`` fills it from the agent's configuration.

    ``next_state``: outcome -> state. ``model_tools``: the tools its model may ask for when the
    agent has no intent that would name them (empty for an agent that only collects). ``actions``:
    those of its tools that change something. ``specialists``: role -> how long the specialist that
    this agent lets in may stay.
    """

    enabled: bool = True
    members: tuple[str, ...] = ()
    domain: str = ""
    next_state: Mapping[str, str] = field(default_factory=dict)
    model_tools: tuple[str, ...] = ()
    actions: frozenset[str] = frozenset()
    specialists: Mapping[str, Budget] = field(default_factory=dict)


AgentsOf = Callable[[Release], Mapping[str, AgentFacts]]


@dataclass(frozen=True)
class RoutingIndex:
    """One release's routing, compiled."""

    agents: Mapping[str, AgentFacts]
    intents: Mapping[str, IntentConfig]
    states: Mapping[str, StatePolicyConfig]
    policy: RoutingPolicyConfig
    keywords: KeywordIndex
    examples: ExampleModel
    intents_by_agent: Mapping[str, tuple[str, ...]]
    handoff_words: KeywordIndex = field(default_factory=KeywordIndex)
    end_words: frozenset[tuple[str, ...]] = frozenset()
    literals: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """The folded words of a whole message -> its fixed answer."""

    def answers(self, agent: str) -> bool:
        """Whether the release has ``agent`` and it is enabled."""
        return agent in self.agents and self.agents[agent].enabled

    def mutates(self, intent: str) -> bool:
        """Whether serving ``intent`` may change something."""
        config = self.intents[intent]
        return not self.agents[config.agent].actions.isdisjoint(config.mcp_tools)

    def closure(self, agent: str) -> tuple[str, ...]:
        """Return ``agent`` and its members, members' members included, that are enabled.

        The agent itself comes first; members that name each other are met once. An agent that the
        release does not know gives an empty tuple.
        """
        seen: dict[str, None] = {}
        waiting = [agent]
        while waiting:
            slug = waiting.pop(0)
            if slug in self.agents and slug not in seen:
                seen[slug] = None
                waiting.extend(self.agents[slug].members)
        return tuple(slug for slug in seen if self.agents[slug].enabled)

    def domains_of(self, agent: str) -> frozenset[str]:
        """Return the business domains of ``agent`` and of its intents."""
        own = {self.agents[agent].domain} if agent in self.agents else set()
        own |= {self.intents[slug].domain for slug in self.intents_by_agent.get(agent, ())}
        return frozenset(own - {""})

    def leading_to(self, state: str, agent: str) -> list[IntentConfig]:
        """Return the intents of ``agent`` whose answer can put a session into ``state``."""
        found = []
        for slug in self.intents_by_agent.get(agent, ()):
            intent = self.intents[slug]
            if state in {**self.agents[agent].next_state, **intent.next_state}.values():
                found.append(intent)
        return found


def routing_index(release: Release, agents_of: AgentsOf) -> RoutingIndex:
    """Return the release's index, compiled on the first call.

    Intents that are off, or whose agent is unknown or off, are not in it.
    """
    index = release.derived.get(DERIVED_KEY)
    if not isinstance(index, RoutingIndex):
        index = release.derived[DERIVED_KEY] = _compile(release, agents_of(release))
    return index


def _compile(release: Release, agents: Mapping[str, AgentFacts]) -> RoutingIndex:
    intents = {
        slug: intent
        for slug, intent in release.all(IntentConfig).items()
        if intent.enabled and intent.agent in agents and agents[intent.agent].enabled
    }
    by_agent: dict[str, list[str]] = defaultdict(list)
    for slug, intent in intents.items():
        by_agent[intent.agent].append(slug)
    policy = release.find(RoutingPolicyConfig, "default") or RoutingPolicyConfig()
    return RoutingIndex(
        agents=agents,
        intents=intents,
        states={policy.state: policy for policy in release.all(StatePolicyConfig).values()},
        policy=policy,
        keywords=keyword_index((slug, i.agent, i.keywords) for slug, i in intents.items()),
        examples=example_model([(slug, i.examples) for slug, i in intents.items()]),
        intents_by_agent={agent: tuple(slugs) for agent, slugs in by_agent.items()},
        handoff_words=keyword_index([("", "", policy.handoff_keywords)]),
        end_words=frozenset(tuple(words(text)) for text in policy.end_keywords) - {()},
        literals={
            tuple(words(text)): literal.answer
            for literal in reversed(policy.literal_answers)
            for text in literal.texts
            if words(text)
        },
    )

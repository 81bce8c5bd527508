"""Who the session is waiting with."""

from apps.routing.sentence import (
    abandons,
    confirms_or_denies,
    looks_like_value,
    stops,
)
from apps.routing.shift import STRONG
from apps.routing.strategies.control import control_said
from apps.routing.strategies.example import settled_by_example
from apps.routing.strategies.face import Finding, Question
from apps.routing.strategies.keyword import by_keyword
from apps.runtime.turn import Candidate


async def by_state(question: Question) -> Finding:
    """Keep the state policy's agent while the session is in its state.

    The state is left when the customer abandons it in so many words, says goodbye, wants to stop or
    to speak with a person, or asks for something that only another agent's keywords name (faults
    13-15): the answer to a yes/no question, a value and a keyword of the state's own agent stay. A
    request that names both agents leaves when an example settles it, as it would outside the state.
    """
    policy = question.index.states.get(question.state)
    if policy is None or policy.agent not in question.allowed:
        return Finding(method="state")
    leaves = "control" in question.index.policy.strategies and control_said(question) is not None
    if leaves or abandons(question.sentence) or stops(question.sentence):
        return Finding(method="state", reason=f"{question.state} abandoned")
    if await _leaves(question, policy.agent):
        return Finding(method="state", reason=f"{question.state} left for another subject")
    candidate = Candidate(intent=f"state:{question.state}", agent=policy.agent, score=1.0)
    return Finding(method="state", candidates=(candidate,), reason=f"state {question.state}")


async def _leaves(question: Question, agent: str) -> bool:
    if confirms_or_denies(question.sentence):
        return False
    index = question.index
    finding = await by_keyword(question)
    best = finding.best
    if best is None:
        return False
    if any(candidate.agent == agent for candidate in finding.candidates):
        return await _settled_elsewhere(question, agent, finding)
    if best.score < STRONG or finding.margin < index.policy.margin:
        return False
    # Within one business domain the same nouns stand in answers and in new requests: "o pedido é
    # o PED-1001" answers, "onde está meu pedido?" asks.
    domains, domain = index.domains_of(agent), index.intents[best.intent].domain
    elsewhere = bool(domain and domains) and domain not in domains
    return elsewhere or not looks_like_value(question.sentence)


async def _settled_elsewhere(question: Question, agent: str, tie: Finding) -> bool:
    """Whether a request whose keywords name ``agent`` too is another's by its examples.

    "Quero trocar meu pedido" is an exchange, though it names the order.
    """
    best = await settled_by_example(question, tie)
    return best is not None and best.agent != agent

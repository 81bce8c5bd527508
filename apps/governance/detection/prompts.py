"""The answering agent's own prompt, read from the release by kind and slug.

Governance may not import the agents app; agent and prompt are found by their names in the
manifest, and an attribute that is not there counts as empty. What is compiled from a prompt is
kept with the release, so a warm turn compiles nothing.
"""

import re
from collections.abc import Callable
from typing import Any

from apps.runtime.text import words
from apps.runtime.turn import Turn

_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_QUOTED = re.compile(r"[\"“«][^\"”»\n]{0,400}[\"”»]")
_CONTACT = re.compile(r"[\w.+-]{1,64}@[\w.-]{3,80}|\+?\(?\d[\d\s().-]{6,20}\d")


def prompt_contacts(turn: Turn) -> frozenset[str]:
    """Return the e-mails and phones that the tenant wrote into the agent's prompt."""
    return _kept(turn, "contacts", lambda text: frozenset(_CONTACT.findall(text)))


def prompt_runs(turn: Turn, length: int) -> frozenset[tuple[str, ...]]:
    """Return every run of ``length`` words of the prompt.

    Text in quotation marks is left out: prompts quote what the agent is meant to say.
    """
    return _kept(turn, f"runs:{length}", lambda text: _runs(text, length))


def word_runs(text: str, length: int) -> frozenset[tuple[str, ...]]:
    """Return every run of ``length`` folded words of ``text``."""
    found = words(text)
    return frozenset(tuple(found[i : i + length]) for i in range(max(0, len(found) - length + 1)))


def _runs(text: str, length: int) -> frozenset[tuple[str, ...]]:
    parts = re.split(r"\x00", _QUOTED.sub("\x00", _TEMPLATE.sub("\x00", text)))
    return frozenset().union(*(word_runs(part, length) for part in parts))


def _kept(turn: Turn, what: str, compile_prompt: Callable[[str], frozenset[Any]]) -> frozenset[Any]:
    slug = _agent(turn)
    key = f"governance:prompt:{slug}:{what}"
    derived = turn.release.derived
    if key not in derived:
        derived[key] = compile_prompt(_prompt(turn, slug))
    kept: frozenset[Any] = derived[key]
    return kept


def _agent(turn: Turn) -> str:
    if turn.route is not None:
        return turn.route.agent
    return turn.draft.agent if turn.draft is not None else turn.session.agent


def _prompt(turn: Turn, agent_slug: str) -> str:
    agent = turn.release.items.get(("agent", agent_slug))
    prompt = turn.release.items.get(("prompt", str(getattr(agent, "prompt", ""))))
    parts = (getattr(prompt, "system", ""), getattr(prompt, "response_style", ""))
    return "\n".join(str(part) for part in parts if part)

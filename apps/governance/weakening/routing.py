"""More is decided by likeness or by a model, or a customer is heard less. Pure."""

from collections.abc import Iterator

from apps.governance.weakening.edited import Edited, mapping, number, values

SEMANTIC, CONTINUITY, HOPS = 0.65, 0.9, 2
# Strategies in which a model, not a rule, says who answers.
BY_MODEL = ("continuity", "llm")


def person_unheard(edited: Edited) -> Iterator[str]:
    """A request for a person, or a farewell, is not heard any more."""
    if "control" in edited.went("strategies"):
        yield "strategies"


def routed_by_model(edited: Edited) -> Iterator[str]:
    """A model says who answers where rules did."""
    if edited.came("strategies").intersection(BY_MODEL):
        yield "strategies"
    before, after = mapping(edited.before, "stickiness"), mapping(edited.after, "stickiness")
    if after.get("enabled") and not before.get("enabled"):
        yield "stickiness.enabled"


def likeness_lowered(edited: Edited) -> Iterator[str]:
    """An agent answers for a message that is less like its examples."""
    field = "semantic_threshold"
    if number(edited.after, field, SEMANTIC) < number(edited.before, field, SEMANTIC):
        yield field


def continuity_lowered(edited: Edited) -> Iterator[str]:
    """The last agent is kept by a model that is less sure."""
    before, after = mapping(edited.before, "stickiness"), mapping(edited.after, "stickiness")
    if number(after, "threshold", CONTINUITY) < number(before, "threshold", CONTINUITY):
        yield "stickiness.threshold"


def messages_sent_elsewhere(edited: Edited) -> Iterator[str]:
    """Every message goes to a service that turns it into numbers, or to another one."""
    name = "embedding_profile"
    after = edited.after.get(name)
    if after and after != edited.before.get(name):
        yield name


def hops_raised(edited: Edited) -> Iterator[str]:
    """A message is passed on more often before anybody answers it."""
    if number(edited.after, "hop_budget", HOPS) > number(edited.before, "hop_budget", HOPS):
        yield "hop_budget"


def yes_by_model(edited: Edited) -> Iterator[str]:
    """A model may read an unclear answer as a yes, or more words count as one."""
    name = "confirmation_fallback"
    before, after = mapping(edited.before, name), mapping(edited.after, name)
    if after.get("enabled") and not before.get("enabled"):
        yield f"{name}.enabled"
    if values(after, "confirm_values") - values(before, "confirm_values"):
        yield f"{name}.confirm_values"

"""A workflow that does more than was confirmed, or takes back less. Pure."""

from collections.abc import Iterator, Mapping

from apps.governance.weakening.edited import Content, Edited, entries, mapping, number, values


def node_tool_added(edited: Edited) -> Iterator[str]:
    """A node calls a tool that it did not call: what a customer confirms does something else."""
    before = _nodes(edited.before)
    for name, node in _nodes(edited.after).items():
        was = before.get(name, {})
        for field in ("tool", "compensate_tool"):
            if node.get(field) and node.get(field) != was.get(field):
                yield f"nodes[{name}].{field}" if name in before else f"nodes[{name}]"


def question_dropped(edited: Edited) -> Iterator[str]:
    """The customer is not asked any more before what follows."""
    after = _nodes(edited.after)
    for name, node in _nodes(edited.before).items():
        if not mapping(node, "pause").get("key"):
            continue
        if name not in after:
            yield f"nodes[{name}]"
        elif not mapping(after[name], "pause").get("key"):
            yield f"nodes[{name}].pause.key"


def answers_widened(edited: Edited) -> Iterator[str]:
    """More answers of the customer let it go on."""
    before = _nodes(edited.before)
    for name, node in _nodes(edited.after).items():
        was = values(mapping(before.get(name, {}), "pause"), "allowed_values")
        now = values(mapping(node, "pause"), "allowed_values")
        if was and (not now or now - was) and mapping(node, "pause").get("key"):
            yield f"nodes[{name}].pause.allowed_values"
        read = mapping(node, "pause").get("classify_profile")
        if was and read and not mapping(before[name], "pause").get("classify_profile"):
            yield f"nodes[{name}].pause.classify_profile"


def compensation_dropped(edited: Edited) -> Iterator[str]:
    """What a node did is not taken back any more when a later one fails."""
    after = _nodes(edited.after)
    for name, node in _nodes(edited.before).items():
        if node.get("compensate_tool") and name in after and not after[name].get("compensate_tool"):
            yield f"nodes[{name}].compensate_tool"


def repeats_sooner(edited: Edited) -> Iterator[str]:
    """The same request of the same customer is carried out a second time sooner."""
    if number(edited.after, "repeat_seconds", 0) < number(edited.before, "repeat_seconds", 0):
        yield "repeat_seconds"


def implementation_changed(edited: Edited) -> Iterator[str]:
    """An agent answers by Python code that it did not answer by."""
    if edited.after.get("implementation") and edited.changed("implementation"):
        yield "implementation"


def _nodes(content: Content) -> Mapping[str, Content]:
    return entries(content, "nodes", "id")

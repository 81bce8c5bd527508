"""What is wrong with a workflow by itself, whatever its tools are. Pure.

Each problem is one sentence that names the node and the field.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from apps.tools.workflows.paths import BadPath, Path, condition_parse, path_parse, places


class Pause(Protocol):
    """What is read of a pause."""

    @property
    def key(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def reprompt(self) -> str: ...
    @property
    def allowed_values(self) -> list[str]: ...
    @property
    def classify_profile(self) -> str: ...


class Node(Protocol):
    """What is read of a node."""

    @property
    def id(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def params(self) -> dict[str, str]: ...
    @property
    def when(self) -> str: ...
    @property
    def next(self) -> str: ...
    @property
    def otherwise(self) -> str: ...
    @property
    def on_failure(self) -> str: ...
    @property
    def retries(self) -> int: ...
    @property
    def timeout_seconds(self) -> float | None: ...
    @property
    def at_most_once(self) -> bool: ...
    @property
    def compensate_tool(self) -> str: ...
    @property
    def compensate_params(self) -> dict[str, str]: ...
    @property
    def pause(self) -> Pause: ...


def problems(start: str, nodes: Sequence[Node], done_text: str) -> list[str]:
    """Return everything that is wrong, in the order of the nodes; nothing when it can be run."""
    by_id = {node.id: node for node in nodes}
    if len(by_id) != len(nodes):
        return ["two nodes have the same id"]
    if gone := list(_absent(start, nodes, by_id)):
        return gone
    reached = _reachable(start, by_id)
    found = [f"{node.id} is never reached" for node in nodes if node.id not in reached]
    before = _before(by_id)
    for node in nodes:
        found += _node_problems(node)
        found += _path_problems(node, before[node.id])
    found += [f"done_text: {text}" for text in _unknown_nodes(places(done_text), set(by_id))]
    if circle := _circle(by_id):
        found.append(f"{' → '.join(circle)} goes round without ever asking the customer")
    return found


def _absent(start: str, nodes: Sequence[Node], by_id: Mapping[str, Node]) -> Iterator[str]:
    named = [("start", start)] + [
        (f"{node.id}.{field}", getattr(node, field))
        for node in nodes
        for field in ("next", "otherwise", "on_failure")
    ]
    for place, target in named:
        if target not in by_id and (target or place == "start"):
            yield f"{place} names a node that there is not: {target or 'nothing'}"


def edges(node: Node) -> tuple[str, ...]:
    """Return where ``node`` may lead."""
    return tuple(t for t in (node.next, node.otherwise, node.on_failure) if t)


def _reachable(start: str, by_id: Mapping[str, Node]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += edges(by_id[name])
    return found


def _before(by_id: Mapping[str, Node]) -> dict[str, set[str]]:
    """Return node → every node from which it can be reached."""
    found: dict[str, set[str]] = {name: set() for name in by_id}
    for name in by_id:
        for target in edges(by_id[name]):
            for later in _reachable(target, by_id):
                found[later].add(name)
    return found


def _node_problems(node: Node) -> Iterator[str]:
    if not node.tool and not node.pause.key and not node.when:
        yield f"{node.id} does nothing: give it a tool, a question or a condition"
    if node.otherwise and not node.when:
        yield f"{node.id}.otherwise needs a condition in when"
    if not node.tool:
        for field in ("params", "on_failure", "retries", "timeout_seconds", "compensate_tool"):
            if getattr(node, field):
                yield f"{node.id}.{field} needs a tool"
        if node.at_most_once:
            yield f"{node.id}.at_most_once needs a tool"
    if node.compensate_params and not node.compensate_tool:
        yield f"{node.id}.compensate_params needs a compensate_tool"
    if node.at_most_once and node.retries:
        yield f"{node.id} is at_most_once, so it has no retries"
    if node.pause.key and not node.pause.question.strip():
        yield f"{node.id}.pause needs a question"
    if node.pause.classify_profile and not node.pause.allowed_values:
        yield f"{node.id}.pause.classify_profile needs allowed_values to choose from"
    if not node.pause.key and (
        node.pause.question or node.pause.allowed_values or node.pause.reprompt
    ):
        yield f"{node.id}.pause needs a key, the name of the answer"


def _path_problems(node: Node, before: set[str]) -> Iterator[str]:
    if node.when:
        try:
            paths = [condition_parse(node.when).path]
            yield from (f"{node.id}.when: {text}" for text in _unknown_nodes(paths, before))
        except BadPath as error:
            yield f"{node.id}.when: {error}"
    for field, known in (("params", before), ("compensate_params", before | {node.id})):
        for name, text in getattr(node, field).items():
            try:
                path = path_parse(text)
            except BadPath as error:
                yield f"{node.id}.{field}.{name}: {error}"
                continue
            for problem in _unknown_nodes([path] if path else [], known):
                yield f"{node.id}.{field}.{name}: {problem}"
    for field, known in (("question", before | {node.id}), ("reprompt", before | {node.id})):
        for problem in _unknown_nodes(places(getattr(node.pause, field)), known):
            yield f"{node.id}.pause.{field}: {problem}"


def _unknown_nodes(paths: Sequence[Path], known: set[str]) -> Iterator[str]:
    for path in paths:
        if path.root == "nodes" and path.node not in known:
            yield f"{path.node} does not come before it"


def _circle(by_id: Mapping[str, Node]) -> list[str]:
    """Return the nodes of a way round on which no node asks, empty when there is none."""
    silent = {name: [t for t in edges(node) if not by_id[t].pause.key]
              for name, node in by_id.items() if not node.pause.key}  # fmt: skip
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in silent[name]:
            if circle := walk(target, [*path, name]):
                return circle
        done.add(name)
        return []

    for name in silent:
        if circle := walk(name, []):
            return circle
    return []

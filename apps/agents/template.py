"""Prompt templates: a small, safe part of Jinja.

A prompt is written by a tenant's people, so a template may show variables and choose between texts,
and nothing that can run long, reach Python or grow without bound: what is allowed is listed, all
else is refused when the prompt is saved.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from apps.runtime.turn import CANONICAL_KEYS

VARIABLES = ("agent", "intent", "domain", "business_context", "language")
MAX_TEMPLATE_CHARS = 20_000
MAX_RENDERED_CHARS = 60_000

_FILTERS = frozenset({"upper", "lower", "title", "capitalize", "trim", "default", "d", "length"})
_TESTS = frozenset({"defined", "none", "string"})
_MAPPING_METHODS = frozenset({"items", "keys", "values"})
_NODES = (
    nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If, nodes.CondExpr,
    nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Getattr, nodes.Getitem,
    nodes.Filter, nodes.Test, nodes.For, nodes.Tuple, nodes.List, nodes.Call,
)  # fmt: skip

_environment = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    autoescape=False,
    keep_trailing_newline=True,
)
_environment.globals.clear()


def template_check(source: str) -> None:
    """Raise ``ValueError``, with the line, when ``source`` is not a prompt template.

    Refused: text over 20,000 characters, NUL and lone surrogates, bad syntax, unknown variables,
    and everything of Jinja that is not in the lists above.
    """
    template_compile(source)


@lru_cache(maxsize=512)
def template_compile(source: str) -> Template:
    """Return the checked, compiled template of ``source``; raise ``ValueError`` as above."""
    if len(source) > MAX_TEMPLATE_CHARS:
        raise ValueError(f"the template is longer than {MAX_TEMPLATE_CHARS} characters")
    if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in source):
        raise ValueError("the template holds a character that is not text")
    try:
        tree = _environment.parse(source)
        _nodes_check(tree)
        _variables_check(tree)
        template = _environment.from_string(source)
        template_render(template, _SAMPLE)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise ValueError(f"the template is not valid{where}: {error}") from None
    except RecursionError:
        raise ValueError("the template is nested too deeply") from None
    except TypeError as error:
        raise ValueError(f"the template is not valid: {error}") from None
    return template


def template_render(template: Template, variables: Mapping[str, Any]) -> str:
    """Return the rendered text, at most 60,000 characters of it."""
    return template.render(**variables)[:MAX_RENDERED_CHARS]


_SAMPLE: Mapping[str, Any] = {
    "agent": "agent",
    "intent": "intent",
    "domain": "domain",
    "language": "en",
    "business_context": dict.fromkeys(CANONICAL_KEYS, ""),
}


def _nodes_check(tree: nodes.Template) -> None:
    for node, loops in _walk(tree, 0):
        if not isinstance(node, _NODES):
            raise _refused(node, f"{type(node).__name__} is not allowed in a prompt")
        if isinstance(node, nodes.For):
            _loop_check(node, loops)
        if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
            raise _refused(node, f"unknown filter {node.name!r}; known: {_listed(_FILTERS)}")
        if isinstance(node, nodes.Test) and node.name not in _TESTS:
            raise _refused(node, f"unknown test {node.name!r}; known: {_listed(_TESTS)}")
        if isinstance(node, nodes.Call):
            _call_check(node)
        if isinstance(node, (nodes.Getattr, nodes.Getitem)):
            _attribute_check(node)


def _walk(node: nodes.Node, loops: int) -> Iterator[tuple[nodes.Node, int]]:
    for child in node.iter_child_nodes():
        depth = loops + isinstance(child, nodes.For)
        yield child, depth
        yield from _walk(child, depth)


def _loop_check(node: nodes.For, loops: int) -> None:
    """A loop may only walk the business context: its length is then that of the canonical keys."""
    over_context = isinstance(node.iter, nodes.Call) or (
        isinstance(node.iter, nodes.Name) and node.iter.name == "business_context"
    )
    if not over_context or loops > 1 or node.recursive:
        raise _refused(node, "a loop may only walk business_context, and holds no other loop")


def _call_check(node: nodes.Call) -> None:
    method = node.node
    if (
        not isinstance(method, nodes.Getattr)
        or method.attr not in _MAPPING_METHODS
        or node.args or node.kwargs or node.dyn_args or node.dyn_kwargs
    ):  # fmt: skip
        raise _refused(node, "calls are not allowed in a prompt, except business_context.items()")


def _attribute_check(node: nodes.Getattr | nodes.Getitem) -> None:
    if not isinstance(node.node, nodes.Name) or node.node.name != "business_context":
        raise _refused(node, "only business_context has fields")
    key = node.attr if isinstance(node, nodes.Getattr) else _constant(node.arg)
    if key not in (*CANONICAL_KEYS, *_MAPPING_METHODS):
        raise _refused(node, f"unknown field {key!r}; known: {_listed(CANONICAL_KEYS)}")


def _constant(node: nodes.Node) -> Any:
    return node.value if isinstance(node, nodes.Const) else "[…]"


def _variables_check(tree: nodes.Template) -> None:
    unknown = meta.find_undeclared_variables(tree) - set(VARIABLES)
    if unknown:
        raise ValueError(f"unknown variable {_listed(unknown)}; known: {', '.join(VARIABLES)}")


def _refused(node: nodes.Node, reason: str) -> ValueError:
    return ValueError(f"line {node.lineno}: {reason}")


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))

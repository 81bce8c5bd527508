"""Which Python classes may be agents: those the operator names, and no other.

Setting ``AGENT_CLASSES``: name -> dotted path of a class, or "" for the entry point of that name in
the group ``agentops.agents``.
"""

import ast
import inspect
from functools import cache
from importlib.metadata import entry_points

from django.conf import settings
from django.utils.module_loading import import_string

from apps.agents.code.base import CodeAgent

GROUP = "agentops.agents"
# An agent reaches rows, servers and models through its runtime alone.
_FOREIGN = ("django", "channels", "celery", "rest_framework", "agentops", "psycopg", "sqlite3")
_OWN = ("apps.agents.code", "apps.runtime")


class AgentNotAllowed(LookupError):
    """The operator does not allow an agent of this name."""


class AgentUnusable(LookupError):
    """The operator allows it, and it is no agent that can be run; the text says why."""


def agent_names() -> list[str]:
    """Return the names the operator allows, in alphabetical order."""
    return sorted(settings.AGENT_CLASSES)


def agent_class(name: str) -> type[CodeAgent]:
    """Return the class. Raises ``AgentNotAllowed`` or ``AgentUnusable``; never another's."""
    if name not in settings.AGENT_CLASSES:
        raise AgentNotAllowed(f"no agent in code is allowed as {name!r}")
    return _loaded(name, settings.AGENT_CLASSES[name])


@cache
def _loaded(name: str, path: str) -> type[CodeAgent]:
    try:
        found = import_string(path) if path else _entry_point(name)
    except AgentUnusable:
        raise
    except Exception as error:  # whatever importing a foreign module may raise
        raise AgentUnusable(f"agent {name!r} cannot be loaded: {error}") from error
    if not (inspect.isclass(found) and issubclass(found, CodeAgent)) or found is CodeAgent:
        raise AgentUnusable(f"agent {name!r}: {path or GROUP} is no CodeAgent")
    if foreign := _foreign_imports(found):
        raise AgentUnusable(
            f"agent {name!r} imports {', '.join(foreign)}: an agent reaches data, servers and models"
            " through its runtime alone"
        )
    return found


def _entry_point(name: str) -> object:
    for point in entry_points(group=GROUP, name=name):
        return point.load()
    raise AgentUnusable(f"no package offers an entry point {name!r} in {GROUP}")


def _foreign_imports(found: type[CodeAgent]) -> list[str]:
    """Return what the class's module imports that goes past the runtime."""
    module = inspect.getmodule(found)
    try:
        tree = ast.parse(inspect.getsource(module)) if module is not None else ast.Module([], [])
    except OSError:
        return []
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named |= {f"{node.module}.{alias.name}" for alias in node.names}
    return sorted(name for name in named if _is_foreign(name))


def _is_foreign(name: str) -> bool:
    if any(name == own or name.startswith(f"{own}.") for own in _OWN):
        return False
    return name.split(".")[0] in (*_FOREIGN, "apps")

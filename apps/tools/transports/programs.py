"""Programs an operator registered, that speak MCP over their standard input and output.

A tenant's configuration names a registration and nothing else: command, arguments, folder and
environment are the operator's. A program inherits ``PATH`` and the locale, and what ``env`` names.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEPT_BACK = re.compile(r"SECRET_KEY.*|AGENTOPS_.*|DATABASE_URL|MIGRATION_DATABASE_URL|REDIS_URL"
                        r"|CELERY_BROKER_URL|EMAIL_HOST_PASSWORD|RELEASE_SIGNING_KEY")  # fmt: skip
_FIELDS = {"command", "args", "env", "cwd", "credential_env"}


@dataclass(frozen=True)
class Program:
    """One registration. ``env``: names copied from the process's own environment.

    ``credential_env``: under which name the program finds the credential that the tenant's tool
    server names; "" when it wants none.
    """

    command: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    cwd: str | None = None
    credential_env: str = ""

    def environment(self, credential: str) -> dict[str, str]:
        """Return the whole environment of the program."""
        names = (*_INHERITED, *self.env)
        given = {name: os.environ[name] for name in names if name in os.environ}
        if self.credential_env and credential:
            given[self.credential_env] = credential
        return given


def programs_parse(value: Any) -> dict[str, Program]:
    """Return the registrations in ``{name: {command, args, env, cwd, credential_env}}``.

    Raises ``ValueError`` that names what is wrong.
    """
    if not isinstance(value, Mapping):
        raise ValueError("must be an object of name to program")
    return {str(name): _program(str(name), entry) for name, entry in value.items()}


def _program(name: str, entry: Any) -> Program:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{name} must be an object")
    if unknown := sorted(set(entry) - _FIELDS):
        raise ValueError(f"{name} has unknown {', '.join(unknown)}")
    command, cwd = entry.get("command"), entry.get("cwd")
    if not isinstance(command, str) or not command:
        raise ValueError(f"{name}.command must be a text")
    if cwd is not None and not isinstance(cwd, str):
        raise ValueError(f"{name}.cwd must be a text")
    names = _texts(entry.get("env", []), f"{name}.env")
    credential = entry.get("credential_env", "")
    for variable in (*names, *([credential] if credential else [])):
        if not isinstance(variable, str) or not _NAME.fullmatch(variable):
            raise ValueError(f"{name}: {variable!r} is not the name of a variable")
    if kept := [variable for variable in names if _KEPT_BACK.fullmatch(variable)]:
        raise ValueError(f"{name}.env may not pass on {', '.join(kept)}")
    args = _texts(entry.get("args", []), f"{name}.args")
    return Program(command, args, names, cwd, str(credential))


def _texts(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{place} must be a list of texts")
    return tuple(value)

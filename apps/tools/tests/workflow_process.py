"""A worker of its own for one workflow run; it dies where it is told to.

``python -m apps.tools.tests.workflow_process '{"tenant": …, "dies": "after_effect:avisar", …}'``
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from apps.runtime.ports import RemoteResult


class FileServer:
    """Keeps its effects in a file that outlives the process: ``key tool`` a line."""

    def __init__(self, path: Path, dies: str = "", idempotent: tuple[str, ...] = ()) -> None:
        self.path, self.dies, self.idempotent = path, dies, idempotent

    @property
    def lines(self) -> list[list[str]]:
        found = self.path.read_text().splitlines() if self.path.exists() else []
        return [line.split() for line in found]

    @property
    def effects(self) -> list[str]:
        return [tool for _key, tool in self.lines]

    async def call(self, tool: Any, arguments: Any, *, idempotency_key: str) -> RemoteResult:
        known = [idempotency_key, tool.name] in self.lines and tool.name in self.idempotent
        if not known:
            with self.path.open("a") as file:
                file.write(f"{idempotency_key} {tool.name}\n")
        if self.dies == f"after_effect:{tool.name}":
            os._exit(9)
        return RemoteResult(ok=True, result={"id": tool.name})


def main() -> None:
    """Start or resume the run as the settings' database has it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
    import django

    django.setup()
    from apps.tools.tests.workflow_rows import go

    told = json.loads(sys.argv[1])
    go(told)


if __name__ == "__main__":
    main()

"""CPU seconds of processes (Linux): what a turn costs, however busy the machine is."""

import os
from collections.abc import Iterable
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pids: Iterable[int]) -> float:
    """Return user plus system seconds that ``pids`` and their threads have used."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def pids_named(start: str) -> list[int]:
    """Return the processes whose command line begins with ``start``."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if line.startswith(start):
            found.append(int(entry.name))
    return found

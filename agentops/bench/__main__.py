"""``make bench``: the figures of docs/benchmarks.md, printed; nothing here passes or fails."""

import argparse
import collections
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")

import django

django.setup()

from agentops.bench import in_process, load, routing, stacks  # noqa: E402
from agentops.bench.cpu import cpu_of, pids_named  # noqa: E402
from agentops.bench.stacks import Stack  # noqa: E402
from agentops.env import BASE_DIR  # noqa: E402

SESSIONS = (1, 8, 32)
Start = Callable[..., AbstractContextManager[Stack]]


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def overhead(start: Start, folder: Path, turns: int) -> None:
    """Print latency, throughput and CPU per turn of one stack, and growth with history."""
    with start(folder) as stack:
        say(f"\n## {stack.name}: two MCP tools, scripted model answering in 0 ms")
        load.measure(stack.url, stack.headers, sessions=2, turns=20)  # warm
        if stack.name == "production":
            stacks.statistics_take()
        say("sessions |  turns | p50 ms | p95 ms | turns/s | CPU ms per turn")
        for sessions in (1, *SESSIONS):
            before = {group: cpu_of(stack.pids(group)) for group in stack.groups}
            timing = load.measure(
                stack.url, stack.headers, sessions=sessions, turns=max(10, turns // sessions)
            )
            spent = {
                group: (cpu_of(stack.pids(group)) - before[group]) * 1000 / timing.turns
                for group in stack.groups
            }
            parts = ", ".join(f"{group} {value:.1f}" for group, value in spent.items())
            say(
                f"{sessions:8} | {timing.turns:6} | {timing.p50:6.1f} | {timing.p95:6.1f} |"
                f" {timing.per_second:7.1f} | {sum(spent.values()):5.1f} = {parts}"
            )
        first, last = load.growth(stack.url, stack.headers)
        say(
            f"history: turns 1-20 median {first:.1f} ms, turns 181-200 {last:.1f} ms,"
            f" ratio {last / first:.2f}"
        )
        if stack.name == "production":
            doorbell(stack)


def doorbell(stack: Stack, rings: int = 1000) -> None:
    """Print what the broker's part of a turn costs, by tasks that do nothing."""
    script = (
        "import time, uuid, django; django.setup()\n"
        "import agentops.celery\nfrom agentops.bench.noop import noop\n"
        "noop.apply_async((1, str(uuid.uuid4())), queue='bench-doorbell')\n"
        "t = time.process_time()\n"
        f"for _ in range({rings}):\n"
        "    noop.apply_async((1, str(uuid.uuid4())), queue='bench-doorbell', retry=False)\n"
        "print(time.process_time() - t)\n"
    )
    environment = {**os.environ, **stack.environment}
    worker = subprocess.Popen(
        [
            sys.executable, "-m", "celery", "-A", "agentops", "worker", "--pool", "threads",
            "--concurrency", "32", "--loglevel", "WARNING", "-Q", "bench-doorbell",
            "-I", "agentops.bench.noop",
        ],
        cwd=BASE_DIR, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        import time

        time.sleep(6)
        redis = pids_named("redis-server")
        before, redis_before = cpu_of([worker.pid]), cpu_of(redis)
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        time.sleep(6)
        sent = float(done.stdout.strip().splitlines()[-1]) * 1000 / rings
        received = (cpu_of([worker.pid]) - before) * 1000 / rings
        broker = (cpu_of(redis) - redis_before) * 1000 / rings
        say(
            f"doorbell by itself: {sent + received + broker:.2f} ms CPU ="
            f" web {sent:.2f}, worker {received:.2f}, redis {broker:.2f}"
        )
    finally:
        worker.terminate()
        worker.wait(20)


def queries(start: Start, folder: Path, turns: int = 20) -> None:
    """Print the SQL statements of a warm turn by table and process."""
    with start(folder, counting=True) as stack:
        load.measure(stack.url, stack.headers, sessions=1, turns=10)
        logs = [log for log in sorted(folder.glob("sql.*.log")) if ".setup." not in log.name]
        # A manifest is read from the database exactly when it is parsed.
        parsed = {
            log.name.split(".")[1]: log.read_text().count("SELECT releases_release\n")
            for log in logs
        }
        for log in logs:
            log.write_text("")
        load.measure(stack.url, stack.headers, sessions=1, turns=turns)
        say(f"\n## {stack.name}: SQL statements per warm turn, by process and table")
        configuration = 0
        for log in logs:
            counted = collections.Counter(log.read_text().splitlines())
            for line, count in sorted(counted.items()):
                say(f"  {log.name.split('.')[1]:9} {line:45} {count / turns:6.2f}")
                if line.split()[1].startswith("releases_"):
                    configuration += count
        say(f"configuration queries per warm turn: {configuration / turns:.2f}")
        say("(+releases: the statement that locks the session reads the deployment's pointer)")
        again = sum(log.read_text().count("SELECT releases_release\n") for log in logs)
        say(
            f"release manifests read and parsed: {parsed} while warming up, {again} in {turns} turns"
        )


def main() -> None:
    """Run the parts that were asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m agentops.bench", description=__doc__)
    parser.add_argument("--turns", type=int, default=200, help="of one measurement")
    parser.add_argument("--only", choices=("embedded", "production", "scale", "routing"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agentops-bench-") as temporary:
        folder = Path(temporary)
        for stack, start in (("embedded", stacks.embedded), ("production", stacks.production)):
            if options.only in (None, stack):
                queries(start, folder / f"{stack}-sql")
                overhead(start, folder / stack, options.turns)
        if options.only in (None, "scale"):
            for name, postgresql in (("sqlite", False), ("postgresql", True)):
                say(stacks.scale_run(folder / f"scale-{name}", postgresql=postgresql))
    if options.only in (None, "routing"):
        say("\n## routing: choosing an agent")
        say("intents | compile s | p50 ms | p95 ms")
        for intents in (10, 1_000, 10_000):
            compiled, p50, p95 = in_process.routing_times(intents)
            say(f"{intents:7} | {compiled:9.2f} | {p50:6.3f} | {p95:6.3f}")
        routing.report(say)


if __name__ == "__main__":
    main()

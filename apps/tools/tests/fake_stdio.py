"""A small MCP program for what real ones seldom do. Run it; it is no module of the tests.

Options: ``--banner`` prints before it speaks, ``--noise N`` writes N lines to standard error,
``--stubborn`` ignores SIGTERM and the end of its input, ``--die`` ends before it says a word.
"""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in
         ("env", "pid", "die", "slow", "note", "huge", "echo", "child")]  # fmt: skip


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def call(name: str, arguments: dict[str, Any]) -> Any:
    if name == "env":
        return dict(os.environ)
    if name == "pid":
        return {"pid": os.getpid()}
    if name == "die":
        os._exit(7)
    if name == "slow":
        time.sleep(float(arguments["seconds"]))
    if name == "note":
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if name == "huge":
        return {"text": "x" * int(arguments["size"])}
    if name == "child":
        return {"pid": subprocess.Popen(["sleep", "600"]).pid}
    return arguments


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "fake", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    value = call(params["name"], params.get("arguments") or {})
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def main() -> None:
    if "--die" in sys.argv:
        sys.exit(3)
    if "--banner" in sys.argv:
        print("Welcome to fake\n\nready", flush=True)
    if "--noise" in sys.argv:
        for number in range(int(sys.argv[sys.argv.index("--noise") + 1])):
            print(f"noise {number} " + "y" * 2000, file=sys.stderr)
    stubborn = "--stubborn" in sys.argv
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if (message.get("params") or {}).get("name") == "invalid":
            error = {"code": -32600, "message": "Invalid request"}
            say({"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {})
            say({"jsonrpc": "2.0", "id": message["id"], "result": result})
    while stubborn:
        time.sleep(60)


if __name__ == "__main__":
    main()

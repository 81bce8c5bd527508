"""The client that ``scripts/conformance`` shows to the MCP conformance suite: our transport.

Run with the address of the suite's server; it lists the tools and calls each with fitting values.
"""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apps.runtime.addresses import AllowList
from apps.runtime.ports import RemoteTool
from apps.tools.transports.dispatch import Transports

_VALUES = {"number": 5, "integer": 5, "string": "text", "boolean": True, "array": [], "object": {}}


def arguments_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each argument."""
    properties = schema.get("properties", {})
    return {name: _VALUES.get(rule.get("type"), "text") for name, rule in properties.items()}


async def run(address: str) -> None:
    transports = Transports(allowed=AllowList.of(["127.0.0.1", "localhost"]))
    remote = RemoteTool(
        server="suite", transport="streamable_http", address=address, name="", timeout_seconds=20
    )
    try:
        for tool in await transports.list_tools(remote):
            called = replace(remote, name=str(tool["name"]))
            arguments = arguments_of(tool["input_schema"])
            print(tool["name"], await transports.call(called, arguments, idempotency_key="k"))
    finally:
        await transports.aclose()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))

"""Viewers of one session see the same events whichever web process serves them."""

import asyncio
import json

import httpx2
import pytest

from agentops.tests.services.posting import turn_id_of
from agentops.tests.services.tenant import READS, message

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
MESSAGES, VIEWERS = 3, 2


async def watched(client: httpx2.AsyncClient, url: str, connected: asyncio.Event):
    """Return every stored event that a viewer at ``url`` sees, up to the last answer's end."""
    frames: list[tuple[str, str, str]] = []
    async with client.stream("GET", f"{url}/gateway/events/oficina:{READS}:s1") as stream:
        assert stream.status_code == 200
        frame: dict[str, str] = {}
        async for line in stream.aiter_lines():
            name, _colon, value = line.partition(": ")
            if line:
                frame[name] = value
                continue
            if frame.get("event") == "connected":
                connected.set()
            if "id" in frame:
                frames.append((frame["id"], frame["event"], frame["data"]))
            if sum(event == "flow.end" for _id, event, _data in frames) == MESSAGES:
                return frames
            frame = {}
    return frames


async def watch_and_post(urls, shop):
    async with httpx2.AsyncClient(headers=shop.headers, timeout=60) as client:
        arrived = [asyncio.Event() for _ in range(len(urls) * VIEWERS)]
        viewers = [
            asyncio.create_task(watched(client, url, event))
            for url, event in zip(urls * VIEWERS, arrived, strict=True)
        ]
        await asyncio.wait_for(asyncio.gather(*(event.wait() for event in arrived)), 30)
        turns = []
        for number in range(MESSAGES):
            body = message(READS, session="s1", message_id=f"m{number}", note=str(number))
            url = f"{urls[number % len(urls)]}/gateway/message"
            turns.append(turn_id_of(await client.post(url, json=body)))
        return turns, await asyncio.wait_for(asyncio.gather(*viewers), 60)


def test_viewers__in_two_web_processes__see_the_same_events(shop, fleet, web, capsys):
    fleet.workers(1)
    other = fleet.web()
    turns, seen = asyncio.run(watch_and_post([web.url, other.url], shop))
    with capsys.disabled():
        print(f"\n\n{len(seen)} viewers in two web processes: {len(seen[0])} events each, equal")
    assert all(frames == seen[0] for frames in seen)
    assert [int(number) for number, _event, _data in seen[0]] == list(range(1, len(seen[0]) + 1))
    answers = [
        json.loads(data)["payload"] for _id, event, data in seen[0] if event == "message.responded"
    ]
    assert [answer["turn_id"] for answer in answers] == turns

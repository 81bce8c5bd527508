"""The OpenAPI document: valid, whole, and served with a page."""

import warnings

import jsonschema
import pytest
from django.core.management import call_command
from django.urls import URLPattern
from drf_spectacular.validation import validate_schema

from apps.gateway import schemas, urls
from apps.gateway.openapi import OPERATIONS
from apps.gateway.tests.documented import document


def doors() -> dict[str, tuple[str, ...]]:
    """Return the path of every door, as the document writes it, and its methods."""
    found = {}
    for pattern in urls.urlpatterns:
        assert isinstance(pattern, URLPattern)
        path = "/" + str(pattern.pattern).replace("<str:", "{").replace("<uuid:", "{")
        found[path.replace(">", "}")] = getattr(pattern.callback, "methods")  # noqa: B009
    return found


def test_document__is_valid_openapi():
    validate_schema(document())


def test_document__made_by_the_command__has_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call_command(
            "spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yaml")
        )
    assert "/gateway/message" in (tmp_path / "schema.yaml").read_text()


def test_document__describes_every_door_and_method():
    described = {path: {m.upper() for m in item} for path, item in document()["paths"].items()}
    for path, methods in doors().items():
        assert set(methods) - {"HEAD"} == described.pop(path)
    assert {path for path in described if not path.startswith("/v1/")} <= {"/api/schema"}


def test_document__shapes_of_all_operations_are_components():
    names = document()["components"]["schemas"].keys()
    for operation in OPERATIONS:
        for _said, model in operation.answers.values():
            assert model.__name__ in names
    assert {"Problem", "GatewayRequest", "ChannelResponse"} <= names


def test_document__problems__say_which_field():
    problem = document()["components"]["schemas"]["Problem"]
    assert {"type", "title", "status", "code", "detail"} <= set(problem["required"])
    for item in document()["paths"]["/gateway/message"].values():
        kinds = {s: set(a["content"]) for s, a in item["responses"].items()}
        for status in ("400", "401", "403", "404", "409", "413", "415", "422"):
            assert kinds[status] == {"application/problem+json"}


@pytest.mark.parametrize(
    "body",
    [
        {"channel": "web", "payload": {"message": "oi"}},
        {"channel": None, "agent_id": None, "payload": {"message": "oi", "msisdn": "119"}},
    ],
)
def test_gateway_request__as_documented__accepts_what_the_door_accepts(body):
    schema = {
        **document()["components"]["schemas"]["GatewayRequest"],
        "components": document()["components"],
    }
    jsonschema.Draft202012Validator(schema).validate(body)
    assert schemas.GatewayRequest.model_validate(body).payload.message == "oi"


def test_document__examples__work_against_the_demo_as_they_are(live):
    tried = 0
    with live.client() as client:
        for path, item in document()["paths"].items():
            body = item.get("post", {}).get("requestBody", {}).get("content", {})
            if "example" in body.get("application/json", {}):
                where = path.replace("{tool}", "consultar_fatura")
                answer = client.post(where, json=body["application/json"]["example"])
                assert answer.status_code in (200, 201), answer.text
                tried += 1
    assert tried == 6


def test_schema_and_page__are_served_to_everybody_from_this_host(live):
    with live.client() as client:
        schema = client.get("/api/schema", headers={"accept": "application/json"})
        page = client.get("/api/schema/docs/")
        assert schema.json()["openapi"].startswith("3.1")
        assert schema.json()["paths"].keys() == document()["paths"].keys()
        assert page.status_code == 200
        assert 'src="http' not in page.text
        assert 'href="http' not in page.text
        scripts = [part.split('"')[0] for part in page.text.split('src="')[1:]]
        assert scripts
        for script in scripts:
            assert client.get(script).status_code == 200

"""What every operation of the configuration API does around its one call.

An operation is a class: its scope, the shapes of what comes in and goes out, and ``answer``, which
calls one service or selector inside the caller's tenant. ``route`` makes a path of operations, one
for each method, and describes them in the OpenAPI document. May be imported by apps above.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern, path
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.releases.api.inputs import Given, Paging
from apps.releases.content import UNSTORABLE
from apps.tenants.acting import acting_with_key
from apps.tenants.auth import Principal
from apps.tenants.scope import tenant_transaction

PROBLEM = "application/problem+json"
REFUSED = {
    400: "Not readable as JSON.",
    401: "No credential, or one that does not count.",
    403: "The credential, the role or the duty does not cover this; or it is one's own change.",
    404: "Absent, or another tenant's: answered alike.",
    405: "Another method.",
    409: "Not in this state: stale, in conflict, frozen, not approved; `code` says which.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "A field or the content is wrong; `errors` names it.",
    500: "Something went wrong here.",
}
READING = (401, 403, 404, 405, 422, 500)


class BoundedJson(JSONParser):
    """JSON within the size and depth a server can bear."""

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        length = str((parser_context or {})["request"].META.get("CONTENT_LENGTH") or "0")
        if length.isdigit() and int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise RequestDataTooBig
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError from None


@dataclass(frozen=True)
class Page:
    """Some rows of a list, and where the next ones begin (``None``: there are no more)."""

    results: list[Any]
    next_offset: int | None


def page_of(rows: "QuerySet[Any]", given: Mapping[str, Any]) -> Page:
    """Return the rows that ``limit`` and ``offset`` of ``Paging`` ask for; one query."""
    start, limit = given["offset"], given["limit"]
    found = list(rows[start : start + limit + 1])
    return Page(found[:limit], start + limit if len(found) > limit else None)


class Operation:
    """One method of one path. ``Query`` and ``Input`` are read into ``given``; ``Output`` shows what
    ``answer`` returns (None: 204). ``many``: it is a ``Page``."""

    scope: ClassVar[str] = "config:read"
    status: ClassVar[int] = 200
    tag: ClassVar[str] = "configuration"
    many: ClassVar[bool] = False
    # Typed loosely: an operation sets them to classes of its own, or back to None.
    Query: ClassVar[Any] = None
    Input: ClassVar[Any] = None
    Output: ClassVar[Any] = None

    def __init__(self, *, principal: Principal, **named: Any) -> None:
        self.principal = principal
        self.named = named

    @property
    def actor(self) -> str:
        return self.principal.name

    def answer(self, **given: Any) -> Any:
        """Do it, inside the tenant's transaction. ``given``: what query and body said, checked."""
        raise NotImplementedError


class TenantApi(APIView):
    """A path whose methods are operations."""

    parser_classes = (BoundedJson,)


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The credential in the document; ``gateway.openapi`` describes it."""

    target_class = "apps.tenants.auth.CallerAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer"}


def route(address: str, **operations: type[Operation]) -> URLPattern:
    """Return the path ``address`` with an operation for each method (``get=…``, ``post=…``)."""
    methods = {method: _method(operation) for method, operation in operations.items()}
    name = re.sub(r"[^a-z]+", "-", re.sub(r"<\w+:", "", address)).strip("-")
    title = "".join(part.title() for part in name.split("-"))
    view: Any = type(f"{title}Api", (TenantApi,), methods)
    found: URLPattern = path(address, view.as_view(), name=f"api-{name}")
    return found


def _method(operation: type[Operation]) -> Any:
    def respond(view: TenantApi, request: Request, **named: Any) -> Response:
        principal = cast("Principal", request.auth)
        principal.require(operation.scope)
        if any(isinstance(part, str) and UNSTORABLE.search(part) for part in named.values()):
            raise Http404  # Nothing is called so, and PostgreSQL would not even look.
        given = _given(operation, request)
        with tenant_transaction(principal.tenant_id), acting_with_key(principal.key):
            said = operation(principal=principal, **named).answer(**given)
            shown = _shown(operation, said)
        return Response(shown, status=operation.status)

    respond.__doc__ = operation.__doc__
    return _described(operation)(respond)


def _given(operation: type[Operation], request: Request) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for shape, data in ((operation.Query, request.query_params), (operation.Input, request.data)):
        if shape is not None:
            read = shape(data=data)
            read.is_valid(raise_exception=True)
            given |= read.validated_data
    return given


def _shown(operation: type[Operation], said: Any) -> Any:
    if operation.Output is None:
        return None
    if operation.many:
        rows = operation.Output(said.results, many=True).data
        return {"results": rows, "next_offset": said.next_offset}
    return operation.Output(said).data


def _described(operation: type[Operation]) -> Any:
    summary, _gap, description = (operation.__doc__ or "").strip().partition("\n\n")
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", operation.__name__).lower()
    refused = (*READING, 400, 409, 413, 415) if operation.Input else (*READING, 409)
    answers: dict[Any, Any] = {operation.status: _page_shape(operation)}
    for status in sorted(refused):
        answers[(status, PROBLEM)] = OpenApiResponse(
            {"$ref": "#/components/schemas/Problem"}, REFUSED[status]
        )
    return extend_schema(
        operation_id=words,
        summary=" ".join(summary.split()).rstrip("."),
        description=f"{' '.join(description.split())}\n\nScope: `{operation.scope}`.".strip(),
        tags=[operation.tag],
        parameters=[operation.Query] if operation.Query else [],
        request=operation.Input,
        responses=answers,
    )


def _page_shape(operation: type[Operation]) -> Any:
    if operation.Output is None:
        return OpenApiResponse(description="Done.")
    if not operation.many:
        return operation.Output
    fields = {
        "results": operation.Output(many=True),
        "next_offset": serializers.IntegerField(allow_null=True),
    }
    return type(f"{operation.__name__}Page", (serializers.Serializer,), fields)


__all__ = ["Given", "Operation", "Page", "Paging", "page_of", "route"]

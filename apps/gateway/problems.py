"""Problem bodies (RFC 9457): every refusal says which field and what to do.

Titles and codes are for programs and stay English; details follow the caller's language.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_handler

from apps.governance.refusals import refusal_of as governance_refusal_of
from apps.releases.api.refusals import Refusal, refusal_of

TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
}


class Problem(Exception):
    """A request that is refused. ``errors``: one {field, message} for each wrong field; ``extra``:
    members of this kind of problem alone."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = [dict(error) for error in errors]
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})

    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": TITLES.get(self.status, "Error"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = self.errors
        return {**body, **self.extra}

    def response(self) -> HttpResponse:
        """Return the response."""
        return JsonResponse(
            self.body(),
            status=self.status,
            content_type="application/problem+json",
            headers=self.headers,
        )


def invalid(field: str, message: str, *, code: str = "INVALID_GATEWAY_REQUEST") -> Problem:
    """Return the 422 for one wrong field."""
    return Problem(422, code, f"{field}: {message}", errors=[{"field": field, "message": message}])


def not_found() -> Problem:
    """Return the 404 that a foreign and an absent thing share, byte for byte."""
    return Problem(404, "NOT_FOUND", _("There is no such thing here."))


def exception_handler(
    error: Exception, context: Mapping[str, Any]
) -> Response | HttpResponse | None:
    """DRF's exception handler: the same problem bodies."""
    if isinstance(error, Problem):
        return error.response()
    if isinstance(error, RequestDataTooBig):
        return Problem(413, "TOO_LARGE", _("The body is too large.")).response()
    refused = refusal_of(error) or governance_refusal_of(error)
    if refused is not None:
        return problem_of(refused).response()
    answer = drf_handler(error, dict(context))
    if answer is None:
        return None
    if isinstance(error, exceptions.ValidationError):
        return Problem(
            422, "INVALID_REQUEST", _("The request is not valid."), errors=list(_flat(error.detail))
        ).response()
    if not isinstance(error, exceptions.APIException):
        return not_found().response() if answer.status_code == 404 else None
    problem = refusal(error)
    problem.headers.update({k: v for k, v in answer.headers.items() if k != "Content-Type"})
    return problem.response()


def problem_of(refused: Refusal) -> Problem:
    """Return the problem of what a service refuses; what is absent says nothing of itself."""
    if refused.status == 404:
        return not_found()
    return Problem(
        refused.status, refused.code, refused.detail, errors=refused.errors, extra=refused.extra
    )


def refusal(error: exceptions.APIException) -> Problem:
    """Return the problem of what ``tenants.auth`` or DRF refuses."""
    if error.status_code == 404:
        return not_found()
    codes = error.get_codes()
    code = codes if isinstance(codes, str) else error.default_code
    headers = {"WWW-Authenticate": 'Bearer realm="agentops"'} if error.status_code == 401 else {}
    return Problem(error.status_code, code.upper(), str(error.detail), headers=headers)


def _flat(detail: Any, prefix: str = "") -> Any:
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(detail, list):
        for value in detail:
            yield from _flat(value, prefix)
    else:
        yield {"field": prefix or "body", "message": str(detail)}


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What Django itself refuses, a Host it does not serve for example."""
    if _is_browser(request):
        return defaults.bad_request(request, exception)
    return Problem(400, "BAD_REQUEST", _("The request is not valid.")).response()


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Unknown paths answer like unknown things."""
    if _is_browser(request):
        return defaults.page_not_found(request, exception)
    return not_found().response()


def handler500(request: HttpRequest) -> HttpResponse:
    """A surprise shows nothing of itself."""
    if _is_browser(request):
        return defaults.server_error(request)
    return broken().response()


def broken() -> Problem:
    """Return the 500."""
    return Problem(500, "INTERNAL_ERROR", _("Something went wrong on our side."))


def _is_browser(request: HttpRequest) -> bool:
    return "text/html" in request.headers.get("accept", "")

"""Errors as `application/problem+json` (RFC 9457): {type, title, status, detail, code, problems}."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.views import exception_handler

from agents.errors import AgentsError
from agents.machines import TransitionNotAllowed
from agents.streams.outages import outage_refusal

MEDIA_TYPE = "application/problem+json"
PROBLEMS_LIMIT = 100
"""Problems that one answer lists."""
RETRY_AFTER_S = 1
"""When to ask again where the database was busy."""

Problem = dict[str, Any]


class BodyTooLarge(exceptions.APIException):
    """The body has more bytes than a request may have."""

    status_code = 413
    default_code = "body_too_large"


def problem_body(status: int, code: str, detail: str, problems: list[Problem] | None = None) -> Problem:
    """The body of an answer; `problems` name places, e.g. {"key": "tasks[0].name", "message": "..."}.

    What is not known of a place, as the line in what never was text, is left out.
    """
    title = code.replace("_", " ").capitalize()
    return {
        "type": f"urn:orrery:problem:{code}", "title": title, "status": status, "detail": detail, "code": code,
        "problems": [drop_unknown(each) for each in (problems or [])[:PROBLEMS_LIMIT]],
    }  # fmt: skip


def drop_unknown(place: Problem) -> Problem:
    """A place without what is not known of it."""
    return {name: value for name, value in place.items() if value is not None}


def problem_response(body: Problem) -> JsonResponse:
    """Always JSON, whatever the request accepts."""
    headers = {"Retry-After": str(RETRY_AFTER_S)} if body["status"] == 503 else None
    return JsonResponse(body, status=body["status"], content_type=MEDIA_TYPE, headers=headers)


def handle_exception(error: Exception, context: dict[str, Any]) -> JsonResponse | None:
    """DRF's exception handler: what we refuse becomes a problem; a fault of ours stays one and is logged by Django."""
    error = outage_refusal(error) or error
    if isinstance(error, AgentsError):
        return problem_response({**error.members, **problem_body(error.status, error.code, str(error), error.problems)})
    if isinstance(error, TransitionNotAllowed):
        return problem_response(problem_body(409, error.code, str(error)))
    if isinstance(error, RequestDataTooBig):
        return problem_response(problem_body(413, BodyTooLarge.default_code, str(error)))
    if isinstance(error, SuspiciousOperation):
        return problem_response(problem_body(400, "bad_request", str(error)))
    return _from_framework(error, context)


def _from_framework(error: Exception, context: dict[str, Any]) -> JsonResponse | None:
    """DRF's own errors, with the headers it gives them (WWW-Authenticate, Allow, Retry-After)."""
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, exceptions.ValidationError):
        problems = list(flatten_details(error.detail))
        lines = [f"{each['key']}: {each['message']}" if each["key"] else each["message"] for each in problems[:3]]
        body = problem_body(400, "invalid", "; ".join(lines), problems)
    elif isinstance(error, Http404):
        body = problem_body(response.status_code, "not_found", "there is no such object, or it is not yours to see")
    elif isinstance(error, PermissionDenied):
        body = problem_body(response.status_code, "permission_denied", str(error) or "you may not do this")
    else:
        assert isinstance(error, exceptions.APIException)
        body = problem_body(response.status_code, str(error.get_codes()), str(error.detail))
    found = problem_response(body)
    for name, value in response.headers.items():
        found.headers.setdefault(name, value)
    return found


def flatten_details(detail: Any, key: str = "") -> Iterator[Problem]:
    """DRF's nested error details as a flat list of {key, message}; what is wrong in a list stands under its place's number."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            if isinstance(name, int):
                yield from flatten_details(inner, f"{key}[{name}]")
                continue
            own = "" if name == "non_field_errors" else str(name)
            yield from flatten_details(inner, f"{key}.{own}" if key and own else key or own)
    elif isinstance(detail, list):
        for number, inner in enumerate(detail):
            yield from flatten_details(inner, f"{key}[{number}]" if isinstance(inner, Mapping | list) else key)
    else:
        yield {"key": key, "message": str(detail)}


@csrf_exempt
def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """The answer to an address under /api/ that does not exist."""
    return problem_response(problem_body(404, "not_found", f"there is nothing at {request.path}"))


def server_error(request: HttpRequest) -> JsonResponse:
    """The answer to a fault of ours; Django has logged it."""
    return problem_response(problem_body(500, "server_error", "something broke on our side; it has been logged"))

"""Which fault an exception of the providers' libraries is: by its type, its status and the provider's code."""

from __future__ import annotations

import json

import httpx2
from pydantic_ai import exceptions

from agents.llm import faults
from agents.llm.exchange import Reply
from agents.llm.faults import ModelFault

BY_TYPE: tuple[tuple[type[Exception], type[ModelFault]], ...] = (
    (exceptions.ModelContextWindowExceededError, faults.ContextTooLong),
    (exceptions.ModelAuthenticationError, faults.KeyRejected),
    (exceptions.ModelNotFoundError, faults.ModelUnknown),
    (exceptions.ModelRequestRejectedError, faults.RequestRejected),
    (exceptions.ModelQuotaExceededError, faults.QuotaUsedUp),
    (exceptions.ModelRateLimitError, faults.RateLimited),
    (exceptions.ModelUnavailableError, faults.ProviderFailed),
    (exceptions.ModelServerError, faults.ProviderFailed),
    (exceptions.ContentFilterError, faults.ContentFiltered),
    (exceptions.UserError, faults.ProfileUnusable),
    (httpx2.TransportError, faults.AnswerBroken),
)
"""The first that fits counts. What is not here is told by more than its type, or is an answer that makes no sense."""
FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
"""Providers' codes for a question that their filter did not let through; as a status they are a rejected request."""
NOT_SENT = frozenset({"pool", "connect"})
"""Phases in which a connection is lost before anything was asked."""


def fault_of(error: Exception, partial: Reply) -> ModelFault:
    """The fault that `error` is, with its facts and what of the answer had come."""
    if found := _fault_behind(error):
        return type(found)(str(found), partial=partial)  # a new one: its cause is what had wrapped the first
    return _kind_of(error)(
        str(error) or type(error).__name__,
        http_status=getattr(error, "status_code", None),
        retry_after_s=getattr(error, "retry_after", None),
        provider_code=getattr(error, "provider_error_code", None) or getattr(error, "provider_error_type", None) or "",
        partial=partial,
    )


def _fault_behind(error: BaseException) -> ModelFault | None:
    """A fault of ours that a client has wrapped, as one of the guard of addresses."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ModelFault):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def _kind_of(error: Exception) -> type[ModelFault]:
    if isinstance(error, exceptions.ModelConnectionError):
        return faults.ModelUnreachable if error.phase in NOT_SENT else faults.AnswerBroken
    if getattr(error, "provider_error_code", None) in FILTER_CODES:
        return faults.ContentFiltered
    for kind, fault in BY_TYPE:
        if isinstance(error, kind):
            return fault
    if isinstance(error, exceptions.ModelHTTPError):
        return faults.ProviderFailed if error.status_code >= 500 else faults.RequestRejected
    if isinstance(error, exceptions.ModelAPIError) and not isinstance(
        error.__cause__, json.JSONDecodeError | UnicodeDecodeError
    ):  # an error that the provider reported inside the stream, with a code that nobody knows
        return faults.ProviderFailed if error.in_stream else faults.AnswerUnreadable
    # Libraries take answers apart without looking first: one of wrong parts is an AttributeError or a KeyError of theirs.
    return faults.AnswerUnreadable

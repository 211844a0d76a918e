"""What can go wrong with a call of a model: a class for each fault, with its facts. What follows is for the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.errors import AgentsError
from agents.llm.exchange import NO_REPLY, Reply

MESSAGE_LENGTH = 2_000
"""Characters of what a provider says that are kept."""


class ModelFault(AgentsError):
    """A call of a model went wrong.

    `http_status` is the provider's, or None; `retry_after_s` the seconds that it asked to wait, or None; `provider_code` its
    own word for the fault, or empty; `partial` what of the answer had come.
    """

    code = "model_fault"
    status = 502
    error_kind = ""
    """As `agents.faults.error_kind_of` reads it: empty where another try brings the same."""

    def __init__(
        self,
        message: str,
        *,
        http_status: int | None = None,
        retry_after_s: float | None = None,
        provider_code: str = "",
        partial: Reply = NO_REPLY,
    ):
        super().__init__(message[:MESSAGE_LENGTH])
        self.http_status, self.retry_after_s, self.provider_code = http_status, retry_after_s, provider_code
        self.partial = partial


class ModelUnreachable(ModelFault):
    """There is no connection to the provider; it was asked nothing."""

    code = "model_unreachable"
    error_kind = "connection_lost"


class FirstTokenLate(ModelFault):
    """The provider was asked, and nothing of an answer came in time."""

    code = "model_first_token_late"
    error_kind = "connection_lost"


class AnswerBroken(ModelFault):
    """The provider was asked, and the stream of its answer stopped, fell silent, or ended without saying why."""

    code = "model_answer_broken"
    error_kind = "connection_lost"


class CallTooLong(ModelFault):
    """The call's whole time is over."""

    code = "model_call_too_long"
    error_kind = "timeout"


class RateLimited(ModelFault):
    """The provider takes no more for now (429); `retry_after_s` says until when, if it told."""

    code = "model_rate_limited"
    error_kind = "rate_limit"


class QuotaUsedUp(ModelFault):
    """The account has no money or quota left; to wait does not help."""

    code = "model_quota_used_up"


class ProviderFailed(ModelFault):
    """The provider had a fault of its own (5xx), or is overloaded."""

    code = "model_provider_failed"
    error_kind = "server_error"


class ContextTooLong(ModelFault):
    """The conversation does not fit into the model's context."""

    code = "model_context_too_long"


class Refused(ModelFault):
    """The model refused to answer; `partial` has its words where it gave some."""

    code = "model_refused"


class ContentFiltered(ModelFault):
    """The provider's filter cut the answer, or did not let the question through."""

    code = "model_content_filtered"


class KeyRejected(ModelFault):
    """The provider does not take the key, or the key may not do this."""

    code = "model_key_rejected"


class ModelUnknown(ModelFault):
    """The provider has no such model, or nothing is at this address."""

    code = "model_unknown"


class RequestRejected(ModelFault):
    """The provider did not take the request as it is."""

    code = "model_request_rejected"


class AnswerUnreadable(ModelFault):
    """What came is no answer in the provider's protocol."""

    code = "model_answer_unreadable"


class AnswerEmpty(ModelFault):
    """The answer ended well and has neither words nor calls."""

    code = "model_answer_empty"


class AnswerTooLarge(ModelFault):
    """The answer is larger than anything that is kept."""

    code = "model_answer_too_large"


class ProfileUnusable(ModelFault):
    """The profile cannot be called as it is: a library, a key, or what it asks of the model is missing."""

    code = "model_profile_unusable"
    status = 409


class AddressRefused(ProfileUnusable):
    """The model's host is an address of this machine or its networks, and no setting allows it."""

    code = "model_address_refused"


class LimitReached(ModelFault):
    """A limit of the profile left no room for the call for as long as it could wait; nothing was asked."""

    code = "model_limit_reached"
    status = 429
    error_kind = "rate_limit"


class BudgetUsedUp(ModelFault):
    """A budget has no room for the call; nothing was asked. `facts` are those of `agents.minds.budgets.places.shortage`."""

    code = "model_budget_used_up"
    status = 409

    def __init__(self, message: str, facts: Mapping[str, Any]):
        super().__init__(message)
        self.facts = facts

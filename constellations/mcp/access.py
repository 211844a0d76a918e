"""Who calls over MCP, and what they may do and see: a token's user, by the same table as REST and the websocket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import AuthenticationFailed

from agents.access.authentication import authenticate_token
from agents.access.permissions import PROPOSE, why_refused
from agents.errors import AgentsError
from agents.models import Approval, Device, Session, Token
from agents.services import approvals
from constellations.errors import ConstellationsError, NoSuchConstellation, NoSuchTask
from constellations.models import Constellation, Task
from constellations.plan.values import MAX_COMPARED, SHOWN, did_you_mean

READ = "own"
"""What reading needs, as over REST: any login whose token has the scope read; what is found is what it may see."""


class NoSuchDevice(ConstellationsError):
    """There is no device of that name."""

    code = "no_such_device"
    status = 404


class SessionNotFound(ConstellationsError):
    """There is no such session, or it is somebody else's."""

    code = "no_such_session"
    status = 404


class NotAllowed(AgentsError):
    """The caller may not do this."""

    code = "permission_denied"
    status = 403


@dataclass(frozen=True)
class Caller:
    """A valid token and its user."""

    user: Any
    token: Token

    @property
    def by(self) -> str:
        """As records name an author."""
        return f"token:{self.token.token_key}"

    @property
    def who(self) -> str:
        """As a person reads it."""
        return f"{self.token.name or 'A program'} ({self.by}) of {self.user.get_username()}"

    @property
    def is_agent(self) -> bool:
        """Whether it is a coding agent that works on a task: it sees its own session alone, and proposes."""
        return PROPOSE in self.token.scopes

    def refusal(self, need: str) -> str:
        """Why the caller may not do what needs `need`; empty when it may."""
        if not self.is_agent:
            return why_refused(self.user, self.token, need)
        if need not in (READ, PROPOSE):
            return "the token is a coding agent's, which looks at its own constellation and proposes edits of it"
        return why_refused(self.user, self.token, PROPOSE)

    def demand(self, *needs: str) -> None:
        """Raise NotAllowed unless the caller may do what needs any of `needs`; it says what is missing of the first."""
        refusals = [self.refusal(need) for need in needs]
        if all(refusals):
            raise NotAllowed(refusals[0])


def caller_of(text: str) -> Caller:
    """Whose token `text` is; raises AuthenticationFailed."""
    if not text:
        raise AuthenticationFailed("a token is needed, as `Authorization: Bearer orr_...`; manage.py token_create makes one")
    token = authenticate_token(text)
    return Caller(token.user, token)


def sessions_of(caller: Caller) -> QuerySet[Session]:
    """Those that the caller may see."""
    found = Session.objects.visible_to(caller.user)
    return found.filter(pk=caller.token.session_id) if caller.is_agent else found


def constellations_of(caller: Caller) -> QuerySet[Constellation]:
    """Those that the caller may see."""
    return Constellation.objects.filter(session__in=sessions_of(caller))


def constellation_of(caller: Caller, constellation_id: int) -> Constellation:
    """Raises NoSuchConstellation, with the same words for what is not there and what is not the caller's to see."""
    found = constellations_of(caller).filter(pk=constellation_id).first()
    if found is None:
        raise NoSuchConstellation(f"there is no constellation {constellation_id}, or it is not yours to see")
    return found


def approvals_of(caller: Caller) -> QuerySet[Approval]:
    """Those that people decide, of sessions that the caller may see; a call-back is awaited from outside."""
    return approvals.visible_to(caller.user).filter(session__in=sessions_of(caller)).exclude(kind="callback")


def session_of(caller: Caller, session: int) -> Session:
    """Raises SessionNotFound, with the same words for what is not there and what is not the caller's to see."""
    found = sessions_of(caller).filter(pk=session).first()
    if found is None:
        raise SessionNotFound(f"there is no session {session}, or it is not yours to see")
    return found


def task_of(constellation: Constellation, task_id: str) -> Task:
    """Raises NoSuchTask, which names the nearest there is."""
    found = Task.objects.filter(constellation=constellation, task_id=task_id).select_related("constellation").first()
    if found is None:
        raise no_such_task(constellation, task_id)
    return found


def no_such_task(constellation: Constellation, task_id: str) -> NoSuchTask:
    known = constellation.tasks.order_by("id").values_list("task_id", flat=True)[:MAX_COMPARED]
    return NoSuchTask(f"constellation {constellation.pk} has no task {task_id[:SHOWN]}{did_you_mean(task_id, known)}")


def device_of(caller: Caller, name: str) -> Device:
    """Devices are nobody's own: those with a role see them. Raises NotAllowed, NoSuchDevice."""
    caller.demand("read")
    found = Device.objects.filter(name=name).first()
    if found is None:
        known = Device.objects.order_by("name").values_list("name", flat=True)[:MAX_COMPARED]
        raise NoSuchDevice(f"there is no device {name[:SHOWN]}{did_you_mean(name, known)}")
    return found

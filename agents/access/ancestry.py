"""Whose child a session is: what a token starts stays bounded, ends with its parent, and is not the token's to approve.

A session keeps the key of the token that started it, also after that token is revoked, and the session that it was started
from. A token that was issued for a session starts children of that session; any other token may name a session that it
started itself as the parent. What a person starts has no parent and is bounded by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from django.db.models import Q, QuerySet

from agents.access import lineage
from agents.errors import AgentsError
from agents.machines import ACTOR
from agents.models import Actor, Approval, InboxItem, Session, Token
from agents.streams import statements
from agents.streams.tables import Fields

DEPTH = 2
"""Sessions below the first of a line: a child and a grandchild."""
OPEN_OF_TOKEN = 256
"""Sessions that descend from one token and have a request that has not ended."""
OPEN_OF_PARENT = 16
"""The same of the children of one session."""
PARENT_CANCELLED = "parent cancelled"
"""Why a session ends whose parent was cancelled."""
CANCELS = ("cancel", "stop")
"""Commands that end what a session works on, and with it what was started from there."""
WAITS = ("queued", "running")
"""States of a request that has not ended."""
TOKEN = "token:"
"""Begins the name of an author that is a token."""
AUTHORS = 50
"""Tokens that have written one task; where there are more, no token decides about it."""


class NotYourChild(AgentsError):
    """The session may not be named as the parent."""

    code = "not_your_child"
    status = 403


class NotYourSession(AgentsError):
    """A token that was issued for a session works there, and below."""

    code = "not_your_session"
    status = 403


class TooDeep(AgentsError):
    """The parent is as deep as a session may be."""

    code = "too_deep"
    status = 409


class TooManyOpen(AgentsError):
    """As much is at work already as one token, or one session, may have started."""

    code = "too_many_open"
    status = 409


class ParentEnded(AgentsError):
    """A child would not end with its parent any more."""

    code = "parent_ended"
    status = 409


class OwnApproval(AgentsError):
    """Who has a part in what was asked for does not decide it."""

    code = "own_approval"
    status = 403


# What a token starts


def token_key_of(author: str) -> str:
    """The key of the token that the author is; empty for everybody else."""
    return author.removeprefix(TOKEN) if author.startswith(TOKEN) else ""


def refuse_outside(session: int, by: str) -> None:
    """Raise NotYourSession where a token of a session would ask, command or edit what does not descend from that one.

    Else what it starts there would be bounded by nobody, and would not end with its parent.
    """
    own = issued_for(token_key_of(by)) if token_key_of(by) else None
    line = [] if own is None else _line(session)
    if line and own not in [each.pk for each in line]:
        raise NotYourSession(
            f"this token was issued for session {own}, and works only there and in what was started from there, not in "
            f"session {session}; use another token, or start a session of its own for it"
        )


@contextmanager
def new_ancestry(by: str, parent: int | None, beside: Iterable[int] = ()) -> Iterator[Fields]:
    """The ancestry of a session that `by` is about to create: {"token_key", "parent_id", "depth"}; for a person all empty.

    A transaction, in which the parent cannot end and nobody else counts the token's sessions. `beside` are streams that the
    caller is going to lock: all are locked here, in order of their ids, so that two callers never wait for each other. Raises
    NotYourChild, TooDeep, ParentEnded.
    """
    key = token_key_of(by)
    with statements.write_transaction():
        token = Token.objects.filter(token_key=key).first() if key else None
        parent = _parent_of(token, parent)
        _hold_tokens({key, *_keys([] if parent is None else _line(parent))})
        _hold_streams([*beside, *([] if parent is None else [parent])])
        depth = 0 if parent is None else _depth_below(parent)
        yield {"token_key": key, "parent_id": parent, "depth": depth}


def _parent_of(token: Token | None, wanted: int | None) -> int | None:
    """The session that the new one is a child of."""
    if token is not None and token.session_id is not None:
        if wanted not in (None, token.session_id):
            raise NotYourChild(
                f"this token was issued for session {token.session_id}, and what it starts is a child of that one; "
                f"leave parent out"
            )
        return token.session_id
    if wanted is None:
        return None
    if token is None or not Session.objects.filter(pk=wanted, token_key=token.token_key).exists():
        raise NotYourChild(
            f"session {wanted} cannot be the parent: a token names a session that it started itself, or leaves parent out"
        )
    return wanted


def _depth_below(parent: int) -> int:
    """The depth of a child of `parent`, whose stream is locked."""
    depth = Session.objects.values_list("depth", flat=True).get(pk=parent) + 1
    if depth > DEPTH:
        raise TooDeep(
            f"session {parent} is {DEPTH} deep already, so nothing can be started below it; do the work in that session"
        )
    _check_goes_on(parent)
    return depth


def _check_goes_on(session: int) -> None:
    """Raise ParentEnded where the session, whose stream is locked, would not end what is started from it now."""
    told_to_end = InboxItem.objects.filter(session_id=session, kind__in=CANCELS, state__in=WAITS)
    if told_to_end.exists() or has_ended(session):
        raise ParentEnded(f"session {session} has ended or is being cancelled, so nothing can be started from it")


def has_ended(session: int) -> bool:
    """Whether the session's latest actor has ended, and no request waits that would start another."""
    latest = Actor.objects.filter(session_id=session).order_by("-epoch").values_list("state", flat=True).first()
    return latest is not None and ACTOR.is_terminal(latest) and not _waiting_in(session).exists()


def _waiting_in(session: int) -> QuerySet[InboxItem]:
    return InboxItem.objects.filter(session_id=session, kind="interaction", state__in=WAITS)


@contextmanager
def room_for_request(session: int, by: str) -> Iterator[Callable[[], None]]:
    """A transaction in which nobody else counts; the function that it gives raises TooManyOpen where there is no room.

    Only what a token asks of a session that a token started is counted, and a session that is at work already counts once.
    Where the token was issued for a session that ends, the function raises ParentEnded.
    """
    line, own = (_line(session), issued_for(token_key_of(by))) if token_key_of(by) else ([], None)
    if not line or not (line[0].token_key or line[0].parent_id or own):
        yield lambda: None
        return
    keys = _keys(line)
    with statements.write_transaction():
        _hold_tokens(keys)
        _hold_streams(each for each in (line[0].parent_id, own) if each is not None)
        yield partial(_check_room, line[0], keys, own)


def _check_room(session: Session, keys: Iterable[str], own: int | None) -> None:
    if own is not None:
        _check_goes_on(own)
    if _waiting_in(session.pk).exists():
        return
    children = InboxItem.objects.filter(session__parent=session.parent_id) if session.parent_id is not None else None
    if children is not None and _at_work(children) >= OPEN_OF_PARENT:
        raise TooManyOpen(
            f"{OPEN_OF_PARENT} sessions that were started from session {session.parent_id} are at work, which is as many as "
            f"may be; wait until one of them ends, or cancel one"
        )
    for key in keys:
        if _at_work(InboxItem.objects.filter(_descends_from(key))) >= OPEN_OF_TOKEN:
            raise TooManyOpen(
                f"{OPEN_OF_TOKEN} sessions that descend from token {key} are at work, which is as many as may be; wait until "
                f"one of them ends, or cancel one"
            )


def _at_work(items: QuerySet[InboxItem]) -> int:
    """How many sessions have a request among these that has not ended."""
    found = items.filter(kind="interaction", state__in=WAITS)
    return found.order_by().values("session_id").distinct().count()


def _descends_from(key: str) -> Q:
    """Requests in sessions that the token started, or that were started from one of these."""
    places = ("session", "session__parent", "session__parent__parent")
    conditions = [Q(**{f"{place}__token_key": key}) for place in places]
    return conditions[0] | conditions[1] | conditions[2]


def _hold_tokens(keys: Iterable[str]) -> None:
    """Until the transaction ends nobody else counts what they started. One that was revoked starts nothing any more."""
    wanted = [key for key in keys if key]
    if wanted:
        list(Token.objects.filter(token_key__in=wanted).order_by("pk").select_for_update().values_list("pk"))


def _hold_streams(streams: Iterable[int]) -> None:
    wanted = sorted(set(streams))
    if wanted:
        statements.current_store().lock(statements.raw_cursor(), wanted, wait=True)


# What ends with its parent


def live_descendants(session: int) -> list[int]:
    """Sessions below this one in which somebody works or is about to, by their ids: a child is always younger."""
    below = Session.objects.filter(Q(parent=session) | Q(parent__parent=session)).order_by("pk")
    lives = Q(pk__in=Actor.objects.exclude(state__in=sorted(ACTOR.terminal)).values("session_id"))
    waits = Q(pk__in=InboxItem.objects.filter(kind="interaction", state__in=WAITS).values("session_id"))
    return list(below.filter(lives | waits).values_list("pk", flat=True))


def queued_from_within(session: int) -> list[InboxItem]:
    """Requests that wait in the session and were sent with a token of it, or of what descends from it."""
    waiting = InboxItem.objects.filter(session=session, kind="interaction", state="queued", by__startswith=TOKEN).order_by("pk")
    places = {by: issued_for(token_key_of(by)) for by in waiting.values_list("by", flat=True)}
    within = {by for by, own in places.items() if own is not None and session in [each.pk for each in _line(own)]}
    return list(waiting.filter(by__in=within))


# What a token does not decide

Part = tuple[str, str]
"""An author, and in words what is that author's."""
_AUTHORS: dict[str, Callable[[int], Iterable[Part]]] = {}


def register_authors(kinds: Iterable[str], parts_of: Callable[[int], Iterable[Part]]) -> None:
    """Let approvals of these kinds count as asked for by the authors of their subject too, of whom there may be many.

    Agents know nothing of graphs: `constellations` registers who wrote a task.
    """
    _AUTHORS.update(dict.fromkeys(kinds, parts_of))


def refuse_own_approval(row: Approval, by: str) -> None:
    """Raise OwnApproval where the author is a token with a part in what was asked for.

    A part has a token of a user if any token of the same user started the work in which it was asked, or something that this
    work descends from, or proposed the edit, or is an author of what was asked about (`register_authors`), or was issued for a
    session that descends from such work: whoever has one token may make, or hold, the others. A token has one, too, that was
    issued for a session of the same family. People at a login decide everything that they see, and a call-back is nobody's
    decision: whoever is outside brings it.
    """
    key = token_key_of(by)
    if not key or row.kind == "callback":
        return
    hand = UserTokens(key)
    part = hand.part_in(row.session_id, row.asked_at, began=row.kind != "edit")
    if not part and row.kind == "edit":
        part = hand.part_of_author(str(row.action.get("author", "")))
    elif not part:
        parts_of = _AUTHORS.get(row.kind)
        part = hand.part_of_writers([] if parts_of is None else list(parts_of(row.subject_id)))
    if part:
        asked = part.rstrip(",")
        raise OwnApproval(f"approval {row.pk} was asked for {asked}; a person decides it, or a token that has no part in it")


def refuse_own_review(session: int, moment: datetime, by: str) -> None:
    """Raise OwnApproval where the author is a token with a part in what the session planned at that moment: it does not end the
    review of its own work. People at a login do."""
    if (key := token_key_of(by)) and (part := UserTokens(key).part_in(session, moment)):
        told = part.rstrip(",")
        raise OwnApproval(f"what is under review was planned {told}; a person starts it, or a token that has no part in it")


def refuse_ended(by: str) -> None:
    """Raise TokenEnded where the author is a token that was good when its request came, and is no more."""
    if key := token_key_of(by):
        lineage.good_token(key)


class UserTokens:
    """A token and all others of its user: what one of them asked for, none of them decides."""

    def __init__(self, key: str):
        self.key, self.user = key, lineage.token_owner(key)

    def part_in(self, session: int, moment: datetime, *, began: bool = True) -> str:
        """Its part in what the session did at that moment, in words; empty where it has none.

        Not `began`: who asked for the work does not count, only who started the session, or one above it.
        """
        line = _line(session)
        own = Token.objects.filter(token_key=self.key).values_list("session_id", flat=True).first()
        if own is not None and _line(own)[-1].pk == line[-1].pk:
            return f"in session {session}, and this token was issued for session {own} of the same family"
        for each in line:
            if each.token_key and self.holds(each.token_key):
                where = "" if each.pk == session else f", which descends from session {each.pk},"
                return f"in session {session}{where} that {self.name(each.token_key)} started"
        for each in line if began else ():
            # A session works on one request after the other: the last one that it began until then.
            begun = InboxItem.objects.filter(session_id=each.pk, kind="interaction", started_at__lte=moment)
            asker = token_key_of(begun.order_by("-started_at", "-pk").values_list("by", flat=True).first() or "")
            if asker and self.holds(asker):
                return f"by work in session {each.pk} that {self.name(asker)} started"
            moment = each.created_at
        return ""

    def part_of_author(self, author: str) -> str:
        """The same of the author of a proposal. One whose token was revoked answers to nobody, so a person decides about it."""
        proposer = token_key_of(author)
        if not proposer:
            return ""
        if not Token.objects.filter(token_key=proposer).exists():
            return f"by token {proposer}, which has been revoked"
        return f"by {self.name(proposer)}" if self.is_behind(proposer) else ""

    def part_of_writers(self, parts: Sequence[Part]) -> str:
        """The same of those who wrote what was asked about."""
        if len(parts) > AUTHORS:
            return f"about what more than {AUTHORS} tokens have written"
        return next((f"by {words}" for author, words in parts if self.is_behind(token_key_of(author))), "")

    def is_behind(self, key: str) -> bool:
        """Whether it holds a token, or the tokens that started the session for which that one was issued, or one above it."""
        within = issued_for(key)
        return any(map(self.holds, [key, *([] if within is None else _keys(_line(within)))]))

    def holds(self, key: str) -> bool:
        """Whether a token is of the same user; of one that nobody knows any more nobody can say that it is not."""
        return key == self.key or lineage.token_owner(key) in (None, self.user)

    def name(self, key: str) -> str:
        if key == self.key:
            return "this token"
        return (
            f"token {key}, {'of which nobody knows whose it was' if lineage.token_owner(key) is None else 'of the same user'},"
        )


def issued_for(key: str) -> int | None:
    """The session for which the token was issued, also when it has been revoked since."""
    for session in Token.objects.filter(token_key=key).values_list("session_id", flat=True):
        return session
    created = lineage.find_creation(key)
    return None if created is None else created.data.get("session_id")


def _keys(line: Iterable[Session]) -> list[str]:
    """Of the tokens that started these sessions."""
    return sorted({session.token_key for session in line if session.token_key})


def _line(session: int) -> list[Session]:
    """The session, the one it was started from, and so on up to the first; nothing where there is no such session."""
    line = list(Session.objects.select_related("parent__parent").filter(pk=session))
    if not line:
        return []
    while (above := line[-1].parent) is not None:
        line.append(above)
    return line

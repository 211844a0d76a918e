"""The actor's part of a session: spawning, commands, the order of interactions, inactivity (docs/machines.md, "1. Actor")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings

from agents.clock import from_iso
from agents.engine.drives.known import Known
from agents.engine.drives.work import InHand, OwnedSession, Work, registered_handler
from agents.machines import ACTOR
from agents.streams.row_types import ActorRow, InboxRow
from agents.streams.tables import Fields
from agents.streams.turn import Turn

DECISIONS_A_TURN = 64


class ActorPart:
    """Decides everything about the live actor of one session: what is `known` of it, and what it has in hand."""

    def __init__(self, session: OwnedSession, known: Known, hand: InHand):
        self._session, self._known, self._hand = session, known, hand

    def row(self) -> ActorRow | None:
        """The live actor's row, if there is one."""
        rows: Iterable[ActorRow] = self._known.rows.get("actor", {}).values()
        return next((row for row in rows if not ACTOR.is_terminal(row["state"])), None)

    def decide(self, turn: Turn, now: float, fault: str) -> bool:
        """One turn: commands first, then the order of interactions, then the work itself. `fault`: what broke here."""
        if fault:
            self._fault(turn, fault)
        for item in self._known.inbox("queued"):
            if item["kind"] == "interaction":
                continue
            if (command := COMMANDS.get(item["kind"])) is not None:
                command(self, turn, item)
            else:  # a command of an older version
                self._set_inbox(turn, "command_done", item, state="refused", outcome="failed", ended_at=turn.at)
        self._dispatch(turn)
        more = self._work(turn, now)
        self._inactivity(turn, now)
        return more

    def _fault(self, turn: Turn, reason: str) -> None:
        """The actor itself is broken: it ends in Error, and what it worked on, or was about to, with it."""
        queued = self._known.inbox("queued")
        actor = self.row() or (self._spawn(turn) if queued else None)
        held, asked = self._held_from(actor), self._queued()
        interaction = self._known.interaction() or (asked[0] if asked and not held else None)
        partial = self._partial()
        if self._hand.work is not None:
            self._hand.work.end(turn, "the agent broke")
        if interaction is not None:
            self._end_interaction(turn, interaction, "failed", reason)
        for item in queued + self._known.inbox("running"):
            if item["kind"] != "interaction":
                self._set_inbox(turn, "command_done", item, state="refused", outcome="failed", ended_at=turn.at)
        if actor is not None:
            paused_for = actor["reason"]
            if actor["state"] == "running":  # while it works it ends with its interaction; else the fault is its own
                self._move(turn, actor, "InteractionComplete", {"success": False}, reason=reason[:500], pausing=False)
            else:
                self._move(turn, actor, "Fault", reason=reason[:500], pausing=False)
            turn.record("stopped", reason=reason, partial_response=partial, terminal=True)
            if held and self._queued():  # what a pause holds stays held, whatever becomes of the actor that held it
                self._move(turn, self._spawn(turn), "Pause", reason=paused_for, held_from=held)

    def _end_interaction(self, turn: Turn, item: InboxRow, outcome: str, reason: str) -> None:
        self._set_inbox(
            turn, "interaction_ended", item, state="done", outcome=outcome, result={"summary": reason}, ended_at=turn.at
        )

    # --- interactions

    def wants_preparation(self) -> InboxRow | None:
        """The interaction to be prepared (in a thread) before a turn can begin it."""
        if self._hand.work is not None:
            item = self._hand.work.interaction
            return item if self._hand.work.begins() and item["id"] not in self._hand.prepared else None
        queued = self._queued()
        if not queued or self._is_held(queued):
            return None
        return queued[0] if queued[0]["id"] not in self._hand.prepared else None

    def _queued(self) -> list[InboxRow]:
        """The interactions that wait, oldest first."""
        return [item for item in self._known.inbox("queued") if item["kind"] == "interaction"]

    def _held_from(self, actor: ActorRow | None) -> int:
        """The request of the pause that holds back what was asked before it; 0 while none does."""
        if actor is None or not (actor["pausing"] or actor["state"] == "paused"):
            return 0
        pauses = [item["id"] for item in self._known.inbox("running") if item["kind"] == "pause"]
        return max([actor["held_from"], *pauses])

    def _is_held(self, queued: list[InboxRow]) -> bool:
        """Whether the actor is paused and everything that waits was asked before that. Row ids grow in the order of asking."""
        actor = self.row()
        return actor is not None and actor["state"] == "paused" and queued[-1]["id"] < self._held_from(actor)

    def _dispatch(self, turn: Turn) -> None:
        """Take up the oldest interaction that waits: spawn an actor where there is none, wake a paused one, begin when idle."""
        actor, queued = self.row(), self._queued()
        if not queued or self._is_held(queued):
            return
        if actor is None:
            actor = self._spawn(turn)
        if actor["state"] == "paused":
            self._move(turn, actor, "ProcessInteraction", reason="a new interaction", held_from=0)
            if (work := self._open_work()) is not None:
                self._move(turn, actor, "ProcessInteraction", reason="work left over")
                work.resume(turn)
        if actor["state"] == "idle" and self._hand.work is None and queued[0]["id"] in self._hand.prepared:
            item = queued[0]
            self._move(turn, actor, "ProcessInteraction")
            self._set_inbox(turn, "interaction_started", item, state="running", started_at=turn.at)
            self._hand.work = registered_handler().open(self._session, item)
            self._hand.work.begin(turn, *self._hand.prepared.pop(item["id"]))

    def _spawn(self, turn: Turn) -> ActorRow:
        """A fresh incarnation; what ended stays in the session's history."""
        epoch = max((row["epoch"] for row in self._known.rows["actor"].values()), default=0) + 1
        row: ActorRow = {
            "id": turn.take(), "session_id": self._session.stream, "epoch": epoch, "state": ACTOR.initial, "reason": "",
            "pausing": False, "held_from": 0, "created_at": turn.at, "entered_at": turn.at, "active_at": turn.at,
        }  # fmt: skip
        self._known.rows["actor"] = {str(row["id"]): row}
        turn.record("actor_created", add={"actor": [dict(row)]})
        self._move(turn, row, "Spawned")
        return row

    def _work(self, turn: Turn, now: float) -> bool:
        actor, work = self.row(), self._hand.work
        if work is None or actor is None or actor["state"] != "running":
            return False
        if actor["pausing"]:
            return self._pausing(turn, actor)
        prepared = self._hand.prepared.pop(work.interaction["id"], None) if work.begins() else None
        if prepared is not None:
            work.begin(turn, *prepared)
        more = work.decide(turn, now, DECISIONS_A_TURN)
        if work.finished:
            self._finish(turn, actor)
        return more

    def _finish(self, turn: Turn, actor: ActorRow) -> None:
        work = self._hand.work
        assert work is not None
        outcome, result = work.answer()
        self._set_inbox(
            turn, "interaction_ended", work.interaction, state="done", outcome=outcome, result=result, ended_at=turn.at
        )
        self._move(turn, actor, "InteractionComplete", {"success": True}, reason=outcome)

    def settled(self) -> None:
        """What the last turn decided is durable: work that has finished is let go."""
        if self._hand.work is not None and self._hand.work.interaction["state"] == "done":
            self._hand.work = None
            self._session.outcomes.clear()
        self._known.rows["inbox"] = {
            key: row for key, row in self._known.rows["inbox"].items() if row["state"] in ("queued", "running")
        }

    # --- commands

    def _commanded(self, turn: Turn, item: InboxRow) -> ActorRow | None:
        """The actor that a command is for: the live one, else the one that an earlier request waits for."""
        actor = self.row()
        if actor is None and any(asked["id"] < item["id"] for asked in self._queued()):
            return self._spawn(turn)
        return actor

    def pause(self, turn: Turn, item: InboxRow) -> None:
        actor = self._commanded(turn, item)
        if actor is None:
            self._done(turn, item, changed=False)
        elif actor["state"] == "paused":
            # What was asked since the first pause would have ended it: now it waits as well.
            newer = any(actor["held_from"] < asked["id"] < item["id"] for asked in self._queued())
            if newer:
                turn.record("actor_held", by=item["by"], set={"actor": {str(actor["id"]): {"held_from": item["id"]}}})
                actor["held_from"] = item["id"]
            self._done(turn, item, changed=newer)
        elif actor["state"] == "idle":
            self._move(turn, actor, "Pause", reason=_reason(item), by=item["by"], held_from=item["id"])
            self._done(turn, item)
        else:
            immediate = item["payload"].get("mode") == "immediate"
            turn.record("actor_pausing", by=item["by"], set={"actor": {str(actor["id"]): {"pausing": True}}})
            actor["pausing"] = True
            self._set_inbox(turn, "command_started", item, state="running", started_at=turn.at)
            if immediate and self._hand.work is not None:
                self._tell_cut_off(turn, item, _reason(item) or "paused", self._partial())
                for key in self._hand.work.running():
                    self._session.interrupt(key)

    def _pausing(self, turn: Turn, actor: ActorRow) -> bool:
        """A cooperative pause: what runs ends, nothing new starts, then the actor is paused."""
        assert self._hand.work is not None
        if not self._hand.work.pause(turn):
            return False
        items = [item for item in self._known.inbox("running") if item["kind"] == "pause"]
        first = items[0] if items else None
        reason, by = (_reason(first), first["by"]) if first else ("", "")
        self._move(turn, actor, "Pause", reason=reason, by=by, pausing=False, held_from=self._held_from(actor))
        for item in items:
            self._done(turn, item, changed=item is first)
        return False

    def resume(self, turn: Turn, item: InboxRow) -> None:
        actor = self.row()
        if actor is not None and actor["state"] == "paused":
            self._move(turn, actor, "Resume", reason=_reason(item), by=item["by"], held_from=0)
            if (work := self._open_work()) is not None:
                self._move(turn, actor, "ProcessInteraction", reason="work left over")
                work.resume(turn)
            self._done(turn, item)
        elif actor is not None and actor["pausing"]:
            turn.record("actor_resumed", by=item["by"], set={"actor": {str(actor["id"]): {"pausing": False}}})
            actor["pausing"] = False
            for waiting in self._known.inbox("running"):
                if waiting["kind"] == "pause":
                    self._done(turn, waiting, changed=False)
            self._done(turn, item)
        else:
            self._done(turn, item, changed=False)

    def cancel(self, turn: Turn, item: InboxRow) -> None:
        """End the actor and everything it works on; what is queued behind it is cancelled with it."""
        actor, reason = self._commanded(turn, item), _reason(item) or "user_cancelled"
        if actor is None:
            self._done(turn, item, changed=False)
            return
        work, partial = self._open_work(), self._partial()
        if work is not None:
            work.end(turn, reason)
            self._end_interaction(turn, work.interaction, "cancelled", reason)
        for waiting in self._known.inbox("queued") + self._known.inbox("running"):
            if waiting is not item and waiting["id"] < item["id"]:
                self._set_inbox(turn, "command_done", waiting, state="refused", outcome="cancelled", ended_at=turn.at)
        self._move(turn, actor, "Cancel", reason=reason, by=item["by"], pausing=False)
        turn.record("stopped", by=item["by"], reason=reason, partial_response=partial, terminal=True)
        self._done(turn, item)

    def ping(self, turn: Turn, item: InboxRow) -> None:
        """Changes no state; inactivity is counted anew."""
        actor = self.row()
        if actor is not None:
            turn.record("actor_pinged", by=item["by"], set={"actor": {str(actor["id"]): {"active_at": turn.at}}})
            actor["active_at"] = turn.at
        self._done(turn, item, changed=False)

    def go_on(self, turn: Turn, item: InboxRow) -> None:
        """A person's word that what looks like a loop is none."""
        work = self._hand.work
        self._done(turn, item, changed=work is not None and work.go_on(turn, item))

    def rule_on_loop(self, turn: Turn, item: InboxRow) -> None:
        """An arbiter's word on what looks like a loop."""
        work = self._hand.work
        self._done(turn, item, changed=work is not None and work.rule_on_loop(turn, item))

    def stop(self, turn: Turn, item: InboxRow) -> None:
        """End what is worked on, and the interaction with it; the actor lives on and takes the next."""
        actor, work = self.row(), self._work_meant(item)
        if actor is None or work is None:
            self._done(turn, item, changed=False)
            return
        reason = _reason(item) or "user_cancelled"
        self._tell_cut_off(turn, item, reason, self._partial())
        work.end(turn, reason)
        if actor["state"] == "running" and not actor["pausing"]:
            self._finish(turn, actor)
        else:  # a pause stays one
            self._end_interaction(turn, work.interaction, "cancelled", reason)
            if actor["pausing"]:
                self._pausing(turn, actor)
        self._done(turn, item)

    def restart(self, turn: Turn, item: InboxRow) -> None:
        """Begin the interaction in hand once more, from its request."""
        work, partial = self._work_meant(item), self._partial()
        begins_anew = work is not None and work.restart(turn, _reason(item))
        if begins_anew:
            self._tell_cut_off(turn, item, _reason(item) or "restarted", partial)
        self._done(turn, item, changed=begins_anew)

    def _partial(self) -> str:
        """What the calls under way have printed, to be kept by whoever cuts them off: asked before their ends are decided."""
        work = self._open_work()
        return "" if work is None else work.partial_response()

    def _tell_cut_off(self, turn: Turn, item: InboxRow, reason: str, partial: str) -> None:
        """The actor lives on, and what it was saying does not."""
        if partial:
            turn.record("stopped", by=item["by"], reason=reason, partial_response=partial, terminal=False)

    def cancel_task(self, turn: Turn, item: InboxRow) -> None:
        """End one task of what is worked on; everything else goes on."""
        work = self._work_meant(item)
        self._done(turn, item, changed=work is not None and work.cancel_task(turn, item))

    def _open_work(self) -> Work | None:
        """The work in hand, unless an earlier command of the same turn has ended it."""
        work = self._hand.work
        return None if work is None or work.finished else work

    def _work_meant(self, item: InboxRow) -> Work | None:
        """The work in hand, if it is what the command is about."""
        work = self._open_work()
        return work if work is not None and work.subject == item["payload"].get("subject") else None

    def shutdown(self, turn: Turn, item: InboxRow) -> None:
        """Changes no state: the lease goes back at the next step boundary and another runner goes on."""
        self._done(turn, item, changed=False)
        self._session.draining = True

    def _done(self, turn: Turn, item: InboxRow, changed: bool = True) -> None:
        self._set_inbox(turn, "command_done", item, state="done", result={"changed": changed}, ended_at=turn.at)

    # --- time

    def _inactivity(self, turn: Turn, now: float) -> None:
        actor = self.row()
        limit = None if actor is None else self._limit(actor)
        if actor is not None and limit is not None and now >= limit:
            if (work := self._open_work()) is not None:  # of a paused actor
                work.end(turn, "inactivity")
                self._end_interaction(turn, work.interaction, "cancelled", "inactivity")
            for held in self._queued():
                self._end_interaction(turn, held, "cancelled", "inactivity")
            self._move(turn, actor, "InactivityTimeout", reason="inactivity")
            turn.record("stopped", reason="inactivity", partial_response="", terminal=True)

    def _limit(self, actor: ActorRow) -> float | None:
        after = {"idle": settings.IDLE_S, "paused": settings.PAUSED_S}.get(actor["state"])
        if after is None or (actor["state"] == "idle" and self._known.inbox("queued")):
            return None
        return max(from_iso(actor["active_at"]), from_iso(actor["entered_at"])) + after

    def is_working(self) -> bool:
        """Whether the work in hand goes on: it keeps no time while the actor is paused, or about to be."""
        actor = self.row()
        return actor is not None and actor["state"] == "running" and not actor["pausing"]

    def wake_at(self) -> float | None:
        actor = self.row()
        return None if actor is None else self._limit(actor)

    # --- records

    def _move(
        self, turn: Turn, actor: ActorRow, event: str, facts: Fields | None = None, reason: str = "", by: str = "",
        **fields: Any,
    ) -> None:  # fmt: skip
        turn.transition(ACTOR, "actor", actor, event, facts, reason, by=by, active_at=turn.at, **fields)

    def _set_inbox(self, turn: Turn, event: str, item: InboxRow, **fields: Any) -> None:
        turn.record(event, by=item["by"] if event != "interaction_ended" else "", set={"inbox": {str(item["id"]): fields}})
        item.update(fields)  # type: ignore[typeddict-item]


COMMANDS: dict[str, Callable[[ActorPart, Turn, InboxRow], None]] = {
    "pause": ActorPart.pause,
    "resume": ActorPart.resume,
    "cancel": ActorPart.cancel,
    "ping": ActorPart.ping,
    "shutdown": ActorPart.shutdown,
    "go_on": ActorPart.go_on,
    "ruling": ActorPart.rule_on_loop,
    "stop": ActorPart.stop,
    "restart": ActorPart.restart,
    "cancel_task": ActorPart.cancel_task,
}


def _reason(item: InboxRow) -> str:
    return str(item["payload"].get("reason", ""))[:500]

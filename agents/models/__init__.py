"""Rows of those who act. Every table that takes part in the fold says so in `agents.streams.door`."""

from agents.models.access import Token
from agents.models.devices import Device, Output, SlotRequest
from agents.models.loops import Approval, Evidence, Loop, PhaseRecord, Policy
from agents.models.runners import Lease, Runner
from agents.models.sessions import Actor, Agent, InboxItem, Session
from agents.models.streams import Event, Stream, Transition

__all__ = [
    "Actor", "Agent", "Approval", "Device", "Event", "Evidence", "InboxItem", "Lease", "Loop", "Output", "PhaseRecord",
    "Policy", "Runner", "Session", "SlotRequest", "Stream", "Token", "Transition",
]  # fmt: skip

"""Rows of those who act. Every table that takes part in the fold says so in `agents.records`."""

from agents.models.access import Token
from agents.models.acting import Actor, Agent, InboxItem, Session
from agents.models.devices import Device, Output, SlotRequest
from agents.models.engine import Lease, Runner
from agents.models.streams import Event, Stream, Transition
from agents.models.working import Approval, Evidence, Loop, PhaseRecord, Policy

__all__ = [
    "Actor", "Agent", "Approval", "Device", "Event", "Evidence", "InboxItem", "Lease", "Loop", "Output", "PhaseRecord",
    "Policy", "Runner", "Session", "SlotRequest", "Stream", "Token", "Transition",
]  # fmt: skip

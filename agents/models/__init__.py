"""Rows of those who act. Every table that takes part in the fold says so in `agents.records`."""

from agents.models.access import Token
from agents.models.acting import Actor, Agent, InboxItem, PhaseRecord, Session
from agents.models.devices import Device, Output, SlotRequest
from agents.models.engine import Lease, Runner
from agents.models.streams import Event, Stream, Transition

__all__ = [
    "Actor", "Agent", "Device", "Event", "InboxItem", "Lease", "Output", "PhaseRecord", "Runner",
    "Session", "SlotRequest", "Stream", "Token", "Transition",
]  # fmt: skip

"""Rows of those who act. Every table that takes part in the fold is registered in `agents.apps`.

May import: machines, ids.
Begin at: agents.models.sessions (who works and what is asked), agents.models.loops (how agents work), agents.models.streams
    (events).
Called by: every room of agents that reads or writes rows, and constellations.
"""

from agents.models.access import Token
from agents.models.artifacts import Artifact, StoredContent
from agents.models.budgets import Budget, Reservation, Spending
from agents.models.devices import (
    Device,
    DeviceCall,
    DeviceCallMessage,
    DeviceLink,
    DeviceReading,
    DeviceToken,
    Output,
    SlotRequest,
)
from agents.models.loops import Approval, Evidence, Loop, PhaseRecord, Policy
from agents.models.model_calls import ModelCall, ModelDelta, Prompt
from agents.models.model_profiles import ModelProfile
from agents.models.runners import Lease, Runner
from agents.models.sessions import Actor, Agent, InboxItem, Session
from agents.models.streams import Event, Stream, Transition

__all__ = [
    "Actor", "Agent", "Approval", "Artifact", "Budget", "Device", "DeviceCall", "DeviceCallMessage", "DeviceLink",
    "DeviceReading", "DeviceToken", "Event", "Evidence", "InboxItem", "Lease", "Loop", "ModelCall", "ModelDelta",
    "ModelProfile", "Output", "PhaseRecord", "Policy", "Prompt", "Reservation", "Runner", "Session", "SlotRequest",
    "Spending", "StoredContent", "Stream", "Token", "Transition",
]  # fmt: skip

"""Devices: what carries out a task's command. No Django here: settings come as arguments.

`local` runs commands on this host, `limits` holds them to what they may use, `processes` knows what runs for which attempt.
"""

from agents.devices.limits import Limits
from agents.devices.local import DEFAULT_PATH, CommandOutcome, run_command
from agents.devices.processes import end_attempts, is_same_process, process_start

__all__ = ["DEFAULT_PATH", "CommandOutcome", "Limits", "end_attempts", "is_same_process", "process_start", "run_command"]

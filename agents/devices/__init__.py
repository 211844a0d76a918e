"""What carries out a task's command on this host. Settings come as arguments.

May import: models, masks, per_loop, faults, clock, progress, errors.
Begin at: agents.devices.local (runs a command), agents.devices.confinement (its walls), agents.devices.limits (what it may
    use).
Called by: agents.tools, and the engine for what a dead runner left.

profiles/     what a device is called, offers and may use
workspace/    its files, and where paths lead
"""

from agents.devices.limits import CommandLimits
from agents.devices.local import DEFAULT_PATH, CommandOutcome, run_command
from agents.devices.processes import end_attempts, is_same_process, process_start

__all__ = ["DEFAULT_PATH", "CommandLimits", "CommandOutcome", "end_attempts", "is_same_process", "process_start", "run_command"]

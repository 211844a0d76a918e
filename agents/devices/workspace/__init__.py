"""A device's workspace: its files, and where paths lead in it. None leads out of it.

May import: progress, faults, errors.
Begin at: agents.devices.workspace.files (read, written and edited), agents.devices.workspace.places (where paths lead),
    agents.devices.workspace.paths (paths as they are judged).
Called by: agents.tools for files, agents.gates for paths.
"""

"""What a device that dials in and the server say to each other: typed, versioned messages, as JSON in frames. Pure.

May import: nothing of the other rooms.
Begin at: agents.devices.protocol.messages (every message), agents.devices.protocol.fields (what a field may hold),
    agents.devices.protocol.frames (messages in pieces).
Called by: agents.devices.client and agents.api.device_link; project.device_docs writes docs/device-protocol.md from it.
"""

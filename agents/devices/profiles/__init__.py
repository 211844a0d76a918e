"""What a device is called, offers and may use: its profile, looked at before it is written. No Django but its row.

May import: models, errors.
Begin at: agents.devices.profiles.profile (what is refused), agents.devices.profiles.ceilings (how far limits are raised),
    agents.devices.profiles.recipes (named commands).
Called by: agents.services and agents.api for devices; plans read recipes and names.
"""

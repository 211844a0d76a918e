"""What runs on a machine that dials in: keeps a connection to the server and carries out its calls. It knows no Django.

May import: progress, faults, errors.
Begin at: agents.devices.client.main (its command line), agents.devices.client.link (the connection, made again and again),
    agents.devices.client.calls (what runs, and what of it the server has not stored yet).
Called by: people, as `python -m agents.devices.client`, `manage.py device` or the one file that `make device` builds.
"""

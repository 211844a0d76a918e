"""`manage.py up`: keeps the web server and the clusters running, and ends them for certain.

May import: agents, private_files.
Begin at: project.up.supervisor (starts and ends), project.up.watchdog (knows what hangs), project.up.processes (who belongs
    to it).
Called by: `manage.py up` and `manage.py demo`.
"""

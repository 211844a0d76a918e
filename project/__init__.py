"""Where all comes together: settings, addresses, the ASGI application, and the commands `up` and `demo`.

May import: frontend, constellations, agents.
Begin at: project.settings (every variable), project.asgi (every request), project.urls (every address).
Called by: manage.py, the web server and the clusters.
"""

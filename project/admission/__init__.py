"""What every request meets before anything reads it: bounds of size and time, and how many wrong tokens may be tried.

May import: frontend, constellations, agents.
Begin at: project.admission.requests.Admission (around every request), project.admission.requests (its bounds),
    project.admission.token_attempts.TokenAttempts (wrong tokens of an address).
Called by: project.asgi and project.web_server.
"""

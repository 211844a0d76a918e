"""What a session's models and tools said, as a file, and the same run once more from it: nothing is started and nobody asked.

A replay runs the real engine in an installation that is thrown away. One seam is exchanged: the body of every call gives what
the recording has for it. Compared is what agents decided, for each agent and task on its own.

May import: agents, constellations.
Begin at: project.replay.recording (the file), project.replay.playing (the run), project.replay.comparing (what differs).
Called by: `manage.py model_record` and `manage.py replay`.
"""

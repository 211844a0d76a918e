"""One agent of a crew: what it was given, its rows, where it stands, and the records of its phases.

May import: gates, streams, machines, progress, ids, errors.
Begin at: agents.crews.members.member (the agent), agents.crews.members.assignment (what all agents of an attempt are given),
    agents.crews.members.phases (records of phases).
Called by: the other modules of agents.crews, and constellations.runs, which makes assignments.
"""

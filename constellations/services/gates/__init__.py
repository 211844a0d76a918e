"""Gates in edits: what an edit would let be done with less leave, and who may let that happen.

May import: agents, reads, live, models, editor, limits, plan, machines, analysis, errors.
Begin at: constellations.services.gates.keeping.weigh_gates (the check of an edit), constellations.services.gates.keeping
    (who may), constellations.services.gates.openings (what an edit would open).
Called by: services for edits, previews, proposals and retries; runs for forks and reopenings.
"""

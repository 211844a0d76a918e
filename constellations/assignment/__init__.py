"""Which device a ready task gets: what it wishes for, who may use what, and the strategy that chooses. Pure.

May import: plan.
Begin at: constellations.assignment.wishes (which devices come into question), constellations.assignment.strategies (which of
    them is taken), constellations.assignment.candidates (what a strategy is told).
Called by: runs, which starts tasks; reads, which says why one does not start; services, which says what would move.
"""

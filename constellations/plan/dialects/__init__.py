"""Constellations in other words: documents of other programs become plans, and plans such documents. Pure.

May import: agents, conditions, graph, machines, errors.
Begin at: constellations.plan.dialects.reading (a document to a plan), constellations.plan.dialects.writing (a plan to a
    document), constellations.plan.dialects.recognition (which dialect it is).
Called by: constellations.services.imports, constellations.reads.exports and the commands that import and export.

`orrery` is our plan format; `seed` that of the documents this project grew from; `galaxy` that of UFO Galaxy. What a dialect
has no word for is carried in an object called `orrery`, which only we read.
"""

from constellations.plan.dialects.reading import ImportedEdit, ImportedPlan, read_constellation, read_edit
from constellations.plan.dialects.recognition import NAMES, ORRERY
from constellations.plan.dialects.writing import ToldStates, write_document

__all__ = ["NAMES", "ORRERY", "ImportedEdit", "ImportedPlan", "ToldStates", "read_constellation", "read_edit", "write_document"]

"""Constellations in other words: documents of other programs become plans, and plans such documents. Pure.

`orrery` is our plan format; `seed` that of the documents this project grew from; `galaxy` that of UFO Galaxy. What a dialect
has no word for is carried in an object called `orrery`, which only we read: what is written and read again is the same.
"""

from constellations.plan.dialects.reading import Imported, ImportedEdit, read, read_edit
from constellations.plan.dialects.recognition import NAMES, ORRERY
from constellations.plan.dialects.writing import States, write

__all__ = ["NAMES", "ORRERY", "Imported", "ImportedEdit", "States", "read", "read_edit", "write"]

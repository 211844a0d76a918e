"""The strategies by which tasks get devices, as plans name them. Pure."""

from __future__ import annotations

LEAST_LOADED, SPREAD, PACK = "least_loaded", "spread", "pack"
NAMES = (LEAST_LOADED, SPREAD, PACK)
"""Of the strategies (constellations.assignment.strategies) that plans may name."""

"""A layered drawing of a graph without cycles: layers from left to right, few crossings, lines beside boxes. Pure.

Longest path for the layers, sweeps by barycentre for the order within them. A line that passes layers has a place in each.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

SWEEPS = 6
"""Through all layers, forwards and backwards in turn; later ones change little."""
BENDS = 1_500
"""Places of lines that pass layers; where there would be more, such lines run behind the boxes."""
NARROW = 0.3
"""Room that a line takes in a layer, in units of a box's."""

Key = Hashable
Line = tuple[Key, Key]
Place = tuple[int, float]
"""A layer, and how far down in it, in units of a box."""


def place_layers(layers: Sequence[Sequence[Key]], lines: Sequence[Line]) -> tuple[dict[Key, Place], dict[Line, list[Place]]]:
    """Where every key is, and where every line passes on its way."""
    order = [list(layer) for layer in layers]
    level = {key: number for number, layer in enumerate(order) for key in layer}
    passed = {line: [(line, number) for number in range(level[line[0]] + 1, level[line[1]])] for line in lines}
    if sum(map(len, passed.values())) > BENDS:
        passed = {line: [] for line in lines}
    for bends in passed.values():
        for bend in bends:
            order[bend[1]].append(bend)
    links = [pair for line in lines for pair in pairwise([line[0], *passed[line], line[1]])]
    _untangle(order, links)
    at = _rows(order, set(level))
    return {key: at[key] for key in level}, {line: [at[bend] for bend in bends] for line, bends in passed.items()}


def _untangle(order: list[list[Key]], links: Sequence[Line]) -> None:
    """Sorts each layer, in place, so that few lines cross."""
    up: dict[Key, list[Key]] = {key: [] for layer in order for key in layer}
    down: dict[Key, list[Key]] = {key: [] for key in up}
    for upstream, downstream in links:
        down[upstream].append(downstream)
        up[downstream].append(upstream)
    row = {key: (number + 0.5) / len(layer) for layer in order for number, key in enumerate(layer)}

    def middle(key: Key) -> float:
        """Of what a key is linked to in the layer that was sorted before; where it is by now, if it is linked to nothing."""
        return sum(row[other] for other in linked[key]) / len(linked[key]) if linked[key] else row[key]

    for sweep in range(SWEEPS):
        # Down by what is above, then up by what is below.
        linked = up if sweep % 2 == 0 else down
        for layer in order[:: 1 if sweep % 2 == 0 else -1]:
            layer.sort(key=middle)
            row.update({key: (number + 0.5) / len(layer) for number, key in enumerate(layer)})


def _rows(order: Sequence[Sequence[Key]], boxes: set[Key]) -> dict[Key, Place]:
    """Each layer from top to bottom, centred on the tallest one."""
    sizes = [[1.0 if key in boxes else NARROW for key in layer] for layer in order]
    tallest = max(map(sum, sizes), default=0.0)
    found: dict[Key, Place] = {}
    for number, (layer, heights) in enumerate(zip(order, sizes, strict=True)):
        top = (tallest - sum(heights)) / 2
        for key, height in zip(layer, heights, strict=True):
            found[key] = number, top + height / 2
            top += height
    return found

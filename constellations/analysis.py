"""The shape of a graph, by networkx: its layers, its longest and its heaviest path, a cycle. Pure.

This is for whoever looks at a graph: statistics, previews, drawings, errors. What the engine asks at every step is in
`constellations.graph`. networkx takes some time to import, so it is imported where it is first wanted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from networkx import DiGraph

Key = Hashable
Edge = tuple[Key, Key]

BEGINNING = object()
"""Stands before all tasks that wait for nothing, so that their own weight counts too."""


def build_digraph(keys: Iterable[Key], edges: Iterable[Edge]) -> DiGraph:
    """An edge (u, v) says that v waits for u."""
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(keys)
    graph.add_edges_from(edges)
    return graph


def task_layers(graph: DiGraph) -> list[list[Any]]:
    """Tasks by the longest path that leads to them: layer 0 waits for nothing."""
    import networkx

    return [list(layer) for layer in networkx.topological_generations(graph)]


def longest_path(graph: DiGraph, order: Sequence[Any] | None = None) -> list[Any]:
    """The longest chain of tasks, first to last. Whoever knows a topological order of the graph saves computing it."""
    import networkx

    return list(networkx.dag_longest_path(graph, weight=None, topo_order=order))


def heaviest_path(
    graph: DiGraph, weights: Mapping[Any, float], order: Sequence[Any] | None = None
) -> tuple[list[Any], float]:  # fmt: skip
    """The chain whose tasks weigh most together (seconds, say), first to last, and its weight.

    A task that is left out weighs 0; where nothing weighs anything there is no such chain.
    """
    import networkx

    if not any(weights.values()):
        return [], 0
    weighed = networkx.DiGraph()
    weighed.add_node(BEGINNING)
    weighed.add_nodes_from(graph)
    weighed.add_weighted_edges_from((BEGINNING, key, weights.get(key, 0)) for key, waits in graph.in_degree() if not waits)
    weighed.add_weighted_edges_from((upstream, downstream, weights.get(downstream, 0)) for upstream, downstream in graph.edges)
    path = networkx.dag_longest_path(weighed, topo_order=None if order is None else [BEGINNING, *order])[1:]
    return path, sum(weights.get(key, 0) for key in path)


def find_cycle(keys: Iterable[Key], edges: Iterable[Edge]) -> list[Key]:
    """A cycle as a path that ends where it begins; the graph has one. Each task on it waits for the one before."""
    import networkx

    found = networkx.find_cycle(build_digraph(keys, edges))
    return [found[0][0], *(downstream for _, downstream in found)]

"""The shape of a graph: by what layers, paths and cycles are, not by the library that computes them."""

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constellations.analysis import build_digraph, find_cycle, heaviest_path, longest_path, task_layers
from constellations.errors import CycleFound
from constellations.graph import Graph

KEYS = st.integers(0, 9)
EDGES = st.lists(st.tuples(KEYS, KEYS), max_size=30)
WEIGHTS = st.dictionaries(KEYS, st.integers(0, 9))
IMPORTED = "import sys; sys.path.insert(0, '.'); import constellations.{}; print('networkx' in sys.modules)"


def forward(edges: list) -> list:
    """The same without those that could close a cycle."""
    return [edge for edge in edges if edge[0] < edge[1]]


def paths_from(key: int, edges: list) -> list[list[int]]:
    """Every path there is, one by one."""
    below = sorted({downstream for upstream, downstream in edges if upstream == key})
    return [[key], *([key, *path] for other in below for path in paths_from(other, edges))]


def all_paths(edges: list) -> list[list[int]]:
    return [path for key in range(10) for path in paths_from(key, edges)]


def test_layers_are_the_longest_ways_from_a_start():
    assert task_layers(build_digraph("abcde", ["ab", "bc", "ac", "de"])) == [["a", "d"], ["b", "e"], ["c"]]
    assert task_layers(build_digraph("", [])) == []


def test_a_path_is_longest_by_tasks_and_heaviest_by_their_weights():
    graph = build_digraph("abcde", ["ab", "bc", "ad", "dc", "ce"])
    assert longest_path(graph) == ["a", "b", "c", "e"]
    assert heaviest_path(graph, {"a": 1, "b": 2, "d": 5.5, "c": 1, "e": 1}) == (["a", "d", "c", "e"], 8.5)
    assert heaviest_path(build_digraph("ab", []), {"b": 2.0}) == (["b"], 2.0)


def test_of_nothing_there_is_no_path():
    assert (longest_path(build_digraph("", [])), heaviest_path(build_digraph("ab", []), {})) == ([], ([], 0))


@given(EDGES)
def test_a_task_is_one_layer_below_the_lowest_that_it_waits_for(edges):
    edges = forward(edges)
    found = task_layers(build_digraph(range(10), edges))
    level = {key: number for number, layer in enumerate(found) for key in layer}
    assert sorted(level) == list(range(10))
    for key in range(10):
        assert level[key] == max((level[upstream] + 1 for upstream, downstream in edges if downstream == key), default=0)


@given(EDGES)
def test_no_path_is_longer_than_the_longest(edges):
    edges = forward(edges)
    path = longest_path(build_digraph(range(10), edges))
    assert path in all_paths(edges)
    assert len(path) == max(map(len, all_paths(edges))) == max(Graph.build(range(10), edges).remaining_path().values())


@given(EDGES, WEIGHTS)
def test_no_path_is_heavier_than_the_heaviest(edges, weights):
    edges = forward(edges)
    path, weight = heaviest_path(build_digraph(range(10), edges), weights)
    assert path in all_paths(edges) or not any(weights.values())
    assert weight == sum(weights.get(key, 0) for key in path)
    assert weight == max(sum(weights.get(key, 0) for key in other) for other in all_paths(edges))


@given(EDGES)
def test_a_graph_that_cannot_be_built_has_the_cycle_that_is_named(edges):
    try:
        Graph.build(range(10), edges)
    except CycleFound as refused:
        for path in (refused.path, find_cycle(range(10), edges)):
            assert path[0] == path[-1]
            assert len(path) == len(set(path)) + 1
            assert all(edge in edges for edge in pairwise(path))
    else:
        assert all(path.count(key) == 1 for path in all_paths(edges) for key in path)


@pytest.mark.parametrize("module", ["graph", "analysis"])
def test_networkx_is_not_imported_before_somebody_looks_at_a_graph(module):
    """A runner starts sooner, and needs less, without it."""
    done = subprocess.run([sys.executable, "-c", IMPORTED.format(module)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

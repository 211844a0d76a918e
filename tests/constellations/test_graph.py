"""The graph against networkx as the oracle."""

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constellations.errors import CycleFound
from constellations.graph import SPACING, Graph

KEYS = st.integers(0, 11)
EDGES = st.lists(st.tuples(KEYS, KEYS), max_size=40)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add_task", "remove_task", "add_edge", "add_edge", "remove_edge"]), KEYS, KEYS), max_size=60
)


def diamond() -> Graph:
    return Graph.build("abcd", ["ab", "ac", "bd", "cd"])


def as_networkx(graph: Graph) -> nx.DiGraph:
    oracle = nx.DiGraph()
    oracle.add_nodes_from(graph)
    oracle.add_edges_from(graph.edges())
    return oracle


def assert_in_order(graph: Graph) -> None:
    order = {key: place for place, key in enumerate(graph.topological_order())}
    assert len(order) == len(graph)
    assert all(order[upstream] < order[downstream] for upstream, downstream in graph.edges())


def assert_is_cycle(path: list, edges: set) -> None:
    assert path[0] == path[-1]
    assert len(path) == len(set(path)) + 1
    assert all(edge in edges for edge in pairwise(path))


def test_a_cycle_is_named_as_a_path():
    graph = Graph.build("abc", ["ab", "bc"])
    with pytest.raises(CycleFound) as refused:
        graph.add_edge("c", "a")
    assert refused.value.path == ["c", "a", "b", "c"]
    assert str(refused.value) == "the tasks would wait for each other: c > a > b > c"


def test_a_cycle_in_a_bulk_build_is_named_from_the_task_that_comes_first():
    with pytest.raises(CycleFound) as refused:
        Graph.build("xabcy", ["xa", "bc", "ca", "ab", "cy"])
    assert refused.value.path == ["a", "b", "c", "a"]


def test_a_task_that_waits_for_itself_is_a_cycle():
    graph = diamond()
    with pytest.raises(CycleFound) as refused:
        graph.add_edge("b", "b")
    assert refused.value.path == ["b", "b"]
    with pytest.raises(CycleFound) as refused:
        Graph.build("a", [("a", "a")])
    assert refused.value.path == ["a", "a"]


def test_a_refused_edge_leaves_the_graph_as_it_was():
    graph, before = diamond(), diamond()
    with pytest.raises(CycleFound):
        graph.add_edge("d", "a")
    assert graph == before
    assert_in_order(graph)


def test_neighbours_are_what_a_task_waits_for_and_what_waits_for_it():
    graph = diamond()
    assert graph.upstream("d") == ("b", "c")
    assert graph.downstream("a") == ("b", "c")
    assert graph.upstream("a") == ()
    assert graph.has_edge("a", "b")
    assert not graph.has_edge("b", "a")
    assert not graph.has_edge("nobody", "a")


def test_removing_a_task_removes_its_edges():
    graph = diamond()
    graph.remove_task("b")
    assert "b" not in graph
    assert set(graph.edges()) == {("a", "c"), ("c", "d")}


def test_a_removed_edge_frees_the_way_for_its_opposite():
    graph = Graph.build("ab", ["ab"])
    graph.remove_edge("a", "b")
    graph.add_edge("b", "a")
    assert graph.topological_order() == ["b", "a"]


def test_unknown_tasks_are_key_errors():
    graph = diamond()
    with pytest.raises(KeyError):
        graph.add_edge("a", "nobody")
    with pytest.raises(KeyError):
        graph.add_edge("nobody", "a")
    with pytest.raises(KeyError):
        graph.remove_edge("a", "d")
    with pytest.raises(KeyError):
        Graph.build("a", [("a", "b")])


def test_a_repeated_task_or_edge_counts_once():
    graph = Graph.build("ab", ["ab", "ab"])
    graph.add_task("a")
    graph.add_edge("a", "b")
    assert len(graph) == 2
    assert list(graph.edges()) == [("a", "b")]


def test_a_copy_goes_its_own_way():
    graph = diamond()
    twin = graph.copy()
    twin.remove_task("a")
    twin.add_task("z")
    assert graph == diamond()
    assert graph != twin


def test_the_remaining_path_counts_the_task_itself():
    assert diamond().remaining_path() == {"a": 3, "b": 2, "c": 2, "d": 1}


def test_a_task_put_before_many_moves_alone():
    """Its thousand descendants keep their places: the search stops with the smaller side."""
    chain = list(range(1000))
    graph = Graph.build(chain, pairwise(chain))
    places = {key: graph._label[key] for key in chain}
    graph.add_task("new")
    graph.add_edge("new", 0)
    assert {key: graph._label[key] for key in chain} == places
    assert graph.topological_order()[:2] == ["new", 0]


def test_room_in_the_order_never_runs_out():
    """Each insertion halves the room before `last`; long after it is used up the order still holds."""
    graph = Graph.build(["first", "last"], [("first", "last")])
    before = "first"
    for number in range(2 * SPACING.bit_length()):
        graph.add_task(number)
        graph.add_edge(before, number)
        graph.add_edge(number, "last")
        before = number
    assert_in_order(graph)
    assert graph.topological_order()[-1] == "last"


def test_room_after_a_task_never_runs_out_either():
    graph = Graph.build(["first", "last"], [("first", "last")])
    after = "last"
    for number in range(2 * SPACING.bit_length()):
        graph.add_task(number)
        graph.add_edge(number, after)
        graph.add_edge("first", number)
        after = number
    assert_in_order(graph)


@given(EDGES)
def test_a_bulk_build_agrees_with_networkx(edges):
    oracle = nx.DiGraph(edges)
    oracle.add_nodes_from(range(12))
    if nx.is_directed_acyclic_graph(oracle):
        graph = Graph.build(range(12), edges)
        assert set(graph.edges()) == set(oracle.edges)
        assert_in_order(graph)
    else:
        with pytest.raises(CycleFound) as refused:
            Graph.build(range(12), edges)
        assert_is_cycle(refused.value.path, set(edges))


@given(EDGES)
def test_remaining_paths_agree_with_networkx(edges):
    graph = Graph.build(range(12), [(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]])
    oracle = as_networkx(graph)
    for key, remaining in graph.remaining_path().items():
        below = oracle.subgraph(nx.descendants(oracle, key) | {key})
        assert remaining == nx.dag_longest_path_length(below) + 1


@given(STEPS)
def test_after_any_sequence_of_changes_the_graph_is_what_networkx_has_and_in_order(steps):
    graph, oracle = Graph(), nx.DiGraph()
    for step, one, other in steps:
        if step == "add_task":
            graph.add_task(one)
            oracle.add_node(one)
        elif step == "remove_task" and one in oracle:
            graph.remove_task(one)
            oracle.remove_node(one)
        elif step == "remove_edge" and oracle.has_edge(one, other):
            graph.remove_edge(one, other)
            oracle.remove_edge(one, other)
        elif step == "add_edge" and one in oracle and other in oracle:
            if one == other or nx.has_path(oracle, other, one):
                with pytest.raises(CycleFound) as refused:
                    graph.add_edge(one, other)
                assert_is_cycle(refused.value.path, {*oracle.edges, (one, other)})
            else:
                graph.add_edge(one, other)
                oracle.add_edge(one, other)
        assert set(graph.edges()) == set(oracle.edges)
        assert set(graph) == set(oracle.nodes)
        assert_in_order(graph)

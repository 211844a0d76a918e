"""The drawing of a machine: all of its table, and nothing on top of anything else."""

import re
from itertools import combinations

import pytest

from agents.machines import ANY, Machine, Row
from frontend.diagram import LABEL_CHAR, LABEL_LINE, STATE_HEIGHT, draw_diagram
from frontend.words import ANY_STATE, MACHINES, edge_label, guard_words, labelled_edges

every_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


def label_boxes(diagram):
    """(left, top, right, bottom) of every label."""
    for edge in diagram.edges:
        for text in edge.labels:
            width = (len(text.event) + (len(text.guard) + 3 if text.guard else 0)) * LABEL_CHAR
            left = text.x - width if edge.anchor == "end" else text.x
            yield left, text.y - LABEL_LINE + 4, left + width, text.y + 3


def node_boxes(diagram):
    return [(node.left, node.top, node.right, node.bottom) for node in diagram.nodes]


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def vertical_lines(diagram):
    """(x, upper y, lower y) of the way of each edge into its target."""
    places = {node.name: node for node in diagram.nodes}
    for edge in diagram.edges:
        source, target = places[edge.source], places[edge.target]
        if source is not target:
            yield target.x, *sorted((source.y, target.y))


@every_machine
def test_every_row_of_the_table_is_a_label_of_the_drawing(machine):
    drawn = [(edge.source, edge.target, text.event) for edge in draw_diagram(machine).edges for text in edge.labels]
    rows = [(ANY_STATE if row.source == ANY else row.source, row.target, row.event) for row in machine.rows]
    assert sorted(drawn) == sorted(rows)


@every_machine
def test_every_state_is_drawn_once_and_marked_as_what_it_is(machine):
    nodes = [node for node in draw_diagram(machine).nodes if node.name != ANY_STATE]
    assert sorted(node.name for node in nodes) == sorted(machine.states)
    assert {node.name for node in nodes if node.kind == "terminal"} == machine.terminal
    assert [node.name for node in nodes if node.kind == "initial"] == [machine.initial]
    assert nodes[0].name == machine.initial


@every_machine
def test_no_label_and_no_state_lies_on_another(machine):
    diagram = draw_diagram(machine)
    boxes = [*label_boxes(diagram), *node_boxes(diagram)]
    assert [pair for pair in combinations(boxes, 2) if overlap(*pair)] == []


@every_machine
def test_no_line_runs_through_a_label_or_a_state_it_does_not_lead_to(machine):
    diagram = draw_diagram(machine)
    boxes = [*label_boxes(diagram), *node_boxes(diagram)]
    crossed = [
        (line, box)
        for line in vertical_lines(diagram)
        for box in boxes
        if box[0] < line[0] < box[2] and line[1] + STATE_HEIGHT < box[3] and box[1] < line[2] - STATE_HEIGHT
    ]
    assert crossed == []


@every_machine
def test_everything_is_inside_the_picture(machine):
    diagram = draw_diagram(machine)
    for left, top, right, bottom in [*label_boxes(diagram), *node_boxes(diagram)]:
        assert left >= 0
        assert top >= 0
        assert right <= diagram.width
        assert bottom <= diagram.height


def test_rows_that_lead_the_same_way_share_an_edge():
    task = next(machine for machine in MACHINES if machine.name == "task")
    assert labelled_edges(task)[("WAITING_DEPENDENCY", "CANCELLED")] == [("skip", ""), ("cancel", "")]
    edge = next(edge for edge in draw_diagram(task).edges if (edge.source, edge.target) == ("RUNNING", "FAILED"))
    assert [(text.event, text.guard) for text in edge.labels] == [
        ("fail", "not attempts_left"), ("lost", "on_lost = fail"), ("deadline", ""),
    ]  # fmt: skip


def test_lines_that_lead_on_enter_from_above_and_lines_that_lead_back_from_below():
    machine = Machine("lamp", "off", frozenset(), (Row("off", "press", "on"), Row("on", "press", "off")))
    diagram = draw_diagram(machine)
    off, on = diagram.nodes
    onward, back = diagram.edges
    assert (on.x > off.x, on.y > off.y) == (True, True)
    assert re.fullmatch(rf"M{off.right} {off.y}H\d+q9 0 9 9V{on.top - 3}", onward.path)
    assert re.fullmatch(rf"M{on.left} {on.y}H\d+q-9 0 -9 -9V{off.bottom + 3}", back.path)


def test_an_edge_from_a_state_to_itself_is_a_loop_below_it():
    machine = Machine(
        "counter", "counting", frozenset(), (Row("counting", "one", "counting"), Row("counting", "two", "counting"))
    )
    diagram = draw_diagram(machine)
    (node,), (edge,) = diagram.nodes, diagram.edges
    assert edge.path.startswith(f"M{node.right - 36} {node.bottom}v")
    assert all(text.y > node.bottom for text in edge.labels)


def test_the_order_of_the_states_makes_edges_short():
    rows = (Row("a", "go", "c"), Row("b", "go", "d"), Row("c", "go", "b"), Row("d", "end", "z"))
    machine = Machine("path", "a", frozenset({"z"}), rows)
    assert [node.name for node in draw_diagram(machine).nodes] == ["a", "c", "b", "d", "z"]


def test_a_guard_is_said_in_words():
    assert guard_words({}) == ""
    assert guard_words({"success": True, "late": False, "left": "here"}) == "success, not late, left = here"


def test_a_guard_that_asks_for_the_target_goes_without_saying():
    assert edge_label(Row("held", "go_on", "walking", guard={"left": "walking"})) == ("go_on", "")
    assert edge_label(Row("held", "go_on", "walking", guard={"left": "sitting"})) == ("go_on", "left = sitting")

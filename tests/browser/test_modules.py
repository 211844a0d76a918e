"""The pure modules of the dashboard, run where they run: in the browser."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from playwright.sync_api import Page

from agents.machines import ACTOR
from agents.reads.standing import OUTCOMES, SessionFacts, WaitingApproval, decide_standing
from constellations.reads.holding import HELD

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def anywhere(installation, chromium) -> Iterator[Page]:
    """One page for all: the modules are functions of what they are given. Fails when a script of ours broke on it."""
    context = chromium.new_context(base_url=installation.address)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto("/login/")
    context.new_cdp_session(page).send("Page.setBypassCSP", {"enabled": True})
    page.reload()
    yield page
    context.close()
    assert errors == []


@pytest.fixture
def run(anywhere: Page):
    """Runs `script`, the body of an async function, with the exports of a module in scope as `m` and `input` as given."""

    def run(module: str, script: str, given: Any = None) -> Any:
        return anywhere.evaluate(
            "async ([module, script, input]) => {"
            "  const m = await import(`/static/frontend/${module}`);"
            "  return new (async () => {}).constructor('m', 'input', script)(m, input);"
            "}",
            [module, script, given],
        )

    return run


def event(seq: int, **data: Any) -> dict[str, Any]:
    return {"seq": seq, "type": "edited", "data": data}


FOLD = """
const fold = new m.Fold(input.defaults ?? {});
if (input.snapshot) fold.load(input.snapshot);
const changes = new m.Changes();
for (const event of input.events) fold.apply(event, changes);
const rows = Object.fromEntries(Object.entries(fold.rows).map(([name, table]) => [name, Object.fromEntries(table)]));
const ids = Object.fromEntries(Object.entries(changes.ids).map(([name, set]) => [name, [...set]]));
return { seq: fold.seq, rows, ids, structure: [...changes.structure] };
"""


def test_events_add_change_and_remove_rows(run):
    events = [
        event(1, add={"task": [{"id": 7, "task_id": "a", "state": "PENDING"}, {"id": 8, "task_id": "b", "state": "PENDING"}]}),
        event(2, set={"task": {"7": {"state": "RUNNING", "attempt": 1}}}),
        event(3, **{"del": {"task": [8]}}),
    ]
    found = run("fold.js", FOLD, {"events": events})
    assert found["rows"] == {"task": {"7": {"id": 7, "task_id": "a", "state": "RUNNING", "attempt": 1}}}
    assert found["seq"] == 3


def test_a_row_that_leaves_fields_out_has_their_defaults(run):
    given = {
        "defaults": {"task": {"attempt": 0, "state": "WAITING_DEPENDENCY"}},
        "events": [event(1, add={"task": [{"id": 1}]})],
    }
    assert run("fold.js", FOLD, given)["rows"]["task"]["1"] == {"id": 1, "attempt": 0, "state": "WAITING_DEPENDENCY"}


def test_a_snapshot_and_the_events_after_it_equal_all_events(run):
    events = [event(1, add={"task": [{"id": 1, "state": "PENDING"}]}), event(2, set={"task": {"1": {"state": "RUNNING"}}})]
    snapshot = {"seq": 1, "rows": {"task": {"1": {"id": 1, "state": "PENDING"}}}}
    resumed = run("fold.js", FOLD, {"snapshot": snapshot, "events": events[1:]})
    assert resumed["rows"] == run("fold.js", FOLD, {"events": events})["rows"]


def test_an_event_that_comes_twice_is_applied_once(run):
    events = [
        event(1, add={"task": [{"id": 1, "n": 0}]}),
        event(2, set={"task": {"1": {"n": 1}}}),
        event(1, add={"task": [{"id": 1, "n": 0}]}),
    ]
    found = run("fold.js", FOLD, {"events": events})
    assert found["rows"]["task"]["1"]["n"] == 1
    assert found["seq"] == 2


def test_a_missing_event_is_noticed_and_nothing_of_the_next_applied(run):
    script = """
        const fold = new m.Fold();
        try { fold.apply(input); } catch (error) { return [error.name, fold.seq, Object.keys(fold.rows)]; }
    """
    assert run("fold.js", script, event(2, add={"task": [{"id": 1}]})) == ["Gap", 0, []]


def test_what_is_gone_can_still_be_spoken_of(run):
    script = """
        const fold = new m.Fold({ task: { name: "" } });
        fold.load({ seq: 3, rows: {} });
        fold.remember([input.before]);
        for (const event of input.events) fold.apply(event);
        return [fold.get("task", 1) ?? null, fold.recall("task", 1), fold.recall("task", 2), fold.recall("task", 3) ?? null];
    """
    events = [event(4, add={"task": [{"id": 2, "name": "b"}]}), event(5, **{"del": {"task": [2]}})]
    found = run("fold.js", script, {"before": event(1, add={"task": [{"id": 1}]}), "events": events})
    assert found == [None, {"id": 1, "name": ""}, {"id": 2, "name": "b"}, None]


def test_changes_tell_looks_from_structure(run):
    snapshot = {"seq": 0, "rows": {"task": {"1": {"id": 1}}}}
    found = run("fold.js", FOLD, {"snapshot": snapshot, "events": [event(1, set={"task": {"1": {"state": "RUNNING"}}})]})
    assert found["ids"] == {"task": [1]}
    assert found["structure"] == []
    found = run("fold.js", FOLD, {"snapshot": snapshot, "events": [event(1, **{"del": {"task": [1]}})]})
    assert found["structure"] == ["task"]


LAYOUT = """
const { count, edges, view } = input;
const found = m.layout(count, edges, view);
return { x: [...found.x], y: [...found.y], layer: [...found.layer], layers: found.layers, down: found.down,
         width: found.width, height: found.height, bends: found.bends, node: m.NODE };
"""
WIDE, TALL = {"width": 1600, "height": 500}, {"width": 500, "height": 1600}


def lay_out(run, count: int, edges: list[list[int]], view: dict[str, int] | None = None) -> dict[str, Any]:
    return run("graph/layout.js", LAYOUT, {"count": count, "edges": edges, "view": view or {"width": 1000, "height": 800}})


def overlaps(found: dict[str, Any]) -> list[tuple[int, int]]:
    width, height = found["node"]["width"], found["node"]["height"]
    places = list(zip(found["x"], found["y"], strict=True))
    return [
        (a, b)
        for a, (ax, ay) in enumerate(places)
        for b, (bx, by) in enumerate(places[:a])
        if abs(ax - bx) < width and abs(ay - by) < height
    ]


def layered(layers: int, width: int) -> list[list[int]]:
    """Edges of a graph of `layers` x `width` nodes, two into each node, some across several layers; always the same."""
    edges = set()
    for at in range(width, layers * width):
        layer = at // width
        edges.add(((layer - 1) * width + (at * 7) % width, at))
        edges.add((max(0, layer - 1 - at % 3) * width + (at * 5 + 1) % width, at))
    return [list(edge) for edge in sorted(edges)]


def test_every_edge_leads_to_a_later_layer(run):
    edges = layered(12, 9)
    found = lay_out(run, 108, edges)
    assert all(found["layer"][a] < found["layer"][b] for a, b in edges)
    assert sorted(node for layer in found["layers"] for node in layer) == list(range(108))


@pytest.mark.parametrize(("count", "edges"), [(108, layered(12, 9)), (300, []), (40, [[0, n] for n in range(1, 40)])])
def test_no_two_nodes_overlap(run, count, edges):
    assert overlaps(lay_out(run, count, edges)) == []


def test_all_nodes_lie_within_the_size_that_is_told(run):
    found = lay_out(run, 108, layered(12, 9))
    half = found["node"]["width"] / 2, found["node"]["height"] / 2
    assert min(found["x"]) >= half[0]
    assert min(found["y"]) >= half[1]
    assert max(found["x"]) <= found["width"] - half[0] + 0.01
    assert max(found["y"]) <= found["height"] - half[1] + 0.01


def test_a_graph_runs_the_way_that_fits_the_view(run):
    chain = [[n, n + 1] for n in range(6)]
    assert lay_out(run, 7, chain, TALL)["down"] is True
    assert lay_out(run, 7, chain, WIDE)["down"] is False


def test_a_chain_is_straight(run):
    found = lay_out(run, 5, [[n, n + 1] for n in range(4)], TALL)
    assert len({round(x, 3) for x in found["x"]}) == 1


def test_a_crossing_that_can_be_avoided_is(run):
    found = lay_out(run, 4, [[0, 3], [1, 2]], TALL)
    assert (found["x"][0] - found["x"][1]) * (found["x"][3] - found["x"][2]) > 0


def test_a_long_edge_passes_beside_the_nodes_between(run):
    found = lay_out(run, 4, [[0, 1], [1, 2], [2, 3], [0, 3]], TALL)
    (bends,) = [bends for bends in found["bends"] if bends]
    assert len(bends) == 2
    half = found["node"]["width"] / 2
    assert all(abs(bend["x"] - found["x"][node]) > half for bend, node in zip(bends, (1, 2), strict=True))


def test_a_layer_too_wide_is_folded(run):
    found = lay_out(run, 400, [])
    assert found["width"] < 8 * found["height"]
    assert overlaps(found) == []


def test_an_empty_graph_and_one_of_a_single_node_have_a_layout(run):
    assert lay_out(run, 0, [])["layers"] == []
    assert lay_out(run, 1, [])["layers"] == [[0]]


def test_a_layout_of_the_same_graph_is_the_same(run):
    edges = layered(10, 7)
    assert lay_out(run, 70, edges) == lay_out(run, 70, edges)


def test_two_thousand_nodes_are_laid_out_in_well_under_a_second(run):
    script = """
        const times = [0, 1, 2, 3, 4].map(() => {
          const start = performance.now();
          m.layout(input.count, input.edges);
          return performance.now() - start;
        });
        return Math.min(...times);
    """
    assert run("graph/layout.js", script, {"count": 2000, "edges": layered(50, 40)}) < 200


DIAMOND = {"count": 5, "edges": [[0, 1], [0, 2], [1, 3], [2, 3]]}
INCIDENT = """
const incident = Array.from({ length: input.count }, () => []);
input.edges.forEach(([from, to], i) => { incident[from].push(i); incident[to].push(i); });
const sorted = ({ nodes, edges }) => ({ nodes: [...nodes].sort(), edges: [...edges].sort() });
"""


def test_the_critical_path_is_the_chain_that_took_longest(run):
    script = INCIDENT + "return sorted(m.criticalPath(input.count, input.edges, incident, (i) => [1, 5, 2, 1, 6][i]));"
    assert run("graph/emphasis.js", script, DIAMOND) == {"nodes": [0, 1, 3], "edges": [0, 2]}


def test_the_critical_path_of_a_single_long_task_is_that_task_and_of_no_task_nothing(run):
    script = INCIDENT + "return sorted(m.criticalPath(input.count, input.edges, incident, (i) => [1, 5, 2, 1, 8][i]));"
    assert run("graph/emphasis.js", script, DIAMOND) == {"nodes": [4], "edges": []}
    assert run("graph/emphasis.js", script, {"count": 0, "edges": []}) == {"nodes": [], "edges": []}


def test_related_tasks_are_all_upstream_and_all_downstream_but_not_what_lies_beside(run):
    script = INCIDENT + "return sorted(m.relatedTo(1, input.edges, incident));"
    assert run("graph/emphasis.js", script, DIAMOND) == {"nodes": [0, 1, 3], "edges": [0, 2]}


def dependency(run, type_: str, upstream: str, downstream: dict[str, str]) -> str:
    given = [
        {"type": type_, "dependency_id": "a>b", "condition": "n > 1"},
        {"state": upstream, "reason": ""},
        {"state": "WAITING_DEPENDENCY", "reason": "", **downstream},
    ]
    return run("states.js", "return m.dependencyState(...input)", given)


@pytest.mark.parametrize(
    ("type_", "upstream", "state"),
    [
        ("SUCCESS_ONLY", "RUNNING", "open"),
        ("SUCCESS_ONLY", "COMPLETED", "held"),
        ("SUCCESS_ONLY", "FAILED", "never"),
        ("SUCCESS_ONLY", "CANCELLED", "never"),
        ("UNCONDITIONAL", "FAILED", "held"),
        ("COMPLETION_ONLY", "CANCELLED", "held"),
        ("CONDITIONAL", "COMPLETED", "held"),
        ("CONDITIONAL", "FAILED", "never"),
    ],
)
def test_an_edge_shows_whether_it_holds(run, type_, upstream, state):
    assert dependency(run, type_, upstream, {}) == state


def test_a_false_condition_is_seen_by_what_it_skipped(run):
    skipped = {"state": "CANCELLED", "reason": "skipped: a>b"}
    assert dependency(run, "CONDITIONAL", "COMPLETED", skipped) == "never"
    assert dependency(run, "CONDITIONAL", "COMPLETED", {**skipped, "reason": "skipped: c>b"}) == "open"


def test_every_state_has_a_shape_of_its_own_beside_its_colour(run):
    script = """
        return [...m.TASK_STATES, "SKIPPED"].map((state) => {
          const { word, shape } = m.lookOf("task", state);
          return [word, m.shapePath(shape)];
        });
    """
    looks = run("states.js", script)
    assert len({word for word, _ in looks}) == len({shape for _, shape in looks}) == len(looks) == 7


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0 s"),
        (-5, "0.0 s"),
        (1234, "1.2 s"),
        (9960, "10 s"),
        (59_600, "1 min 00 s"),
        (61_000, "1 min 01 s"),
        (7_320_000, "2 h 02 min"),
    ],
)
def test_durations_are_short_and_exact_enough(run, ms, text):
    assert run("format.js", "return m.duration(input)", ms) == text


def test_a_result_is_told_in_a_line(run):
    assert (
        run("format.js", "return m.brief(input)", {"accuracy": 0.931555555, "images": 1797}) == "accuracy 0.93156 · images 1797"
    )
    assert run("format.js", "return m.brief(input)", None) == ""


def sentence(run, told: dict[str, Any], rows: dict[str, Any] | None = None) -> str:
    script = """
        const { Fold } = await import("/static/frontend/fold.js");
        const fold = new Fold();
        fold.load({ seq: 0, rows: input.rows });
        const said = m.sentence(input.event, fold, () => "laptop");
        return said && said.parts.map((part) => part.text ?? part).join("");
    """
    return run("sentences.js", script, {"event": told, "rows": rows or {}})


TASKS = {"task": {"5": {"id": 5, "task_id": "train", "name": "", "state": "RUNNING", "reason": "", "attempt": 1}},
         "inbox": {"8": {"id": 8, "kind": "restart"}}}  # fmt: skip


def plain(type_: str, **data: Any) -> dict[str, Any]:
    return {"seq": 1, "type": type_, "data": data}


def of_inbox(kind: str, **payload: Any) -> dict[str, Any]:
    return {"add": {"inbox": [{"kind": kind, "payload": payload}]}}


def of_graph(**fields: Any) -> dict[str, Any]:
    return {"add": {"constellation": [{"name": "night", **fields}]}}


def changed(machine: str, source: str, target: str, told: str, **more: Any) -> dict[str, Any]:
    data = {"machine": machine, "id": 5, "from_state": source, "to_state": target, "event": told, "reason": "", **more}
    return {"seq": 1, "type": "state_changed", "data": data}


def many(type_: str, *tasks: int) -> dict[str, Any]:
    return {"seq": 1, "type": type_, "data": {"transitions": [{"id": task, "machine": "task"} for task in tasks]}}


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (changed("task", "PENDING", "RUNNING", "start"), "train started on laptop"),
        (
            changed("task", "PENDING", "RUNNING", "start", set={"task": {"5": {"attempt": 2}}}),
            "train started on laptop, attempt 2",
        ),
        (changed("task", "RUNNING", "COMPLETED", "succeed", spent=1.25), "train completed after 1.3 s"),
        (changed("task", "RUNNING", "FAILED", "fail", reason="exit code 3"), "train failed: exit code 3"),
        (changed("task", "WAITING_DEPENDENCY", "CANCELLED", "skip", reason="skipped: a>b"), "train was skipped: a>b"),
        (changed("task", "RUNNING", "PENDING", "fail", reason="exit code 1"), "train will be tried again: exit code 1"),
        (changed("actor", "idle", "running", "ProcessInteraction"), "The actor is running"),
        (
            changed("actor", "running", "idle", "InteractionComplete", reason="partially_failed"),
            "The actor is idle: partly failed",
        ),
        (changed("constellation", "READY", "EXECUTING", "start"), "The constellation is executing"),
        (changed("constellation", "PAUSED", "EXECUTING", "resume"), "The constellation goes on"),
        (changed("constellation", "FAILED", "EXECUTING", "reopen", reason="again"), "The constellation was reopened: again"),
        (changed("device_agent", "CONTINUE", "FINISH", "finish"), "Agent of agent finished"),
        (changed("device_agent", "CONTINUE", "FAIL", "fail", reason="exit code 3"), "Agent of agent failed: exit code 3"),
        (changed("constellation_agent", "START", "CONTINUE", "created"), "The agent is at work"),
        (many("tasks_skipped", 5), "1 task skipped: train"),
        (many("tasks_cancelled", 5, 6), "2 tasks cancelled: train, task 6"),
        (many("tasks_retried", 5), "1 task to run again: train"),
        (changed("task", "PENDING", "FAILED", "deadline", reason="deadline"), "train failed: deadline"),
        (plain("ends_taken", mode="editing", tasks=["train"]), None),
        (
            {
                "seq": 1,
                "type": "edited",
                "data": {
                    "add": {"edit": [{"author": "planner", "reason": "too low"}]},
                    "diff": [
                        {"change": "added", "task": "retrain"},
                        {"change": "added", "dependency": "a>retrain"},
                        {"change": "removed", "task": "deploy"},
                        {"change": "updated", "dependency": "a>b"},
                    ],
                },
            },
            "The planner edited the graph (added retrain, 1 dependency; removed deploy; changed a>b): too low",
        ),
        (
            {
                "seq": 1,
                "type": "edited",
                "data": {
                    "add": {"edit": [{"author": "token:orr_1", "reason": "", "undoes_id": 3}]},
                    "diff": [{"change": "removed", "task": f"t{i}"} for i in range(6)],
                },
            },
            "A program took an edit back (removed t0, t1, t2, t3, 2 more)",
        ),
        ({"seq": 1, "type": "edited", "data": {"edit_id": "e", "add": {"task": [{"id": 6}]}}}, None),
        (
            plain("tasks_skipped", transitions=[{"id": 5, "reason": "skipped: a>b needs a completed"}]),
            "1 task skipped: train: a>b needs a completed",
        ),
        (plain("command_done", set={"inbox": {"8": {"state": "done"}}}), "The command “restart” was carried out"),
        (plain("command_received", **of_inbox("restart", reason="again")), "The command “restart” was received: again"),
        (plain("command_received", **of_inbox("interaction", request="Reopen a")), "A request was received: Reopen a"),
        (plain("command_received", **of_inbox("interaction", plan="tasks: []")), "A request was received"),
        (plain("constellation_created", **of_graph()), "The constellation night was created"),
        (
            plain("constellation_created", **of_graph(replaces_id=7)),
            "The constellation night was created in the place of the one before",
        ),
        (
            plain("constellation_created", **of_graph(forked_from_id=(5 << 24) + 3, forked_at=47)),
            "The constellation night was created as a fork of one in session 5, as it was after event 47",
        ),
        ({"seq": 1, "type": "something_new", "data": {}}, "something new"),
        (plain("model_asked", add={"model_call": [{"purpose": "creation"}]}), "A model is asked for a plan"),
        (
            plain("task_drafted", tasks=[{"task_id": "a", "name": "Fetch"}, *({"task_id": f"t{n}"} for n in range(4))]),
            "The model writes down Fetch, t0, t1, t2 and 1 more",
        ),
        (
            plain("model_answered", set={"model_call": {"9": {"outcome": "answered", "thought": "First the data."}}}),
            "The model thinks: First the data.",
        ),
        (
            plain("model_answered", set={"model_call": {"9": {"outcome": "rejected", "error": "there is no device gpu"}}}),
            "The model's answer is of no use: there is no device gpu",
        ),
        (
            plain("model_answered", set={"model_call": {"9": {"outcome": "lost", "error": "gone"}}}),
            "The model's answer was lost with its runner, so it is asked again",
        ),
    ],
)
def test_events_are_told_as_sentences(run, told, text):
    assert sentence(run, told, TASKS) == text


WORKING = {
    "agent": {"7": {"id": 7, "name": "train"}},
    "loop": {"8": {"id": 8, "agent_id": 7}},
    "approval": {"9": {"id": 9, "kind": "tool", "title": "Push"}, "10": {"id": 10, "kind": "question", "title": "Which?"}},
    "evidence": {
        "11": {
            "id": 11, "loop_id": 8, "kind": "tool", "tool": "command", "target": "make", "success": True,
            "started_at": "2026-11-21T10:00:00Z", "ended_at": "2026-11-21T10:00:01Z",
        },
        "12": {"id": 12, "loop_id": 8, "tool": "command", "target": "make", "success": False, "raw_error": "no"},
        "13": {"id": 13, "loop_id": 8, "kind": "user"},
        "14": {"id": 14, "loop_id": 8, "kind": "nudge"},
    },
    "phase": {
        "15": {
            "id": 15, "number": 2, "total": 3, "description": "Mend", "outcome": "completed_with_issues", "blockers": ["slow"],
        },
    },
}  # fmt: skip


def changed_row(table: str, row: int, **told: Any) -> dict[str, Any]:
    return {"set": {table: {str(row): {}}}, **told}


@pytest.mark.parametrize(
    ("type_", "data", "text"),
    [
        ("approval_asked", {"add": {"approval": [{"id": 9}]}}, "An approval waits: Push"),
        ("approval_asked", {"add": {"approval": [{"id": 10}]}}, "A question waits: Which?"),
        ("approval_decided", {"approval_id": 9, "kind": "tool", "decision": "approve", "title": "Push"}, "Approved: Push"),
        ("approval_decided", {"approval_id": 9, "kind": "tool", "decision": "rejected", "title": "Push"}, "Rejected: Push"),
        ("approval_decided", {"approval_id": 10, "decision": "approved"}, "Answered: Which?"),
        ("approval_decided", {"kind": "callback", "decision": "approve", "title": "hook"}, "It came from outside: hook"),
        ("approval_expired", changed_row("approval", 9), "Nobody answered in time: Push"),
        ("approval_withdrawn", {"approval_id": 9}, "It is not waited for any more: Push"),
        ("loop_created", {}, None),
        ("approval_used", {"approval_id": 9}, None),
        ("window_began", changed_row("evidence", 13), "A message of a person reached train"),
        ("window_began", changed_row("evidence", 14), None),
        ("call_cancelled", changed_row("evidence", 12), "command make failed: no"),
        ("task_released", {"task_id": "train"}, "train may be tried again"),
        ("phase_started", {"add": {"phase": [{"id": 15}]}}, "Phase 2 of 3 began: Mend"),
        ("phase_ended", changed_row("phase", 15), "Phase 2 of 3 ended with issues: slow"),
        ("phase_overdue", {"number": 2, "factor": 1}, "Phase 2 takes longer than expected"),
        ("phase_overdue", {"number": 2, "factor": 2}, "Phase 2 takes more than twice as long as expected"),
        (
            "stuck",
            {"agent_id": 7, "rule": "same_error", "sentence": "make failed 3 times", "action": "halt"},
            "train is stuck (same error): make failed 3 times; it was halted",
        ),
        (
            "progress",
            {"agent_id": 7, "files_modified": 1, "recent_successes": 8, "recent_failures": 2},
            "train: 1 file changed, of its last actions 8 went well and 2 failed",
        ),
        ("identity_accepted", {}, "Somebody said to go on anyway: this loop is none from now on"),
        (
            "suspected",
            {"agent_id": 7, "rule": "no_novelty", "score": 0.8, "sentence": "nothing new"},
            "train may be stuck (no novelty); an arbiter is asked: nothing new",
        ),
        ("ruled", {"agent_id": 7, "stuck": True, "why": "the same"}, "An arbiter says that train is stuck: the same"),
        ("ruled", {"agent_id": 7, "stuck": False, "why": ""}, "An arbiter says that train is not stuck"),
        (
            "loop_labelled",
            {"loop_id": 8, "set": {"loop": {"8": {"label": {"stuck": True, "since": 4, "reason": "the same"}}}}},
            "Somebody says that train was stuck since row 4: the same",
        ),
        (
            "loop_labelled",
            {"loop_id": 8, "set": {"loop": {"8": {"label": {"stuck": False, "since": None, "reason": ""}}}}},
            "Somebody says that train was not stuck",
        ),
        ("hook_failed", {"hook": "on_stuck", "message": "refused"}, "The hook on_stuck failed: refused"),
        ("page_reopened", {"address": "main: https://a.example/"},
         "A page of a browser that was gone is open again: main: https://a.example/"),
        ("page_not_reopened", {"address": "main: https://a.example/", "why": "no such host"},
         "A page of a browser that was gone stays closed: main: https://a.example/: no such host"),
        ("app_process", {"agent_id": 7, "name": "chromium", "pid": 9}, "train works on chromium, process 9"),
        ("blackboard_changed", {"set": {"agent": {"7": {"blackboard": {"a": 1, "b": 2}}}}}, "On the blackboard of train: a, b"),
    ],
)  # fmt: skip
def test_what_agents_do_is_told_as_sentences(run, type_, data, text):
    assert sentence(run, {"seq": 1, "type": type_, "data": data}, WORKING) == text


@pytest.mark.parametrize(("reason", "more"), [("waits for a person", ""), ("asks", ": asks")])
def test_why_an_agent_waits_is_told_once(run, reason, more):
    told = changed("device_agent", "CONTINUE", "CONFIRM", "ask", reason=reason)
    told["data"]["id"] = 7
    assert sentence(run, told, WORKING) == f"Agent of train waits for a person{more}"


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("Idle", "ProcessingPrompt", None),
        ("ExecutingTool", "ProgressCheck", None),
        ("ExecutingTool", "ResourcePaused", "train stands still until its device is ready again: why"),
        ("ResourcePaused", "ExecutingTool", "train goes on: its device is ready again"),
        ("ErrorRecovery", "Halted", "train was halted: why"),
    ],
)
def test_of_a_tool_loop_only_standing_still_is_told(run, source, target, text):
    told = {**changed("tool_loop", source, target, "any", reason="why"), "type": "state_changed"}
    told["data"]["id"] = 8
    assert sentence(run, told, WORKING) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (changed_row("evidence", 11), "command make (1.0 s)"),
        (changed_row("evidence", 12), "command make failed: no"),
        ({"add": {"evidence": [WORKING["evidence"]["11"]]}}, "command make (1.0 s)"),
        ({"add": {"evidence": [{"id": 16, "loop_id": 8, "kind": "tool", "tool": "command"}]}}, None),
        ({"add": {"evidence": [{"id": 14, "loop_id": 8, "kind": "nudge", "ended_at": "2026-11-21T10:00:01Z"}]}}, None),
    ],
    ids=["went well", "failed", "refused at once", "begins", "a nudge"],
)
def test_each_call_of_a_tool_loop_is_told_when_it_has_ended(run, data, text):
    told = changed("tool_loop", "ExecutingTool", "ProgressCheck", "returned")
    told["data"] |= {"id": 8, **data}
    assert sentence(run, told, WORKING) == text


def test_why_a_task_is_in_its_state_is_said_in_words(run):
    script = "return input.map(m.reasonWords)"
    reasons = ["stuck:same_target_error", "stuck:no_novelty: “a_b” says nothing new", "skipped: a>b", "exit code 3", ""]
    said = ["stuck: same target error", "stuck: no novelty: “a_b” says nothing new", *reasons[2:]]
    assert run("states.js", script, reasons) == said


def test_that_an_agent_looked_is_told_once(run):
    assert sentence(run, changed("device_agent", "SCREENSHOT", "CONTINUE", "captured")) is None


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["make", "test", "a=b"], "make test a=b"),
        (["echo", "two words", ""], "echo 'two words' ''"),
        (["echo", "it's"], "echo 'it'\\''s'"),
        (["echo", "a\nb", "tab\there"], "echo $'a\\nb' $'tab\\there'"),
        (["echo", "\u202egpj.exe"], "echo $'\\u{202e}gpj.exe'"),
        (["echo", "non\u00a0breaking", "zero\u200bwidth"], "echo $'non\\u{a0}breaking' $'zero\\u{200b}width'"),
        (["echo", "it's\n\\"], "echo $'it\\'s\\n\\\\'"),
        (["echo", "Grüße", "日本"], "echo 'Grüße' '日本'"),
    ],
)
def test_a_command_is_one_line_that_hides_nothing(run, argv, line):
    assert run("command_line.js", "return m.quoted(input)", argv) == line


def test_a_call_of_another_tool_is_told_with_its_arguments(run):
    given = ["write_file", {"path": "a.md", "text": "two words", "mode": 420}]
    assert run("command_line.js", "return m.callLine(...input)", given) == "write_file path=a.md text='two words' mode=420"


POLL = """
let hidden = false;
Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
let looks = 0;
const troubles = [];
const look = async () => {
  looks += 1;
  hidden = looks === input.each;
  if (input.fails >= looks) throw new Error("no");
};
const onTrouble = (error) => troubles.push(error && poll.pause);
const poll = new m.Poll(look, { everyMs: 2, longestMs: 5, onTrouble });
const until = async (holds) => { while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1)); };
"""


def test_a_hidden_page_does_not_look_and_looks_at_once_when_it_is_seen(run):
    script = """
        await poll.soon();
        await until(() => hidden);
        await new Promise((resolve) => setTimeout(resolve, 50));
        const asleep = looks;
        hidden = false;
        document.dispatchEvent(new Event("visibilitychange"));
        await until(() => looks > asleep);
        poll.stop();
        return asleep;
    """
    assert run("poll.js", POLL + script, {"each": 3}) == 3


def test_looks_that_fail_come_ever_slower_up_to_a_bound(run):
    script = (
        "await poll.soon(); await until(() => troubles.length >= 5); poll.stop(); return [troubles.slice(0, 5), poll.pause];"
    )
    assert run("poll.js", POLL + script, {"fails": 4}) == [[4, 5, 5, 5, None], 2]


def test_a_step_that_leads_nowhere_else_is_not_told(run):
    assert sentence(run, changed("device_agent", "CONTINUE", "CONTINUE", "step")) is None


def test_the_feed_never_grows_beyond_its_bound(run):
    script = """
        const list = document.createElement("ol");
        const { Fold } = await import("/static/frontend/fold.js");
        const feed = new m.Feed(list, { fold: new Fold(), deviceName: () => "", onOpen: () => {} });
        const one = { type: "something_new", at: "2026-11-21T03:04:05.123456Z", by: "system", data: {} };
        for (let round = 0; round < 5; round++) {
          feed.push(Array.from({ length: 1000 }, (_, i) => ({ ...one, seq: round * 1000 + i })));
          feed.tick(round * 1000 + 500);
        }
        return [list.childElementCount, m.FEED_ROWS, list.firstElementChild.querySelector("time").title];
    """
    assert run("session/feed.js", script) == [200, 200, "event 4999, by system"]


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0 B"), (999, "999 B"), (1536, "1.54 kB"), (5_000_000, "5 MB"), (10**12, "1 TB")]
)
def test_sizes_are_said_in_units_of_a_thousand(run, size, said):
    assert run("format.js", "return m.fileSize(input)", size) == said


MOMENTS = """
const { Fold } = await import("/static/frontend/fold.js");
const { tablesOf } = await import("/static/frontend/session/snapshot.js");
const made = async (tables) => {
  const fold = new Fold();
  fold.take(1, await tablesOf(tables));
  return fold;
};
return m.compare(await made(input[0]), await made(input[1]), 7);
"""


def test_what_was_before_stands_below_what_came_meanwhile(run):
    script = """
        const list = document.createElement("ol");
        const { Fold } = await import("/static/frontend/fold.js");
        const feed = new m.Feed(list, { fold: new Fold(), deviceName: () => "", onOpen: () => {} });
        const one = { type: "something_new", at: "2026-11-21T03:04:05.123456Z", by: "system", data: {} };
        feed.push([5, 6].map((seq) => ({ ...one, seq })));
        feed.tick(1000);
        feed.push([2, 3, 4, 7].map((seq) => ({ ...one, seq })));
        feed.tick(2000);
        return [...list.children].map((row) => Number(row.dataset.seq));
    """
    assert run("session/feed.js", script) == [7, 6, 5, 4, 3, 2]


def test_rows_by_columns_are_whole_rows_and_the_page_goes_on_while_they_are_made(run):
    script = """
        const rows = Array.from({ length: input }, (_, i) => [i + 1, "t" + i]);
        let turns = 0;
        let isMade = false;
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => {
          turns += 1;
          if (!isMade) port2.postMessage(null);
        };
        port2.postMessage(null);
        const given = { task: { columns: ["id", "task_id"], rows }, agent: { columns: [], rows: [] } };
        const tables = await m.tablesOf(given, { task: { state: "PENDING" } });
        isMade = true;
        return [tables.task.size, tables.task.get(2), tables.agent.size, turns > 1];
    """
    assert run("session/snapshot.js", script, 300_000) == [300_000, {"id": 2, "task_id": "t1", "state": "PENDING"}, 0, True]


def test_two_moments_differ_by_what_was_added_removed_and_changed(run):
    columns = ["id", "constellation_id", "task_id", "state", "result"]
    lines = ["id", "constellation_id", "upstream_id", "downstream_id"]
    before = {
        "task": {"columns": columns, "rows": [[1, 7, "a", "RUNNING", None], [2, 7, "b", "", None], [3, 8, "x", "", None]]},
        "dependency": {"columns": lines, "rows": [[9, 7, 1, 2]]},
    }  # fmt: skip
    after = {
        "task": {"columns": columns, "rows": [[1, 7, "a", "COMPLETED", 5], [4, 7, "c", "", None], [3, 8, "x", "!", None]]},
        "dependency": {"columns": lines, "rows": [[10, 7, 1, 4]]},
    }  # fmt: skip
    assert run("session/time/moments.js", MOMENTS, [before, after]) == {
        "added": ["c", "a → c"],
        "removed": ["b", "a → b"],
        "changed": [{"task": "a", "was": {"state": "RUNNING", "result": None}, "is": {"state": "COMPLETED", "result": 5}}],
    }


STANDINGS = """
const { Fold, Changes } = await import("/static/frontend/fold.js");
const fold = new Fold();
fold.load({ seq: 1, rows: input.rows });
const found = new m.Standings(fold, input.who);
const changes = new Changes();
for (const [name, rows] of Object.entries(fold.rows)) for (const id of rows.keys()) changes.note(name, id, true);
found.take(changes);
const words = (look, table) => Object.fromEntries([...fold.table(table).values()].map((row) => [row.id, look(row).word]));
return { tasks: words((row) => found.taskLook(row), "task"), agents: words((row) => found.agentLook(row), "agent") };
"""
WORK = {
    "task": {
        "1": {"id": 1, "constellation_id": 9, "state": "RUNNING"},
        "2": {"id": 2, "constellation_id": 9, "state": "WAITING_DEPENDENCY"},
        "3": {"id": 3, "constellation_id": 9, "state": "COMPLETED"},
    },
    "agent": {
        "5": {"id": 5, "machine": "device_agent", "state": "CONFIRM"},
        "6": {"id": 6, "machine": "device_agent", "state": "FINISH"},
    },
    "approval": {"7": {"id": 7, "state": "waiting", "kind": "tool", "subject_id": 1, "agent_id": 5, "action": {}}},
}
OWN = {"1": "Running", "2": "Waiting", "3": "Completed"}


@pytest.mark.parametrize(
    ("rows", "who", "tasks", "agent"),
    [
        ({}, {"me": "user:1", "refusal": ""}, {"1": "Needs you"}, "Needs you"),
        ({}, {"me": "user:1", "refusal": "viewers do not"}, {"1": "Needs somebody else"}, "Needs somebody else"),
        ({"approval": {}}, {"me": "user:1", "refusal": ""}, {}, "Waiting for a person"),
        (
            {"actor": {"8": {"epoch": 1, "state": "paused"}}},
            {"me": "user:1", "refusal": ""},
            {"1": "Needs you", "2": "Paused"},
            "Needs you",
        ),
        ({"approval": {}, "actor": {"8": {"epoch": 1, "state": "paused"}}}, {}, {"1": "Paused", "2": "Paused"}, "Paused"),
        ({"approval": {}, "constellation": {"9": {"id": 9, "state": "PAUSED"}}}, {}, {"2": "Paused"}, "Waiting for a person"),
        ({"actor": {"8": {"epoch": 1, "state": "cancelled"}}}, {}, {"1": "Cancelled", "2": "Cancelled"}, "Cancelled"),
        (
            {"approval": {}, "actor": {"7": {"epoch": 1, "state": "cancelled"}, "8": {"epoch": 2, "state": "running"}}},
            {},
            {},
            "Waiting for a person",
        ),
        ({"approval": {}, "attempt": {"4": {"id": 4, "agent_id": 5, "outcome": "cancelled"}}}, {}, {}, "Cancelled"),
    ],
)
def test_a_task_and_its_agent_stand_as_the_session_does_for_who_looks(run, rows, who, tasks, agent):
    found = run("session/standings.js", STANDINGS, {"rows": WORK | rows, "who": who})
    assert found["tasks"] == OWN | tasks
    assert found["agents"] == {"5": agent, "6": "Finished"}


ASKED = {"id": 4, "kind": "interaction", "state": "done", "outcome": ""}
WAITS = {"state": "waiting", "kind": "tool", "action": {}}
SESSIONS = """
const { Fold } = await import("/static/frontend/fold.js");
return input.cases.map((rows) => {
  const fold = new Fold();
  fold.load({ seq: 1, rows });
  const { name, word, tone, reason } = new m.Standings(fold, input.config).session();
  return [name, word, tone, reason];
});
"""


def test_a_session_stood_by_its_rows_as_the_server_says_that_one_stands(run):
    """Every state of an actor, with every state of its graph, of what was asked, and of what waits."""
    asked = [None, *({**ASKED, "state": state} for state in ("queued", "running"))]
    asked += [{**ASKED, "outcome": outcome} for outcome in (*OUTCOMES, "odd")]
    waits = [
        {},
        {"7": {**WAITS, "id": 7}},
        {"7": {**WAITS, "id": 7, "action": {"author": "user:1"}}},
        {"7": {**WAITS, "kind": "callback"}},
    ]
    waits.append({"7": {**WAITS, "id": 7}, "8": {**WAITS, "id": 8}, "9": {**WAITS, "id": 9, "action": {"author": "user:1"}}})
    graphs = ["", "EXECUTING", "PAUSED", "READY"]
    cases, expected = [], []
    for actor, pausing, graph, item, waiting in product(["", *ACTOR.states], (False, True), graphs, asked, waits):
        rows = {"approval": waiting}
        if actor:
            rows["actor"] = {"2": {"id": 2, "epoch": 1, "state": actor, "reason": f"why {actor}", "pausing": pausing}}
        if graph:
            rows["constellation"] = {"3": {"id": 3, "state": graph}}
        if item:
            rows["inbox"] = {"4": item, "5": {"id": 5, "kind": "pause", "state": "done", "outcome": ""}}
        cases.append(rows)
        for_people = [row for row in waiting.values() if row["kind"] != "callback"]
        facts = SessionFacts(
            actor_state=actor, actor_reason=f"why {actor}" if actor else "", pausing=pausing and bool(actor),
            asked_state=item["state"] if item else "", asked_outcome=item["outcome"] if item else "",
            lease={"runner": "runner 1", "age_s": 0.0}, held=HELD.get(graph, ""),
            waiting=tuple(WaitingApproval(1, row["action"].get("author", "")) for row in for_people),
        )  # fmt: skip
        found = decide_standing(facts, sum(row["action"].get("author") != "user:1" for row in for_people))
        expected.append([found["name"], found["word"], found["tone"], found["reason"]])
    config = {"me": "user:1", "refusal": "", "ended_states": sorted(ACTOR.terminal)}
    assert run("session/standings.js", SESSIONS, {"cases": cases, "config": config}) == expected


def test_what_a_decision_changes_is_noted_of_the_task_that_waited(run):
    script = """
        const { Fold, Changes } = await import("/static/frontend/fold.js");
        const fold = new Fold();
        fold.load({ seq: 1, rows: input });
        const found = new m.Standings(fold, { me: "user:1", refusal: "" });
        const first = new Changes();
        first.note("approval", 7, true);
        found.take(first);
        const decided = fold.apply({ seq: 2, data: { set: { approval: { 7: { state: "approved" } } } } });
        found.take(decided);
        const { word } = found.taskLook(fold.get("task", 1));
        return [[...decided.ids.task], decided.restructured("task"), word];
    """
    assert run("session/standings.js", script, WORK) == [[1], False, "Running"]


FOLDING = """
const { count, edges, open = [], done = [] } = input;
return m.foldGraph(count, edges, { isOpen: (node) => open.includes(node), isDone: (node) => done.includes(node) }).groups;
"""
LINE = [[number, number + 1] for number in range(6)]
FAN = [[0, number] for number in range(1, 14)] + [[number, 14] for number in range(1, 14)]


@pytest.mark.parametrize(
    ("graph", "groups"),
    [
        ({"count": 7, "edges": LINE}, [{"kind": "row", "nodes": [1, 2, 3, 4, 5]}]),
        ({"count": 7, "edges": [*LINE, [0, 3]]}, []),
        ({"count": 7, "edges": LINE, "open": [2]}, [{"kind": "row", "nodes": [3, 4, 5]}]),
        ({"count": 15, "edges": FAN}, []),
        ({"count": 15, "edges": FAN, "done": list(range(13))}, [{"kind": "layer", "nodes": list(range(1, 13))}]),
        ({"count": 15, "edges": FAN, "done": list(range(12))}, []),
        ({"count": 15, "edges": [*FAN, [0, 14]], "done": list(range(14)), "open": [3, 4]}, []),
        ({"count": 0, "edges": []}, []),
    ],
)
def test_rows_of_tasks_and_completed_ones_side_by_side_fold_unless_they_are_opened(run, graph, groups):
    assert run("graph/folding.js", FOLDING, graph) == groups


RESTING = """
const { Fold } = await import("/static/frontend/fold.js");
const host = document.createElement("div");
document.body.append(host);
const row = (id) => ({ id, constellation_id: 7, task_id: `t${id}`, name: "", state: "PENDING", max_attempts: 1 });
const fold = new Fold();
fold.take(1, { task: new Map(Array.from({ length: 700 }, (_, i) => [i + 1, row(i + 1)])) });
const graph = new m.Graph(host, { fold, deviceName: () => "", onOpen: () => {}, now: () => 0 });
const drawn = (count) =>
  new Promise((resolve) => {
    new MutationObserver(() => Number(host.dataset.tasks) === count && resolve()).observe(host, { attributes: true });
  });
const first = drawn(700);
graph.show(7);
graph.tick(performance.now());
await first;
const all = drawn(701);
graph.update(fold.apply({ seq: 2, data: { add: { task: [row(701)] } } }));
graph.tick(0);
for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve));
const resting = host.dataset.tasks;
graph.tick(Infinity);
await all;
host.remove();
return [resting, host.dataset.tasks];
"""


def test_a_large_graph_that_is_still_built_is_drawn_now_and_then(run):
    """So that what it is built from comes in: the next shape waits longer than the last one took."""
    assert run("graph/graph.js", RESTING) == ["700", "701"]


def test_a_list_that_changes_leaves_nothing_behind(run):
    """Releases of the library from 3.3 on leave a comment for each row that goes."""
    script = """
      const list = document.createElement("ul");
      const draw = (from) => {
        const keys = [0, 1, 2].map((key) => key + from);
        m.render(m.html`${m.repeat(keys, (key) => key, (key) => m.html`<li>${key}</li>`)}`, list);
        return list.childNodes.length;
      };
      const first = draw(0);
      for (let from = 1; from < 100; from++) draw(from);
      return [first, draw(100), list.textContent];
    """
    first, last, text = run("vendor/lit.js", script)
    assert last == first
    assert text == "100101102"


def test_a_text_is_cut_to_a_width_by_the_widths_of_its_characters(run):
    script = """
      const texts = [];
      const measure = OffscreenCanvasRenderingContext2D.prototype.measureText;
      OffscreenCanvasRenderingContext2D.prototype.measureText = function (text) {
        texts.push(text);
        return measure.call(this, text);
      };
      const cut = m.cutter("13px sans-serif");
      const context = new OffscreenCanvas(1, 1).getContext("2d");
      context.font = "13px sans-serif";
      const long = "several words that are wider than what there is";
      const found = [cut("short", 120), cut(long, 120), cut("👩 👩 👩 👩 👩 👩 👩 👩 👩 👩 👩", 60), cut("abc", 0)];
      OffscreenCanvasRenderingContext2D.prototype.measureText = measure;
      const longest = Math.max(...texts.map((text) => [...text].length));
      const { width } = context.measureText(found[1]);
      return { found, width, long, longest, lone: found.some((text) => !text.isWellFormed()) };
    """
    seen = run("format.js", script)
    assert seen["found"][0] == "short"
    assert seen["found"][1].endswith("…")
    assert seen["long"].startswith(seen["found"][1][:-1])
    assert 90 < seen["width"] <= 120
    assert seen["found"][3] == "…"
    assert (seen["longest"], seen["lone"]) == (1, False)


def test_of_panels_that_are_due_one_is_drawn_in_a_frame_and_none_waits_for_long(run):
    """Frames come every 50 ms, so that five panels of 200 ms want more than there is."""
    script = """
      const panels = [0, 1, 2, 3, 4].map(() => new m.Pace({ pause: 200 }));
      const drawn = [];
      for (let time = 0; time < 2000; time += 50) {
        const now = [];
        panels.forEach((panel, i) => {
          panel.isDue = true;
          if (panel.takes(time)) now.push(i);
        });
        drawn.push(now);
      }
      return drawn;
    """
    drawn = run("session/pace.js", script)
    assert max(map(len, drawn)) == 1
    counts = [sum(now == [panel] for now in drawn) for panel in range(5)]
    assert sum(counts) == len(drawn)
    assert max(counts) - min(counts) <= 1


def test_a_panel_that_is_put_off_and_closed_keeps_nobody_waiting(run):
    script = """
      const [first, closed, other] = [0, 1, 2].map(() => new m.Pace({ isDue: true, pause: 100 }));
      const long = new m.Pace({ isDue: true });
      for (const time of [9000, 9016, 9032]) long.takes(time); // panels of other tests are closed
      const frames = [[first, closed, other].map((panel) => panel.takes(10_000))];
      frames.push([other.takes(10_016)], [other.takes(10_032)], [other.takes(10_048)]);
      other.isDue = first.isDue = true;
      frames.push([other.takes(10_064), first.takes(10_064)], [first.takes(10_160)]);
      return frames;
    """
    assert run("session/pace.js", script) == [[True, False, False], [False], [True], [False], [False, False], [True]]

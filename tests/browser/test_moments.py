"""Moments of a session out of one another, by the modules of the page and in the browser."""

import random
from operator import itemgetter

import pytest

from agents.streams.columns import tell_difference
from agents.streams.differences import TableDifference
from agents.streams.fold import fold_events
from agents.streams.tables import TABLES
from tests.browser.test_modules import anywhere, run  # noqa: F401 (fixtures)

pytestmark = pytest.mark.browser


WANDERING = """
const { Fold } = await import("/static/frontend/fold.js");
const { foldAt } = await import("/static/frontend/session/snapshot.js");
let known = [new Fold(input.defaults)];
const found = [];
for (const [seq, answers] of input.moments) {
  const base = m.nearest(known, seq);
  const before = JSON.stringify([...base.table("task").values()]);
  const fold = await foldAt(base, answers[base.seq]);
  if (JSON.stringify([...base.table("task").values()]) !== before) throw new Error(`the fold at ${base.seq} has changed`);
  known = m.spread([...known, fold]);
  found.push([...fold.table("task").values()]);
}
return { found, kept: known.length };
"""


def test_the_page_comes_from_any_moment_to_any_other_by_what_differs(run):  # noqa: F811
    """Tasks come, change, go and come back: the rows are those of the fold, in the order of their ids."""
    chance = random.Random(3)
    events, there = [], {}
    for seq in range(1, 121):
        key = chance.randint(1, 30)
        if key not in there:
            there[key] = seq
            data = {"add": {"task": [{"id": key, "task_id": f"t{key}", "constellation_id": 7, "name": f"made by {seq}"}]}}
        elif chance.random() < 0.3:
            del there[key]
            data = {"del": {"task": [key]}}
        else:
            data = {"set": {"task": {str(key): {"state": "RUNNING", "result": seq, "entered_at": f"at {seq}"}}}}
        events.append({"seq": seq, "data": data})
    before = [{}] + [fold_events(events[:seq]).get("task", {}) for seq in range(1, 121)]

    def answer(seq, since):
        """As the server gives it, of the rows at two moments."""
        was, now = (
            {int(key): tuple(row.get(name) for name in TABLES["task"].kinds) for key, row in before[moment].items()}
            for moment in (since, seq)
        )
        ids = was.keys() | now.keys()
        each = TableDifference({key: was.get(key) for key in ids}, {key: now.get(key) for key in ids}, set(range(99)))
        return {"seq": seq, "since": since, **tell_difference({"task": each})}

    moments = [chance.randint(0, 120) for _ in range(25)]
    given = [[seq, {since: answer(seq, since) for since in {0, *moments}}] for seq in moments]
    told = run("session/time/moments.js", WANDERING, {"moments": given, "defaults": {"task": TABLES["task"].defaults}})
    names = ["id", "task_id", "name", "state", "result", "entered_at"]
    shown = [[[row[name] for name in names] for row in rows] for rows in told["found"]]
    ordered = [sorted(before[seq].values(), key=itemgetter("id")) for seq in moments]
    assert shown == [[[row.get(name) for name in names] for row in rows] for rows in ordered]
    assert told["kept"] == 6


def test_what_is_otherwise_at_another_moment_is_told_by_its_rows(run):  # noqa: F811
    script = """
        const rows = (...ids) => new Map(ids.map((id) => [id, { id }]));
        const before = new m.Fold();
        before.take(5, { task: rows(1, 2, 3), agent: rows(7) });
        const found = { columns: ["id", "state"], rows: [[1, "FAILED"]] };
        const after = before.elsewhere({ seq: 3, tables: { task: rows(9) }, changed: { task: found }, gone: { task: [3] } });
        const changes = m.jumpBetween(before, after);
        const told = Object.fromEntries(Object.entries(changes.ids).map(([name, ids]) => [name, [...ids].sort()]));
        const rowsNow = [after.get("task", 1), before.get("task", 1), after.rows.agent === before.rows.agent];
        return [told, [...changes.structure], changes.has("device"), ...rowsNow];
    """
    one = [{"id": 1, "state": "FAILED"}, {"id": 1}]
    assert run("fold.js", script) == [{"task": [1, 3, 9]}, ["task"], True, *one, True]


@pytest.mark.parametrize("written", ["the first", "the second"])
def test_folds_that_share_a_table_do_not_write_into_that_of_the_other(run, written):  # noqa: F811
    """A copy, and another moment: whichever of the two the next event is for, the other one stays as it is."""
    script = """
        const events = [{ set: { task: { 1: { state: "FAILED" } } } }, { add: { task: [{ id: 3 }] } }, { del: { task: [2] } }];
        const otherwise = { seq: 5, tables: { agent: new Map() }, changed: {}, gone: {} };
        return [(fold) => fold.copy(), (fold) => fold.elsewhere(otherwise)].map((other) => {
          const first = new m.Fold();
          first.take(5, { task: new Map([[1, { id: 1 }], [2, { id: 2 }]]) });
          const second = other(first);
          const isShared = first.rows.task === second.rows.task;
          const [one, rest] = input === "the first" ? [first, second] : [second, first];
          events.forEach((data, i) => one.apply({ seq: 6 + i, data }));
          return [isShared, [...one.table("task").values()], [...rest.table("task").values()]];
        });
    """
    after, before = [{"id": 1, "state": "FAILED"}, {"id": 3}], [{"id": 1}, {"id": 2}]
    assert run("fold.js", script, written) == [[True, after, before]] * 2


def test_the_moment_from_which_least_has_to_be_told_is_gone_from(run):  # noqa: F811
    """A fold from before the plan lacks all its rows; one that is kept goes where its neighbours differ least."""
    script = """
        const fold = (seq, size) => ({ seq, size });
        const folds = [fold(1, 0), fold(9_000, 900), fold(50_000, 1_000)];
        const near = [90, 1, 8_000, 40_000].map((seq) => m.nearest(folds, seq).seq);
        const kept = m.spread([1, 99, 5_000, 5_100, 9_000, 50_000, 20_000].map((seq) => fold(seq, seq > 50 ? 9_000 : 0)));
        return [near, kept.map(({ seq }) => seq)];
    """
    near, kept = run("session/time/moments.js", script)
    assert (near, kept) == ([1, 1, 9_000, 50_000], [1, 99, 5_000, 9_000, 20_000, 50_000])


SCENE = """
const { Fold } = await import("/static/frontend/fold.js");
const fold = new Fold();
const row = (id, more) => [id, { id, constellation_id: 7, ...more }];
const ends = (from, to) => ({ upstream_id: from, downstream_id: to, type: "SUCCESS_ONLY", condition: "" });
const tasks = Array.from({ length: 60 }, (_, i) => row(i + 1, { state: "PENDING" }));
const dependencies = Array.from({ length: 59 }, (_, i) => row(i + 101, ends(1, i + 2)));
fold.take(1, { task: new Map(tasks), dependency: new Map(dependencies) });
const scene = new m.Scene(fold, 7, { lookOf: () => ({ tone: "done", word: "Done" }), folded: new Set() });
if (input) fold.apply({ seq: 2, data: input });
return scene.fits(7, new Set());
"""
DONE = {"set": {"task": {str(number): {"state": "COMPLETED"} for number in range(2, 14)}}}


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        (None, True),
        ({"set": {"task": {"5": {"state": "RUNNING"}}, "dependency": {"105": {"state": "held"}}}}, True),
        ({"set": {"dependency": {"105": {"upstream_id": 3}}}}, False),
        ({"set": {"dependency": {"105": {"type": "UNCONDITIONAL"}}}}, False),
        ({"del": {"task": [60]}}, False),
        ({"add": {"task": [{"id": 61, "constellation_id": 7, "state": "PENDING"}]}}, False),
        (DONE, False),
    ],
    ids=["nothing", "states", "an end", "a label", "one gone", "one more", "a layer that folds now"],
)
def test_a_picture_is_that_of_another_moment_where_nothing_changes_its_places(run, data, fits):  # noqa: F811
    assert run("graph/scene.js", SCENE, data) is fits

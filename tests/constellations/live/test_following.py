"""A graph that follows the events of its session is always the one that a reading finds: through edits, retries, pauses,
restarts and reopenings, in any order."""

from contextlib import suppress
from copy import deepcopy
from random import Random
from threading import Thread

import pytest
from django.db import connections

from agents import ids
from agents.errors import AgentsError
from agents.streams.fold import consistent_read, events_since, fold_events, stream_head
from constellations.live import kept as graph_reads
from constellations.live.live import LiveGraph
from constellations.machines.constellation import CLOSED
from constellations.models import Constellation
from constellations.services import lifecycle
from constellations.services.edits import edit_apply
from tests.constellations.runs.test_run import command, noop
from tests.constellations.services.test_live_edits import shape, until
from tests.reliability.random_edits import Chance

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified"), pytest.mark.attack]
BY = "user:1"
TASKS, ACTIONS = 14, 30
STRETCH = 12
"""Events that are followed at once, at most."""
READINGS = 3
"""Of each constellation, from different moments on."""
TYPES = ("SUCCESS_ONLY", "COMPLETION_ONLY", "UNCONDITIONAL", "CONDITIONAL")


def a_task(random: Random, task_id: str) -> dict:
    """It fails, fails and is tried again, has a result that conditions read, or takes its time."""
    return random.choice(
        [
            noop(task_id, {"n": random.randrange(4)}),
            command(task_id, "false"),
            command(task_id, "false", max_attempts=2, backoff=0.02),
            command(task_id, "sleep", random.choice(["0", "0.05", "0.2"])),
        ]
    )


def plan(random: Random) -> dict:
    lines = []
    for number in range(TASKS):
        for up in random.sample(range(number), min(number, random.randrange(3))):
            kind = random.choice(TYPES)
            condition = {"condition": "n > 1"} if kind == "CONDITIONAL" else {}
            lines.append({"from": f"t{up}", "to": f"t{number}", "type": kind, **condition})
    rule = {"name": "r", "when": {"event": "task_failed"}, "times": 2, "edit": [{"add_task": noop("again-{task}")}]}
    tasks = [command("hold", "sleep", "1"), *(a_task(random, f"t{number}") for number in range(TASKS))]
    return {"tasks": tasks, "dependencies": lines, "replan": [rule]}


class Outsider(Thread):
    """Edits, retries, pauses, resumes and restarts at random; compares what it has kept after each."""

    def __init__(self, random: Random):
        super().__init__(daemon=True)
        self.random = random
        self.chance = Chance(random, "e", ["laptop"])
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            until(lambda: Constellation.objects.filter(state="EXECUTING").exists())
            for number in range(ACTIONS):
                key = Constellation.objects.latest("id").pk
                with suppress(AgentsError):
                    self.act(number, key)
                compare_kept(key)
        except BaseException as error:
            self.error = error
        finally:
            with suppress(AgentsError):
                lifecycle.constellation_resume(Constellation.objects.latest("id").pk, by=BY)
            connections.close_all()

    def act(self, number: int, key: int) -> None:
        with consistent_read():
            live = graph_reads.read_graph(key)
        bad = [name for name, node in live.nodes.items() if node.row["state"] in ("FAILED", "CANCELLED") and not node.skipped]
        weights = {"edit": 6, "broken": 2, "retry": 4, "pause": 1, "resume": 2, "restart": 1 if number == ACTIONS // 2 else 0}
        match self.random.choices(list(weights), list(weights.values()))[0]:
            case "edit":
                edit_apply(key, self.chance.change_set(live), author=BY, edit_id=f"e{number}")
            case "broken":
                edit_apply(key, self.chance.broken(live), author=BY)
            case "retry":
                lifecycle.constellation_retry(key, self.random.sample(bad, min(len(bad), 2)), by=BY)
            case "pause":
                lifecycle.constellation_pause(key, by=BY)
            case "resume":
                lifecycle.constellation_resume(key, by=BY)
            case "restart":
                lifecycle.constellation_restart(key, by=BY)


def compare_kept(key: int) -> None:
    """What this process has kept, brought to the newest state, and what is read anew."""
    kept, stream = graph_reads.KEPT.take(key), ids.stream_of(key)
    if kept is None:
        return
    with consistent_read():
        now, fresh = stream_head(stream), graph_reads.read_graph(key)
    brought = graph_reads._brought_to(kept, stream, now)
    assert shape(brought) == shape(fresh)
    check_order(brought)
    graph_reads.KEPT.put(graph_reads.GraphReadAhead(brought, now))


def check_order(live: LiveGraph) -> None:
    """Every task comes after all it waits for."""
    order = {str(key): place for place, key in enumerate(live.graph.in_order(list(live.nodes)))}
    assert set(order) == set(live.nodes)
    assert all(order[edge.up.key] < order[edge.down.key] for edge in live.edges.values())


def graph_from(events: list[dict], key: int) -> LiveGraph:
    rows = fold_events(deepcopy(events))
    live = LiveGraph(rows["constellation"][str(key)], lambda node: None)
    own = ([row for row in rows.get(name, {}).values() if row["constellation_id"] == key] for name in ("task", "dependency"))
    live.load(*own)
    return live


def follow(random: Random, events: list[dict], key: int) -> None:
    """From one moment to the end, in stretches."""
    made = [any(row["id"] == key for row in event["data"].get("add", {}).get("constellation", ())) for event in events]
    at = random.randrange(made.index(True) + 1, len(events))
    live = graph_from(events[:at], key)
    while at < len(events):
        until_then = min(at + random.randint(1, STRETCH), len(events))
        live.catch_up(deepcopy([event["data"] for event in events[at:until_then]]))
        at = until_then
        assert shape(live) == shape(graph_from(events[:at], key))
        check_order(live)


def all_events(session: int) -> list[dict]:
    found: list[dict] = []
    while page := events_since(session, len(found)):
        found += page
    return found


@pytest.mark.parametrize("seed", range(3))
def test_following_is_reading(engine, device, seed):
    random = Random(seed)
    session, _ = engine.submit(plan(random))
    outsider = Outsider(random)
    outsider.start()
    engine.run()
    outsider.join()
    engine.run()
    assert outsider.error is None, repr(outsider.error)
    found = Constellation.objects.latest("id")
    assert found.state in CLOSED
    failed = list(found.tasks.filter(state="FAILED").values_list("task_id", flat=True))
    lifecycle.constellation_reopen(found.pk, by=BY, retry=failed[:1], operations=[{"add_task": noop("more")}])
    engine.run()
    events = all_events(session.pk)
    for each in Constellation.objects.all():
        for _ in range(READINGS):
            follow(random, events, each.pk)

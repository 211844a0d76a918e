"""Benchmarks of work with language models: how many wait side by side, what that holds, how soon their words are seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import memory
from benchmarks.report import Row

if TYPE_CHECKING:
    from benchmarks.suite import Run

RUNNERS = 2
AGENTS_A_SESSION = 25
AT_WORK = 500
"""Agents of a whole run; goals are for so many."""
HERE = {"ORRERY_MODEL_HOSTS": "127.0.0.1", "ORRERY_UNASKED": "{}"}
WORDS = "Prepare the data, then train."
SCRIPT = Path(__file__).with_name("waiting_model.yaml")


def models(run: Run) -> Iterator[Row]:
    """A short look goes over HTTP with the first token only: each process that asks imports a library for seconds."""
    yield from _agents(run, over_http=False)
    yield _first_token(run)
    if run.size.minds >= AT_WORK:
        yield from _agents(run, over_http=True)
        yield from _sessions(run)


def _agents(run: Run, over_http: bool) -> Iterator[Row]:
    """Many agents that ask once each and wait two seconds for the answer."""
    count, wait = run.size.minds, 2.0
    with ExitStack() as stack:
        place = stack.enter_context(run.ground.place(**HERE))
        url = stack.enter_context(place.scripted_model(SCRIPT)) if over_http else "http://127.0.0.1:9/v1"
        place.call("models.furnish", base_url=url)
        serve = {"function": "runners.serve"} if over_http else {"function": "models.serve_waiting", "seconds": wait}
        started = [stack.enter_context(place.process(**serve)) for _ in range(RUNNERS)]
        _, web = stack.enter_context(place.web())
        for runner in started:
            runner.read()
        if over_http:  # each runner has imported the libraries
            place.call("models.agents", sessions=2 * RUNNERS, each=4)
        watch = stack.enter_context(place.process("models.agents", sessions=count // AGENTS_A_SESSION, each=AGENTS_A_SESSION))
        found = watch.result()
        held = sum(memory(pid)[1] for pid in (web, *(runner.pid for runner in started)))
    how, target = ("over HTTP", "minds, HTTP") if over_http else ("inside the process", "minds")
    of = f"{found['answered']} answered, {found['completed']} of {count // AGENTS_A_SESSION} sessions completed"
    what = f"{count} agents that wait {wait:g} s each for a model {how}"
    yield run.row(what, found["seconds"], "s", target=target if count >= AT_WORK else "", note=of)
    note = f"{RUNNERS} runners and a web process, proportional, afterwards"
    yield run.row(f"{what}: memory", held, "MB", target="minds, memory" if count >= AT_WORK else "", note=note)


def _sessions(run: Run) -> Iterator[Row]:
    """Sessions that are asked in words, each planned by a model that takes two seconds for an answer."""
    count = run.size.minds // 10
    with ExitStack() as stack:
        place = stack.enter_context(run.ground.place(**HERE))
        place.call("models.furnish", base_url=stack.enter_context(place.scripted_model(SCRIPT)))
        started = [stack.enter_context(place.process("runners.serve")) for _ in range(RUNNERS)]
        for runner in started:
            runner.read()
        place.call("models.planned", sessions=2 * RUNNERS, words=WORDS)
        one = place.call("models.planned", sessions=1, words=WORDS)
        many = place.call("models.planned", sessions=count, words=WORDS)
    note = f"{many['seconds']:.1f} s beside {one['seconds']:.1f} s of one; {many['completed']} of {count} completed"
    what = f"{count} sessions planned by a model that takes 2 s, beside one"
    yield run.row(what, many["seconds"] / one["seconds"], "times", target="minds, sessions" if count >= 50 else "", note=note)


def _first_token(run: Run) -> Row:
    with ExitStack() as stack:
        place = stack.enter_context(run.ground.place(**HERE))
        model = stack.enter_context(place.process("models.clock_model"))
        place.call("models.furnish", base_url=f"http://127.0.0.1:{model.read()}/v1")
        runner = stack.enter_context(place.process("runners.serve"))
        port, _ = stack.enter_context(place.web())
        runner.read()
        times = place.call("models.first_tokens", trials=run.size.trials, port=port, token=place.furniture["token"])
    return run.latency("a model's first token > websocket", times, "first token")

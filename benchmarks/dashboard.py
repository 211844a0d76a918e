"""The page of a session in headless chromium, against a real web server and a real runner: docs/benchmarks.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.places import CALL_S, BenchmarkFailed, Place
from benchmarks.report import Row

if TYPE_CHECKING:
    from benchmarks.suite import Run

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--enable-precise-memory-info")
VIEW = {"width": 1440, "height": 900}
PROBE = Path(__file__).with_name("probe.js").read_text()
WHEELS = 60
"""Turns of the wheel: half of them towards the graph, half away."""
PACE_S = 0.25
"""Of one task of the chain whose events come about ten a second."""
SETTLED_S = 10.0
"""After this a page that was opened has drawn all there is."""
COLLECT = "HeapProfiler.collectGarbage"


SEEKS = 20
"""Moments that are looked at, spread over the stream."""
STEPS = 240
"""Of the table's scrolling: half of them by three rows, half by a page and more."""


def dashboard(run: Run) -> Iterator[Row]:
    """The rows that are asked for by name, each on what it needs; all of them where none is."""
    with run.ground.place() as place, place.web() as (port, _), _browser() as browser:
        for name, measure in STILL.items():
            if name in run.rows:
                yield from measure(run, browser, place, port)
        if not set(RUNNING).intersection(run.rows):
            return
        with place.process("runners.serve") as runner:
            runner.read()
            for name, measure in RUNNING.items():
                if name in run.rows:
                    yield from measure(run, browser, place, port)


def _small(run: Run, browser: Browser, place: Place, port: int) -> Iterator[Row]:
    tasks = run.size.graphs[0]
    yield from _opened(run, browser, place, port, place.call("dashboard.finished", tasks=tasks), tasks)


def _large(run: Run, browser: Browser, place: Place, port: int) -> Iterator[Row]:
    tasks = run.size.graphs[1]
    yield from _opened(run, browser, place, port, place.call("dashboard.finished", tasks=tasks), tasks)


def _seek(run: Run, browser: Browser, place: Place, port: int) -> Iterator[Row]:
    """From the moment that a hand drags to, to the frame after it is shown. The first look, which folds all, is told beside.

    The hand comes to the bar first.
    """
    session = place.call("dashboard.finished", tasks=run.size.past)
    with _page(browser, place, port) as page:
        _show(page, session, run.size.past)
        page.get_by_label("Moment").hover()
        events = page.evaluate("Number(document.body.dataset.seq)")
        first, *times = [
            page.evaluate("share => probe.sought(share)", (seek * 7 % SEEKS + 0.5) / SEEKS) for seek in range(SEEKS)
        ]
    yield run.latency(f"seek in {events:,} events, after a first look of {first:,.0f} ms", _seconds(times), "seek")


def _table(run: Run, browser: Browser, place: Place, port: int) -> Iterator[Row]:
    """The table is scrolled while tasks run."""
    tasks = run.size.graphs[1]
    with _page(browser, place, port) as page:
        session = _empty(page, place, "?tab=table")
        place.call("dashboard.post", session=session, tasks=tasks, tool="blink")
        page.locator("#view-table .row[data-row]").first.wait_for()
        page.evaluate("probe.watch()")
        page.evaluate("steps => probe.scrolled(steps)", STEPS)
        frames = page.evaluate("probe.frames")
    yield _frames(run, f"frames while a table of {tasks:,} rows scrolls and its tasks run", frames, "table")


@contextmanager
def _browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        raise BenchmarkFailed(f"there is no {CHROMIUM}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def _page(browser: Browser, place: Place, port: int) -> Iterator[Page]:
    """Of somebody who is logged in."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{port}", viewport=VIEW)  # type: ignore[arg-type]
    context.set_default_timeout(CALL_S * 1000)
    context.add_init_script(PROBE)
    page = context.new_page()
    try:
        page.goto(place.call("dashboard.login_link", port=port))
        yield page
    finally:
        context.close()


def _show(page: Page, session: int, tasks: int) -> float:
    """Open a session; ms until its graph is on the screen."""
    page.goto(f"/sessions/{session}/", wait_until="commit")
    return page.evaluate("tasks => probe.shown(tasks)", tasks)


def _opened(run: Run, browser: Browser, place: Place, port: int, session: int, tasks: int) -> Iterator[Row]:
    """First paint, the longest task of the page's thread meanwhile, and turning the wheel."""
    times, longest = [], []
    with _page(browser, place, port) as page:
        _show(page, session, tasks)  # the first fills the browser's cache and wakes the web server
        for _ in range(run.size.views):
            times.append(_show(page, session, tasks))
            page.wait_for_timeout(1000)
            longest.append(max(page.evaluate("probe.long"), default=0.0))
        wire = page.evaluate("probe.loaded()")
        frames = _turn_the_wheel(page)
    name, is_small = f"{tasks:,} tasks", tasks == run.size.graphs[0]
    each = f"each {', '.join(f'{one:.0f}' for one in times)}"
    yield run.row(f"{name} shown", statistics.median(times), "ms", target="shown" if is_small else "shown, large", note=each)
    beside = f"{wire['socket'] / 1e6:.1f} MB over the websocket before its compression"
    yield run.row(f"{name}: snapshot on the wire", wire["snapshot"] / 1e6, "MB", target="snapshot", note=beside)
    yield run.row(f"{name}: static files asked for again", wire["static"], "requests", target="static")
    each = f"each {', '.join(f'{one:.0f}' for one in longest)}"
    yield run.row(f"{name}: longest task of the page's thread", statistics.median(longest), "ms", target="longest", note=each)
    yield _frames(run, f"{name}: frames while the wheel turns", frames)


def _turn_the_wheel(page: Page) -> list[float]:
    box = page.locator("#graph").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.evaluate("probe.watch()")
    for number in range(WHEELS):
        page.mouse.wheel(0, -90 if number < WHEELS / 2 else 90)
        page.wait_for_timeout(16)
    return page.evaluate("probe.frames")


def _paced(run: Run, browser: Browser, place: Place, port: int) -> Iterator[Row]:
    with _page(browser, place, port) as page:
        session = _empty(page, place)
        place.call("dashboard.post_chain", session=session, tasks=int(run.size.watched / PACE_S), seconds=PACE_S)
        found = _watched(page, run.size.watched)
    yield run.latency("event > pixels, about ten events a second", _seconds(found["lags"]), "pixels")


def _at_full_speed(run: Run, browser: Browser, place: Place, port: int) -> Iterator[Row]:
    """From when all tasks are shown: events of the building have the time when it began, a second before its commit."""
    tasks = run.size.graphs[1]
    with _page(browser, place, port) as page:
        session = _empty(page, place)
        place.call("dashboard.post", session=session, tasks=tasks, tool="blink")
        built = page.evaluate("tasks => probe.shown(tasks)", tasks)
        found = _watched(page, run.size.watched)
    name = f"while {tasks:,} tasks of 50 ms run"
    beside = f"from when all are shown, {built / 1000:.1f} s after the page was opened"
    yield run.latency(f"event > pixels, {name}", _seconds(found["lags"]), "pixels, full speed", beside)
    yield _frames(run, f"frames {name}", found["frames"])


def _heap(run: Run, browser: Browser, place: Place, port: int) -> Iterator[Row]:
    """Of a page that stays open over work that goes on, after its first tenth and at the end."""
    with _page(browser, place, port) as page:
        session = place.call("dashboard.empty")
        page.goto(f"/sessions/{session}/")
        place.call("dashboard.post_chain", session=session, tasks=int(run.size.open / PACE_S), seconds=PACE_S)
        page.wait_for_timeout(run.size.open * 100)
        before = _heap_used(page)
        page.wait_for_timeout(run.size.open * 900)
        after = _heap_used(page)
        with _page(browser, place, port) as other:  # what it has beyond this one is nothing that the session is made of
            other.goto(f"/sessions/{session}/")
            other.wait_for_timeout(SETTLED_S * 1000)
            fresh = _heap_used(other)
    note = f"from {before:.1f} to {after:.1f} MB between {run.size.open / 10:.0f} and {run.size.open:.0f} s, after a collection"
    yield run.row("heap of an open page: growth", after - before, "MB", target="heap", note=note)
    note = f"of which {fresh:.1f} MB are in a page that was just opened"
    yield run.row("heap of an open page: beyond one that was just opened", after - fresh, "MB", note=note)


def _heap_used(page: Page) -> float:
    """Megabytes."""
    devtools = page.context.new_cdp_session(page)
    devtools.send(COLLECT)
    used = devtools.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    devtools.detach()
    return used


def _watched(page: Page, seconds: float) -> dict[str, Any]:
    """How late its events were, and its frames."""
    page.evaluate("probe.watch()")
    page.wait_for_timeout(seconds * 1000)
    found = page.evaluate("({ lags: probe.lags, frames: probe.frames })")
    if len(found["lags"]) < 2:
        raise BenchmarkFailed("the page has shown no events")
    return found


def _empty(page: Page, place: Place, query: str = "") -> int:
    """A session without a request, open and live."""
    session = place.call("dashboard.empty")
    page.goto(f"/sessions/{session}/{query}")
    page.locator('#connection[data-state="live"]').wait_for()
    return session


def _frames(run: Run, what: str, times: list[float], target: str = "frames") -> Row:
    return run.latency(what, _seconds(times), target)


def _seconds(times: list[float]) -> list[float]:
    return [one / 1000 for one in times]


Measure = Callable[["Run", Browser, Place, int], Iterator[Row]]
STILL: dict[str, Measure] = {"small": _small, "large": _large, "seek": _seek}
"""Rows of sessions that have been carried out..."""
RUNNING: dict[str, Measure] = {"paced": _paced, "speed": _at_full_speed, "table": _table, "heap": _heap}
"""...and of those that a runner beside carries out meanwhile."""
ROWS = (*STILL, *RUNNING)

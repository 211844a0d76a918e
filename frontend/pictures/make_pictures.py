"""Takes the pictures of the dashboard from the real thing: those of the README, or of every page to look at.

    python frontend/pictures/make_pictures.py              # docs/pictures/, which the README shows
    python frontend/pictures/make_pictures.py --all FOLDER # each page in light and dark, at 1440, 1280 and 390 pixels

It needs what the tests in the browser need: requirements-dev.txt and Debian's chromium. An installation of its own is started
in a temporary folder and runs examples of the repository; nothing is drawn by hand, and nothing of other installations is seen.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
START_S = 90.0
RUN_MS = 180_000
"""Far above what starting and the examples take."""
WIDTHS = {1440: 900, 1280: 800, 390: 844}
"""Heights by widths of windows, in pixels."""
SCHEMES = ("light", "dark")
LOOK_MS = 50
FRAME_MS = 600
LAST_MS = 3_000
"""Of the animation: how often it is looked whether something has changed, and how long a frame and the last are shown."""
QUALITY = 50
STATES = "[...document.querySelectorAll('[data-task]')].map((node) => node.dataset.task + node.dataset.state).join()"
GATED = """\
name: release
tasks:
  - {task_id: build, name: Build the pages, device: laptop, command: [sh, -c, "echo 214 pages"]}
  - {task_id: links, name: Check the links, device: laptop, after: [build], command: [sh, -c, "echo 3 are dead >&2; exit 1"]}
  - {task_id: index, name: Build the search, device: laptop, command: [sleep, "3600"], after: [build]}
  - {task_id: publish, name: Publish, device: laptop, command: [echo, published], after: [index], confirm: true}
  - {task_id: tell, name: Tell the readers, device: laptop, confirm: true, command: [echo, told]}
"""


class Installation:
    """A migrated database in `folder`, served by `up` at a free port of this host."""

    def __init__(self, folder: Path):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._output = folder / "up.out"
        own = {
            "ORRERY_STATE_DIR": str(folder),
            "DATABASE_URL": f"sqlite:///{folder / 'pictures.sqlite3'}",
            "ORRERY_RUNNERS": "1",
        }
        self._environment = {**os.environ, **own}

    def manage(self, *arguments: str) -> str:
        """What the command says; raises CalledProcessError."""
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self._environment, check=True, capture_output=True, text=True, timeout=START_S
        ).stdout.strip()

    @contextmanager
    def served(self) -> Iterator[None]:
        """Up until the end of the block; raises SystemExit where it does not come up."""
        command = [sys.executable, "manage.py", "up", "--port", str(self.port)]
        with self._output.open("w") as output:
            up = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + START_S
            while "Orrery is up" not in self._output.read_text():
                if up.poll() is not None or time.monotonic() > deadline:
                    sys.exit(self._output.read_text())
                time.sleep(0.1)
            yield
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(START_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every page, in every scheme and width, into this folder")
    every = parser.parse_args().all
    with tempfile.TemporaryDirectory(prefix="orrery-pictures-") as name, sync_playwright() as playwright:
        installation = Installation(Path(name))
        installation.manage("migrate", "--verbosity", "0")
        with installation.served():
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
            cookies = log_in(browser, installation)
            if every:
                picture_everything(browser, installation, cookies, every)
            else:
                picture_readme(browser, installation, cookies, ROOT / "docs" / "pictures")
            browser.close()


def log_in(browser: Browser, installation: Installation) -> list:
    """Cookies of a person who may see and do everything."""
    installation.manage("shell", "--verbosity", "0", "--command", PERSON)
    context = browser.new_context()
    context.new_page().goto(installation.manage("login_link", "ada", "--base-url", installation.address))
    found = context.cookies()
    context.close()
    return found


PERSON = """
from django.contrib.auth.models import User
from project.demo.demo import furnish_installation
furnish_installation()
User.objects.create_superuser("ada")
"""


@contextmanager
def opened(browser: Browser, installation: Installation, cookies: list, width: int, scheme: str = "light") -> Iterator[Page]:
    """A page of that width; its folder of cookies is gone after the block."""
    context = browser.new_context(
        base_url=installation.address,
        viewport={"width": width, "height": WIDTHS[width]},
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    context.add_cookies(cookies)
    page = context.new_page()
    page.set_default_timeout(RUN_MS)
    try:
        yield page
    finally:
        context.close()


def run_plan(page: Page, title: str, plan: str) -> str:
    """Asks for it as a person does; the path of its session, whose page is then open."""
    page.goto("/")
    page.get_by_label("Title").fill(title)
    page.get_by_label("Plan (YAML or JSON)").fill(plan)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    return "/" + page.url.split("/", 3)[3]


def example(name: str) -> str:
    return (ROOT / "examples" / f"{name}.yaml").read_text()


def wait_until_ended(page: Page) -> None:
    expect(page.locator("#requests > li").first).to_have_attribute("data-outcome", re.compile("."), timeout=RUN_MS)


def settled(page: Page, path: str) -> None:
    """Opens it, and waits until what it loads is there and drawn."""
    page.goto(path)
    page.wait_for_load_state("networkidle")
    if "/sessions/" in path:
        page.locator("#connection").get_by_text(re.compile("Live|As of")).wait_for()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def furnish(page: Page, examples: tuple[str, ...]) -> dict[str, str]:
    """Sessions to look at, of these examples and of a release that somebody must approve: {their name: path}."""
    paths = {name: run_plan(page, f"The example {name}", example(name)) for name in examples}
    paths["release"] = run_plan(page, "Publish the handbook", GATED)
    for name in {"digits", "stuck"} & set(examples):
        page.goto(paths[name])
        wait_until_ended(page)
    page.goto(paths["release"])
    expect(page.locator("#waiting-panel article")).to_have_count(1, timeout=RUN_MS)
    expect(page.locator('[data-task="links"]')).to_have_attribute("data-state", "FAILED", timeout=RUN_MS)
    return paths


# --- every page


def picture_everything(browser: Browser, installation: Installation, cookies: list, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with opened(browser, installation, cookies, 1440) as page:
        paths = pages_of(page, furnish(page, ("digits", "approvals", "stuck")))
    for width in WIDTHS:
        for scheme in SCHEMES:
            with opened(browser, installation, cookies, width, scheme) as page:
                for name, path in paths.items():
                    settled(page, path)
                    page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=width == 390)
            with opened(browser, installation, [], width, scheme) as page:
                settled(page, "/login/")
                page.screenshot(path=folder / f"login-{width}-{scheme}.png")


def pages_of(page: Page, sessions: dict[str, str]) -> dict[str, str]:
    """{name of a picture: path} of every page, with what is to be seen chosen."""
    agents, tasks = (
        page.evaluate(f"async () => (await (await fetch('/api/{kind}/?limit=200')).json()).results")
        for kind in ("agents", "tasks")
    )
    stuck = next(one["id"] for one in agents if one["name"].startswith("loops"))
    task = next(one["id"] for one in tasks if one["task_id"] == "links")
    plain = ("inbox", "devices", "runners", "models", "policies", "stuck", "reference", "machines/task", "admin")
    admin = ("agents/session", "agents/event", "constellations/task", "constellations/constellation")
    return {
        "home": "/",
        "search": "/search/?q=link",
        "runs": "/runs/?name=digits",
        **{name.replace("/", "-"): f"/{name}/" for name in plain},
        "agent": f"/agents/{stuck}/",
        "session": sessions["digits"],
        **{f"session-{tab}": f"{sessions['digits']}?tab={tab}" for tab in ("timeline", "table", "log")},
        "session-waiting": sessions["release"],
        "session-task": f"{sessions['release']}#task-{task}",
        "session-past": f"{sessions['digits']}?at=40",
        **{f"admin-{name.replace('/', '-')}": f"/admin/{name}/" for name in admin},
    }


# --- the README's


def picture_readme(browser: Browser, installation: Installation, cookies: list, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = animate(browser, installation, cookies, folder / "run.webp")
    with opened(browser, installation, cookies, 1280) as page:
        settled(page, path)
        page.screenshot(path=folder / "session.png")
        settled(page, f"{path}?tab=timeline")
        page.screenshot(path=folder / "timeline.png")
        sessions = furnish(page, ("approvals", "stuck"))
    with opened(browser, installation, cookies, 1280, "dark") as page:
        settled(page, "/")
        page.screenshot(path=folder / "home.png")
    with opened(browser, installation, cookies, 390) as page:
        settled(page, sessions["release"])
        page.screenshot(path=folder / "phone.png")


def animate(browser: Browser, installation: Installation, cookies: list, into: Path) -> str:
    """The example from its request to its end, one frame for each change of a task's state; the path of its session."""
    with opened(browser, installation, cookies, 1280) as page:
        path = run_plan(page, "Read digits", example("digits"))
        page.locator('#connection[data-state="live"]').wait_for()
        devtools = page.context.new_cdp_session(page)
        frames: list[tuple[bytes, int]] = []
        states, is_over = None, False
        while not is_over:
            is_over = page.locator("#requests > li[data-outcome=completed]").count() > 0
            if states != (states := page.evaluate(STATES)):
                frames.append((_shot(devtools), FRAME_MS))
            page.wait_for_timeout(LOOK_MS)
        page.locator("#actor .chip", has_text="Completed").wait_for()  # the panels around the graph gather changes for a moment
        frames.append((_shot(devtools), LAST_MS))
    into.write_bytes(animated_webp(frames, (1280, WIDTHS[1280])))
    return path


def _shot(devtools: CDPSession) -> bytes:
    return base64.b64decode(devtools.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})["data"])


def animated_webp(frames: list[tuple[bytes, int]], size: tuple[int, int]) -> bytes:
    """Pictures of one size, each with its milliseconds, as one that moves for ever (RFC 9649, "Animation")."""
    width, height = size
    moves = 0b10
    head = chunk(b"VP8X", bytes([moves, 0, 0, 0]) + number24(width - 1) + number24(height - 1))
    loop = chunk(b"ANIM", struct.pack("<IH", 0xFFFFFFFF, 0))
    covers_the_last = 0b10
    place = number24(0) * 2 + number24(width - 1) + number24(height - 1)
    shown = [chunk(b"ANMF", place + number24(ms) + bytes([covers_the_last]) + picture_of(frame)) for frame, ms in frames]
    body = b"WEBP" + head + loop + b"".join(shown)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def number24(number: int) -> bytes:
    return struct.pack("<I", number)[:3]


def picture_of(webp: bytes) -> bytes:
    """The chunks of a still picture that are its pixels; raises ValueError where it has none."""
    at, found = 12, b""
    while at < len(webp):
        name, length = webp[at : at + 4], struct.unpack("<I", webp[at + 4 : at + 8])[0]
        end = at + 8 + length + length % 2
        if name in (b"ALPH", b"VP8 ", b"VP8L"):
            found += webp[at:end]
        at = end
    if not found:
        raise ValueError("no picture in it")
    return found


if __name__ == "__main__":
    main()

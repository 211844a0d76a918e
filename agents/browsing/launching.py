"""Chromium as a process: how it is started, what it is told, what it may use, and that nothing of it is left over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from agents.browsing.roots import find_renderer, outer_pid
from agents.devices.confinement import ETC, SYSTEM
from agents.devices.host import instance_name
from agents.devices.limits import CommandLimits, find_excess
from agents.devices.processes import ATTEMPT, INSTANCE, AttemptMark, Process, end_attempts, list_pids, read_mark, read_process
from agents.links.kinds import LinkRefused
from agents.per_loop import one_per_loop

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Playwright

FLAGS = (
    "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
    "--disable-breakpad", "--no-first-run", "--no-pings", "--disable-domain-reliability",
    # Whatever does not go by the gateway finds no host, and no way for datagrams.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)  # fmt: skip
PROFILE = "profile.path"
"""In a browser's folder, the name of the folder of its profile, which Playwright makes..."""
PROFILE_PREFIX = "playwright_chromiumdev_profile-"
"""...and calls so."""
LAUNCH_MS = 40_000.0
LOOK_S = 2.0
"""Between two looks at what it uses."""
RENDERER = "chromium"
"""What the process of a page is called."""
PROCESSES = 200
"""Of a browser whose device says nothing of them: each page has some."""
NO_PLAYWRIGHT = "Playwright is not installed, without which there are no browsers: pip install playwright==1.65.2"


def program() -> str:
    """Chromium on this host. Raises LinkRefused, which says where it was looked for."""
    wanted = settings.CHROMIUM
    names = [wanted] if wanted else ["chromium", "chromium-browser", "google-chrome"]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        where = f"ORRERY_CHROMIUM names {wanted}" if wanted else "it is not on the PATH, and ORRERY_CHROMIUM names none"
        raise LinkRefused(f"there is no chromium on this host: {where} (apt install chromium)")
    return found


turns: Callable[[], dict[int, asyncio.Lock]] = one_per_loop(dict)
"""By device: its browsers come one after the other, each when the one before is wholly gone."""


class Chromium:
    """One browser with a folder of its own. `driver` and `browser` are Playwright's; `on_stop` is told why it was ended."""

    def __init__(self, device: int, limits: dict[str, Any]):
        self._mark = AttemptMark(f"{instance_name()}-browser", device)
        self._limits = CommandLimits.of({"processes": PROCESSES, **limits})
        self._folder = settings.STATE_DIR / "browsers" / str(device)
        self._watch: asyncio.Task[None] | None = None
        self._turn, self._is_mine = turns().setdefault(device, asyncio.Lock()), False
        self._driver: Playwright | None = None
        self._traces = asyncio.Lock()
        self.walls = "its own"

    async def start(self, gateway: str, on_stop: Callable[[str], None]) -> Browser:
        """Raises LinkRefused where it cannot be started."""
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError as error:
            raise LinkRefused(NO_PLAYWRIGHT) from error
        await self._turn.acquire()
        self._is_mine = True
        await asyncio.to_thread(self._end_leftovers)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._driver = await async_playwright().start()
        try:
            browser = await self._driver.chromium.launch(
                executable_path=self._wrapper(program()), args=list(FLAGS), env=self._environment(), timeout=LAUNCH_MS,
                proxy={"server": gateway, "bypass": "<-loopback>"}, headless=True, downloads_path=self._folder,
                artifacts_dir=self._folder,
                handle_sigint=False, handle_sigterm=False, handle_sighup=False, chromium_sandbox=os.geteuid() != 0,
            )  # fmt: skip
        except Error as error:
            raise LinkRefused(f"chromium cannot be started: {_reason(error.message)}") from error
        self._watch = asyncio.get_running_loop().create_task(self._hold_to_limits(on_stop))
        return browser

    async def end(self) -> None:
        """End all its processes, and remove its folder; the device's next browser may begin then."""
        if not self._is_mine:
            return
        self._is_mine = False
        if self._watch is not None:
            self._watch.cancel()
        try:
            await asyncio.to_thread(self._end_processes)
            if self._driver is not None:
                await self._driver.stop()
            await asyncio.to_thread(shutil.rmtree, self._folder, True)
        finally:
            self._turn.release()

    def _end_leftovers(self) -> None:
        """Of a browser whose holder was killed: its processes, and its profile, which nobody else removes."""
        self._end_processes()
        with contextlib.suppress(FileNotFoundError):
            left = Path((self._folder / PROFILE).read_text())
            if left.name.startswith(PROFILE_PREFIX):
                shutil.rmtree(left, ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end_processes(self) -> None:
        end_attempts(self._mark.instance, [self._mark.attempt_id])

    def _environment(self) -> dict[str, str | float | bool]:
        """All that it gets to see; its processes are known by the marks."""
        return {"PATH": os.defpath, "LANG": "C.UTF-8", ATTEMPT: str(self._mark.attempt_id), INSTANCE: self._mark.instance}

    def _wrapper(self, chromium: str) -> str:
        """The program as Playwright starts it: behind bubblewrap where that is there, with no files but the system's own and
        the folder of its profile, which Playwright makes and names.
        """
        words = []
        if settings.CONFINEMENT != "none" and (bubblewrap := shutil.which("bwrap")) is not None:
            self.walls = "bubblewrap"
            words = [bubblewrap, *_walls()]
        script = self._folder / "chromium.sh"
        script.write_text(
            WRAPPER.format(
                walls=shlex.join(words) + BIND if words else "",
                program=shlex.quote(chromium),
                profile=shlex.quote(str(self._folder / PROFILE)),
            )
        )
        script.chmod(0o700)
        return str(script)

    async def _hold_to_limits(self, on_stop: Callable[[str], None]) -> None:
        """Its memory and its processes, as those of a command; looked at less often, because a browser's take long to read."""
        why = await asyncio.to_thread(self._find_excess)
        while why is None:
            await asyncio.sleep(LOOK_S)
            why = await asyncio.to_thread(self._find_excess)
        on_stop(f"chromium was ended: {why}")

    def _find_excess(self) -> str | None:
        return find_excess(self._limits, self._processes())

    def _processes(self) -> list[Process]:
        """Its processes are those with the mark and all of their sessions: some write over their own environment."""
        found = [process for pid in list_pids() if (process := read_process(pid)) is not None and not process.zombie]
        sessions = {process.session for process in found if read_mark(process.pid) == self._mark} - {os.getsid(0)}
        return [process for process in found if process.session in sessions]

    async def root_of(self, page: Page) -> dict[str, Any]:
        """The process that shows a page, {name, pid}; empty where chromium does not say."""
        inner = await find_renderer(page, self._traces)
        if inner is None:
            return {}
        own = await asyncio.to_thread(self._processes)
        pid = outer_pid(inner, [process.pid for process in own], walled=self.walls == "bubblewrap")
        return {} if pid is None else {"name": RENDERER, "pid": pid}


def _reason(message: str) -> str:
    """What a browser that ended at once has said last, of the log of its start."""
    said = [line.partition("[err]")[2].strip() for line in message.splitlines() if "[err]" in line]
    return "; ".join(line for line in said if "FATAL" in line or "rror" in line)[-500:] or message[:500]


WRAPPER = """#!/bin/sh
for word in "$@"; do case "$word" in --user-data-dir=*) data="${{word#*=}}" ;; esac; done
printf %s "$data" > {profile}
export HOME="$data" TMPDIR="$data"
exec {walls}{program} --crash-dumps-dir="$data" "$@"
"""
BIND = ' --bind "$data" "$data" -- '


def _walls() -> list[str]:
    words = ["--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    for path in (*SYSTEM, *(f"/etc/{name}" for name in (*ETC, "chromium", "chromium.d"))):
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        else:
            words += ["--ro-bind-try", path, path]
    return [*words, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]

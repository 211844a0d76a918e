"""The walls around a command: what this machine can put up, and the command line that does (docs/confinement.md).

MECHANISMS are tried in their order, each by really running something that tries to break out. No Django here.
"""

from __future__ import annotations

import os
import secrets
import shutil
import site
import stat
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

from agents.devices import launcher
from agents.faults import is_transient

BUBBLEWRAP, LANDLOCK, UID, NONE = "bubblewrap", "landlock", "uid", "none"
MECHANISMS = (BUBBLEWRAP, LANDLOCK, UID)
"""From the wall that holds most to the one that holds least."""
TOLD = {
    BUBBLEWRAP: "confined by bubblewrap",
    LANDLOCK: "confined by Landlock in namespaces",
    UID: "confined by a user of its own",
    NONE: "not confined",
}
FRAME = {BUBBLEWRAP: 2, LANDLOCK: 2, UID: 1, NONE: 0}
"""Generations of processes in front of the command: the one that is started, and where it is 2 its child."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys/devices/system")
ETC = (
    "alternatives", "crypto-policies", "fonts", "gai.conf", "group", "host.conf", "hosts", "ld.so.cache", "localtime",
    "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/tls/certs", "protocols", "resolv.conf",
    "services", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
"""Of /etc: what programs need, by name, so that nobody's keys and passwords come with it. Each costs a mount."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
MEMORY_SHARE = 4
"""Each folder in memory (/tmp, /dev/shm) holds at most this part of the command's limit of memory."""
FIRST_ID = 1_879_048_192
IDS = 1 << 26
"""User and group ids of mechanism UID, beyond those that systems, containers and directories give out."""
PASSED = 0o011
CHANGEABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
PACKAGES = "node_modules"
KERNELS_FOLDERS = ("acpi", "bus", "driver", "fs", "irq", "scsi", "sys")
"""Of /proc: what of the kernel itself can be changed there."""
PROBE_S = 20.0
PROBE_MEMORY = 64 << 20
PROBE = """
import contextlib, os, sys
secret, other, pid = sys.argv[1:]
def refused(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return True
    return False
with contextlib.suppress(OSError):
    open(other, "w").close()  # perhaps somewhere in memory: whoever started this looks
open("written", "w").close()
tries = {"read": (open, secret), "signal": (os.kill, int(pid), 0), "environment": (open, f"/proc/{pid}/environ", "rb")}
tries["hard link"] = (os.link, secret, "linked")
fallen = [name for name, action in tries.items() if not refused(*action)]
print("it does not hold: " + ", ".join(fallen) if fallen else "held")
"""


class ConfinementMissing(Exception):
    """The walls that the installation asks for cannot be put up here. `is_unsure`: their trial took too long to say so."""

    def __init__(self, message: str, is_unsure: bool = False):
        super().__init__(message)
        self.is_unsure = is_unsure


@dataclass(frozen=True)
class Confinement:
    """`mechanism` is one of MECHANISMS or NONE; `reasons` say of each that was tried and does not hold here why.

    `is_unsure`: the trial of one of those took too long, as on a busy machine, so that it may hold all the same.
    """

    mechanism: str
    reasons: tuple[str, ...] = ()
    is_unsure: bool = False

    @property
    def told(self) -> str:
        return TOLD[self.mechanism]


@dataclass(frozen=True)
class Walls:
    """What one command may touch beside the system and this interpreter. Paths are absolute.

    Its workspace and `shared` can be written, `readable` and `writable` are the installation's; `hidden` is covered where one
    of those would show it. Devices among `writable` can be used as such. `covered` are files and folders of the workspace that
    seem empty; only bubblewrap can do that.
    """

    mechanism: str
    shared: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: bool = True
    covered: tuple[Path, ...] = ()

    @property
    def frame(self) -> int:
        return FRAME[self.mechanism]


# --- what a command sees


@cache
def interpreter_folders() -> tuple[Path, ...]:
    """Folders of this interpreter and its packages, as they are called and as they are; the system's own are left out."""
    packages = (Path(path) for path in sys.path if Path(path).name in ("site-packages", "dist-packages"))
    named = [Path(sys.prefix), Path(sys.base_prefix), Path(site.getusersitepackages()), *packages]
    whole = {path for one in named if one.is_dir() for path in (one.absolute(), one.resolve())} - {Path("/")}
    return tuple(sorted(one for one in whole if not is_below(one, [Path("/usr"), *whole - {one}])))


def is_below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def folders_of_program(argv: Sequence[str], hidden: Sequence[Path]) -> tuple[Path, ...]:
    """What has to be readable so that a program which an admin has named can run: it, what lies around it, and what else `argv`
    names by whole paths.

    Around it are its folder, the packages that it is one of, or its virtual environment with the interpreter of that. What
    would show this user's home, or something `hidden`, is left out; then the program's own file is all.
    """
    found: dict[Path, None] = {}
    for place, word in enumerate(argv):
        path = Path(word)
        if path.is_absolute() and path.exists():
            found |= dict.fromkeys(whole for each in (path, path.resolve()) for whole in (each, *_around(each, place == 0)))
    shown, kept = [*map(Path, SYSTEM), *interpreter_folders()], (*hidden, Path(os.path.expanduser("~")))
    fitting = [one for one in found if not is_below(one, shown) and not any(folder.is_relative_to(one) for folder in kept)]
    return tuple(one for one in fitting if not is_below(one, [other for other in fitting if other != one]))


def _around(path: Path, is_program: bool) -> Iterator[Path]:
    packages = [above for above in path.parents if above.name == PACKAGES]
    environment = path.parent.parent
    if packages:
        yield packages[-1]
    elif is_program and (environment / "pyvenv.cfg").is_file():
        yield environment
        yield (environment / "bin" / "python").resolve().parent.parent
    elif is_program:
        yield path.parent


def _program() -> list[str]:
    """The launcher, compiled where that is kept: to compile it takes longer than to run it."""
    compiled = cache_from_source(launcher.__file__)
    return [os.path.realpath(sys.executable), "-I", "-S", compiled if os.path.exists(compiled) else launcher.__file__]


def confine_command(argv: Sequence[str], walls: Walls, workspace: Path, memory_bytes: int, status: int) -> list[str]:
    """The command line that runs `argv` in `workspace` behind the walls; the launcher tells its end by the handle `status`."""
    program = _program()
    call = [*program, str(status), walls.mechanism]
    if walls.mechanism == BUBBLEWRAP:
        return [*_bubblewrap(walls, workspace, Path(program[-1]), memory_bytes), *call, "--", *argv]
    call += ["-p", str(os.getpid())]
    if walls.mechanism == UID:
        user = own_id(workspace)
        return [*call, "-u", str(user), "-g", str(own_id(walls.shared[0]) if walls.shared else user), "--", *argv]
    for path in (*SYSTEM, *(f"/etc/{name}" for name in ETC), "/proc", *interpreter_folders(), *walls.readable):
        call += ["-r", str(path)]
    for path in (*DEVICES, *walls.writable, workspace, *walls.shared):
        call += ["-w", str(path)]
    return [*call, *([] if walls.network else ["-n"]), "--", *argv]


@cache
def _bubblewrap_options() -> str:
    """What this bubblewrap understands; nothing where there is none."""
    program = shutil.which("bwrap")
    return subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout if program else ""


@cache
def _system() -> list[str]:
    """The part of the command line that is the same for all."""
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"]
    if "--disable-userns" in _bubblewrap_options():
        words.append("--disable-userns")
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        else:
            words += ["--ro-bind-try", path, path]
    for path in (f"/etc/{name}" for name in ETC if os.path.exists(f"/etc/{name}")):
        if os.path.islink(path) and os.path.realpath(path).startswith("/usr/"):
            words += ["--symlink", os.path.realpath(path), path]
        else:  # also of what a link leads to, such as resolv.conf in /run
            words += ["--ro-bind-try", path, path]
    words += ["--proc", "/proc"]
    # Of user 0, whom a server of root maps to itself, the kernel asks no capability before it changes much of /proc.
    for entry in os.scandir("/proc") if os.geteuid() == 0 else ():
        if entry.name in KERNELS_FOLDERS or (entry.is_file(follow_symlinks=False) and entry.stat().st_mode & CHANGEABLE):
            words += ["--ro-bind", entry.path, entry.path]
    return [*words, "--dev", "/dev"]


def _bubblewrap(walls: Walls, workspace: Path, program: Path, memory_bytes: int) -> list[str]:
    words = [shutil.which("bwrap") or "bwrap", *_system()]
    for path in ("/tmp", "/dev/shm"):
        if "--size" in _bubblewrap_options():
            words += ["--size", str(memory_bytes // MEMORY_SHARE)]
        words += ["--tmpfs", path]
    words += _bound("--ro-bind-try", walls.readable) + _bound("--bind-try", walls.writable)
    shown = [Path(path) for path in SYSTEM] + [*walls.readable, *walls.writable]
    for folder in walls.hidden:
        if is_below(folder, shown):
            words += ["--tmpfs", str(folder)]
    words += _bound("--ro-bind-try", (*interpreter_folders(), program))
    words += _bound("--ro-bind-try", [one for one in walls.readable if is_below(one, walls.hidden)])
    words += _bound("--bind-try", [one for one in walls.writable if is_below(one, walls.hidden)])
    words += _bound("--bind", (workspace, *walls.shared))
    for covered in walls.covered:
        words += ["--tmpfs", str(covered)] if covered.is_dir() else ["--ro-bind", "/dev/null", str(covered)]
    if not walls.network:
        words.append("--unshare-net")
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(workspace), "--"]


def _bound(how: str, paths: Sequence[Path]) -> list[str]:
    words = []
    for path in paths:
        kind = "--dev-bind-try" if is_below(path, [Path("/dev")]) else how
        words += [kind, str(path), str(path)]
    return words


# --- another user for each workspace


def own_id(folder: Path) -> int:
    """The user or group that a folder is given to: the same for the same path, another for another (but for one in IDS)."""
    return FIRST_ID + zlib.crc32(os.fsencode(folder)) % IDS


def hand_over(workspace: Path, walls: Walls) -> None:
    """Give the folders to whom the command will be. Whoever knows their names may pass through those above, and see nothing.

    What is in a folder is given away once: later on commands work there, and could put there what is not theirs. Nothing is
    followed on the way, so neither could one that works there meanwhile.
    """
    user = own_id(workspace)
    for folder, owner, group, mode in (
        (workspace, user, user, 0o700), *((path, 0, own_id(path), 0o2770) for path in walls.shared),
    ):  # fmt: skip
        for above in folder.parents:
            if is_below(above, walls.hidden) and ~above.stat().st_mode & PASSED:
                above.chmod(above.stat().st_mode | PASSED)
        found = folder.stat()
        if (found.st_uid, found.st_gid) != (owner, group):
            for _, folders, files, place in os.fwalk(folder):
                for name in (*folders, *files):
                    os.chown(name, owner, group, dir_fd=place, follow_symlinks=False)
            os.chown(folder, owner, group)
        if folder.stat().st_mode & 0o7777 != mode:
            folder.chmod(mode)


# --- which walls hold here


def find_confinement(wanted: str, state: Path) -> Confinement:
    """The mechanism `wanted`, or with "auto" the first of MECHANISMS, that holds here; tried in a folder below `state`.

    Raises ConfinementMissing where the one wanted does not hold.
    """
    if wanted == NONE:
        return Confinement(NONE, ("ORRERY_CONFINEMENT is none",))
    reasons: list[str] = []
    is_unsure = False
    for mechanism in MECHANISMS if wanted == "auto" else (wanted,):
        try:
            reason = _fault(mechanism, state)
        except subprocess.TimeoutExpired:
            reason, is_unsure = f"its trial took longer than {PROBE_S:g} s", True
        if not reason:
            return Confinement(mechanism, tuple(reasons), is_unsure)
        reasons.append(f"{mechanism}: {reason}")
    if wanted != "auto":
        raise ConfinementMissing(f"ORRERY_CONFINEMENT is {wanted}, which does not hold here: {reasons[0]}", is_unsure)
    return Confinement(NONE, tuple(reasons), is_unsure)


def _fault(mechanism: str, state: Path) -> str:
    """Why the mechanism does not hold here, empty when it does. Raises TimeoutExpired where its trial takes too long."""
    if mechanism == BUBBLEWRAP and not _bubblewrap_options():
        return "bwrap is not installed"
    if mechanism == LANDLOCK and not launcher.landlock_abi():
        return "this kernel has no Landlock"
    if mechanism == UID and os.geteuid() != 0:
        return "only root can run commands as another user"
    try:
        with tempfile.TemporaryDirectory(prefix="walls-", dir=state) as place:
            return _tried(mechanism, Path(place))
    except OSError as error:
        if is_transient(error):
            raise
        return str(error)


def _tried(mechanism: str, place: Path) -> str:
    """Run PROBE behind the walls."""
    secret, workspace = place / "secret", place / "workspace"
    secret.touch(mode=0o600)
    secret.write_text(secrets.token_hex(8))
    workspace.mkdir(mode=0o700)
    walls = Walls(mechanism, hidden=(place,))
    if mechanism == UID:
        hand_over(workspace, walls)
    told, status = os.pipe()
    try:
        program = [sys.executable, "-I", "-S", "-c", PROBE, str(secret), str(place / "other"), str(os.getpid())]
        ended = subprocess.run(
            confine_command(program, walls, workspace, PROBE_MEMORY, status), cwd=workspace, pass_fds=(status,), check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_S, start_new_session=True,
        )  # fmt: skip
        if (place / "other").exists():
            return "it does not hold: write"
        if ended.stdout.strip() == "held" and (workspace / "written").exists():
            return ""
        last = (ended.stderr or ended.stdout).strip().splitlines()
        return last[-1] if last else f"nothing could be run ({os.strerror(_errno(told, status))})"
    finally:
        os.close(told)
        os.close(status)


def _errno(told: int, status: int) -> int:
    """What the launcher told, 0 when nothing."""
    os.set_blocking(told, False)
    try:
        kind, number = os.read(told, 100).split()[:2]
    except (BlockingIOError, ValueError):
        return 0
    return int(number) if kind == b"errno" else 0

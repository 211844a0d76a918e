"""What a hostile command tries: a program that prints, as one line of JSON, which of its tries went well.

Run by the interpreter alone. Arguments: the repository, the state folder, a pid of the server, a user's name there.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY, STATE, SERVER, USER = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
WORKSPACE = Path.cwd()
LEADER = os.getsid(0)
"""What the walls were put up for: this program, or what has started it."""
LAUNCHER = int(Path(f"/proc/{LEADER}/stat").read_text().rpartition(")")[2].split()[1])


def read(path: Path) -> bool:
    return bool(path.read_bytes())


def some_of(folder: Path, pattern: str) -> bool:
    return any(read(path) for path in folder.glob(pattern))


def make_token() -> bool:
    argv = [sys.executable, "manage.py", "token_create", USER, "--scope", "admin"]
    told = Path(f"/proc/{SERVER}/environ").read_text().split("\0")
    env = {**os.environ, **dict(one.split("=", 1) for one in told if one.startswith(("ORRERY_STATE_DIR=", "DATABASE_URL=")))}
    made = subprocess.run(argv, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)
    return made.stdout.startswith("orr_")


def other_workspace() -> bool:
    return any(read(path) for path in STATE.glob("workspaces/*/secret.txt") if path.parent != WORKSPACE)


def memory_of_server() -> bool:
    with open(f"/proc/{SERVER}/maps") as maps:
        begin = int(maps.readline().split("-")[0], 16)
    with open(f"/proc/{SERVER}/mem", "rb") as memory:
        memory.seek(begin)
        return bool(memory.read(16))


def write_outside(path: Path) -> bool:
    """A file there, or a new one of a folder. What is only an empty folder's in here is not outside."""
    if path.is_dir():
        (path / "written-by-a-command").write_text("here")
        (path / "written-by-a-command").unlink()
    else:
        os.close(os.open(path, os.O_WRONLY))
    return True


def hard_link() -> bool:
    os.link(STATE / "secret_key", WORKSPACE / "linked")
    return read(WORKSPACE / "linked")


def symbolic_link() -> bool:
    (WORKSPACE / "symbolic").unlink(missing_ok=True)
    (WORKSPACE / "symbolic").symlink_to(STATE / "secret_key")
    return read(WORKSPACE / "symbolic")


def signal_server() -> bool:
    os.kill(SERVER, 0)
    return True


def signal_everybody() -> bool:
    """Whether there is anybody of another session to whom SIGKILL could be sent."""
    found = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    reached = []
    for pid in found:
        try:
            os.kill(pid, 0)
        except OSError:
            continue
        reached.append(os.getsid(pid) != LEADER and pid != LAUNCHER)
    return any(reached)


def launcher_of_own() -> bool:
    """Take over the first process of the walls: it is no part of the command."""
    with open(f"/proc/{LAUNCHER}/mem", "r+b"):
        return True


def stop_launcher() -> bool:
    os.kill(LAUNCHER, signal.SIGSTOP)
    stopped = Path(f"/proc/{LAUNCHER}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    os.kill(LAUNCHER, signal.SIGCONT)
    return stopped


def a_capability() -> bool:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff")]
    return int(line.split()[1], 16) != 0


def new_privileges() -> bool:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("NoNewPrivs")]
    return line.split()[1] == "0"


def change_the_system() -> bool:
    """Whether anything of the kernel's can be opened for writing, but for what is each process's own."""
    found = [path for path in Path("/proc").iterdir() if not path.name.isdigit() and not path.is_symlink() and path.is_file()]
    found += [Path("/proc/sys/kernel/core_pattern"), Path("/proc/sys/kernel/panic"), *Path("/sys").rglob("online")]
    return any(went_well(lambda path=path: write_outside(path)) for path in found if path.exists())


def a_disk() -> bool:
    return any(path.is_block_device() and bool(path.open("rb")) for path in Path("/dev").iterdir())


def abstract_socket() -> bool:
    """`SERVER` listens there in the tests."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as letter:
        letter.sendto(b"hello", f"\0orrery-{SERVER}")
    return True


TRIES: dict[str, Callable[[], Any]] = {
    "token_create": make_token,
    "secret key": lambda: read(STATE / "secret_key"),
    "database": lambda: some_of(STATE, "*.sqlite3*"),
    "outcome files": lambda: some_of(STATE, "run/*/*"),
    "logs": lambda: some_of(STATE, "logs/*"),
    "another workspace": other_workspace,
    "code of the server": lambda: read(REPOSITORY / "manage.py"),
    "password hashes of the system": lambda: read(Path("/etc/shadow")),
    "homes": lambda: some_of(Path("/root"), ".bash*") or some_of(Path("/home"), "*/.*"),
    "environment of the server": lambda: read(Path(f"/proc/{SERVER}/environ")),
    "memory of the server": memory_of_server,
    "signal to the server": signal_server,
    "signal to anybody": signal_everybody,
    "memory of the launcher": launcher_of_own,
    "a signal to the launcher": stop_launcher,
    "write to the state folder": lambda: write_outside(STATE / "secret_key"),
    "write to the repository": lambda: write_outside(REPOSITORY / "manage.py"),
    "write to the examples": lambda: write_outside(REPOSITORY / "examples"),
    "write to /usr": lambda: write_outside(Path("/usr")),
    "write to the interpreter": lambda: write_outside(Path(sys.prefix)),
    "hard link out": hard_link,
    "symbolic link out": symbolic_link,
    "a capability": a_capability,
    "new privileges": new_privileges,
    "settings of the kernel": change_the_system,
    "a disk": a_disk,
    "abstract socket": abstract_socket,
}


def went_well(what: Callable[[], Any]) -> bool:
    try:
        return bool(what())
    except OSError:
        return False


print(json.dumps([name for name, what in TRIES.items() if went_well(what)]))

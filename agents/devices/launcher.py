"""The first process behind a command's walls: puts up the last of them, starts the command, tells how it ended.

A program of its own, run by this interpreter without site and environment: it imports little and nothing of Orrery, because
every command waits for it. Called as

    launcher.py STATUS_FD MECHANISM [-r PATH | -w PATH | -u UID | -g GID | -n | -p PID]... -- COMMAND [ARGUMENT]...

with what may be read and written, who the command is to be, -n for no network, and the pid of whoever started it. STATUS_FD is
told "errno N" where the command cannot be started, else "status N" with the wait status of its end. The sources of the
numbers are the kernel's headers: linux/landlock.h, linux/prctl.h, linux/sched.h, linux/mount.h (the same on every
architecture); the calls of Landlock have had these numbers everywhere since Linux 5.13.
"""

# The C modules below `signal` and `ctypes`: what these add in Python is not needed, and takes milliseconds.
import _ctypes
import _signal as signal
import os
import sys


class CLong(_ctypes._SimpleCData):
    """A C long: what the kernel's calls take and give."""

    _type_ = "l"


class CFunction(_ctypes.CFuncPtr):
    """A function of the C library. Numbers are given as long, buffers as bytes or bytearray."""

    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = CLong


LIBC = _ctypes.dlopen("", 0)


def call_library(name: str, *arguments: "int | bytes | None") -> int:
    """What the C library's function gives, below 0 where it fails."""
    return CFunction(_ctypes.dlsym(LIBC, name))(*(CLong(one) if isinstance(one, int) else one for one in arguments))


PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
NEW_USER, NEW_PID, NEW_MOUNTS, NEW_IPC, NEW_UTS, NEW_NETWORK = 0x10000000, 0x20000000, 0x20000, 0x8000000, 0x4000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 1 << 18
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULESET_VERSION = 1
PATH_BENEATH = 1
O_PATH = 0o10000000

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READING = EXECUTE | READ_FILE | READ_DIR
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2
ABI_REFER, ABI_TRUNCATE, ABI_IOCTL, ABI_SCOPES = 2, 3, 5, 6

LAST_CAPABILITY = 63
CAPABILITY_VERSION = 0x20080522
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
COVERED = ("/tmp", "/run", "/dev/shm")
"""Sockets can be reached there that Landlock does not guard, and files of everybody."""
CANNOT_START = 127
MISSING = 2
"""ENOENT; the module that has its name is one more to import."""


def check_result(what: str, result: int) -> int:
    """The result of a call, unless it is the mark of an error: then OSError."""
    if result < 0:
        number = _ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def set_process_option(option: int, value: int) -> None:
    check_result("prctl", call_library("prctl", option, value, 0, 0, 0))


# --- Landlock


def landlock_abi() -> int:
    """0 where the kernel has none, or it is switched off."""
    return max(call_library("syscall", CREATE_RULESET, None, 0, RULESET_VERSION), 0)


def landlock_rights(abi: int) -> int:
    """All that this kernel's Landlock can forbid to do with files."""
    known = (1 << 13) - 1
    return (
        known
        | (REFER if abi >= ABI_REFER else 0)
        | (TRUNCATE if abi >= ABI_TRUNCATE else 0)
        | (IOCTL_DEV if abi >= ABI_IOCTL else 0)
    )


def restrict_files(readable: list[str], writable: list[str], guards_files: bool) -> None:
    """From now on this process and its children touch nothing else, and reach neither signals nor sockets outside.

    Without `guards_files` only the latter. Does nothing of what the kernel's version of Landlock cannot.
    """
    abi = landlock_abi()
    handled = landlock_rights(abi) if guards_files else 0
    scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if abi >= ABI_SCOPES else 0
    if not (handled or scopes):
        return
    attributes = b"".join(one.to_bytes(8, sys.byteorder) for one in (handled, 0, scopes))
    ruleset = check_result(
        "landlock_create_ruleset", call_library("syscall", CREATE_RULESET, attributes, 24 if scopes else 8, 0)
    )
    if guards_files:
        for paths, allowed in ((readable, READING), (writable, handled)):
            for path in paths:
                allow_path(ruleset, path, allowed & handled)
    check_result("landlock_restrict_self", call_library("syscall", RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def allow_path(ruleset: int, path: str, allowed: int) -> None:
    """What is not there is not allowed."""
    try:
        handle = os.open(path, O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        allowed &= OF_A_FILE
    rule = allowed.to_bytes(8, sys.byteorder) + handle.to_bytes(4, sys.byteorder)
    check_result(path, call_library("syscall", ADD_RULE, ruleset, PATH_BENEATH, rule, 0))
    os.close(handle)


# --- namespaces


def mount_folder(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    check_result(target, call_library("mount", source.encode(), target.encode(), kind.encode(), flags, data.encode()))


def new_namespaces(network: bool) -> None:
    """A namespace of each kind; in that of users this process is who it was, and nobody else is there."""
    user, group = os.getuid(), os.getgid()
    kinds = NEW_USER | NEW_PID | NEW_MOUNTS | NEW_IPC | NEW_UTS | (0 if network else NEW_NETWORK)
    check_result("unshare", call_library("unshare", kinds))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    if not network:
        raise_loopback()


def raise_loopback() -> None:
    import fcntl
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = b"lo".ljust(16, b"\0") + IFF_UP.to_bytes(2, sys.byteorder) + bytes(22)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def cover_folders(needed: list[str], writable: list[str]) -> None:
    """A view of processes of its own, and empty folders over COVERED, but for those that something needed lies in."""
    mount_folder("none", "/", "none", MS_REC | MS_PRIVATE)
    mount_folder("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for path in COVERED:
        if os.path.isdir(path) and not any(f"{one}/".startswith(f"{path}/") for one in needed):
            mount_folder("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=25%,mode=1777")
            writable.append(path)


def drop_capabilities() -> None:
    for number in range(LAST_CAPABILITY + 1):
        if call_library("prctl", PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break  # beyond the kernel's last
    header = CAPABILITY_VERSION.to_bytes(4, sys.byteorder) + bytes(4)
    check_result("capset", call_library("capset", header, bytes(24)))


# --- the command


class LauncherArguments:
    """What the arguments ask for."""

    def __init__(self, arguments: list[str]):
        self.status, self.mechanism = int(arguments[0]), arguments[1]
        self.readable: list[str] = []
        self.writable: list[str] = []
        self.network, self.uid, self.gid, self.parent = True, 0, 0, 0
        rest = arguments[2:]
        while (word := rest.pop(0)) != "--":
            if word == "-n":
                self.network = False
            elif word in ("-r", "-w"):
                (self.readable if word == "-r" else self.writable).append(rest.pop(0))
            else:
                setattr(self, {"-u": "uid", "-g": "gid", "-p": "parent"}[word], int(rest.pop(0)))
        self.command = rest


def end_with_parent(parent: int, signum: int) -> None:
    """End when whoever started this ends, also when that was before now."""
    set_process_option(PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        sys.exit(CANNOT_START)


def start_command(wanted: LauncherArguments) -> int:
    """The command's pid. It leads a session of its own."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        if wanted.mechanism == "uid":
            os.setgroups([wanted.gid])
            os.setresgid(wanted.uid, wanted.uid, wanted.uid)
            os.setresuid(wanted.uid, wanted.uid, wanted.uid)
            os.umask(0o007)
        set_process_option(PR_SET_NO_NEW_PRIVS, 1)
        restrict_files(wanted.readable, wanted.writable, guards_files=wanted.mechanism == "landlock")
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the command would inherit that
        seen = {name: value for name, value in os.environ.items() if name != "PWD"}  # bubblewrap's, not the caller's
        execute_command(wanted.command, seen)
    except OSError as error:
        os.write(wanted.status, f"errno {error.errno}\n".encode())
    finally:
        os._exit(CANNOT_START)


def execute_command(command: list[str], seen: dict[str, str]) -> None:
    """As os.execvpe, which imports more than it saves. Raises OSError: what is found cannot be run, or nothing is found."""
    fault: OSError = FileNotFoundError(MISSING, command[0])
    folders = seen.get("PATH", os.defpath).split(os.pathsep) if "/" not in command[0] else [""]
    for folder in folders:
        try:
            os.execve(os.path.join(folder, command[0]), command, seen)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            fault = error
    raise fault


def wait_for_command(command: int) -> int:
    """The wait status of the command; whatever else ends meanwhile is forgotten."""
    while True:
        pid, status = os.wait()
        if pid == command:
            return status


def end_children() -> None:
    """Whoever has lost its parent is a child of this process: kill until there is none."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def end_on_signal(signum: int, frame: object) -> None:
    end_children()
    os._exit(128 + signum)


def main(arguments: list[str]) -> None:
    wanted = LauncherArguments(arguments)
    os.set_inheritable(wanted.status, False)
    if wanted.mechanism == "landlock":
        begin_namespaces(wanted)
    elif wanted.mechanism == "uid":
        signal.signal(signal.SIGTERM, end_on_signal)
        end_with_parent(wanted.parent, signal.SIGTERM)
        set_process_option(PR_SET_CHILD_SUBREAPER, 1)
    set_process_option(PR_SET_DUMPABLE, 0)  # the command may neither trace this process nor write its memory
    status = wait_for_command(start_command(wanted))
    if wanted.mechanism == "uid":
        end_children()
    os.write(wanted.status, f"status {status}\n".encode())
    os._exit(0)  # at once: nothing is left to be tidied


def begin_namespaces(wanted: LauncherArguments) -> None:
    """Returns in a new process, the first of its namespace, which ends with this one; this one waits for it."""
    end_with_parent(wanted.parent, signal.SIGKILL)
    new_namespaces(wanted.network)
    if first := os.fork():
        os.close(wanted.status)
        code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
        os._exit(128 - code if code < 0 else code)
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    cover_folders([*wanted.readable, *wanted.writable], wanted.writable)
    drop_capabilities()


if __name__ == "__main__":
    main(sys.argv[1:])

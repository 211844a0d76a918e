"""What a command line runs: its programs, whether they only look, and whether it begins by sleeping."""

import re
from functools import lru_cache

from agents.progress.kinds.tools import set_of

LOOKING = set_of(
    "ls cat head tail grep egrep fgrep zgrep rg ag find fd pwd whoami id wc file stat tree which whereis type env "
    "printenv date du df ps pgrep uname hostname od xxd hexdump strings less more sort uniq cut tr jq yq nl diff cmp comm "
    "echo printf seq true test [ [[ awk gawk sed column paste rev tac md5sum sha1sum sha256sum cksum base64 basename "
    "dirname realpath readlink man help history compgen bind getent groups lsof netstat ss free top uptime nproc lscpu "
    "dig nslookup host ping locate cloc"
)
LOOKING_VERBS = {
    program: frozenset(verbs.split())
    for program, verbs in {
        "git": "status diff log show blame branch ls-files ls-tree rev-parse describe reflog grep shortlog",
        "gh": "view list status diff checks api",
        "kubectl": "get describe logs top",
        "docker": "ps logs inspect images stats top",
        "systemctl": "status show is-active list-units",
        "pip": "list show freeze",
        "npm": "ls list view outdated",
        "brew": "list info",
    }.items()
}
"""Programs whose first words say whether they only look."""
PREFIXES = set_of("sudo time nohup env command exec timeout nice stdbuf xargs do then else if while until ! {")
"""Words before the program that is meant."""
SILENT_WORDS = set_of("cd for done fi } set export pushd popd source .")
"""Words that begin a part of a line in which nothing runs that matters."""
CACHED = 4096
"""Command lines whose reading is remembered."""
LINE_LIMIT = 4_000
"""Characters of a command line that are read."""

STEPPING = frozenset({"git bisect"})
"""Programs that go on to the next thing each time they are called, in the same words."""

_REWRITES = re.compile(r"<<-?\s*['\"]?\w+|\bsed\s+(?:-\w*\s+)*-[a-zA-Z]*i|\b(git apply|patch|tee)\b")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*?)\n(?:.*?\n)??\2(?=\s|$)", re.DOTALL)
_WRAPPED = re.compile(r"""^\s*(?:/\S*/)?(?:bash|sh|zsh)\s+-\w*c\s+(['"])(.*)\1\s*$""", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_PARTS = re.compile(r"&&|\|\||[;|\n&]|\$\(|\(|\)|`")
_WRITES = re.compile(r"(?<![0-9&])>(?!\s*/dev/null|&)|-delete\b|\btee\b|\bsed\s+(?:-\w*\s+)*-[a-zA-Z]*i")
_SENDS = re.compile(r"\s(-X\s*(POST|PUT|PATCH|DELETE)|-d|--data\S*|-F|--form|-o|-O|--output|-T|--upload-file)\b")
_RUNS = re.compile(r"-exec(?:dir)?\s+(\S+)")


@lru_cache(CACHED)
def unwrap_line(line: str) -> str:
    """The line that really runs: what `bash -lc '...'` is given, without the texts of here-documents."""
    line = line[:LINE_LIMIT]
    wrapped = _WRAPPED.match(line)
    return _HEREDOC.sub(r"<\3", wrapped[2] if wrapped else line)


@lru_cache(CACHED)
def list_programs(line: str) -> tuple[str, ...]:
    """The programs a command line runs, git and its like with their verb; without what only prepares."""
    plain = _QUOTED.sub("…", unwrap_line(line))
    parts = (_program(part.split()) for part in _PARTS.split(plain))
    return tuple(name for name in parts if name and name not in SILENT_WORDS)


def _program(words: list[str]) -> str:
    passing = True
    while words and passing:
        passing = "=" in words[0] or words[0] in PREFIXES
        prefixed = words[0] in PREFIXES
        words = words[1:] if passing else words
        while prefixed and words and (words[0].startswith(("-", "{")) or words[0][:1].isdigit()):
            words = words[1:]
    if not words:
        return ""
    name = words[0].rsplit("/", 1)[-1]
    if name not in LOOKING_VERBS:
        return name
    verbs = [word for word in words[1:] if re.fullmatch(r"[a-z][a-z-]*", word)][:2]
    telling = [verb for verb in verbs if verb in LOOKING_VERBS[name]] or verbs
    return f"{name} {telling[0]}" if telling else name


@lru_cache(CACHED)
def is_looking_line(line: str) -> bool:
    """Whether a command line can only say something: all its programs look, and nothing is written."""
    plain = _QUOTED.sub("…", unwrap_line(line))
    programs = (*list_programs(line), *(run.rsplit("/", 1)[-1] for run in _RUNS.findall(plain)))
    return bool(programs) and not _WRITES.search(plain) and all(_looks(one, plain) for one in programs)


def _looks(program: str, plain: str) -> bool:
    name, _, verb = program.partition(" ")
    if name in ("curl", "wget"):
        return name == "curl" and not _SENDS.search(plain)
    return verb in LOOKING_VERBS[name] if name in LOOKING_VERBS else name in LOOKING


@lru_cache(CACHED)
def is_rewriting_line(line: str) -> bool:
    """Whether a command line gives a file another content, which stands in the line itself."""
    return bool(_REWRITES.search(line)) and not is_looking_line(line)


@lru_cache(CACHED)
def is_stepping_line(line: str) -> bool:
    return not STEPPING.isdisjoint(list_programs(line))


@lru_cache(CACHED)
def begins_with_sleep(line: str) -> bool:
    """Whether the first thing a command line does is to wait."""
    programs = list_programs(line)
    return bool(programs) and programs[0] in ("sleep", "wait")

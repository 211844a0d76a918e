"""How well one finds one's way in this code: `python -m benchmarks.house [--against COMMIT] [--key COMMIT]`, see docs/house.md.

The figures of an earlier commit stand beside those of the files here; its code is unpacked into a folder for that long.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

APPS = ("agents", "constellations", "frontend", "project")
BEFORE = "fc570a7"
"""The last commit before the house had rooms."""
HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path("benchmarks")
GIT, TAR = shutil.which("git") or "git", shutil.which("tar") or "tar"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Arrows = set[tuple[str, str]]


def measure_tree(root: Path) -> dict[str, str]:
    """Everything that can be read from the files below `root`."""
    paths = [path for app in APPS for path in sorted((root / app).rglob("*.py")) if "migrations" not in path.parts]
    texts = {path: path.read_text() for path in paths}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    code, tests = (
        sum(map(count_lines, texts.values())),
        sum(count_lines(path.read_text()) for path in (root / "tests").rglob("*.py")),
    )
    loose = Counter(path.parent for path in paths if path.name != "__init__.py")
    folder, most = max(loose.items(), key=lambda item: item[1])
    return {
        **measure_functions(trees.values()),
        "comment lines": f"{100 * sum(map(count_comments, texts.values())) / code:.1f}%",
        "loose files in the busiest room": f"{most} in {folder.relative_to(root)}",
        "test lines to code lines": f"{tests / code:.2f}",
        **measure_rooms(),
    }


def count_lines(text: str) -> int:
    return text.count("\n")


def count_comments(text: str) -> int:
    """Lines with a comment, but for those that only speak to tools."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    said = (token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT)
    return sum(not text.startswith(("noqa", "fmt:", "type:", "!")) for text in said)


def measure_functions(trees: Iterable[ast.Module]) -> dict[str, str]:
    """Their lengths, their names, and which of them serve a single caller."""
    lengths, single, public = [], 0, []
    for tree in trees:
        functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
        lengths += [node.end_lineno - node.lineno + 1 for node in functions if node.end_lineno]
        used = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        used += Counter(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        single += sum(is_private(node.name) and used[node.name] == 1 for node in functions)
        public += [node.name for node in tree.body if isinstance(node, Function) and not node.name.startswith("_")]
    lengths.sort()
    bare = sum("_" not in name for name in public)
    places = len(lengths) // 2, len(lengths) * 9 // 10, -1
    return {
        "functions: median / p90 / longest, lines": " / ".join(str(lengths[at]) for at in places),
        "private helpers used in one place, of all functions": f"{100 * single / len(lengths):.0f}%",
        "public functions that are one bare word": f"{bare} of {len(public)}",
    }


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def measure_rooms() -> dict[str, str]:
    """What the imports of agents and constellations say of their rooms; those for types count too."""
    import grimp

    graph = grimp.build_graph(*APPS)
    found = {}
    for app in ("agents", "constellations"):
        rooms = {child for child in graph.find_children(app) if "migrations" not in child}
        arrows = {
            (importer, imported)
            for importer, imported in ((room_of(each, app), room_of(other, app)) for each, other in imports_of(graph))
            if importer in rooms and imported in rooms and importer != imported
        }
        up, circles = find_circles(rooms, arrows)
        floors = count_floors(rooms, arrows - up)
        found[f"{app}: rooms / floors / arrows"] = f"{len(rooms)} / {floors} / {len(arrows)}"
        found[f"{app}: arrows back up / circles"] = f"{len(up)} / {circles}"
    return found


def imports_of(graph: Any) -> Iterable[tuple[str, str]]:
    return ((each, other) for each in graph.modules for other in graph.find_modules_directly_imported_by(each))


def room_of(module: str, app: str) -> str:
    """`agents.streams` of `agents.streams.door`; empty outside of the app."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == app and len(parts) > 1 else ""


def find_circles(rooms: Iterable[str], arrows: Arrows) -> tuple[Arrows, int]:
    """The fewest arrows, found greedily, without which nobody is above himself; and how many groups of rooms lead back to
    themselves."""
    ends = defaultdict(set)
    for importer, imported in arrows:
        ends[importer].add(imported)
    reach: dict[str, set[str]] = {}
    for room in rooms:
        seen, ahead = set[str](), [room]
        while ahead:
            new = ends[ahead.pop()] - seen
            seen |= new
            ahead += new
        reach[room] = seen
    circles = {frozenset(other for other in reach[room] if room in reach[other]) for room in rooms if room in reach[room]}
    order: list[str] = []
    for circle in sorted(circles, key=sorted):
        left = set(circle)
        while left:  # next comes who is asked least by those who are left, for what it asks of them
            inside = {room: (len(ends[room] & left), sum(room in ends[each] for each in left)) for room in left}
            first = max(sorted(left), key=lambda room: inside[room][0] - inside[room][1])
            order.append(first)
            left.remove(first)
    place = {room: number for number, room in enumerate(order)}
    within = {pair for pair in arrows if any(pair[0] in circle and pair[1] in circle for circle in circles)}
    return {pair for pair in within if place[pair[0]] > place[pair[1]]}, len(circles)


def count_floors(rooms: Iterable[str], arrows: Arrows) -> int:
    below: dict[str, set[str]] = {room: set() for room in rooms}
    for importer, imported in arrows:
        below[importer].add(imported)
    floor: dict[str, int] = {}
    for room in TopologicalSorter(below).static_order():
        floor[room] = 1 + max((floor[other] for other in below[room]), default=0)
    return max(floor.values())


def run_in(root: Path, script: Path, folder: Path) -> dict[str, str]:
    """What a script of these benchmarks says of the code below `root`, in a process that knows no other."""
    env = {
        **os.environ, "DATABASE_URL": f"sqlite:///{folder / 'walks.sqlite3'}", "ORRERY_STATE_DIR": str(folder / "state"),
        "ORRERY_SECRET_KEY": "walks", "ORRERY_CONFINEMENT": "none", "PYTHONPATH": str(root),
    }  # fmt: skip
    asked = [sys.executable, "-", "--measure"]
    found = subprocess.run(asked, input=script.read_text(), cwd=root, env=env, check=True, text=True, stdout=subprocess.PIPE)
    return json.loads(found.stdout.splitlines()[-1])


def unpack(commit: str, folder: Path) -> Path:
    root = folder / "code"
    root.mkdir()
    archive = subprocess.run([GIT, "archive", commit], cwd=HERE.parent, check=True, capture_output=True).stdout
    subprocess.run([TAR, "-x", "-C", str(root)], input=archive, check=True)
    return root


def count_files(commit: str) -> int:
    """Files that a commit touches."""
    said = subprocess.run(
        [GIT, "show", "--format=", "--name-only", commit], cwd=HERE.parent, check=True, capture_output=True, text=True
    )  # fmt: skip
    return len(said.stdout.split())


def measure(root: Path, walks: bool) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        found = run_in(root, HERE / "house.py", Path(folder))
        return found | run_in(root, HERE / "inside" / "walks.py", Path(folder)) if walks else found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description="The house in figures, see docs/house.md.")
    parser.add_argument("--against", metavar="COMMIT", default=BEFORE, help="the commit to compare with (%(default)s)")
    parser.add_argument("--key", metavar="COMMIT", help="a commit that adds a key to tasks: how many files it touches")
    parser.add_argument("--no-walks", action="store_true", help="read the files only, run nothing")
    parser.add_argument("--measure", action="store_true", help="print the figures of the folder this runs in, as JSON")
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure_tree(Path.cwd())))
        return
    now = measure(HERE.parent, not asked.no_walks)
    with tempfile.TemporaryDirectory() as folder:
        before = measure(unpack(asked.against, Path(folder)), not asked.no_walks)
    if asked.key:
        now["files touched by a new key of a task"] = str(count_files(asked.key))
    print(f"| | {asked.against} | now |\n|---|---|---|")
    for name, value in now.items():
        print(f"| {name} | {before.get(name, '-')} | {value} |")


if __name__ == "__main__":
    main()

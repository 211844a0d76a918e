"""`manage.py constellation_import FILE --session ID`: ask a session for what a document in any dialect says.

With `--constellation ID` the document is an agent's edit of that one, and applied to it.
"""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from agents.api.problems import PROBLEMS_LIMIT
from agents.errors import AgentsError
from agents.masks.doors import MaskedCommand
from agents.services import sessions
from constellations.plan.dialects import NAMES
from constellations.plan.documents import MAX_JSON_BYTES
from constellations.services import imports


class Command(MaskedCommand):
    help = (
        "Submit a document (JSON or YAML) to a session as an interaction, and print the interaction's id; "
        "or apply an agent's edit to a constellation, and print the edit's id."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        target = parser.add_mutually_exclusive_group(required=True)
        target.add_argument("--session", type=int, help="which carries out the constellation that the file holds")
        target.add_argument("--constellation", type=int, help="to which the edit that the file holds is applied")
        parser.add_argument("--dialect", choices=NAMES, default="", help="told by the document's keys when left out")

    def handle(self, *args: Any, **options: Any) -> str:
        document, dialect = _bytes_of(options["file"]), options["dialect"]
        try:
            if options["constellation"] is not None:
                edit, _ = imports.apply_edit(options["constellation"], document, dialect, author="system")
                return edit.edit_id if edit is not None else "nothing to change"
            checked, warnings = imports.read_document(document, dialect)
            item, _ = sessions.request_submit(
                options["session"], "interaction", "", checked.payload, by="system", checked=checked
            )
        except AgentsError as error:
            lines = [f"  {_place(each)}{each['message']}" for each in error.problems[:PROBLEMS_LIMIT]]
            raise CommandError("\n".join([str(error), *lines])) from error
        self.stderr.write("".join(f"{_place(each)}{each['message']}\n" for each in warnings), ending="")
        return str(item.pk)


def _bytes_of(path: Path) -> bytes:
    """No more of the file than it takes to see that it is too large."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def _place(problem: dict[str, Any]) -> str:
    parts = [f"line {problem['line']}" if problem.get("line") else "", problem.get("key", "")]
    place = ", ".join(filter(None, parts))
    return f"{place}: " if place else ""

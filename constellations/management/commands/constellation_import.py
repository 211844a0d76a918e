"""`manage.py constellation_import FILE --session ID`: ask a session for what a document in any dialect says."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import services
from agents.errors import AgentsError
from agents.problems import PROBLEMS_LIMIT
from constellations import importing
from constellations.dialects import NAMES
from constellations.documents import MAX_JSON_BYTES


class Command(BaseCommand):
    help = "Submit a document (JSON or YAML) to a session as an interaction, and print the interaction's id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--session", type=int, required=True)
        parser.add_argument("--dialect", choices=NAMES, default="", help="told by the document's keys when left out")

    def handle(self, *args, **options) -> str:
        try:
            payload = importing.payload_of(_bytes_of(options["file"]), options["dialect"])
            item, _ = services.command_submit(options["session"], "interaction", "", payload, by="system", checked=True)
        except AgentsError as error:
            raise CommandError("\n".join([str(error), *_lines(error)])) from error
        return str(item.pk)


def _bytes_of(path: Path) -> bytes:
    """No more of the file than it takes to see that it is too large."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def _lines(error: AgentsError) -> list[str]:
    return [f"  line {each.get('line')}, {each.get('key')}: {each['message']}" for each in error.problems[:PROBLEMS_LIMIT]]

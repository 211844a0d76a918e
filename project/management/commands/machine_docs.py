"""`manage.py machine_docs`: writes docs/machines.md, or says that it is not current."""

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from agents.masks.doors import MaskedCommand
from frontend.words import MACHINES
from project.machine_docs import machines_document


class Command(MaskedCommand):
    help = "Write docs/machines.md from the machines' tables. With --check: write nothing, end with 1 if it is not current."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only look")
        parser.add_argument("--path", type=Path, default=settings.BASE_DIR / "docs" / "machines.md", help="file to write")

    def handle(self, *args, **options) -> None:
        path: Path = options["path"]
        wanted = machines_document(MACHINES)
        if path.is_file() and path.read_text() == wanted:
            self.stdout.write(f"{path.name} is current")
        elif options["check"]:
            raise CommandError(f"{path} is not what the machines' tables say: run `manage.py machine_docs`")
        else:
            path.write_text(wanted)
            self.stdout.write(f"{path.name} written")

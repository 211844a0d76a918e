"""`manage.py device_docs`: writes docs/device-protocol.md, or says that it is not current."""

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from agents.masks.doors import MaskedCommand
from project.device_docs import protocol_document


class Command(MaskedCommand):
    help = (
        "Write docs/device-protocol.md from the messages' types. With --check: write nothing, end with 1 if it is not current."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only look")
        parser.add_argument(
            "--path", type=Path, default=settings.BASE_DIR / "docs" / "device-protocol.md", help="file to write"
        )

    def handle(self, *args, **options) -> None:
        path: Path = options["path"]
        wanted = protocol_document()
        if path.is_file() and path.read_text() == wanted:
            self.stdout.write(f"{path.name} is current")
        elif options["check"]:
            raise CommandError(f"{path} is not what the messages' types say: run `manage.py device_docs`")
        else:
            path.write_text(wanted)
            self.stdout.write(f"{path.name} written")

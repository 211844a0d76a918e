"""`manage.py device_file`: the client of devices as one file."""

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings

from agents.masks.doors import MaskedCommand
from project.device_file import build_client


class Command(MaskedCommand):
    help = "Write the client of devices as one file, which runs on any machine with Python 3.11 or later."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--path", type=Path, default=settings.STATE_DIR / "orrery-device.pyz", help="file to write")

    def handle(self, *args, **options) -> None:
        size = build_client(options["path"])
        self.stdout.write(f"{options['path']} written, {size:,} bytes: python3 {options['path'].name} --server URL --token T")

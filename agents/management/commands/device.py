"""`manage.py device`: offers this machine to an Orrery, as `python -m agents.devices.client` does without Django."""

import sys
from argparse import ArgumentParser

from agents.devices.client.main import add_arguments, run_client
from agents.masks.doors import MaskedCommand


class Command(MaskedCommand):
    help = "Offer this machine to Orrery as a device that dials in."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args, **options) -> None:
        from argparse import Namespace

        if code := run_client(Namespace(**options)):
            sys.exit(code)

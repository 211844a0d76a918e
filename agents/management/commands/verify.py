"""`manage.py verify`: fold every stream, compare with the rows, check the invariants, print what differs."""

from itertools import chain

from django.core.management.base import CommandError

from agents.artifacts.checking import verify_store
from agents.masks.doors import MaskedCommand
from agents.models import Event, Stream
from agents.streams.verify import verify_database

SHOWN = 200
"""Findings printed at most."""


class Command(MaskedCommand):
    help = "Compares every stream's fold with the rows and checks the invariants; prints what differs."

    def add_arguments(self, parser):
        parser.add_argument("--artifacts", action="store_true", help="Read every content of the store, too.")

    def handle(self, *args, **options):
        found = 0
        for finding in chain(verify_database(), verify_store() if options["artifacts"] else ()):
            found += 1
            if found <= SHOWN:
                self.stdout.write(finding)
        if found:
            raise CommandError(f"{found} findings")
        self.stdout.write(f"verified: {Stream.objects.count()} streams, {Event.objects.count()} events, nothing differs")

"""`manage.py verify`: fold every stream, compare with the rows, check the invariants, print what differs."""

from django.core.management.base import CommandError

from agents.masks.doors import MaskedCommand
from agents.models import Event, Stream
from agents.streams.verify import verify_database

SHOWN = 200
"""Findings printed at most."""


class Command(MaskedCommand):
    help = "Compares every stream's fold with the rows and checks the invariants; prints what differs."

    def handle(self, *args, **options):
        found = 0
        for finding in verify_database():
            found += 1
            if found <= SHOWN:
                self.stdout.write(finding)
        if found:
            raise CommandError(f"{found} findings")
        self.stdout.write(f"verified: {Stream.objects.count()} streams, {Event.objects.count()} events, nothing differs")

"""`manage.py constellation_export ID`: a constellation as a document in one of the dialects."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from agents.errors import AgentsError
from agents.masks.doors import MaskedCommand
from agents.streams.fold import consistent_read
from constellations.models import Constellation
from constellations.plan.dialects import NAMES, ORRERY
from constellations.reads.exports import export_document


class Command(MaskedCommand):
    help = "Print a constellation as a JSON document."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", type=int)
        parser.add_argument("--dialect", choices=NAMES, default=ORRERY, help=f"default: {ORRERY}")
        parser.add_argument("--states", action="store_true", help="with how far its tasks have come")

    def handle(self, *args: Any, **options: Any) -> str:
        with consistent_read():
            constellation = Constellation.objects.filter(pk=options["id"]).first()
            if constellation is None:
                raise CommandError(f"there is no constellation {options['id']}")
            try:
                return export_document(constellation, options["dialect"], options["states"])
            except AgentsError as error:
                raise CommandError(str(error)) from error

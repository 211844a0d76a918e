"""`manage.py stuck_label LOOP`: a person says of a recorded run whether its agent was stuck, and since when."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from agents.errors import AgentsError
from agents.masks.doors import MaskedCommand
from agents.services.labels import loop_label


class Command(MaskedCommand):
    help = "Labels a recorded tool loop; trace_export writes the label, so that the run is measured by it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("loop", type=int, help="the id of the tool loop, as trace_export names it")
        said = parser.add_mutually_exclusive_group(required=True)
        said.add_argument("--stuck", action="store_true", help="its agent was stuck")
        said.add_argument("--not-stuck", action="store_true", help="it was not")
        parser.add_argument("--since", type=int, metavar="ROW", help="with --stuck: the number of the row since which it was")
        parser.add_argument("--by", required=True, metavar="NAME", help="the user who says so")
        parser.add_argument("--reason", default="", help="why")

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["by"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['by']}")
        said = {name: options[name] for name in ("stuck", "since", "reason")}
        try:
            loop_label(options["loop"], **said, by=f"user:{user.pk}")
        except AgentsError as error:
            raise CommandError(str(error)) from error
        since = f"stuck since row {options['since']}" if options["stuck"] else "not stuck"
        self.stdout.write(f"loop {options['loop']} is labelled: {since}, by {options['by']}")

"""`manage.py model_record SESSION > FILE`: what a session's models and tools said, to be replayed."""

from django.core.management.base import CommandError, CommandParser

from agents.masks.doors import MaskedCommand
from project.replay.recorder import record_session
from project.replay.recording import RecordingRejected, write_recording


class Command(MaskedCommand):
    help = "Write what a session's models and tools said as a file for `replay` and `scripted_model`, with secrets masked."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session", type=int, help="its number")

    def handle(self, *args, **options) -> None:
        try:
            self.stdout.write(write_recording(record_session(options["session"])))
        except RecordingRejected as error:
            raise CommandError(str(error)) from error

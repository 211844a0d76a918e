"""`manage.py scripted_model FILE --port N`: a model of prepared answers, on this machine only."""

from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from agents.llm.scripted.script import ScriptRejected, read_script
from agents.llm.scripted.server import HOST, ScriptedModel, make_server
from agents.masks.doors import MaskedCommand


class Command(MaskedCommand):
    help = "Serve the answers of a file as a language model (docs/models.md); for tests, examples and demos."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="YAML, as docs/models.md describes it")
        parser.add_argument("--port", type=int, default=8090)
        parser.add_argument("--log", type=Path, help="a file that gets a line of JSON for each request, without its key")

    def handle(self, *args, **options) -> None:
        try:
            model = ScriptedModel(read_script(options["file"].read_bytes()), options["log"])
        except (OSError, ScriptRejected) as error:
            raise CommandError(f"{options['file']}: {error}") from error
        place = f"http://{HOST}:{options['port']}"
        self.stdout.write(f"Serving {options['file']}: OpenAI's protocol at {place}/v1, Anthropic's at {place}\n")
        self.stdout.flush()
        server = make_server(model, options["port"])
        server.run()
        if not server.started:
            raise CommandError(f"port {options['port']} cannot be used")

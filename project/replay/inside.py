"""The program of a replay: `python -m project.replay.inside FILE`, in an empty installation (project.replay.throwaway).

It reads the keys of a model profile, or null, from its input, and writes the decisions as JSON.
"""

import json
import os
import sys
from pathlib import Path


def main(file: Path) -> None:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    from project.replay.playing import play_recording
    from project.replay.recording import read_recording

    found = play_recording(read_recording(file.read_bytes()), json.load(sys.stdin))
    json.dump(found["recording"]["decisions"], sys.stdout)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    main(Path(sys.argv[1]))

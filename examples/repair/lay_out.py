"""Put the repository with the failing test into the workspace: `python -m examples.repair.lay_out`."""

import json
import shutil
from pathlib import Path

REPOSITORY = Path(__file__).with_name("repository")


def main() -> None:
    files = sorted(path for path in REPOSITORY.glob("*.py"))
    for path in files:
        shutil.copyfile(path, path.name)
    print(json.dumps({"files": [path.name for path in files]}))


if __name__ == "__main__":
    main()

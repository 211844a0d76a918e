"""Put an evaluated model into this device's workspace: deployed/model.npz and, beside it, what was measured of it."""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from examples.digits import artifacts


def evaluated(name: str, sha256: str) -> dict:
    """What evaluate measured of exactly this model file; ends the command when it measured another one."""
    measured = json.loads(artifacts.existing(f"{name}.evaluation.json", "evaluate").read_text())
    if measured["sha256"] != sha256:
        sys.exit(f"{name}.npz has changed since it was evaluated")
    return measured


def place(model: Path, target: Path, measured: dict) -> None:
    """The metadata first: whoever sees the model finds what belongs to it."""
    target.parent.mkdir(exist_ok=True)
    target.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(model, unfinished)
    unfinished.replace(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="name given to train")
    name = parser.parse_args().model
    model = artifacts.existing(f"{name}.npz", "train")
    measured = evaluated(name, artifacts.digest(model))
    target = Path.cwd() / "deployed" / "model.npz"
    place(model, target, measured)
    print(f"{name} is in place: {target.stat().st_size} bytes", flush=True)
    artifacts.report(deployed=str(target), sha256=artifacts.digest(target), accuracy=measured["accuracy"])


if __name__ == "__main__":
    main()

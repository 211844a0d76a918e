"""Check the digit images that come with the example and part them for training, watching the training, and the test."""

import gzip
import sys
from pathlib import Path

import numpy

from examples.digits import artifacts

SOURCE = Path(__file__).resolve().parent.parent / "digits.csv.gz"
SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
IMAGES = 1797
COLUMNS = 65
"""8 x 8 pixels from 0 to 16, then the digit."""
SHARES = {"train": 0.70, "validation": 0.10, "test": 0.20}
SEED = 1998


def read(path: Path) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Pixels from 0 to 1, shape (images, 64), and digits, shape (images,). Ends the command on other data than the known."""
    if artifacts.digest(path) != SHA256:
        sys.exit(f"{path.name} is not the file this example was made with (its SHA-256 differs)")
    with gzip.open(path, "rt") as lines:
        table = numpy.loadtxt(lines, delimiter=",")
    if table.shape != (IMAGES, COLUMNS):
        sys.exit(f"{path.name} holds a table of {table.shape}, expected {(IMAGES, COLUMNS)}")
    return table[:, :-1] / 16, table[:, -1].astype(numpy.int64)


def parts(digits: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """Row numbers of each part: disjoint, every digit in the same share, the same rows every time."""
    random = numpy.random.default_rng(SEED)
    bounds = numpy.cumsum(list(SHARES.values()))[:-1]
    chosen: dict[str, list[numpy.ndarray]] = {name: [] for name in SHARES}
    for digit in range(10):
        rows = random.permutation(numpy.flatnonzero(digits == digit))
        for name, some in zip(SHARES, numpy.split(rows, (bounds * len(rows)).astype(int)), strict=True):
            chosen[name].append(some)
    return {name: numpy.concatenate(some) for name, some in chosen.items()}


def main() -> None:
    pixels, digits = read(SOURCE)
    print(f"{len(digits)} images, {numpy.bincount(digits).tolist()} of each digit", flush=True)
    sizes = {}
    for name, rows in parts(digits).items():
        artifacts.save_arrays(f"{name}.npz", pixels=pixels[rows], digits=digits[rows])
        sizes[name] = len(rows)
        print(f"{name}.npz: {len(rows)} images", flush=True)
    artifacts.report(images=len(digits), sha256=SHA256, **sizes)


if __name__ == "__main__":
    main()

"""Measure a model on the test images, which no training has seen."""

import argparse

import numpy

from examples.digits import artifacts, network


def confusions(digits: numpy.ndarray, predicted: numpy.ndarray, most: int = 3) -> list[str]:
    """The commonest mistakes, for example "8 taken for 1, 4 times"."""
    wrong = digits != predicted
    pairs, counts = numpy.unique(numpy.stack([digits[wrong], predicted[wrong]]), axis=1, return_counts=True)
    return [
        f"{pairs[0, at]} taken for {pairs[1, at]}, {counts[at]} times" for at in numpy.argsort(-counts, kind="stable")[:most]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="name given to train")
    name = parser.parse_args().model
    path = artifacts.existing(f"{name}.npz", "train")
    test = artifacts.load_arrays(artifacts.existing("test.npz", "fetch"))
    predicted = network.predict(artifacts.load_arrays(path), test["pixels"])
    right = int((predicted == test["digits"]).sum())
    measured = {
        "model": name,
        "accuracy": round(right / len(predicted), 4),
        "right": right,
        "images": len(predicted),
        "sha256": artifacts.digest(path),
    }
    print(f"{right} of {len(predicted)} test images told right", flush=True)
    for line in confusions(test["digits"], predicted):
        print(line, flush=True)
    artifacts.save_json(f"{name}.evaluation.json", measured)
    artifacts.report(**measured)


if __name__ == "__main__":
    main()

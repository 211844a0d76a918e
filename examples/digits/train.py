"""Train a classifier on the training images only and save it as NAME.npz."""

import argparse
import time

import numpy

from examples.digits import artifacts, network

LINES = 20
"""Progress lines a training prints at most."""
MOMENTUM = 0.9


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, help="name of the model")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=0.01, help="of the first epoch")
    parser.add_argument("--decay", type=float, default=1.0, help="what is left of the learning rate after the last epoch")
    parser.add_argument("--hidden", type=int, default=0, help="hidden units; 0 is softmax regression")
    parser.add_argument("--batch", type=int, default=32, help="images a step")
    parser.add_argument("--shift", action="store_true", help="also learn from images moved by a pixel")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def epoch(parameters, speeds, data, rate: float, wanted: argparse.Namespace, random: numpy.random.Generator) -> float:
    """One pass over the training images in random order; the mean loss of its batches."""
    order = random.permutation(len(data["digits"]))
    losses = []
    for first in range(0, len(order), wanted.batch):
        rows = order[first : first + wanted.batch]
        pixels = network.shifted(data["pixels"][rows], random) if wanted.shift else data["pixels"][rows]
        loss, slopes = network.loss_and_slopes(parameters, pixels, data["digits"][rows])
        losses.append(loss)
        for name, slope in slopes.items():
            speeds[name] = MOMENTUM * speeds[name] - rate * slope
            parameters[name] += speeds[name]
    return float(numpy.mean(losses))


def train(data: dict, unseen: dict, wanted: argparse.Namespace) -> tuple[network.Parameters, float]:
    """The trained parameters and the last epoch's mean loss; prints how it goes."""
    random = numpy.random.default_rng(wanted.seed)
    parameters = network.fresh(wanted.hidden, random)
    speeds = {name: numpy.zeros_like(values) for name, values in parameters.items()}
    every = max(1, -(-wanted.epochs // LINES))
    loss = float("inf")
    for number in range(1, wanted.epochs + 1):
        rate = wanted.learning_rate * wanted.decay ** ((number - 1) / max(1, wanted.epochs - 1))
        loss = epoch(parameters, speeds, data, rate, wanted, random)
        if number % every == 0 or number == wanted.epochs:
            seen = network.accuracy(parameters, unseen["pixels"], unseen["digits"])
            print(f"epoch {number}/{wanted.epochs} loss {loss:.4f} accuracy {seen:.4f}", flush=True)
    return parameters, loss


def main() -> None:
    wanted = arguments()
    data = artifacts.load_arrays(artifacts.existing("train.npz", "fetch"))
    unseen = artifacts.load_arrays(artifacts.existing("validation.npz", "fetch"))
    began = time.perf_counter()
    parameters, loss = train(data, unseen, wanted)
    seconds = time.perf_counter() - began
    path = artifacts.save_arrays(f"{wanted.out}.npz", **parameters)
    artifacts.report(
        model=wanted.out,
        validation_accuracy=round(network.accuracy(parameters, unseen["pixels"], unseen["digits"]), 4),
        loss=round(loss, 4),
        epochs=wanted.epochs,
        seconds=round(seconds, 2),
        sha256=artifacts.digest(path),
    )


if __name__ == "__main__":
    main()

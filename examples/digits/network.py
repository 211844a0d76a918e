"""A classifier in plain numpy: softmax regression, or with a hidden layer of rectified units in front of it."""

import numpy

PIXELS = 64
SIDE = 8
DIGITS = 10

Parameters = dict[str, numpy.ndarray]


def fresh(hidden: int, random: numpy.random.Generator) -> Parameters:
    """Parameters before any training; `hidden` 0 is softmax regression."""
    inputs = hidden or PIXELS
    parameters = {"out": random.normal(0, 1 / numpy.sqrt(inputs), (inputs, DIGITS)), "out_bias": numpy.zeros(DIGITS)}
    if hidden:
        parameters["in"] = random.normal(0, numpy.sqrt(2 / PIXELS), (PIXELS, hidden))
        parameters["in_bias"] = numpy.zeros(hidden)
    return parameters


def _features(parameters: Parameters, pixels: numpy.ndarray) -> numpy.ndarray:
    if "in" not in parameters:
        return pixels
    return numpy.maximum(pixels @ parameters["in"] + parameters["in_bias"], 0)


def _probabilities(parameters: Parameters, features: numpy.ndarray) -> numpy.ndarray:
    scores = features @ parameters["out"] + parameters["out_bias"]
    powers = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def predict(parameters: Parameters, pixels: numpy.ndarray) -> numpy.ndarray:
    """The digit of each image."""
    return _probabilities(parameters, _features(parameters, pixels)).argmax(axis=1)


def accuracy(parameters: Parameters, pixels: numpy.ndarray, digits: numpy.ndarray) -> float:
    """The share of images, from 0 to 1, whose digit is told right."""
    return float((predict(parameters, pixels) == digits).mean())


def loss_and_slopes(parameters: Parameters, pixels: numpy.ndarray, digits: numpy.ndarray) -> tuple[float, Parameters]:
    """Mean cross entropy of a batch and its derivative by every parameter."""
    features = _features(parameters, pixels)
    probabilities = _probabilities(parameters, features)
    rows = numpy.arange(len(digits))
    loss = float(-numpy.log(probabilities[rows, digits] + 1e-12).mean())
    probabilities[rows, digits] -= 1
    errors = probabilities / len(digits)
    slopes = {"out": features.T @ errors, "out_bias": errors.sum(axis=0)}
    if "in" in parameters:
        behind = (errors @ parameters["out"].T) * (features > 0)
        slopes |= {"in": pixels.T @ behind, "in_bias": behind.sum(axis=0)}
    return loss, slopes


def shifted(pixels: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
    """Each image moved by at most one pixel either way; the border that comes in is empty."""
    padded = numpy.pad(pixels.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)))
    corners = random.integers(0, 3, size=(2, len(pixels), 1)) + numpy.arange(SIDE)
    rows, columns = corners[0, :, :, None], corners[1, :, None, :]
    return padded[numpy.arange(len(pixels))[:, None, None], rows, columns].reshape(-1, PIXELS)

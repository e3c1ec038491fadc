"""What Figures 3.4 to 3.6 draw: one likelihood term, lone points in the square, and one draw of the toy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from gpcmc.gaussian.laplace import Laplace
from gpcmc.likelihood.probit import hazard
from studies.common.rows import Line
from studies.common.seeds import generator
from studies.rasmussen2006 import toy
from studies.rasmussen2006.gp import Surface, squared_distances, squared_exponential

Array = np.ndarray
#: The cavity of Figure 3.4, whose likelihood term is that of y = 1: mean and variance.
CAVITY = (1.0, 9.0)
#: Figure 3.5: signal variance, length scales, points of each class that are on its side of the square's diagonal, and
#: the lone points, which are among those of the other class. The points of the book are in a picture alone.
VARIANCE, LENGTHS, SIDE = 9.0, (0.1, 0.2, 0.3), 9
LONE = np.array([[0.75, 0.75], [0.25, 0.25]])
#: Values on a side of the square, and of the line of Figure 3.6.
SQUARE, LINE = np.linspace(0.0, 1.0, 31), np.linspace(-9.0, 6.0, 76)


def _lines(figure: str, curves: dict[str, tuple[Array, Array]], **more: object) -> Iterator[Line]:
    for name, (x, values) in curves.items():
        for place, value in zip(x, values, strict=True):
            where = {"x": float(place[0]), "y": float(place[1]) if len(place) == 2 else 0.0}
            key = {"figure": figure, "quantity": name, "draw": 0, "length": 0.0, "seed": "", **more}
            yield {**key, **where, "value": float(value)}


def hybrid() -> tuple[float, float, float]:
    """Return normaliser, mean and variance of Phi(f) times the cavity (Eq. 3.58)."""
    mean, variance = CAVITY
    scale = np.sqrt(1.0 + variance)
    r, _ = hazard(np.array([mean / scale]))
    ratio = float(r[0])
    moved = mean + variance * ratio / scale
    shrunk = variance - variance**2 * ratio / (1.0 + variance) * (mean / scale + ratio)
    return float(ndtr(mean / scale)), moved, shrunk


def term() -> list[Line]:
    """Return the term, the cavity, their product and the Gaussian with its moments (Figure 3.4)."""
    f = np.linspace(-5.0, 10.0, 76)
    normaliser, *moments = hybrid()
    posterior = ndtr(f) * _density(f, *CAVITY) / normaliser
    found = {"likelihood": ndtr(f), "cavity": _density(f, *CAVITY)}
    found |= {"posterior": posterior, "gaussian": _density(f, *moments)}
    curves = {name: (f[:, None], values) for name, values in found.items()}
    return [*_lines("3.4", curves)]


def _density(x: Array, mean: float, variance: float) -> Array:
    density: Array = np.exp(-0.5 * (x - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance)
    return density


def line(path: str) -> list[Line]:
    """Return one draw of the toy at the printed hyperparameters: probabilities, and latent means and deviations."""
    x, y = toy.draw(generator(path))
    curves, places = {"points": (x, y)}, LINE[:, None]
    across = squared_exponential(squared_distances(x, places), *toy.PRINTED)
    prior = np.full(len(LINE), np.exp(2 * toy.PRINTED[1]))
    for name, method in toy.METHODS.items():
        posterior = Surface(method, squared_distances(x, x), y).posterior(*toy.PRINTED)
        mean, variance = posterior.latent(across, prior)
        p = ndtr(mean / np.sqrt(1 + variance))
        found = {"mean": mean, "deviation": np.sqrt(variance), "probability": p}
        curves |= {f"{name}-{quantity}": (places, values) for quantity, values in found.items()}
    curves["truth-probability"] = (places, _generating(LINE))
    return [*_lines("3.6", curves, seed=path)]


def _generating(x: Array) -> Array:
    """The probability of +1 of the process that the data are drawn from."""
    weights = {label: np.zeros(len(x)) for label in (1.0, -1.0)}
    for centre, cases, label in toy.GROUPS:
        weights[label] += cases * _density(x, centre, toy.DEVIATION**2)
    share: Array = weights[1.0] / (weights[1.0] + weights[-1.0])
    return share


def square(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return 20 inputs (n, 2) and labels (n,); the lone points are the last two."""
    drawn = rng.random((100 * SIDE, 2))
    south_west = drawn.sum(axis=1) < 1.0
    X = np.concatenate([drawn[south_west][:SIDE], drawn[~south_west][:SIDE], LONE])
    return X, np.repeat([1.0, -1.0, 1.0, -1.0], [SIDE, SIDE, 1, 1])


def squares(number: int, path: str) -> list[Line]:
    """Return a draw of Figure 3.5 by Laplace's method with the logistic likelihood; of the first one, all places."""
    X, y = square(generator(path))
    places = np.stack(np.meshgrid(SQUARE, SQUARE), axis=-1).reshape(-1, 2)
    theta = 0.5 * np.log(VARIANCE)
    found: list[Line] = [*_lines("3.5", {"points": (X, y)}, seed=path)] if number == 0 else []
    for length in LENGTHS:
        method, point = Laplace(likelihood="logistic"), (float(np.log(length)), float(theta))
        posterior = Surface(method, squared_distances(X, X), y).posterior(*point)
        everywhere = np.concatenate([X, places])
        across = squared_exponential(squared_distances(X, everywhere), *point)
        p = posterior.predict(across, np.full(len(everywhere), VARIANCE)).probability
        wrong, over = (p[: len(y)] > 0.5) != (y > 0), p[len(y) :]
        values = {"errors": wrong.sum(), "lone-errors": wrong[-len(LONE) :].sum()}
        values |= {"least": over.min(), "greatest": over.max()}
        key = {"draw": number, "length": length, "seed": path}
        nowhere = np.zeros((1, 1))
        scalars = {name: (nowhere, np.array([value])) for name, value in values.items()}
        found += _lines("3.5", scalars, **key)
        if number == 0:
            found += _lines("3.5", {"probability": (places, over)}, **key)
    return found

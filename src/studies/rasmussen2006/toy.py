"""The one-dimensional example (section 3.7.2, Figure 3.6) on many draws of its data."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.laplace import Laplace
from studies.common.rows import Line
from studies.rasmussen2006.gp import Surface, maximise, squared_distances, squared_exponential

Array = np.ndarray
#: Centre, cases and label of each group; all have the same standard deviation.
GROUPS = ((-6.0, 20, 1.0), (0.0, 30, -1.0), (2.0, 10, 1.0))
DEVIATION = 0.8
#: Inputs that the text speaks of, and the printed point.
INPUTS = np.array([-6.0, 2.0, 4.0])
PRINTED = (float(np.log(2.6)), float(np.log(7.0)))
METHODS = {"laplace": Laplace(), "ep": ExpectationPropagation()}


def draw(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return 60 inputs (n, 1) and labels (n,)."""
    x = [rng.normal(centre, DEVIATION, cases) for centre, cases, _ in GROUPS]
    y = [np.full(cases, label) for _, cases, label in GROUPS]
    return np.concatenate(x)[:, None], np.concatenate(y)


def described(rng: np.random.Generator) -> list[Line]:
    """Look at both methods on a draw, at Laplace's maximum for that draw and at the printed hyperparameters.

    Returns
    -------
    list of dict
        One a choice of hyperparameters (``setting``) and ``method``: mean and standard deviation of the latent function
        at -6, and the probabilities at -6, 2 and 4.
    """
    x, y = draw(rng)
    distances = squared_distances(x, x)
    surface = Surface(Laplace(), distances, y)
    own = maximise(surface.value_and_gradient, PRINTED, [(-2.0, 4.0), (-1.0, 5.0)]).theta
    lines = []
    for setting, theta in {"own": own, "printed": np.array(PRINTED)}.items():
        across = squared_exponential(squared_distances(x, INPUTS[:, None]), *theta)
        for name, method in METHODS.items():
            posterior = Surface(method, distances, y).posterior(*theta)
            mean, variance = posterior.latent(across, np.full(3, np.exp(2 * theta[1])))
            p = ndtr(mean / np.sqrt(1.0 + variance))
            found = {
                "length": float(np.exp(theta[0])),
                "amplitude": float(np.exp(theta[1])),
                "mean_far": float(mean[0]),
                "deviation_far": float(np.sqrt(variance[0])),
                **dict(zip(("p_far", "p_two", "p_four"), p.tolist(), strict=True)),
            }
            lines.append({"setting": setting, "method": name, **found})
    return lines

"""Chains on both problems: full Bayesian inference for hyperparameters, latent values and noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel

from studies.common.rows import Line
from studies.neal1997.model.classification import Classification
from studies.neal1997.model.kernel import SquaredExponential
from studies.neal1997.model.priors import Gamma, Hierarchy, draw_logarithms
from studies.neal1997.model.regression import Regression, RegressionState
from studies.neal1997.runs import (
    CLASSES_ITERATIONS,
    DRAWS,
    EARLY,
    EARLY_PERSISTENCE,
    FACTOR,
    JITTER,
    OUTLIERS_FIRST,
    OUTLIERS_ITERATIONS,
    SCANS,
    UPDATES,
    ClassesRun,
    OutliersRun,
    used,
)

Array = np.ndarray
#: The software's ``0.05:0.5``: of magnitudes, noise, and the relevance of a single input.
VAGUE = Gamma(0.05, 0.5)
#: The software's ``x0.2:0.5:1``. Where alpha is below 2, the ``x`` divides the width by p^(1/alpha) for p relevances,
#: here by 4, so that the sum of their squares keeps its scale (``prior.doc``).
RELEVANCES = Hierarchy(Gamma(0.2 / 4, 0.5), 1.0)
#: Where chains begin: magnitude, relevances of the three-way problem, relevance and noise of the regression.
MAGNITUDE, RELEVANCE, SINGLE_RELEVANCE, NOISE = 0.5, 1.0, 0.1, 0.5
#: The training case whose latent values Figure 4 shows.
CASE = 1
#: Inputs at which Figure 5 shows predictions.
GRID = np.linspace(-2.5, 2.5, 101)


def covariance(relevance: Any, constant: float, jitter: float) -> Kernel:
    """Return the covariance of both problems at the start; constant and jitter are standard deviations."""
    parts = ConstantKernel(constant**2, "fixed") + ConstantKernel(
        MAGNITUDE**2
    ) * SquaredExponential(relevance)
    return parts + WhiteKernel(jitter**2, "fixed") if jitter else parts


def true_function(x: Array) -> Array:
    """Return the mean of the target, N(22)."""
    return 0.3 + 0.4 * x + 0.5 * np.sin(2.7 * x) + 1.1 / (1.0 + x**2)


def classes(
    run: ClassesRun, iterations: int, data: Mapping[str, Array], rng: np.random.Generator
) -> list[Line]:
    """Run a chain on the three-way problem.

    Parameters
    ----------
    run : ClassesRun
    iterations : int
    data : mapping
        ``X`` (n, 4), ``t`` (n,) and ``training``, where the test cases begin.
    rng : Generator

    Returns
    -------
    list of dict
        A line an ``iteration``: hyperparameters ``eta``, ``rho`` (the top level of the next), ``rho1`` to ``rho4``;
        latent values of one case, ``latent0`` to ``latent2``; how many updates were ``accepted``. The last has the
        ``error-rate`` and the mean ``log-probability`` of the test cases.
    """
    X, t, test = data["X"], data["t"].astype(np.int64), int(data["training"])
    inputs = X.shape[1]
    kernel = covariance(np.full(inputs, RELEVANCE), run.constant, run.jitter)
    train = slice(0, run.training)
    model = Classification(kernel, [VAGUE, RELEVANCES], X[train], t[train], classes=3)
    state, saved = model.start(), used(iterations, run.first, CLASSES_ITERATIONS)
    probability, lines = np.zeros((len(t) - test, 3)), []
    names = ["eta", "rho", *(f"rho{u + 1}" for u in range(inputs))]
    for iteration in range(1, iterations + 1):
        state = model.iterate(
            state,
            updates=UPDATES,
            scans=SCANS,
            persistence=EARLY_PERSISTENCE if iteration <= EARLY else run.persistence,
            factor=run.factor,
            rng=rng,
        )
        line: Line = {"iteration": iteration}
        line |= zip(names, np.exp(state.point.x).tolist(), strict=True)
        line |= {f"latent{k}": float(y) for k, y in enumerate(state.latent[:, CASE])}
        lines.append(line | {"accepted": state.accepted})
        if iteration in saved:
            shares = model.predict_proba(state, X[test:], draws=DRAWS, rng=rng)
            probability += shares / len(saved)
    right = probability[np.arange(len(t) - test), t[test:]]
    lines[-1]["error-rate"] = float((probability.argmax(axis=1) != t[test:]).mean())
    lines[-1]["log-probability"] = float(np.log(right).mean())
    return lines


def outliers(
    run: OutliersRun, iterations: int, data: Mapping[str, Array], rng: np.random.Generator
) -> tuple[list[Line], Array]:
    """Run a chain on the regression with outliers; arguments as of `classes`, with X (n, 1).

    Returns
    -------
    lines : list of dict
        A line an ``iteration``: hyperparameters ``eta``, ``rho`` and ``sigma``. The last has the mean squared error of
        predictions (``squared-error`` from the targets, ``function-error`` from N(22)) and the mean log probability of
        the test cases (with t noise also as the software has it, ``log-probability-software``).
    curve : (2, 101) array
        Inputs, `GRID`, and predictive means there.
    """
    X, t, test = data["X"], data["t"], int(data["training"])
    kernel = covariance(SINGLE_RELEVANCE, run.constant, JITTER if run.degrees else 0.0)
    model = Regression(
        kernel, [VAGUE, VAGUE], VAGUE, X[:test], t[:test], degrees=run.degrees, sigma=NOISE
    )
    state, saved = model.start(), used(iterations, OUTLIERS_FIRST, OUTLIERS_ITERATIONS)
    mean, curve, lines = np.zeros(len(t) - test), np.zeros(len(GRID)), []
    levels: dict[str, list[Array]] = {"log-probability": [], "log-probability-software": []}
    for iteration in range(1, iterations + 1):
        state = model.iterate(state, factor=FACTOR, rng=rng)
        line: Line = {"iteration": iteration}
        line |= zip(("eta", "rho", "sigma"), np.exp(state.point.x).tolist(), strict=True)
        lines.append(line)
        if iteration in saved:
            mean += model.predict(state, X[test:])[0] / len(saved)
            curve += model.predict(state, GRID[:, None])[0] / len(saved)
            levels["log-probability"].append(model.log_predictive(state, X[test:], t[test:]))
            if run.degrees is not None:
                by_draws = _software(model, state, X[test:], t[test:], rng)
                levels["log-probability-software"].append(by_draws)
    last = lines[-1]
    last["squared-error"] = float(((mean - t[test:]) ** 2).mean())
    last["function-error"] = float(((mean - true_function(X[test:, 0])) ** 2).mean())
    for key, own in levels.items():
        if own:
            last[key] = float((np.logaddexp.reduce(own, axis=0) - np.log(len(own))).mean())
    return lines, np.stack([GRID, curve])


def _software(
    model: Regression, state: RegressionState, X: Array, t: Array, rng: np.random.Generator
) -> Array:
    """The log density of test targets under t noise, with one draw of each case's noise variance.

    So does the software (``gp-pred.c`` of 1996 and 2004). It integrates over the latent value, as we do.
    """
    assert model.degrees is not None
    mean, variance = model.predict(state, X)
    noise = np.exp(draw_logarithms(math.log(state.noise), model.degrees, len(t), rng))
    return norm.logpdf(t, mean, np.sqrt(variance + noise**2))

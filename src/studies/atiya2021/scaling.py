"""One estimate of the marginal likelihood of one data set: how each method scales with patterns and roughness.

There are two laws of data. Under ``model`` the labels are drawn from the probit model with the kernel that is fitted,
so that the kernel is true. Under ``normals`` there are two overlapping normal classes, by the laws of the paper's
Experiment 4 (section 6.4): with two inputs that of Problem 6, and with eight that of Problem 5 without its last two
inputs. The boundary between these classes is smooth, whatever kernel is fitted.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import prior
from gpcmc.methods import Method
from studies.atiya2021.problems import SYNTHETIC
from studies.atiya2021.runs import Attempt, attempt, with_own_status
from studies.common.rows import Line
from studies.common.seeds import generator
from studies.common.timing import import_late

#: The problem of Experiment 4 whose law the two normal classes have, by number of inputs.
PROBLEMS = {2: 6, 8: 5}
#: What a method says of its own run that is kept.
DIAGNOSTICS = ("effective_eves", "effective_samples", "effective_runs", "k_hat")


def from_process(
    inputs: int, n: int, path: str, *, alpha: float, beta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw standard normal features (n, inputs), and labels (n,) by the probit model of the RBF kernel.

    A label is the sign of a latent value, drawn from the Gaussian process, plus standard normal noise.

    Parameters
    ----------
    inputs, n : int
        At least 1.
    path : str
        Seed of the data set.
    alpha, beta : float
        Length scale and variance of the kernel.
    """
    rng = generator(path)
    X = rng.standard_normal((n, inputs))
    factor = np.linalg.cholesky(rbf(alpha, beta)(X) + np.eye(n))
    return X, np.where(factor @ rng.standard_normal(n) >= 0.0, 1.0, -1.0)


def two_normals(inputs: int, n: int, path: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw features (n, inputs) and labels (n,), shuffled; half of them of each class, or one more of class 1.

    Parameters
    ----------
    inputs : int
        A key of `PROBLEMS`.
    n : int
        Patterns, at least 1.
    path : str
        Seed of the data set.
    """
    law, rng = SYNTHETIC[PROBLEMS[inputs]], generator(path)
    mean, cov = law.mean[:inputs], law.cov[:inputs, :inputs]
    first = rng.standard_normal((n - n // 2, inputs))
    second = rng.multivariate_normal(mean, cov, size=n // 2, method="cholesky")
    order = rng.permutation(n)
    y = np.repeat([1.0, -1.0], [len(first), len(second)])
    return np.concatenate([first, second])[order], y[order]


def run_once(
    data: tuple[np.ndarray, np.ndarray], alpha: float, beta: float, method: Method, seed: str | None
) -> Attempt:
    """Run a method, with its own status, on patterns and labels under the RBF kernel; None is no seed."""
    X, y = data
    gp = prior(rbf(alpha, beta), X)
    import_late()
    rng = None if seed is None else generator(seed)
    return attempt(partial(with_own_status, method, gp, y, rng=rng))


def columns(made: Attempt) -> Line:
    """Return the results of a run: its status, and its numbers if it has an estimate."""
    line: Line = {"status": made.status}
    if made.found is None or made.found.log_evidence is None:
        return line
    found = made.found
    line |= {"log_evidence": found.log_evidence, "log_evidence_se": found.log_evidence_se}
    return line | {k: float(v) for k, v in found.diagnostics.items() if k in DIAGNOSTICS}

"""One estimate of the marginal likelihood of one data set: how each method scales with patterns and roughness.

Patterns are drawn from the laws of the paper's Experiment 4 (section 6.4): with two inputs from that of Problem 6, and
with eight from that of Problem 5 without its last two inputs. Both have two overlapping normal classes.
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

#: The problem of Experiment 4 whose law has the patterns, by number of inputs.
LAWS = {2: 6, 8: 5}
#: What a method says of its own run that is kept.
DIAGNOSTICS = ("effective_eves", "effective_samples", "effective_runs", "k_hat")


def patterns(inputs: int, n: int, path: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw features (n, inputs) and labels (n,), shuffled; half of them of each class, or one more of class 1.

    Parameters
    ----------
    inputs : int
        A key of `LAWS`.
    n : int
        Patterns, at least 1.
    path : str
        Seed of the data set.
    """
    law, rng = SYNTHETIC[LAWS[inputs]], generator(path)
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

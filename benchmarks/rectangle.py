"""Rectangle probabilities: error and CPU seconds of each method, and of SciPy's, in one run on one core.

Each row is one call: the estimate of log P, its standard error, the error where the truth is known, CPU seconds of all
of the call, and what the result says of itself. The Matern problems are those that Cao and Katzfuss time (Matern 3/2,
range .1, nugget .03, unit square): a regular grid here, as they state none.

Run with ``python benchmarks/rectangle.py [problem ...]``; writes results/rectangle.csv.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import gammaln, ndtr
from scipy.stats import multivariate_normal, norm

from gpcmc import orthant_probability, rectangle_probability

INF = np.inf
METHODS = ("auto", "minimax-tilting", "twisted-ep", "separation")
SECONDS = 60.0  # SciPy's evaluations are as many as it can make in about so long


def equicorrelated(n):
    return 0.5 * (np.eye(n) + 1.0)


def one_factor(n, lower, upper):
    """Equal correlations of one half: log P by the trapezoidal rule over the factor."""
    u, step = np.linspace(-20, 20, 8001, retstep=True)
    root = np.sqrt(0.5)
    p = ndtr((upper - root * u) / root) - ndtr((lower - root * u) / root)
    return np.log(np.sum(norm.pdf(u) * p**n) * step)


def chain(n, phi):
    """The orthant of a stationary AR(1): one coordinate integrated after the other."""
    node, weight = np.polynomial.legendre.leggauss(200)
    x, w = 4.5 * (1 + node), 4.5 * weight
    step = norm.pdf(x[:, None], phi * x, np.sqrt(1 - phi**2)) * w
    f, log_p = norm.pdf(x), 0.0
    for _ in range(n - 1):
        log_p += np.log(f.sum())
        f = step @ (f / f.sum())
    return log_p + np.log(w @ f)


def matern(n):
    side = round(np.sqrt(n))
    grid = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, side)]), -1).reshape(-1, 2)
    distance = np.linalg.norm(grid[:, None] - grid, axis=-1) * np.sqrt(3) / 0.1
    return (1 + distance) * np.exp(-distance) + 0.03 * np.eye(n)


def problems():
    """Name, limits, covariance, log P or NaN, tolerance."""
    n = 200
    yield "equal, n = 200", 0, INF, equicorrelated(n), -np.log(n + 1), 2e-3
    tridiagonal = np.eye(30) - 0.5 * (np.eye(30, k=1) + np.eye(30, k=-1))
    yield "tridiagonal, n = 30", 0, INF, tridiagonal, -gammaln(32), 1e-3
    yield "tail, n = 100", 3, INF, equicorrelated(100), one_factor(100, 3, INF), 5e-3
    yield "box, n = 20", -1, 2, equicorrelated(20), one_factor(20, -1, 2), 1e-3
    A = 0.9 ** np.abs(np.subtract.outer(np.arange(1000), np.arange(1000)))
    yield "AR(.9), n = 1000", 0, INF, A, chain(1000, 0.9), 0.1
    yield "Matern, n = 900, orthant", 0, INF, matern(900), np.nan, 0.1
    yield "Matern, n = 900, above -1", -1, INF, matern(900), np.nan, 0.1
    yield "Matern, n = 900, box", -1, 1, matern(900), np.nan, 0.1


def timed(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def ours(lower, upper, cov, tolerance):
    for method in METHODS:
        large = len(cov) >= 900
        seconds, found = timed(
            lambda method=method, large=large: rectangle_probability(
                lower,
                upper,
                cov=cov,
                method=method,
                tolerance=tolerance,
                max_samples=2**15 if large else 2**20,
                rng=0,
            )
        )
        note = f"{found.status} ({found.method}, {found.samples})"
        yield method, found.log_probability, found.standard_error, seconds, note


def sequential(lower, upper, cov):
    if upper < INF:
        return
    samples = 2000 if len(cov) >= 900 else 100_000
    seconds, found = timed(
        lambda: orthant_probability(
            cov,
            lower=float(lower),
            samples=samples,
            scheme="adapted",
            count="soft",
            rng=np.random.default_rng(0),
        )
    )
    note = f"{samples} samples, {found.effective_eves:.0f} eves"
    yield "orthant, adapted", found.log_probability, found.standard_error, seconds, note


def scipys(lower, upper, cov):
    n = len(cov)
    if n >= 900:  # its time grows with n^2 for each point: an hour
        return
    points = int(SECONDS * 2e7 / n**2)
    seconds, p = timed(
        lambda: multivariate_normal.cdf(
            np.full(n, float(upper)),
            cov=cov,
            lower_limit=np.full(n, float(lower)),
            maxpts=points,
            abseps=0.0,
            releps=1e-4,
            rng=np.random.default_rng(0),
        )
    )
    with np.errstate(divide="ignore"):
        yield "scipy", float(np.log(p)), np.nan, seconds, f"maxpts={points}"


def main():
    rectangle_probability(0, INF, cov=equicorrelated(5), rng=0)  # imports
    chosen = sys.argv[1:]
    rows = []
    for name, lower, upper, cov, truth, tolerance in problems():
        if chosen and not any(word in name for word in chosen):
            continue
        found = [
            *ours(lower, upper, cov, tolerance),
            *sequential(lower, upper, cov),
            *scipys(lower, upper, cov),
        ]
        for method, log_p, se, seconds, note in found:
            rows.append((name, method, log_p, log_p - truth, se, seconds, note))
            print(
                "{:26s}{:17s}{:12.4f} error {:9.1e} se {:8.1e} {:7.2f} s  {}".format(*rows[-1]),
                flush=True,
            )
    columns = [
        "problem",
        "method",
        "log_probability",
        "error",
        "standard_error",
        "cpu_seconds",
        "note",
    ]
    table = pd.DataFrame(rows, columns=columns)
    for column, digits in zip(columns[2:6], (".4f", ".1e", ".1e", ".2f"), strict=True):
        table[column] = [format(x, digits) if np.isfinite(x) else "" for x in table[column]]
    out = Path("results/rectangle.csv")
    out.parent.mkdir(exist_ok=True)
    table.to_csv(out, index=False)


if __name__ == "__main__":
    main()

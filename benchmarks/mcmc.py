"""Speed of the Markov chain transitions, N = 400, one core, float64: ratios in one run.

A transition is compared with the matrix-vector products with a root of K that it needs: one for elliptical
slice sampling, two a leapfrog step for Hamiltonian Monte Carlo. "products" are made one after another,
"batch" as the chains make them, in one matrix product. The kernel of the first table is rough, so that
the root has all columns; posterior moves need the most likelihood evaluations, annealed ones fewer.
The second table has the effective samples a CPU second. Run as ``python benchmarks/mcmc.py``.
"""

import time

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from gpcmc.chains.annealing import ladder
from gpcmc.gp import Prior, rbf
from gpcmc.inference import EllipticalSlice, HamiltonianMonteCarlo

N, MOVES, ROUNDS = 400, 40, 5
METHODS = {"ess": EllipticalSlice(temperatures=0), "hmc": HamiltonianMonteCarlo(temperatures=0)}


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def problem(alpha, beta, rng):
    K = rbf(alpha, beta)(rng.standard_normal((N, 2)))
    f = np.linalg.cholesky(K + 1e-9 * np.eye(N)) @ rng.standard_normal(N)
    return K, np.where(rng.standard_normal(N) < f, 1.0, -1.0)


def compare(name, chains, temperatures, K, y, rng):
    kernel, _ = METHODS[name].kernel(K, y, rng=rng)
    c, moves = kernel.coordinates, MOVES * chains
    needed = 2 * kernel.leapfrog_steps if name == "hmc" else 1
    W, start = c.draw_prior(chains, rng=rng), kernel.init(c.draw_laplace(chains, rng=rng))
    rows = []
    for _ in range(ROUNDS + 1):  # the first warms up
        step = seconds(lambda: list(kernel.run(start, temperatures, rng=rng))) / moves
        one = seconds(lambda: [c.gradient_map @ W[0] for _ in range(moves)]) / moves * needed
        batch = seconds(lambda: [W @ c.margin_map for _ in range(MOVES)]) / moves * needed
        rows.append((1e6 * step, step / one, step / batch))
    return (name, chains, float(temperatures[0]), *np.median(rows[1:], axis=0))


def main():
    rng = np.random.default_rng(0)
    K, y = problem(0.5, 3.0, rng)
    at = {"posterior": np.ones(MOVES), "annealed": ladder(MOVES)[1:]}
    table = [compare(m, c, t, K, y, rng) for m in METHODS for c in (16, 64) for t in at.values()]
    columns = ["method", "chains", "from", "us / move / chain", "/ products", "/ batch"]
    print(pd.DataFrame(table, columns=columns).round(2).to_string(index=False))
    K, y = problem(3.0, 2.0, rng)
    for name, method in METHODS.items():
        start = time.process_time()
        effective = method.fit(Prior(K), y, rng=rng).diagnostics["effective_samples"]
        cpu = time.process_time() - start
        print(
            f"{name}, rbf(3, 2): {effective:.0f} effective samples, {effective / cpu:.0f} a CPU second"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

"""Speed and memory of the orthant sampler, as ratios in one run on one core, float64.

N = 500, 1,000,000 samples, a covariance of Experiment 1. Measured side by side:

matrix products
    the conditional means of all samples by matrix products alone, blocked as well as they can be, on one
    population and times the number of populations; the sampler needs fewer, those of surviving ancestors
hard, soft, adapted
    the sampler
hard, runs of 12,500
    the sampler in runs that stay in the second-level cache; what it takes more in runs of 200,000 is memory
textbook, rows
    the algorithm as one would write it in NumPy, one stage at a time, a sample a row; the whole history is
    gathered at every resampling; 20,000 samples, extrapolated
textbook, columns
    the same with a sample a column

Times are CPU seconds of this process, medians of the rounds; peak memory is of a process of its own.
Run with ``make bench``; writes results/benchmark.csv.
"""

import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.linalg import cholesky
from scipy.linalg.blas import dgemm
from threadpoolctl import threadpool_limits

from gpcmc.orthant.populations import MAX_POPULATION
from gpcmc.orthant.sampler import orthant_probability

N, SAMPLES, TEXTBOOK_SAMPLES, ROUNDS = 500, 1_000_000, 20_000, 3
SMALLEST = 8  # coordinates; smaller products do not pay


def covariance():
    d = np.random.default_rng(0).uniform(-1, 1, N)
    R = np.outer(d, d)
    np.fill_diagonal(R, 1.0)
    return R


def products(L, E, lo, hi):
    """Add the left half's share to the means of the right half, and so on in each half."""
    if hi - lo <= SMALLEST:
        return
    mid = (lo + hi) // 2
    products(L, E, lo, mid)
    factor = np.ascontiguousarray(L[mid:hi, lo:mid])
    dgemm(1.0, E[lo:mid].T, factor.T, beta=float(lo > 0), c=E[mid:hi].T, overwrite_c=True)
    products(L, E, mid, hi)


def time_products(R):
    L = cholesky(R, lower=True)
    E = np.random.default_rng(0).standard_normal((N, MAX_POPULATION))
    start = time.process_time()
    products(L / np.diag(L)[:, None], E, 0, N)
    return (time.process_time() - start) * SAMPLES / MAX_POPULATION


def time_sampler(R, **options):
    start = time.process_time()
    orthant_probability(R, samples=SAMPLES, rng=np.random.default_rng(0), **options)
    return time.process_time() - start


def time_textbook(R, axis):
    rng, L = np.random.default_rng(0), cholesky(R, lower=True)
    V = np.empty((N, TEXTBOOK_SAMPLES) if axis else (TEXTBOOK_SAMPLES, N))
    start = time.process_time()
    for i in range(N):
        draws = rng.standard_normal(TEXTBOOK_SAMPLES)
        if axis:
            V[i] = draws
            inside = np.flatnonzero(L[i, : i + 1] @ V[: i + 1] >= 0)
        else:
            V[:, i] = draws
            inside = np.flatnonzero(V[:, : i + 1] @ L[i, : i + 1] >= 0)
        refill = rng.choice(inside, TEXTBOOK_SAMPLES - len(inside))
        V = np.take(V, np.concatenate([inside, refill]), axis=axis)
    return (time.process_time() - start) * SAMPLES / TEXTBOOK_SAMPLES


MEASUREMENTS = {
    "matrix products": time_products,
    "hard": lambda R: time_sampler(R, count="hard"),
    "hard, runs of 12,500": lambda R: time_sampler(R, count="hard", runs=SAMPLES // 12_500),
    "soft": lambda R: time_sampler(R, count="soft"),
    "adapted": lambda R: time_sampler(R, scheme="adapted"),
    "textbook, rows": lambda R: time_textbook(R, axis=0),
    "textbook, columns": lambda R: time_textbook(R, axis=1),
}


def peak_memory(name):
    """Peak memory, in MB, of a fresh process that makes one measurement."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak, (name,))


def _peak(name):
    MEASUREMENTS[name](covariance())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    # memory first: a process starts with the peak of the one that made it
    peak = {name: peak_memory(name) for name in ("hard", "soft", "adapted")}
    R = covariance()
    with threadpool_limits(1):
        rounds = [{name: f(R) for name, f in MEASUREMENTS.items()} for _ in range(ROUNDS)]
    times = pd.DataFrame(rounds)
    table = pd.DataFrame({"cpu_seconds": times.median()})
    for name in ("matrix products", "textbook, rows", "textbook, columns"):
        table[f"{name} / this"] = times.rdiv(times[name], axis=0).median()
    table["peak_mb"] = pd.Series(peak)
    print(f"N = {N}, {SAMPLES:,} samples, one core, float64, median of {ROUNDS} rounds")
    print(table.round(2).to_string())
    Path("results").mkdir(exist_ok=True)
    table.rename_axis("what").to_csv("results/benchmark.csv")


if __name__ == "__main__":
    main()

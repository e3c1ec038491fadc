"""What the fits of benchmarks/fit.py share, in all environments: patterns, seconds, and counts of evaluations."""

import time

import numpy as np


def patterns(n):
    """Eight inputs (n, 8), of which three matter, and labels (n,)."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 8))
    f = 2.0 * np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, f + rng.standard_normal(n) > 0.0


def repeated(fit, X, y):
    """What a fit has found, and the least CPU seconds of up to five fits if these are short."""
    fit(X[:10], y[:10])  # what is loaded at the first call is not counted
    seconds = []
    while len(seconds) < 5 and sum(seconds) < 5.0:
        start = time.process_time()
        found = fit(X, y)
        seconds.append(time.process_time() - start)
    return {"status": "ok", "cpu_seconds": min(seconds)} | found


def counted(owner, name, counts, *, by_default=True):
    """Count the calls of an evidence with its gradient, which it has `by_default` or if it is told to."""
    original = getattr(owner, name)

    def wrapper(*args, **kwargs):
        counts[0] += kwargs.get("eval_gradient", by_default)
        return original(*args, **kwargs)

    setattr(owner, name, wrapper)

"""Reads problems.json: Gaussian process classification problems whose log evidence is known to 0.01 nats.

This file needs NumPy and nothing else of this repository. Copy both files.

    >>> from certified import covariance, load
    >>> problems = load()
    >>> one = problems["rough/N200/0"]
    >>> K, y = covariance(one), one.y
    >>> abs(my_method(K, y) - one.log_evidence) < 4 * one.standard_error

The model: labels y in {-1, +1}, p(y_i = 1 | f_i) = Phi(f_i) (probit), f ~ N(0, K), and
K_ij = beta exp(-|x_i - x_j|^2 / alpha^2). The log evidence is log p(y | X) in nats. Where there are test inputs, the
probability is P(y* = 1 | y). As a script this file prints a table of all problems.
"""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

FILE = Path(__file__).with_name("problems.json")


class Problem(NamedTuple):
    """A problem with its certified values.

    X (n, d), y (n,) of -1 and +1, alpha, beta; log_evidence and standard_error in nats; methods, the value and error of
    each method that certifies it, by its name; X_test (t, d), probability and probability_error (t,), or None.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    alpha: float
    beta: float
    log_evidence: float
    standard_error: float
    methods: dict
    X_test: np.ndarray | None
    probability: np.ndarray | None
    probability_error: np.ndarray | None


def load(path=FILE):
    """Return all problems by name. ValueError names what is not as its digest says."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    if content.get("format") != 1:
        raise ValueError(f"{path}: format must be 1; got {content.get('format')!r}")
    data, found = content["data"], {}
    for name, own in data.items():
        if digest(own) != own["sha256"]:
            raise ValueError(f"{path}: the data {name} were altered")
    for own in content["problems"]:
        if digest(own) != own["sha256"]:
            raise ValueError(f"{path}: the problem {own['name']} was altered")
        given = data[own["data"]]
        y = np.array([1.0 if label == "+" else -1.0 for label in given["y"]])
        arrays = [given.get("X_test"), own.get("probability"), own.get("probability_error")]
        found[own["name"]] = Problem(
            own["name"],
            np.array(given["X"]),
            y,
            own["alpha"],
            own["beta"],
            own["log_evidence"],
            own["standard_error"],
            own["methods"],
            *(None if own.get("probability") is None else np.array(one) for one in arrays),
        )
    return found


def digest(part):
    """Return the SHA-256 of a part of the file: of its JSON with sorted keys, without the digest itself."""
    own = {key: value for key, value in part.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def covariance(problem, X=None):
    """Return K (n, n) of a problem, or the covariance (n, m) with other inputs X (m, d)."""
    X = problem.X if X is None else np.asarray(X)
    squares = ((problem.X[:, None] - X[None]) ** 2).sum(axis=-1)
    return problem.beta * np.exp(-squares / problem.alpha**2)


if __name__ == "__main__":
    for one in load().values():
        n, d = one.X.shape
        value = f"{one.log_evidence:12.5f} +- {one.standard_error:.5f}"
        print(f"{one.name:22} N {n:4}, {d:2} inputs {value}  {', '.join(one.methods)}")

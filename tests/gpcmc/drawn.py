"""Problems that others drew at random: their generators, written anew from what their tests and scripts say."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit, log_ndtr, ndtr, ndtri
from scipy.stats import norm

FOLDER = Path(__file__).with_name("others")


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


# R's random numbers: Mersenne twister, inversion, and sampling by rejection


def r_uniform(seed):
    """What runif draws after set.seed: a function of the number of values."""
    state = []
    for _ in range(50 + 625):
        seed = (69069 * seed + 1) % 2**32
        state.append(seed)
    bits = np.random.MT19937()
    key = np.array(state[51:], dtype=np.uint32)
    bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}
    return lambda n: bits.random_raw(n) * 2.3283064365386963e-10


def r_normal(uniform, n):
    """What rnorm draws: two uniform numbers for the 27 leading and the other bits of one."""
    leading, rest = uniform(2 * n).reshape(n, 2).T
    return ndtri((np.floor(2.0**27 * leading) + rest) / 2.0**27)


def r_sample(uniform, n, size):
    """What sample(n, size) draws, counted from zero; n is at most 65,536."""
    left, drawn = list(range(n)), []
    while len(drawn) < size:
        mask = (1 << (len(left) - 1).bit_length()) - 1
        place = int(65536 * uniform(1)[0]) & mask
        if place < len(left):
            drawn.append(left[place])
            left[place] = left[-1]
            left.pop()
    return drawn


def lines(m, n):
    """n locations of the lines at i / m in the unit square, the first coordinate fastest."""
    line = np.arange(1, m + 1) / m
    return np.column_stack([np.tile(line, m), np.repeat(line, m)])[:n]


# GPBoost's fields, groups and random coefficients

#: Where the generator begins for each effect and input.
STARTS = load("gpboost")["starts"]


def congruential(n, start):
    """Their generator in doubles, whose products lose the last bits of an integer's."""
    x = [np.floor(start * 2.0**32)]
    while len(x) < n:
        x.append((22695477.0 * x[-1] + 1.0) % 2.0**32)
    return np.array(x) / 2.0**32


class Rows(NamedTuple):
    """Inputs of the effects, one row each."""

    places: np.ndarray
    weights: np.ndarray
    group: np.ndarray
    group2: np.ndarray
    slope: np.ndarray
    cluster: np.ndarray


def training_rows(case):
    n, i, starts = 100, np.arange(1, 101), STARTS
    repeats = 4 if case.get("repeated") else 1
    places = congruential(2 * n // repeats, starts["places"]).reshape(2, -1).T
    return Rows(
        places=np.tile(places, (repeats, 1)),
        weights=congruential(2 * n, starts["weights"]).reshape(2, n).T,
        group=1 + (i - 1) // 10,
        group2=1 + (i - 1) % 10,
        slope=np.cos((i - n / 2) ** 2 * 5.5 * np.pi / n),
        cluster=np.where(i <= 40, 1, 2),
    )


def rows_of_test(case):
    given = case["test"]
    t = len(given["places"])
    defaults = {"weights": np.zeros((t, 2)), "cluster": np.ones(t)}
    return Rows(*(np.array(given.get(k, defaults.get(k, np.zeros(t)))) for k in Rows._fields))


def between(case, a, b):
    """Prior covariance of the sum of the effects."""
    K = np.zeros((len(a.places), len(b.places)))
    for effect, size in case["prior"].items():
        if effect.startswith("field"):
            part = size[0] * np.exp(-cdist(a.places, b.places) / size[1])
            if effect != "field":
                k = int(effect[-1])
                part *= np.outer(a.weights[:, k], b.weights[:, k])
        else:
            name = "group2" if effect == "group2" else "group"
            part = size * np.equal.outer(getattr(a, name), getattr(b, name))
            if effect == "group_slope":
                part = part * np.outer(a.slope, b.slope)
        K += part
    return K * np.equal.outer(a.cluster, b.cluster) if case.get("clusters") else K


def drawn_labels(case, rows):
    jitter = 1e-10 if case.get("repeated") else 1e-20
    K = np.exp(-cdist(rows.places, rows.places) / 0.1) + jitter * np.eye(100)
    f, L = np.zeros(100), np.linalg.cholesky(K)
    for effect in case["labels"]["effects"]:
        count = 100 if effect.startswith("field") else 10
        drawn = ndtri(congruential(count, STARTS[effect]))
        if effect.startswith("field"):
            weight = 1.0 if effect == "field" else rows.weights[:, int(effect[-1])]
            f += weight * (L @ drawn)
        else:
            level = (rows.group2 if effect == "group2" else rows.group) - 1
            f += drawn[level] * (rows.slope if effect == "group_slope" else 1.0)
    link = expit if case.get("likelihood") == "logistic" else ndtr
    return np.where(congruential(100, case["labels"]["seed"]) < link(f), 1.0, -1.0)


def newton(K, y, steps):
    """Laplace's -log p(y) and the gradient of log p(y | f), probit, after some of Newton's steps from zero."""

    def at(f):
        ratio = np.exp(norm.logpdf(f) - log_ndtr(y * f))
        W = ratio * (ratio + y * f)
        return y * ratio, W, np.eye(len(y)) + np.sqrt(W)[:, None] * K * np.sqrt(W)

    f = np.zeros(len(y))
    for _ in range(steps):
        gradient, W, B = at(f)
        b = W * f + gradient
        a = b - np.sqrt(W) * np.linalg.solve(B, np.sqrt(W) * (K @ b))
        f = K @ a
    gradient, _, B = at(f)
    return 0.5 * a @ f - np.sum(log_ndtr(y * f)) + 0.5 * np.linalg.slogdet(B)[1], gradient

"""Rectangles, truncated normals and orthants."""

import numpy as np

from before.sampling import NORMAL
from gpcmc import TruncatedNormal, orthant_probability, rectangle_probability

METHODS = ("auto", "minimax-tilting", "twisted-ep", "separation")


def equal(n, correlation=0.5):
    """A covariance with equal correlations."""
    return np.full((n, n), correlation) + (1.0 - correlation) * np.eye(n)


def chain(n, correlation=0.8):
    """The covariance of a Markov chain."""
    return correlation ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def wishart(n, seed=0, rank=None):
    """A covariance without structure, singular where the rank is below n."""
    F = np.random.default_rng([n, seed]).standard_normal((n, rank or 2 * n))
    return F @ F.T / F.shape[1]


def _permuted():
    order = np.random.default_rng(5).permutation(40)
    lower, upper = np.linspace(-1.5, 0.5, 40), np.linspace(0.8, 3.0, 40)
    return lower[order], upper[order], 0.0, chain(40)[np.ix_(order, order)]


def _blocks():
    cov = np.zeros((14, 14))
    cov[:8, :8], cov[8:10, 8:10], cov[10, 10], cov[11:, 11:] = (
        chain(8),
        equal(2),
        3.0,
        equal(3, 0.2),
    )
    return np.full(14, -0.7), np.full(14, 1.9), 0.1, cov


INF = np.inf
_MIXED = np.array([-INF, 0.2, -1.0, -INF, 0.5, -INF, -2.0, 1.0, -INF, -0.5])
_UPPER = np.array([0.5, INF, 1.0, INF, INF, -0.2, 2.0, INF, 0.0, 0.5])
#: Name: lower, upper, mean, covariance. Probabilities that are drawn.
DRAWN = {
    "orthant, n = 3": (0.0, INF, 0.0, equal(3)),
    "orthant, n = 50": (np.zeros(50), INF, 0.0, equal(50)),
    "box, n = 20": (np.full(20, -1.0), 1.5, 0.3, chain(20)),
    "box, n = 200": (np.full(200, -2.5), 3.0, 0.0, chain(200)),
    "one-sided, n = 100": (-INF, np.linspace(0.0, 2.0, 100), 0.0, chain(100, 0.5)),
    "mixed, n = 10": (_MIXED, _UPPER, np.linspace(-0.5, 0.5, 10), wishart(10)),
    "scales, n = 6": (
        np.zeros(6),
        10.0 ** np.arange(-3, 3),
        0.0,
        np.outer(s := 10.0 ** np.arange(-3, 3), s) * chain(6),
    ),
    "negative correlations, n = 10": (0.0, INF, 0.0, equal(10, -0.08)),
    "tail, n = 20": (np.full(20, 6.0), INF, 0.0, equal(20)),
    "far tail, n = 30": (np.full(30, 55.0), INF, 0.0, chain(30, 0.3)),
    "tail by the mean, n = 15": (0.0, 1.0, -30.0, chain(15)),
    "thin, n = 12": (np.full(12, 0.5), 0.5 + 1e-6, 0.0, wishart(12)),
    "singular, n = 8": (np.full(8, -0.5), 1.5, 0.0, wishart(8, rank=5)),
    "permuted, n = 40": _permuted(),
    "blocks, n = 14": _blocks(),
}
#: Closed forms, and what is zero or one.
CLOSED = {
    "one": (0.3, 2.0, 0.5, [[2.0]]),
    "one, far tail": (50.0, INF, 0.0, [[1.0]]),
    "one, both tails": (-INF, -141.0, 0.0, [[1.0]]),
    "two": (np.array([-1.0, 0.5]), np.array([2.0, INF]), 0.0, [[1.0, 0.6], [0.6, 2.0]]),
    "two, nearly equal": (
        np.array([-1.0, -1.0]),
        1.0,
        0.0,
        [[1.0, 1.0 - 1e-10], [1.0 - 1e-10, 1.0]],
    ),
    "two, tail": (np.array([8.0, 9.0]), INF, 0.0, [[1.0, -0.5], [-0.5, 1.0]]),
    "independent, n = 60": (np.linspace(-2, 1, 60), INF, 0.0, np.diag(np.linspace(0.5, 2, 60))),
    "open, n = 4": (-INF, INF, 0.0, equal(4)),
    "point, n = 4": (
        np.array([0.0, 1.0, -INF, 0.0]),
        np.array([1.0, 1.0, 0.0, 2.0]),
        0.0,
        equal(4),
    ),
    "no variance, inside": (np.array([-1.0, 0.0]), 1.0, 0.5, np.diag([1.0, 0.0])),
    "no variance, outside": (np.array([-1.0, 0.6]), 1.0, 0.5, np.diag([1.0, 0.0])),
    "one direction, n = 3": (np.array([-1.0, -0.5, -2.0]), 2.0, 0.0, np.ones((3, 3))),
}


def closed(rows):
    """Closed forms."""
    for name, (lower, upper, mean, cov) in CLOSED.items():
        found = rectangle_probability(lower, upper, mean=mean, cov=cov, rng=0)
        # where the logarithm is about zero, the probability has the digits
        rows.exact(
            f"{name}: log probability", [max(found.log_probability, -1e300), found.probability]
        )
        rows.status(f"{name}: status", found.status)
        rows.status(f"{name}: method", found.method if found.method == "closed form" else "drawn")


def drawn(rows, name):
    """By each of the methods; the result has the same bits on several threads."""
    lower, upper, mean, cov = DRAWN[name]
    n = len(cov)
    for method in METHODS[
        : 4 if n <= 20 and "tail" not in name and "thin" not in name else 2 + (n <= 50)
    ]:
        given = {
            "mean": mean,
            "cov": cov,
            "method": method,
            "tolerance": 0.01,
            "max_samples": 2**17,
        }
        found = rectangle_probability(lower, upper, rng=rows.rng, **given)
        rows.status(f"{method}: status", found.status)
        rows.estimate(f"{method}: log probability", found.log_probability, found.standard_error, 15)
        if method == "auto":
            low, high = found.interval(0.999)
            rows.status("interval holds it", str(low <= found.log_probability <= high <= 0))
            low, high = found.interval(0.99, "guaranteed")
            rows.status(
                "guaranteed interval holds it", str(low <= found.log_probability <= high <= 0)
            )
            again = rectangle_probability(lower, upper, rng=rows.rng, n_jobs=2, **given)
            rows.status("same on two threads", str(again.log_probability == found.log_probability))


def gradient(rows, name):
    """Derivatives in the limits, the mean and the covariance."""
    lower, upper, mean, cov = DRAWN[name]
    found = rectangle_probability(lower, upper, mean=mean, cov=cov, rng=rows.rng, tolerance=0.05)
    slope = found.gradient(256)
    for part in ("lower", "upper", "mean"):
        rows.estimate(part, getattr(slope, part)[:6], getattr(slope, f"{part}_se")[:6], 15)
    rows.estimate("cov", slope.cov[:4, :4], slope.cov_se[:4, :4], 15)


TRUNCATED = {
    "closed, n = 1": (0.5, 2.0, 0.0, [[1.5]]),
    "two": (np.array([-1.0, 0.5]), np.array([2.0, INF]), 0.2, [[1.0, 0.6], [0.6, 2.0]]),
    "orthant, n = 12": (np.zeros(12), INF, 0.0, equal(12)),
    "box, n = 20": DRAWN["box, n = 20"],
    "tail, n = 20": DRAWN["tail, n = 20"],
    "blocks, n = 14": DRAWN["blocks, n = 14"],
    "free coordinates, n = 6": (np.array([0.0, -INF, 1.0, -INF, -INF, -0.5]), INF, 0.3, wishart(6)),
    "singular, n = 8": DRAWN["singular, n = 8"],
}


def truncated(rows, name):
    """Moments, and those of draws; every draw is inside."""
    lower, upper, mean, cov = TRUNCATED[name]
    one, rng = TruncatedNormal(lower, upper, mean, cov), rows.rng
    n = len(cov)
    # of a closed form the error is zero, and rounding is not
    tiny = 1e-12
    for part, moment in (("mean", one.mean(256, rng=rng)), ("cov", one.cov(256, rng=rng))):
        if not np.any(moment.standard_error):
            rows.exact(part, moment.value)
            continue
        rows.estimate(part, moment.value[:5], np.maximum(moment.standard_error[:5], tiny), 15)
    for method in ("exact", "gibbs"):
        draws = one.rvs(3200, rng=rng, method=method)
        inside = (draws >= lower - 1e-9) & (draws <= upper + 1e-9)
        rows.status(f"{method}: all inside", str(bool(inside.all())))
        rows.status(f"{method}: shape", str(draws.shape))
        parts = draws.reshape(32, 100, n)[:, :, :4]
        rows.mean(f"{method}: mean", parts.mean(axis=1))
        rows.mean(f"{method}: square", (parts**2).mean(axis=1))
    same = np.array_equal(one.rvs(5, rng=3), one.rvs(5, rng=3))
    rows.status("equal seeds, equal draws", str(same))


ORTHANTS = {
    "equal, n = 20": (equal(20), 0.0, 0.0),
    "chain, n = 100": (chain(100), 0.0, 0.0),
    "mean and limits, n = 10": (wishart(10), np.linspace(-0.3, 0.6, 10), -0.2),
    "independent, n = 5": (np.eye(5), 0.0, 0.0),
    "one": (np.array([[2.0]]), 0.3, 0.5),
    "experiment 1, n = 30": (
        np.outer(d := np.random.default_rng(0).uniform(-1, 1, 30), d) + np.diag(1 - d**2),
        0.0,
        0.0,
    ),
}
SAMPLERS = {
    "soft": {"samples": 40_000},
    "hard": {"samples": 40_000, "count": "hard"},
    "adapted": {"samples": 20_000, "scheme": "adapted"},
    "soft, runs": {"samples": 40_000, "runs": 4},
    "adapted, runs": {"samples": 32_000, "scheme": "adapted", "runs": 16},
}


def orthants(rows, name):
    """The paper's sampler, with all its options."""
    cov, mean, lower = ORTHANTS[name]
    for sampler, options in SAMPLERS.items():
        found = orthant_probability(cov, mean=mean, lower=lower, rng=rows.rng, **options)
        rows.status(f"{sampler}: status", found.status)
        degrees = 15 if sampler == "adapted, runs" else NORMAL
        rows.estimate(
            f"{sampler}: log probability", found.log_probability, found.standard_error, degrees
        )
        stages = found.log_stage_probabilities
        rows.exact(f"{sampler}: stages", [len(stages), found.samples, found.populations])


PROBLEMS = (
    {"rectangle, closed forms": closed}
    | {f"rectangle, {name}": lambda rows, name=name: drawn(rows, name) for name in DRAWN}
    | {
        f"rectangle gradient, {name}": lambda rows, name=name: gradient(rows, name)
        for name in (
            "orthant, n = 3",
            "box, n = 20",
            "mixed, n = 10",
            "tail, n = 20",
            "blocks, n = 14",
        )
    }
    | {
        f"truncated normal, {name}": lambda rows, name=name: truncated(rows, name)
        for name in TRUNCATED
    }
    | {f"orthant, {name}": lambda rows, name=name: orthants(rows, name) for name in ORTHANTS}
)

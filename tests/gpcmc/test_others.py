"""Values that others printed, in their documentation or in the tests of their packages: ``others/SOURCES.md``.

They are data, read from ``others/*.json``, and so are the problems: where those were drawn at random, their generators
are in `drawn`. Bounds are what a source says of its own error, or its last digit, and five standard
errors of ours (Student's t with 15 degrees of freedom is beyond them once in 6,000). Where a source is off by more,
a test shows why.
"""

from fractions import Fraction

import numpy as np
import pytest
from drawn import (
    between,
    drawn_labels,
    lines,
    load,
    newton,
    r_normal,
    r_sample,
    r_uniform,
    rows_of_test,
    training_rows,
)
from numpy.polynomial.legendre import leggauss
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri
from scipy.stats import norm, truncnorm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from gpcmc import rectangle_probability
from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.gp import Prior
from gpcmc.inference import Laplace
from gpcmc.rectangle.truncated import TruncatedNormal


def numbers(values):
    """An array of numbers, which may be written as fractions or infinities."""
    flat = [
        float(Fraction(x)) if isinstance(x, str) and "/" in x else float(x)
        for x in np.ravel(np.array(values, dtype=object))
    ]
    return np.array(flat).reshape(np.shape(values))


def symmetric(rows):
    """A matrix of unit diagonal from the rows below it."""
    lower = np.eye(len(rows) + 1)
    for i, row in enumerate(rows, start=1):
        lower[i, :i] = row
    return lower + np.tril(lower, -1).T


def covariance(given):
    match given:
        case {"identity": n}:
            return np.eye(n)
        case {"random walk": n}:
            return np.minimum.outer(np.arange(1.0, n + 1), np.arange(1.0, n + 1))
        case {"equicorrelated": r, "n": n}:
            return r + (1 - r) * np.eye(n)
        case {"outer": a}:
            return np.outer(a, a)
        case {"lower": rows}:
            return symmetric(rows)
    return numbers(given)


def probability_of(case, cov):
    """Our estimate, with a third of the source's error where sampling reaches that."""
    tolerance = np.clip(0.3 * case["error"] / max(case["value"], 1e-9), 2e-6, 1e-3)
    tolerance = case.get("tolerance", tolerance)
    return rectangle_probability(
        numbers(case["lower"]),
        numbers(case["upper"]),
        mean=numbers(case.get("mean", 0)),
        cov=cov,
        tolerance=tolerance,
        rng=0,
    )


def assert_agrees(case, found):
    bound = case["error"] + 5 * found.standard_error * found.probability
    assert found.status == "ok"
    assert abs(found.probability - case["value"]) <= bound + 1e-15


def named(cases):
    return [pytest.param(case, id=case["name"]) for case in cases]


def test_random_numbers_are_those_of_r():
    np.testing.assert_allclose(
        r_uniform(123)(3), [0.2875775, 0.7883051, 0.4089769], rtol=0, atol=5e-8
    )
    expected = [-0.560475646552213, -0.230177489483280, 1.558708314149124]
    np.testing.assert_allclose(r_normal(r_uniform(123), 3), expected, rtol=0, atol=1e-14)
    uniform = r_uniform(270312)
    uniform(1)
    assert r_sample(uniform, 50, 4) == [40, 37, 45, 48]


# GPBoost: Laplace's method of fields, groups and random coefficients

BOOST = load("gpboost")


@pytest.mark.parametrize("case", named(BOOST["cases"]))
def test_gpboost(case):
    rows = training_rows(case)
    y, K = drawn_labels(case, rows), between(case, rows, rows)
    method = Laplace(likelihood=case.get("likelihood", "probit"))
    posterior = method.fit(Prior(K), y, rng=np.random.default_rng(0))
    # where they stop Newton's method early, the fixed point is a little farther off
    bound = 6e-6 if "step" in case else 1e-6
    if "nll" in case:
        assert abs(-posterior.log_evidence - case["nll"]) < bound
    if "test" in case:
        star = rows_of_test(case)
        K_star, k_star_star = between(case, rows, star), np.diag(between(case, star, star))
        mean, variance = posterior.latent(K_star, k_star_star)
        assert np.abs(mean - case["mean"]).sum() < bound
        assert np.abs(variance - case["variance"]).sum() < 1e-6
        if "probability" in case:
            p = posterior.predict(K_star, k_star_star).probability
            assert np.abs(p - case["probability"]).sum() < bound


@pytest.mark.parametrize("case", named(c for c in BOOST["cases"] if "step" in c))
def test_gpboost_stops_newton_early(case):
    # To the last digit theirs are the values after this step; where their optimum is printed with five digits, nearly.
    rows = training_rows(case)
    y, K = drawn_labels(case, rows), between(case, rows, rows)
    nll, gradient = newton(K, y, case["step"])
    if "nll" in case:
        assert abs(nll - case["nll"]) < (5e-7 if case["step"] == 3 else 5.1e-8)
    if "mean" in case:
        digit = 10.0 ** -max(len(str(m).split(".")[1]) for m in case["mean"])
        mean = between(case, rows, rows_of_test(case)).T @ gradient
        np.testing.assert_allclose(mean, case["mean"], rtol=0, atol=0.51 * digit)


def test_gpboost_optimum():
    rows = training_rows({})
    y = drawn_labels(BOOST["cases"][0], rows)
    kernel = ConstantKernel(1.0) * Matern(0.2, nu=0.5)
    fitted = GaussianProcessClassifier(kernel, inference="laplace").fit(rows.places, y)
    best = BOOST["optimum"]
    assert abs(-fitted.log_marginal_likelihood_ - best["nll"]) < 1e-6
    # five optimisers of theirs: ours is in their range, which is 6 % of the variance
    variance, length = np.exp(fitted.kernel_.theta)
    assert min(best["variance"]) - 1e-3 < variance < max(best["variance"])
    assert min(best["range"]) - 1e-3 < length < max(best["range"]) + 1e-3


# Rectangles: MvNormalCDF.jl and mvtnorm

JULIA, MVTNORM = load("mvnormcdf"), load("mvtnorm")


@pytest.mark.parametrize("case", named(c for c in JULIA if not {"refused", "drawn"} & set(c)))
def test_mvnormcdf(case):
    assert_agrees(case, probability_of(case, covariance(case["cov"])))


def test_mvnormcdf_keeps_a_draw():
    # a value of its random method, printed with sixteen digits, of which three are right: the law is bivariate
    (case,) = (c for c in JULIA if "drawn" in c)
    nodes, weights = leggauss(60)
    x = 5 * nodes - 4  # from -9 to the limit at 1
    exact = 5 * weights @ (norm.pdf(x) * ndtr((1 - x / 2) / np.sqrt(0.75)))
    assert abs(exact - case["value"]) > 1.6e-4
    assert_agrees(
        case | {"value": exact, "error": 1e-14},
        probability_of(case | {"error": 1e-4}, covariance(case["cov"])),
    )


def test_mvnormcdf_misprinted_matrix():
    (case,) = (c for c in JULIA if c.get("refused") == "positive semidefinite")
    cov = covariance(case["cov"])
    assert cov[0, 1] > 1.03 * np.sqrt(cov[0, 0] * cov[1, 1])  # a correlation of 1.04
    with pytest.raises(ValueError, match="positive semidefinite"):
        probability_of(case, cov)


def test_mvnormcdf_lower_triangle():
    (case,) = (c for c in JULIA if c.get("refused") == "symmetric")
    cov = covariance(case["cov"])
    with pytest.raises(ValueError, match="symmetric"):
        probability_of(case, cov)
    assert_agrees(case, probability_of(case, np.tril(cov) + np.tril(cov, -1).T))


@pytest.mark.parametrize("case", named(MVTNORM["saved"]))
def test_mvtnorm(case):
    assert_agrees(case, probability_of(case, covariance(case["cov"])))


@pytest.mark.parametrize("case", named(MVTNORM["student"]))
def test_mvtnorm_student(case):
    R, upper = covariance(case["cov"]), numbers(case["upper"])
    for df, value in zip(case["df"], case["values"], strict=True):
        found = rectangle_probability(-np.inf, upper, cov=R, df=df)
        assert_agrees(case | {"value": value}, found)


def test_mvtnorm_disagrees_with_itself():
    # TVPACK and Genz and Bretz's method differ by more than both of their errors: quadrature is with the former
    theirs = MVTNORM["genz_bretz"]
    (case,) = (c for c in MVTNORM["saved"] if c["name"] == theirs["case"])
    R, upper = covariance(case["cov"]), numbers(case["upper"]) - numbers(case["mean"])
    nodes, weights = leggauss(80)
    x, w = zip(
        *(((u + 9) / 2 * nodes + (u - 9) / 2, (u + 9) / 2 * weights) for u in upper[:2]),
        strict=True,
    )
    pairs = np.stack(np.meshgrid(*x, indexing="ij"), axis=-1)
    slopes = np.linalg.solve(R[:2, :2], R[:2, 2])
    density = np.exp(-0.5 * np.sum(pairs * (pairs @ np.linalg.inv(R[:2, :2])), axis=-1))
    density /= 2 * np.pi * np.sqrt(np.linalg.det(R[:2, :2]))
    last = ndtr((upper[2] - pairs @ slopes) / np.sqrt(1 - R[2, :2] @ slopes))
    exact = w[0] @ (density * last) @ w[1]
    assert abs(exact - case["value"]) < case["error"]
    assert abs(exact - theirs["value"]) > 3 * theirs["error"]
    assert_agrees(case | {"value": exact, "error": 1e-12}, probability_of(case, R))


def test_mvtnorm_many_rectangles():
    # The problems of its vignette. A lower limit of minus infinity makes the upper one the same: two are empty.
    given, uniform = MVTNORM["many"], r_uniform(MVTNORM["many"]["seed"])
    below, lower = uniform(150).reshape(10, 15), uniform(50) - 2
    lower[r_sample(uniform, 50, 50)[:2]] = -np.inf
    upper = lower + 2 + uniform(50)
    upper[r_sample(uniform, 50, 50)[:2]] = np.inf
    lower, upper = lower.reshape(10, 5), upper.reshape(10, 5)
    first = ndtr(upper[:, 0] / below[:, 0]) - ndtr(lower[:, 0] / below[:, 0])
    np.testing.assert_allclose(first, given["first"], rtol=0, atol=5.1e-8)
    for k in range(10):
        L = np.zeros((5, 5))
        L[np.tril_indices(5)] = below[k]
        p = rectangle_probability(
            lower[k], upper[k], cov=L @ L.T, tolerance=5e-4, rng=k
        ).probability
        if given["pmvnorm"][k] == 0:
            assert p == 0
            # theirs is a floor: the relative rounding, over their 10,000 points
            assert given["lpmvnorm"][k] == pytest.approx(np.finfo(float).eps / 1e4, rel=1e-6)
        else:
            for theirs in ("pmvnorm", "pmvnorm_again", "lpmvnorm"):
                assert abs(p - given[theirs][k]) < 1e-3  # where pmvnorm stops by default


@pytest.fixture(scope="module")
def deciles():
    """Their 100 observations in four dimensions, each known up to its deciles, and the law they were drawn from."""
    given = MVTNORM["deciles"]
    sd, mean = np.sqrt(np.arange(1, 5) / 2), np.arange(1.0, 5.0)
    cov = sd[:, None] * covariance(given["correlations"]) * sd
    z = r_normal(r_uniform(given["seed"]), 400).reshape(100, 4)
    y = z @ np.linalg.cholesky(cov).T + mean
    np.testing.assert_allclose(y.mean(axis=0), given["column_means"], rtol=0, atol=5.1e-8)
    edges = mean + sd * ndtri(np.arange(11) / 10)[:, None]
    cell = np.array([np.searchsorted(edges[:, j], y[:, j]) for j in range(4)]).T
    return mean, cov, edges[cell - 1, np.arange(4)], edges[cell, np.arange(4)]


def estimates(deciles, mean, cov):
    return [
        rectangle_probability(
            a, b, mean=mean, cov=cov, method="minimax-tilting", tolerance=3e-3, rng=i
        )
        for i, (a, b) in enumerate(zip(*deciles[2:], strict=True))
    ]


def log_likelihood(found):
    errors = [one.standard_error for one in found]
    return sum(one.log_probability for one in found), np.linalg.norm(errors)


def test_mvtnorm_log_likelihood(deciles):
    value, error = log_likelihood(estimates(deciles, *deciles[:2]))
    theirs = MVTNORM["deciles"]["log_likelihood"]
    assert abs(value - np.mean(theirs)) < 5 * np.hypot(error, np.std(theirs, ddof=1))


def test_mvtnorm_score_vanishes_at_its_optimum(deciles):
    given, best = MVTNORM["deciles"], MVTNORM["deciles"]["optimum"]
    L = np.array(best["factor"])
    found = estimates(deciles, np.array(best["mean"]), L @ L.T)
    value, error = log_likelihood(found)
    # it climbed a sum over 500 points, which at the start is off by this much
    coarse = abs(given["coarse"] - np.mean(given["log_likelihood"]))
    assert abs(value - best["log_likelihood"]) < coarse + 5 * error
    gradients = [one.gradient(points=16) for one in found]
    scores = np.array(
        [np.r_[g.mean, (2 * g.cov @ L)[np.tril_indices(4)]] for g in gradients]
    )  # in the mean and the Cholesky factor
    total = scores.sum(axis=0)
    # nats between their optimum and the maximum, by Newton's decrement with the scores' Fisher information
    assert 0.5 * total @ np.linalg.solve(scores.T @ scores, total) < 1e-3


def test_mvtnorm_tiny_rectangle():
    # 1e-34, below the rounding where its score is a constant
    n, half = MVTNORM["tiny"]["n"], MVTNORM["tiny"]["half_width"]
    found = rectangle_probability(-half, half, cov=np.eye(n))
    assert found.log_probability == pytest.approx(n * np.log(2 * ndtr(half) - 1), abs=1e-8)


# TruncatedNormal, tlrmvnmvt, GPy, and Cao and Katzfuss

FIELDS = load("fields")


@pytest.mark.parametrize("case", FIELDS["truncatednormal"]["one_factor"], ids=lambda c: c["n"])
def test_truncatednormal_one_factor(case):
    n = case["n"]
    found = rectangle_probability(
        0, np.inf, cov=0.5 + 0.5 * np.eye(n), method="minimax-tilting", max_samples=8192, rng=0
    )
    assert found.standard_error < 0.03
    assert abs(found.log_probability + np.log(n + 1)) < 5 * found.standard_error
    if "value" in case:
        assert abs(case["value"] * (n + 1) - 1) < case["error"]


def test_truncatednormal_means():
    case = FIELDS["truncatednormal"]["independent"]
    n, low, high = case["n"], case["lower"], case["upper"]
    mean, sd = np.arange(1.0, n + 1), np.sqrt(case["variance"])
    law = TruncatedNormal(low, high, mean=mean, cov=sd**2 * np.eye(n))
    exact = truncnorm.mean((low - mean) / sd, (high - mean) / sd, mean, sd)
    np.testing.assert_allclose(law.mean().value, exact, rtol=1e-12)
    draws = law.rvs(case["draws"], rng=0)
    error = truncnorm.std((low - mean) / sd, (high - mean) / sd, mean, sd) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - exact) < 5 * error)
    free = TruncatedNormal(-np.inf, np.inf, mean=mean, cov=0.5 + 0.5 * np.eye(n))
    np.testing.assert_allclose(free.mean().value, mean, rtol=1e-14)


@pytest.mark.parametrize("name", ["small", "large"])
def test_tlrmvnmvt(name):
    given = FIELDS["tlrmvnmvt"]
    case = given[name]
    uniform, m = r_uniform(given["seed"]), case["grid"]
    n = case.get("n", m**2)
    upper = given["mean"] + given["sd"] * r_normal(uniform, n)
    places = lines(m, m**2)
    if n < m**2:
        places = places[r_sample(uniform, m**2, n)]
    problem = case | {"lower": given["lower"], "upper": upper}
    assert_agrees(problem, probability_of(problem, np.exp(-cdist(places, places) / given["range"])))


def test_gpy_evidences():
    given = FIELDS["gpy"]
    rng, n = np.random.RandomState(given["seed"]), given["n"]
    X, _, _ = rng.rand(n, 2), rng.randn(n), rng.rand(n, 1)
    y = rng.rand(n) > 0.5
    kernel = ConstantKernel(1.0) * RBF(0.04) + WhiteKernel(0.02, (1e-9, 10))
    laplace, ep = (
        GaussianProcessClassifier(kernel, inference=name).fit(X, y) for name in ("laplace", "ep")
    )
    exact = GaussianProcessClassifier(
        ep.kernel_, inference="twisted-ep", optimizer=None, random_state=0
    ).fit(X, y)
    evidence = ep.log_marginal_likelihood_
    assert abs(laplace.log_marginal_likelihood_ - evidence) < given["laplace_ep"]
    # and the third of their bound that is used up is Laplace's error, not EP's
    assert abs(exact.log_marginal_likelihood_ - evidence) < 0.01


@pytest.mark.parametrize("case", named(FIELDS["cao2024"]["scenarios"]))
def test_cao_and_katzfuss(case):
    given = FIELDS["cao2024"]
    n, uniform, upper = given["n"], r_uniform(given["seed"]), case["upper"]
    places = lines(int(np.sqrt(n)) + 1, n)
    if upper is None:  # a random Latin hypercube, and limits of their own
        strips = np.column_stack([np.argsort(uniform(n), kind="stable") for _ in range(2)])
        places = (strips + uniform(2 * n).reshape(n, 2)) / n
        upper = -2 * uniform(n)
    d = cdist(places, places) / given["range"]
    cov = (1 + d) * np.exp(-d) + given["nugget"] * np.eye(n)
    found = rectangle_probability(
        numbers(case["lower"]),
        upper,
        cov=cov,
        method=case["method"],
        tolerance=0.1,
        max_samples=8192,
        rng=5,
    )
    assert found.standard_error < 0.12
    error = np.hypot(found.standard_error, case["standard_error"])
    assert abs(found.log_probability - case["log_probability"]) < 5 * error

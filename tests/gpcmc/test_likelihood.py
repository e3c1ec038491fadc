"""Likelihoods as records, and Laplace's method with either of them.

The truths are mpmath's: derivatives written out, and the mode, the evidence and the probabilities by a Newton iteration
in 40 digits.
"""

import pickle

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import noisy_problem
from scipy.integrate import quad
from scipy.special import expit

from gpcmc.gp import Prior, linear, prior, rbf
from gpcmc.inference import Laplace
from gpcmc.likelihood import LIKELIHOODS, LOGISTIC, PROBIT
from gpcmc.likelihood.form import Likelihood
from gpcmc.likelihood.logistic import mackay_predictive_probability
from gpcmc.likelihood.logistic import predictive_probability as logistic_predictive_probability

BOTH = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)


# --- the records


@BOTH
def test_derivatives_by_complex_step_and_differences(likelihood):
    f, y, h = np.linspace(-9, 9, 61), np.where(np.arange(61) % 2, 1.0, -1.0), 1e-5
    first, W = likelihood.derivatives(y, f)
    if likelihood is PROBIT:
        slope = likelihood.log_likelihood(y, f + 1e-30j).imag / 1e-30
    else:
        slope = -np.log1p(np.exp(-y * (f + 1e-30j))).imag / 1e-30
        assert_allclose(likelihood.log_likelihood(y, f), -np.logaddexp(0, -y * f), rtol=1e-14)
    assert_allclose(first, slope, rtol=1e-11, atol=1e-14)
    (up, W_up), (down, W_down) = (likelihood.derivatives(y, f + step) for step in (h, -h))
    assert_allclose(-(up - down) / (2 * h), W, rtol=1e-7, atol=1e-10)
    third = likelihood.third_derivative(y, f)
    assert_allclose(-(W_up - W_down) / (2 * h), third, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("z", [-1e4, -300.0, -12.0, -5.01, -4.99, -1.0, 0.0, 0.7, 6.0, 30.0])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_third_derivatives_against_mpmath(y, z):
    with mpmath.workdps(60):
        point = mpmath.mpf(z)
        r = mpmath.npdf(point) / (mpmath.erfc(-point / mpmath.sqrt(2)) / 2)
        w = r * (point + r)
        exact = y * float(w * (point + 2 * r) - r)
        pi = 1 / (1 + mpmath.exp(-y * point))
        logistic = float(pi * (1 - pi) * (2 * pi - 1))
    f = np.array([y * z])
    assert PROBIT.third_derivative(y, f)[0] == pytest.approx(exact, rel=1e-11)
    assert LOGISTIC.third_derivative(y, f)[0] == pytest.approx(logistic, rel=1e-13)


@BOTH
def test_exchanging_labels_turns_the_likelihood_round(likelihood):
    f = np.linspace(-50, 50, 101)
    (plus, W), (minus, W_minus) = likelihood.derivatives(1.0, f), likelihood.derivatives(-1.0, -f)
    assert_allclose(plus, -minus, rtol=1e-14)
    assert_allclose(W, W_minus, rtol=1e-14)
    assert_allclose(
        likelihood.third_derivative(1.0, f), -likelihood.third_derivative(-1.0, -f), rtol=1e-14
    )
    variance = np.linspace(0, 9, 101)
    p = likelihood.predictive_probability(f, variance)
    assert_allclose(p + likelihood.predictive_probability(-f, variance), 1, atol=1e-12)


@pytest.mark.parametrize("deviation", [0.01, 0.3, 0.999, 1.0, 1.7, 5.0, 100.0, 1e3])
@pytest.mark.parametrize("mean", [0.0, 0.4, -3.0, 12.0])
def test_the_logistic_mean_is_exact_at_every_variance(mean, deviation):
    def integrand(u):
        return np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi) * expit(mean + deviation * u)

    jump = -mean / deviation
    breaks = sorted(np.clip([jump - 20 / deviation, jump, jump + 20 / deviation], -12, 12))
    exact = quad(integrand, -12, 12, points=breaks, epsabs=1e-13, epsrel=1e-12, limit=300)[0]
    found = logistic_predictive_probability(np.array([mean]), np.array([deviation**2]))
    assert found[0] == pytest.approx(exact, abs=1e-11)


def test_mackays_approximation_is_near_the_mean():
    mean, variance = np.meshgrid(np.linspace(-100, 100, 201), [1e-4, 0.1, 1.0, 10.0, 1e4])
    error = mackay_predictive_probability(mean, variance)
    error -= logistic_predictive_probability(mean, variance)
    assert 1e-2 < np.abs(error).max() < 0.018
    assert np.abs(error[0]).max() < 1e-4
    assert mackay_predictive_probability(2.0, 8 / np.pi) == pytest.approx(expit(np.sqrt(2.0)))


# --- moments of tilted Gaussians


@BOTH
@pytest.mark.parametrize("variance", [0.0, 1e-9, 0.3, 0.999, 1.0, 7.0, 300.0, 1e6])
def test_tilted_moments_by_quadrature(likelihood, variance):
    """Against the probit's closed form; of the logistic against 25 digits, and its derivatives by differences."""
    mean = np.array([-300.0, -20.0, -3.0, -0.1, 0.0, 0.7, 5.0, 40.0, 200.0])
    y = np.where(np.arange(9) % 2, 1.0, -1.0)
    found = Likelihood.tilted(likelihood, y, mean, np.full(9, variance))
    if likelihood is PROBIT:
        for ours, exact in zip(found, PROBIT.tilted(y, mean, np.full(9, variance)), strict=True):
            assert_allclose(ours, exact, rtol=3e-8, atol=1e-12)
        return
    assert_allclose(found.ratio, 1.0 - variance * found.curvature, rtol=1e-6, atol=1e-9)
    h = 1e-3 * np.sqrt(1.0 + variance)
    up, down = (Likelihood.tilted(likelihood, y, mean + s, np.full(9, variance)) for s in (h, -h))
    assert_allclose((up.log_z - down.log_z) / (2 * h), found.slope, rtol=1e-6, atol=1e-9)
    assert_allclose(-(up.slope - down.slope) / (2 * h), found.curvature, rtol=1e-5, atol=1e-9)
    for k in range(2, 7):
        with mpmath.workdps(25):
            root, m, sign = mpmath.sqrt(variance), mpmath.mpf(mean[k]), int(y[k])
            breaks = sorted({-40, -12, -4, 0, 4, 12, 40, *([-m / root] if variance else [])})
            total = mpmath.quad(
                lambda u, m=m, root=root, sign=sign: (
                    mpmath.npdf(u) / (1 + mpmath.exp(-sign * (m + root * u)))
                ),
                breaks,
            )
            assert found.log_z[k] == pytest.approx(float(mpmath.log(total)), abs=2e-8)


def test_a_likelihood_is_its_log_and_three_derivatives():
    """The rest comes by quadrature: EP, Laplace's method and predictions with a likelihood made here."""

    class Scaled(Likelihood):
        name, largest_curvature = "scaled probit", 4.0

        def log_likelihood(self, y, f):
            return PROBIT.log_likelihood(y, 2.0 * f)

        def derivatives(self, y, f):
            slope, W = PROBIT.derivatives(y, 2.0 * f)
            return 2.0 * slope, 4.0 * W

        def third_derivative(self, y, f):
            return 8.0 * PROBIT.third_derivative(y, 2.0 * f)

    y, mean, variance = np.array([1.0, -1.0]), np.array([0.3, 2.0]), np.array([0.5, 9.0])
    ours, exact = Scaled().tilted(y, mean, variance), PROBIT.tilted(y, 2 * mean, 4 * variance)
    for name, power in (("log_z", 1), ("slope", 2), ("curvature", 4), ("ratio", 1)):
        assert_allclose(getattr(ours, name), power * getattr(exact, name), rtol=1e-8)
    p = PROBIT.predictive_probability(2 * mean, 4 * variance)
    assert_allclose(Scaled().predictive_probability(mean, variance), p, rtol=1e-8)
    assert_allclose(Scaled().average(mean, variance)[1], 0.0)


# --- Laplace's method


def written_out(likelihood, z):
    """Log p, its first derivative, and minus its second one, at the margin z = y f."""
    if likelihood is PROBIT:
        p = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
        r = mpmath.npdf(z) / p
        return mpmath.log(p), r, r * (z + r)
    p = 1 / (1 + mpmath.exp(-z))
    return mpmath.log(p), 1 - p, p * (1 - p)


def averaged(likelihood, mean, variance):
    """The mean of p(+1 | f) over f ~ N(mean, variance)."""
    root = mpmath.sqrt(variance)
    if likelihood is PROBIT:
        return mpmath.ncdf(mean / mpmath.sqrt(1 + variance))
    return mpmath.quad(
        lambda u: mpmath.npdf(u) / (1 + mpmath.exp(-mean - root * u)), [-12, -4, 0, 4, 12]
    )


def by_mpmath(likelihood, blocks, y):
    """Log evidence, mode, a and W, and probabilities: Newton's iteration in 40 digits, and Eqs. 3.17, 3.21, 3.24, 3.32.

    It solves (I + W K) a = W f + g by LU, so that K may be singular; a step that does not climb is halved.
    """
    with mpmath.workdps(40):
        K, k_star = mpmath.matrix(blocks.K), mpmath.matrix(blocks.K_star)
        n, y = len(y), [mpmath.mpf(v) for v in y]

        def at(a):
            f = K * a
            terms = [written_out(likelihood, v * u) for v, u in zip(y, f, strict=True)]
            psi = mpmath.fsum(t[0] for t in terms) - (a.T * f)[0] / 2
            g = mpmath.matrix([v * t[1] for v, t in zip(y, terms, strict=True)])
            return psi, f, g, mpmath.diag([t[2] for t in terms])

        a = mpmath.zeros(n, 1)
        psi, f, g, W = at(a)
        while mpmath.norm(g - a) > 1e-17:  # Psi is then known to its 34th digit
            direction = mpmath.lu_solve(mpmath.eye(n) + W * K, W * f + g) - a
            halving = 0
            while at(a + direction / 2**halving)[0] <= psi and halving < 40:
                halving += 1
            a += direction / 2**halving
            psi, f, g, W = at(a)
        B = mpmath.eye(n) + W * K
        v = B**-1 * W * k_star
        variances = [
            blocks.k_star_star[t] - (k_star[:, t].T * v[:, t])[0] for t in range(k_star.cols)
        ]
        p = [averaged(likelihood, m, s) for m, s in zip(k_star.T * a, variances, strict=True)]
        log_z = psi - mpmath.log(mpmath.det(B)) / 2
        return float(log_z), *(np.array(x, float) for x in (list(f), list(a), W, p))


@BOTH
@pytest.mark.parametrize(
    ("kernel", "tolerance"),
    [
        (rbf(0.5, 3.0), 1e-12),
        (rbf(3.0, 2.0), 1e-12),
        (rbf(5.0, 1e5), 1e-12),
        (rbf(1.0, 1e-3), 1e-12),
        (rbf(3.0, 2.0), 1e-6),
        (linear(), 1e-12),
    ],
    ids=str,
)
def test_all_numbers_are_those_of_forty_digits(kernel, tolerance, likelihood):
    X, y = noisy_problem(3, n=14)
    blocks = prior(kernel, X, np.random.default_rng(3).standard_normal((3, 2)))
    log_z, f, a, W, p = by_mpmath(likelihood, blocks, y)
    posterior = Laplace(tolerance=tolerance, likelihood=likelihood.name).fit(blocks, y)
    close = 1e-9 if tolerance < 1e-10 else 1e-6
    assert posterior.log_evidence == pytest.approx(log_z, rel=close)
    for found, true in ((posterior.mean, f), (posterior.a, a), (posterior.S, np.diag(W))):
        assert_allclose(found, true, rtol=close, atol=close * np.abs(true).max())
    root = np.sqrt(np.diag(W))
    B = np.eye(len(y)) + root[:, None] * blocks.K * root
    L = posterior.conditioned.L
    assert_allclose(L @ L.T, B, rtol=close, atol=close * B.max())
    assert np.array_equal(L, np.tril(L))
    assert_allclose(posterior.prediction.probability, p, atol=10 * close)
    assert posterior.work["newton_steps"] < 20


@BOTH
def test_the_record_is_at_the_mode_of_its_own_posterior(likelihood):
    X, y = noisy_problem(1)
    K = rbf(1.0, 9.0)(X)
    posterior = Laplace(likelihood=likelihood.name).fit(Prior(K), y)
    first, W = likelihood.derivatives(y, posterior.mean)
    assert_allclose(posterior.a, first, rtol=1e-10, atol=1e-12)
    assert_allclose(posterior.S, W, rtol=1e-10)
    log_z = np.sum(likelihood.log_likelihood(y, posterior.mean))
    log_z -= 0.5 * posterior.a @ posterior.mean
    log_z -= 0.5 * np.linalg.slogdet(np.eye(len(y)) + K * W)[1]
    assert posterior.log_evidence == pytest.approx(log_z, rel=1e-11)


def test_the_predictive_integral_is_an_option():
    X, y = noisy_problem(2)
    blocks = prior(rbf(1.0, 9.0), X, X[:5] + 1.0)
    exact, approximate = (
        Laplace(likelihood="logistic", predictive=name).fit(blocks, y)
        for name in ("exact", "mackay")
    )
    moments = exact.latent(blocks.K_star, blocks.k_star_star)
    for posterior, integral in (
        (exact, logistic_predictive_probability),
        (approximate, mackay_predictive_probability),
    ):
        assert_array_equal(posterior.prediction.probability, integral(*moments))
        again = pickle.loads(pickle.dumps(posterior))
        assert_array_equal(
            again.predict(blocks.K_star, blocks.k_star_star).probability, integral(*moments)
        )

"""Likelihoods as records, and Laplace's method with either of them."""

import pickle

import mpmath
import numpy as np
import pytest
from former_laplace import former_laplace
from scipy.integrate import quad
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier as ScikitLearn
from truths import reference

from gpcmc._threads import one_thread
from gpcmc.gp import Prior, linear, predictive_probability, prior, rbf
from gpcmc.gp.link import (
    LIKELIHOODS,
    LOGISTIC,
    PROBIT,
    logistic_predictive_probability,
    mackay_predictive_probability,
)
from gpcmc.inference import Laplace, infer

BOTH = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)


def noisy_problem(seed, n=40, d=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


# --- the records


@BOTH
def test_derivatives_by_complex_step_and_differences(likelihood):
    f, y, h = np.linspace(-9, 9, 61), np.where(np.arange(61) % 2, 1.0, -1.0), 1e-5
    first, W = likelihood.derivatives(y, f)
    if likelihood is PROBIT:
        slope = likelihood.log_likelihood(y, f + 1e-30j).imag / 1e-30
    else:
        slope = -np.log1p(np.exp(-y * (f + 1e-30j))).imag / 1e-30
        np.testing.assert_allclose(
            likelihood.log_likelihood(y, f), -np.logaddexp(0, -y * f), rtol=1e-14
        )
    np.testing.assert_allclose(first, slope, rtol=1e-11, atol=1e-14)
    (up, W_up), (down, W_down) = (likelihood.derivatives(y, f + step) for step in (h, -h))
    np.testing.assert_allclose(-(up - down) / (2 * h), W, rtol=1e-7, atol=1e-10)
    third = likelihood.third_derivative(y, f)
    np.testing.assert_allclose(-(W_up - W_down) / (2 * h), third, rtol=1e-6, atol=1e-9)


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
    np.testing.assert_allclose(plus, -minus, rtol=1e-14)
    np.testing.assert_allclose(W, W_minus, rtol=1e-14)
    np.testing.assert_allclose(
        likelihood.third_derivative(1.0, f), -likelihood.third_derivative(-1.0, -f), rtol=1e-14
    )
    variance = np.linspace(0, 9, 101)
    p = likelihood.predictive_probability(f, variance)
    np.testing.assert_allclose(p + likelihood.predictive_probability(-f, variance), 1, atol=1e-12)


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


# --- Laplace's method


@pytest.mark.parametrize("seed", range(8))
def test_the_probits_numbers_are_those_of_the_former_code_to_the_last_bit(seed):
    X, y = noisy_problem(seed, n=30 + 10 * seed)
    X_star = np.random.default_rng(seed).standard_normal((7, 2))
    alpha, beta = [(0.5, 3), (3, 2), (5, 1e5), (1, 1e-3)][seed % 4]
    kernel = linear() if seed == 7 else rbf(alpha, beta)
    blocks = prior(kernel, X, X_star)
    tolerance = [1e-12, 1e-6][seed % 2]
    with one_thread():
        log_z, f, a, W, L, steps = former_laplace(blocks.K, y, tolerance)
        posterior = Laplace(tolerance=tolerance).fit(blocks, y)
        probability = predictive_probability(*posterior.latent(blocks.K_star, blocks.k_star_star))
    assert posterior.log_evidence == log_z and posterior.work["newton_steps"] == steps
    for found, former in zip(
        (posterior.mean, posterior.a, posterior.S, posterior.L, posterior.prediction.probability),
        (f, a, W, L, probability),
        strict=True,
    ):
        assert found.tobytes() == former.tobytes()


@pytest.mark.parametrize("case", ["L", "R"])
def test_logistic_evidence_and_probabilities_are_those_of_scikit_learn(case):
    X, y, X_star, _, _ = reference(case, "R_alpha3_beta2_truth" if case == "R" else None)
    kernel = linear() if case == "L" else rbf(3, 2)
    peer = ScikitLearn(kernel, optimizer=None).fit(X, y)
    result = infer(Laplace(likelihood="logistic"), prior(kernel, X, X_star), y, rng=None)
    assert result.log_evidence == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-9)
    # scikit-learn's integral, by five error functions, is off by 1e-4
    np.testing.assert_allclose(result.probability, peer.predict_proba(X_star)[:, 1], atol=2e-4)


@BOTH
def test_the_record_is_at_the_mode_of_its_own_posterior(likelihood):
    X, y = noisy_problem(1)
    K = rbf(1.0, 9.0)(X)
    posterior = Laplace(likelihood=likelihood.name).fit(Prior(K), y)
    first, W = likelihood.derivatives(y, posterior.mean)
    np.testing.assert_allclose(posterior.a, first, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(posterior.S, W, rtol=1e-10)
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
        np.testing.assert_array_equal(posterior.prediction.probability, integral(*moments))
        again = pickle.loads(pickle.dumps(posterior))
        np.testing.assert_array_equal(
            again.predict(blocks.K_star, blocks.k_star_star).probability, integral(*moments)
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"likelihood": "logit"}, "likelihood must be one of probit, logistic; got 'logit'"),
        ({"predictive": "kappa"}, "predictive must be one of exact, mackay"),
        ({"predictive": "mackay"}, "predictive='mackay' is for likelihood='logistic'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Laplace(**options)

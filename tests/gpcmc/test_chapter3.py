"""Closed forms of chapter 3 of Rasmussen and Williams (2006): figures 3.4 and 3.13, exercises 3.10.2, 3 and 5."""

import mpmath
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm
from test_inference import random_problem
from test_multiclass import dense, three_classes

from gpcmc.gp import predictive_probability, rbf
from gpcmc.inference import ExpectationPropagation, ep
from gpcmc.inference.multiclass import MulticlassLaplace, MulticlassPosterior, _apply_R, one_hot

# --- one likelihood term


@pytest.mark.parametrize(
    ("y", "mean", "variance"),
    [(1.0, 1.0, 9.0), (-1.0, 1.0, 9.0), (1.0, -2.0, 0.3), (-1.0, 4.0, 2.0)],
)
def test_moments_of_one_term(y, mean, variance):
    """Eqs. (3.58), (3.59); the first case is figure 3.4. The integrals have 25 digits."""
    with mpmath.workdps(25):
        deviation = mpmath.sqrt(variance)

        def moment(power):
            def mass(f):
                return mpmath.npdf(f, mean, deviation) * mpmath.ncdf(y * f) * f**power

            breaks = [mean + k * deviation for k in (-16, -8, -4, -2, 0, 2, 4, 8, 16)]
            return mpmath.quad(mass, sorted({*breaks, mpmath.mpf(0)}))

        total = moment(0)
        centre = moment(1) / total
        spread = moment(2) / total - centre**2
    tau, nu = np.zeros(1), np.zeros(1)
    ep._sweep(np.array([y]), tau, nu, np.array([[variance]]), np.array([mean]), 1)
    found = 1.0 / (1.0 / variance + tau[0])
    assert predictive_probability(y * mean, variance) == pytest.approx(float(total), rel=1e-12)
    assert found == pytest.approx(float(spread), rel=1e-12)
    assert found * (mean / variance + nu[0]) == pytest.approx(float(centre), rel=1e-12)


def test_a_cavity_does_not_depend_on_its_own_site():
    """Exercise 3.10.5: another site in a pattern's place changes its marginal, and leaves its cavity as it was."""
    K, y = random_problem(3, n=12)
    posterior = ExpectationPropagation().approximate(K, y)
    tau, nu = posterior.S, posterior.a + posterior.S * posterior.mean

    def marginals_and_cavities(tau, nu):
        _, Sigma, _, mu = ep._recompute(K, tau, nu)
        marginals = Sigma.diagonal(), mu
        return np.array([marginals, ep._cavity(*marginals, tau, nu)[::-1]])

    before = marginals_and_cavities(tau, nu)
    for i in range(len(y)):
        other_tau, other_nu = tau.copy(), nu.copy()
        other_tau[i], other_nu[i] = 3.0 * tau[i] + 0.1, -nu[i] - 0.5
        after = marginals_and_cavities(other_tau, other_nu)
        np.testing.assert_allclose(after[1, :, i], before[1, :, i], rtol=1e-9)
        assert (np.abs(after[0, :, i] - before[0, :, i]) > 1e-2).all()
        # those of the others change
        assert np.abs(np.delete(after[1] - before[1], i, axis=1)).max() > 1e-3


# --- the softmax


def test_the_covariance_of_a_class_is_singular_in_one_direction():
    """Exercise 3.10.2: diag(pi) - pi pi' is that of the indicators, and the vector of ones has the eigenvalue zero."""
    rng = np.random.default_rng(0)
    for C in (2, 3, 10):
        pi = softmax(3.0 * rng.standard_normal(C))
        gap = np.eye(C) - pi
        covariance = np.einsum("k,ki,kj->ij", pi, gap, gap)
        np.testing.assert_allclose(covariance, np.diag(pi) - np.outer(pi, pi), atol=1e-15)
        values = np.linalg.eigvalsh(covariance)
        assert abs(values[0]) < 1e-15 and values[1] > 1e-6
        np.testing.assert_allclose(covariance @ np.ones(C), 0.0, atol=1e-15)


def test_what_all_classes_share_has_no_curvature():
    """R = W (I + K W)^-1 inherits both: it is positive semidefinite, and zero for equal values of all classes."""
    X, labels = three_classes(4, n=15)
    K, y = rbf(1.0, 6.0)(X), one_hot(labels)
    posterior = MulticlassLaplace().approximate(K, y)
    whole, W, _ = dense(K, posterior, y)
    R = W @ np.linalg.inv(np.eye(y.size) + whole @ W)
    rng = np.random.default_rng(1)
    for _ in range(5):
        b = rng.standard_normal(y.shape)
        found = _apply_R(posterior.E, posterior.M, b)
        np.testing.assert_allclose(found, (R @ b.ravel()).reshape(y.shape), atol=1e-11)
        assert np.sum(b * found) > 0
        same = np.broadcast_to(b[0], y.shape)
        np.testing.assert_allclose(_apply_R(posterior.E, posterior.M, same), 0.0, atol=1e-12)
    assert abs(np.linalg.eigvalsh(0.5 * (R + R.T))[: len(K)]).max() < 1e-12


def made_posterior(means, shared):
    """Return a posterior of three classes, to be asked at K_star = [[1]], k_star_star = [1].

    The latent values of `shared` are their means plus one variate of deviation 10; that of the third has deviation 1.
    """
    E = np.zeros((3, 1, 1))
    E[list(shared)] = 1.0
    return MulticlassPosterior(
        log_evidence=0.0, mean=np.zeros((3, 1)), a=np.array(means)[:, None], E=E, M=np.array([[0.1]]),
        work={}, points=4096, randomizations=8,
    )  # fmt: skip


@pytest.mark.parametrize("favoured", range(3))
@pytest.mark.parametrize("largest", range(3))
def test_the_class_depends_on_the_covariance_too(largest, favoured):
    """Exercise 3.10.3: the mean lies a little in the region of one class, and the covariance favours any of the three.

    Where two latent values rise and fall together, both classes share the probability of a rise, and the third has that
    of a fall alone.
    """
    means, shared = 0.1 * np.eye(3)[largest], [c for c in range(3) if c != favoured]
    posterior = made_posterior(means, shared)
    mean, covariance = posterior.latent([[1.0]], [1.0])
    np.testing.assert_allclose(mean[0], means)
    expected = np.diag(np.eye(3)[favoured])
    expected[np.ix_(shared, shared)] = 100.0
    np.testing.assert_allclose(covariance[0], expected, atol=1e-12)
    z, w = np.meshgrid(np.linspace(-8, 8, 4001), np.linspace(-8, 8, 161), indexing="ij")
    weight = norm.pdf(z) * norm.pdf(w)
    f = means[:, None, None] + 10.0 * z
    f[favoured] = means[favoured] + w
    exact = np.sum(softmax(f, axis=0) * weight, axis=(1, 2)) / weight.sum()
    found = posterior.predict([[1.0]], [1.0])
    assert mean[0].argmax() == largest
    assert found.probability[0].argmax() == exact.argmax() == favoured
    np.testing.assert_allclose(found.probability[0], exact, atol=2e-3)


def test_decision_regions_of_the_softmax():
    """Figure 3.13, z2 = f2 - f1 and z3 = f3 - f1; there is no spread, so that the average is the softmax itself."""
    z2, z3 = (axis.ravel() for axis in np.meshgrid(np.linspace(-3, 3, 41), np.linspace(-3, 3, 38)))
    posterior = MulticlassPosterior(
        log_evidence=0.0, mean=np.zeros((3, 2)), a=np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        E=np.zeros((3, 2, 2)), M=np.eye(2), work={}, points=1, randomizations=1,
    )  # fmt: skip
    p = posterior.predict(np.stack([z2, z3]), np.zeros(len(z2))).probability
    np.testing.assert_allclose(p[:, 0], 1.0 / (1.0 + np.exp(z2) + np.exp(z3)), rtol=1e-14)
    apart = np.min(np.abs([z2, z3, z2 - z3]), axis=0) > 1e-9  # not on a boundary
    regions = [(z2 < 0) & (z3 < 0), (z2 > 0) & (z2 > z3), (z3 > 0) & (z3 > z2)]
    for c, region in enumerate(regions):
        np.testing.assert_array_equal((p.argmax(axis=1) == c)[apart], region[apart])
    # p > 1/3 has the boundary exp(z2) + exp(z3) = 2
    np.testing.assert_array_equal(p[:, 0] > 1 / 3, np.exp(z2) + np.exp(z3) < 2)
    on = np.log(np.linspace(0.1, 1.9, 7))
    edge = posterior.predict(np.stack([on, np.log(2.0 - np.exp(on))]), np.zeros(7)).probability
    np.testing.assert_allclose(edge[:, 0], 1 / 3, rtol=1e-14)

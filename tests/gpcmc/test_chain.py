"""A Markov chain by quadrature, and draws that are resampled.

The truth is a forward recursion over a fine grid of latent values, which knows neither sites nor polynomials, or a
closed form. Quadrature is held to the error that it states. Seeds are fixed; false-alarm rates stand at each test.
"""

from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import Matern

from gpcmc.covariance import Dense
from gpcmc.covariance.kernels import evaluate
from gpcmc.covariance.sparse import sparse
from gpcmc.gp import prior
from gpcmc.inference import ExpectationPropagation, Twisted
from gpcmc.likelihood import PROBIT, Ordinal
from gpcmc.posterior import OK
from gpcmc.rectangle import classification, filter, proposals
from gpcmc.rectangle.chain import QuadraturePosterior, Twist, settled
from gpcmc.rectangle.classification import OrdinalTwisted, SampledPosterior


def grid_truth(x, likelihoods, variance, scale, nodes=240):
    """The log evidence by the trapezoidal rule; inputs are equal, or not much closer than a tenth of a scale."""
    order = np.argsort(x)
    f, total = np.linspace(-9.0, 9.0, nodes) * np.sqrt(variance), 0.0
    law = np.exp(-0.5 * f**2 / variance)
    law /= law.sum()
    for before, i in zip([None, *order[:-1]], order, strict=True):
        if before is not None and x[i] > x[before]:
            rho = np.exp(-(x[i] - x[before]) / scale)
            left = variance * (1.0 - rho**2)
            step = np.exp(-0.5 * (f[:, None] - rho * f) ** 2 / left) / np.sqrt(2 * np.pi * left)
            law = (step @ law) * (f[1] - f[0])
        law = law * likelihoods[i](f)
        total += np.log(law.sum())
        law = law / law.sum()
    return total


def probit(y):
    return [lambda f, one=one: ndtr(one * f) for one in y]


def chain(n, variance, scale=1.0, seed=0, step=0.1):
    """Inputs on a grid of a tenth of a length scale, some more than once, in no order; and labels of the process."""
    rng = np.random.default_rng(seed)
    x = step * scale * rng.integers(0, 3 * n, n)
    K = variance * np.exp(-np.abs(x[:, None] - x) / scale)
    f = np.linalg.cholesky(K + 1e-8 * variance * np.eye(n)) @ rng.standard_normal(n)
    return x, np.where(f + rng.standard_normal(n) > 0, 1.0, -1.0), variance * Matern(scale, nu=0.5)


def fitted(x, y, kernel, x_star=None, method=None, neighbours=1):
    X_star = None if x_star is None else x_star[:, None]
    P = prior(kernel, x[:, None], X_star, covariance="sparse", neighbours=neighbours)
    return (method or Twisted()).fit(P, y, rng=0)


@pytest.mark.parametrize("neighbours", [1, 20])
@pytest.mark.parametrize(("variance", "scale"), [(0.3, 1.0), (1.0, 20.0), (10.0, 1.0), (60.0, 0.1)])
def test_the_evidence_is_that_of_a_grid(variance, scale, neighbours):
    x, y, kernel = chain(120, variance, scale)
    found = fitted(x, y, kernel, neighbours=neighbours)
    assert isinstance(found, QuadraturePosterior) and found.status == OK
    truth = grid_truth(x, probit(y), variance, scale)
    assert abs(found.log_evidence - truth) < found.log_evidence_se + 1e-6
    assert found.log_evidence_se < 1e-3


def test_orthants_of_up_to_three_are_closed_forms():
    """1/2; 1/4 + asin r / 2 pi; 1/8 + (sum of asin r) / 4 pi (Sheppard 1899)."""
    x = np.array([0.0, 0.3, 1.0])
    r = 2.0 * np.exp(-np.abs(x[:, None] - x)) / 3.0
    angle = np.arcsin(r[np.triu_indices(3, 1)])
    truths = [0.5, 0.25 + angle[0] / (2 * np.pi), 0.125 + angle.sum() / (4 * np.pi)]
    for n, truth in enumerate(truths, start=1):
        found = fitted(x[:n], np.ones(n), 2.0 * Matern(1.0, nu=0.5))
        assert found.log_evidence == pytest.approx(np.log(truth), abs=1e-7)


def test_a_thousand_values():
    """As many as the sampler is not trusted with elsewhere; the difference to EP is seen."""
    n, phi = 1000, 0.9
    rng = np.random.default_rng(0)
    x, y = np.arange(n) * 0.1, np.where(rng.random(n) < 0.7, 1.0, -1.0)
    scale = -0.1 / np.log(phi)
    found = fitted(x, y, 1.0 * Matern(scale, nu=0.5))
    truth = grid_truth(x, probit(y), 1.0, scale)
    assert abs(found.log_evidence - truth) < 1e-6
    guide = fitted(x, y, 1.0 * Matern(scale, nu=0.5), method=ExpectationPropagation())
    assert abs(guide.log_evidence - truth) > 1e-2


@pytest.mark.parametrize("neighbours", [1, 20])
def test_class_probabilities_are_quotients_of_evidences(neighbours):
    """Beyond both ends, between patterns, at one, and at one that is there more than once."""
    x, y, kernel = chain(60, 4.0)
    twice = x[np.argmax([np.sum(x == one) for one in x])]
    assert np.sum(x == twice) > 1
    x_star = np.array([x.min() - 0.4, x.max() + 0.2, np.sort(x)[20] + 0.05, x[3], twice])
    found = fitted(x, y, kernel, x_star, neighbours=neighbours)
    before = grid_truth(x, probit(y), 4.0, 1.0)
    for place, p in zip(x_star, found.prediction.probability, strict=True):
        more = grid_truth(np.append(x, place), probit(np.append(y, 1.0)), 4.0, 1.0)
        assert p == pytest.approx(np.exp(more - before), abs=1e-5)
    x_star = np.concatenate([x_star, x + 0.03, x - 0.02])
    K_star = kernel(x[:, None], x_star[:, None])
    by_covariance = found.predict(K_star, np.full(len(x_star), 4.0)).probability
    by_inputs = found.predict_inputs(x_star[:, None]).probability
    np.testing.assert_allclose(by_covariance, by_inputs, atol=1e-7)
    assert (found.prediction.standard_error == 0.0).all()


def test_ordered_classes():
    x, _, kernel = chain(60, 4.0)
    rng, likelihood = np.random.default_rng(1), Ordinal((-1.0, 0.5))
    classes = rng.integers(0, 3, len(x)).astype(float)
    edges = np.array([-np.inf, -1.0, 0.5, np.inf])

    def of(labels):
        return [lambda f, c=int(c): ndtr(edges[c + 1] - f) - ndtr(edges[c] - f) for c in labels]

    x_star = np.array([np.sort(x)[20] + 0.05])
    found = fitted(x, classes, kernel, x_star, OrdinalTwisted(likelihood=likelihood))
    truth = grid_truth(x, of(classes), 4.0, 1.0)
    assert abs(found.log_evidence - truth) < found.log_evidence_se + 1e-6
    for c, p in enumerate(found.prediction.probability[0]):
        more = grid_truth(np.append(x, x_star), of([*classes, c]), 4.0, 1.0)
        assert p == pytest.approx(np.exp(more - truth), abs=1e-5)


def test_any_sites_make_the_same_evidence():
    """Sites are a change of measure: halved, they leave the value where it is, within the errors that are stated."""
    x, y, kernel = chain(80, 2.0)
    K = sparse(kernel, x[:, None], neighbours=1)
    sites = ExpectationPropagation().last(K, y).sites
    one, other = (
        settled(Twist.of(K.chain(), s, PROBIT.rectangle(y))) for s in (sites, 0.5 * sites)
    )
    assert abs(one[0] - other[0]) < one[1] + other[1] + 1e-9


def test_what_does_not_settle_is_drawn():
    x, y, kernel = chain(150, 3000.0, step=2.0)
    found = fitted(x, y, kernel, method=Twisted(points=64, randomizations=4))
    assert isinstance(found, SampledPosterior)


def test_other_kernels_and_inputs_are_no_chain():
    x, _, kernel = chain(20, 1.0)
    assert sparse(kernel, x[:, None]).chain() is not None
    assert sparse(1.0 * Matern(1.0, nu=1.5), x[:, None]).chain() is None
    assert sparse(kernel + kernel, x[:, None]).chain() is None
    assert sparse(kernel, np.column_stack([x, x[::-1]])).chain() is None


# --- draws that are resampled


@cache
def rough_chain():
    """One whose weights vary too much for whole draws, and its answer by quadrature at three test inputs."""
    x, y, kernel = chain(400, 40.0, step=0.3)
    x_star = np.array([x.min() + 1.0, np.median(x), x.max() + 0.1])
    found = fitted(x, y, kernel, x_star)
    assert isinstance(found, QuadraturePosterior) and found.log_evidence_se < 5e-3
    return x, y, kernel, x_star, found


def drawing(monkeypatch):
    """Fits that draw, and resample."""
    rough_chain()  # whose answer is by quadrature
    monkeypatch.setattr(classification, "settled", lambda twist: None)
    monkeypatch.setattr(classification, "RESAMPLED", 0)
    return lambda **how: fitted(*rough_chain()[:4], method=Twisted(**how))


def test_resampled_draws_are_unbiased_and_say_their_error(monkeypatch):
    """The mean of 200 runs: four errors, a false alarm in 16,000. Ancestors tell the variance to within a half."""
    drawn, truth = drawing(monkeypatch), rough_chain()[4]
    found = drawn(points=64, randomizations=200)
    assert found.diagnostics["resampled"] > 1.0
    assert abs(found.log_evidence - truth.log_evidence) < 4.0 * found.log_evidence_se + 5e-3
    by_ancestors = found.diagnostics["effective_samples"] ** -0.5
    assert 0.67 < found.log_evidence_se / by_ancestors < 1.5
    gap = np.abs(found.prediction.probability - truth.prediction.probability)
    assert (gap < 4.0 * found.prediction.standard_error + 1e-4).all()


def test_resampling_pays(monkeypatch):
    """On a chain three times as long, whose whole draws are dominated by a few."""
    drawing(monkeypatch)
    x, y, kernel = chain(1200, 40.0, step=0.3)
    method, effective = Twisted(points=128, randomizations=8), []
    for least in (0.5, 0.0):
        monkeypatch.setattr(filter, "_LEAST", least)
        found = fitted(x, y, kernel, method=method)
        assert (found.diagnostics["resampled"] > 0.0) == (least > 0.0)
        effective.append(found.diagnostics["effective_samples"])
    assert effective[0] > 3.0 * effective[1]


def test_resampled_draws_of_equal_seeds_are_equal(monkeypatch):
    drawn = drawing(monkeypatch)
    one, two = (drawn(points=32, randomizations=4, n_jobs=k) for k in (1, 3))
    assert one.log_evidence == two.log_evidence and one.diagnostics == two.diagnostics
    np.testing.assert_array_equal(one.prediction.probability, two.prediction.probability)
    later = one.predict_inputs(rough_chain()[3][:, None])
    np.testing.assert_array_equal(later.probability, one.prediction.probability)


def test_a_dense_factor_is_resampled_too(monkeypatch):
    """By its innovations; four errors, as above."""
    monkeypatch.setattr(filter, "_LEAST", 0.9)
    x, y, kernel = chain(60, 20.0, step=0.3)
    truth = fitted(x, y, kernel)
    K = Dense(evaluate(kernel, x[:, None]))
    tau, nu = ExpectationPropagation().last(K, y).sites
    tau, nu = tau / (1.0 - tau), y * nu / (1.0 - tau)
    main = proposals.twisted(K.factor(y).sited(nu, tau), tau, np.zeros(60), np.full(60, np.inf))
    found = filter.filtered(main, 128, np.arange(64))
    assert found.diagnostics["resampled"] > 1.0
    gap = found.log_probability - truth.log_evidence
    assert abs(gap) < 4.0 * found.standard_error + truth.log_evidence_se


def test_systematic_resampling():
    """Each as often as its share says, up to one; over all offsets just as often."""
    share = np.random.default_rng(0).dirichlet(np.full(50, 0.3))
    offsets = (np.arange(2000) + 0.5) / 2000
    counts = np.array([np.bincount(filter._systematic(share, u), minlength=50) for u in offsets])
    assert (np.abs(counts - 50 * share) < 1.0).all()
    np.testing.assert_allclose(counts.mean(axis=0), 50 * share, atol=2e-3)

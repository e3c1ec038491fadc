"""Twisted EP on a dense covariance with sites of low rank, against closed forms and the dense method.

Statistical tests have fixed seeds; their false-alarm rates are stated.
"""

import numpy as np
import pytest
from problems import noisy_problem
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    PairwiseKernel,
    WhiteKernel,
)

import gpcmc.lowrank.dense_twisted as module
from gpcmc import GaussianProcessClassifier, _problem
from gpcmc.covariance import dense
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import ExpectationPropagation, Twisted
from gpcmc.lowrank import dense_twisted_ep
from gpcmc.orthant.truths import linear_kernel_truth
from gpcmc.posterior import OK

ROUGH = rbf(0.5, 3.0)


def test_the_linear_kernel_has_its_truth():
    """Evidence and probabilities within 4.5 standard errors (Student's t, 15 degrees of freedom): 7 in 10,000 each."""
    rng = np.random.default_rng(3)
    x, x_star = rng.standard_normal(60), np.array([-1.5, 0.4, 2.0])
    y = np.where(x + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
    truth = linear_kernel_truth(x, y, x_star)
    kernel = DotProduct(0.0, sigma_0_bounds="fixed")
    found = dense_twisted_ep(prior(kernel, x[:, None], x_star[:, None]), y, rng=rng)
    assert abs(found.log_evidence - truth.log_evidence) < 4.5 * found.log_evidence_se < 0.01
    z = (found.prediction.probability - truth.probability) / found.prediction.standard_error
    assert np.abs(z).max() < 4.5
    assert found.prediction.standard_error.max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("left", [3e-3, 0.3])
def test_weights_are_unbiased_whatever_the_sites(left, monkeypatch):
    """The mean of 60 independent estimates, and that of their squared z: 2 false alarms in 1000 each.

    With 0.3 sites and tilt are those of a covariance that misses a third of the variance.
    """
    monkeypatch.setattr(module, "_LEFT", left)
    X, y = noisy_problem(4, 40)
    P = prior(Matern(0.6, nu=1.5), X)
    truth = Twisted(points=2**13, randomizations=16).fit(P, y, rng=np.random.default_rng(0))
    few = Twisted(points=16, randomizations=16)
    runs = [dense_twisted_ep(P, y, method=few, rng=np.random.default_rng(i)) for i in range(60)]
    error = np.array([run.log_evidence for run in runs]) - truth.log_evidence
    z = error / [run.log_evidence_se for run in runs]
    ratio = np.expm1(error)
    assert abs(ratio.mean()) < 3.1 * ratio.std() / np.sqrt(60) + 3 * truth.log_evidence_se
    # t with 15 degrees of freedom: z^2 has mean 15/13 and variance 4.0
    assert abs(np.mean(z**2) - 15 / 13) < 3.3 * np.sqrt(4.0 / 60)


def test_with_the_same_points_it_is_the_dense_method():
    X, y = noisy_problem(5, 300)
    P = prior(ROUGH, X, X[:7] + 0.1)
    method = Twisted(points=64, randomizations=8)
    old = method.fit(P, y, rng=np.random.default_rng(1))
    new = dense_twisted_ep(P, y, method=method, rng=np.random.default_rng(1))
    # sites differ by their tolerance: a hundredth of the standard error remains
    assert new.log_evidence == pytest.approx(old.log_evidence, abs=0.03 * old.log_evidence_se)
    assert new.log_evidence_se == pytest.approx(old.log_evidence_se, rel=0.05)
    p, q = new.prediction, old.prediction
    assert np.abs(p.probability - q.probability).max() < 0.1 * q.standard_error.max()
    bounds = [one.diagnostics["log_weight_bound"] for one in (old, new)]
    assert bounds[0] - 0.05 < bounds[1] < bounds[0] + 0.5
    assert new.status == old.status == OK


@pytest.mark.parametrize(
    "kernel",
    [
        ConstantKernel(2.0),
        RBF(1e-6),
        1e6 * RBF(1.0),
        PairwiseKernel(metric="polynomial"),
        RBF([1.0, 2.0]) + WhiteKernel(0.1),
    ],
)
def test_kernels_of_all_sorts(kernel):
    """Duplicates with contradictory labels, too; the evidence is that of the plain methods with the same points."""
    X, y = noisy_problem(9, 60)
    P = prior(kernel, np.vstack([X, X]))
    y, method = np.concatenate([y, -y[:20], y[20:]]), Twisted(points=64, randomizations=4)
    old = method.fit(P, y, rng=np.random.default_rng(1))
    new = dense_twisted_ep(P, y, method=method, rng=np.random.default_rng(1))
    assert abs(new.log_evidence - old.log_evidence) < 0.2 * old.log_evidence_se + 1e-5


@pytest.mark.parametrize("variance", [1000.0, 1e-3])
def test_as_many_samples_are_effective_whatever_the_variance(variance):
    """What matters of the variance that is left out is its size beside the noise, and not its share."""
    X, y = noisy_problem(5, 200)
    P, method = prior(rbf(3.0, variance), X), Twisted(points=64, randomizations=8)
    old = method.fit(P, y, rng=np.random.default_rng(1))
    new = dense_twisted_ep(P, y, method=method, rng=np.random.default_rng(1))
    shares = [one.diagnostics["effective_fraction"] for one in (old, new)]
    assert shares[1] > 0.95 * shares[0]
    gap = abs(new.log_evidence - old.log_evidence)
    assert gap < 0.3 * old.log_evidence_se + 1e-6


def test_no_weight_is_above_the_bound(monkeypatch):
    """Also where the tilt is that of a covariance far from the dense one."""
    monkeypatch.setattr(module, "_LEFT", 0.9)
    seen, average = [], module.controlled_mean

    def spy(log_weights, ratios):
        found = average(log_weights, ratios)
        seen.append(log_weights.max() - found.log_mean)
        return found

    monkeypatch.setattr(module, "controlled_mean", spy)
    X, y = noisy_problem(6, 100)
    found = dense_twisted_ep(prior(ROUGH, X), y, rng=np.random.default_rng(0))
    assert 0.0 < seen[0] < found.diagnostics["log_weight_bound"] < 40.0


def test_predictions_come_later_and_threads_change_nothing_but_rounding():
    X, y = noisy_problem(7, 150)
    P, method = prior(ROUGH, X, X[:4] + 0.2), Twisted(points=32, randomizations=4)
    found = dense_twisted_ep(P, y, method=method, rng=np.random.default_rng(2))
    later = found.predict(P.K_star, P.k_star_star)
    np.testing.assert_array_equal(later.probability, found.prediction.probability)
    spread = Twisted(points=32, randomizations=4, n_jobs=2)
    other = dense_twisted_ep(P, y, method=spread, rng=np.random.default_rng(2))
    assert other.log_evidence == pytest.approx(found.log_evidence, abs=1e-9)
    np.testing.assert_allclose(other.prediction.probability, later.probability, atol=1e-9)


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (Twisted(points=32, randomizations=4), "tilt_steps"),
        (ExpectationPropagation(), "coarse_sweeps"),
    ],
)
def test_the_classifier_starts_from_low_rank_where_there_are_many_patterns(
    method, told, monkeypatch
):
    monkeypatch.setattr(_problem, "_MANY", 100)
    monkeypatch.setattr(dense, "_MANY", 100)
    X, y = noisy_problem(8, 120)
    model = GaussianProcessClassifier(ROUGH, inference=method, optimizer=None, random_state=3)
    fits = [clone(model).fit(*some) for some in ((X, y), (X[:90], y[:90]))]
    assert [told in fit.posterior_.work for fit in fits] == [True, False]
    monkeypatch.undo()
    p, q = (fit.predict_proba(X[:5]) for fit in (fits[0], model.fit(X, y)))
    np.testing.assert_allclose(p, q, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": Prior(np.eye(3))}, "prior must be made by gpcmc.gp.prior"),
        ({"y": np.ones(2)}, "y must have shape"),
        ({"rng": 1}, "rng must be"),
    ],
)
def test_bad_input_is_named(change, message):
    X = np.arange(3.0)[:, None]
    given = {"prior": prior(ROUGH, X), "y": np.ones(3), "rng": np.random.default_rng(0)} | change
    with pytest.raises(ValueError, match=message):
        dense_twisted_ep(given["prior"], given["y"], rng=given["rng"])

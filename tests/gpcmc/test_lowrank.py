"""Covariances of low rank, against the dense methods, closed forms, brute densities and finite differences.

Statistical tests have fixed seeds; their false-alarm rates are stated.
"""

import signal
import subprocess
import sys
import tracemalloc
from functools import partial

import numpy as np
import pytest
from problems import noisy_problem
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from test_multiclass import three_classes

from gpcmc import GaussianProcessClassifier
from gpcmc._memory import Limit
from gpcmc._progress import Progress
from gpcmc.covariance import LowRank
from gpcmc.evidence import DENSE, Search, Surface, maximize
from gpcmc.evidence.ascent import Ascent
from gpcmc.evidence.forms import LowRankForm
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import (
    ExpectationPropagation,
    ImportanceSampling,
    Laplace,
    MinimaxTilting,
    MulticlassLaplace,
    Twisted,
)
from gpcmc.likelihood.softmax import one_hot
from gpcmc.posterior import NOT_CONVERGED, OK, TOO_ROUGH, UNTRUSTED

ROUGH = rbf(0.5, 3.0)
low_rank_prior = partial(prior, covariance="low-rank")


# --- gradients, and the search


def climbed(method, kernel, X, y, tolerance):
    """The maximum on covariances of low rank, whose inducing inputs are chosen anew at each end."""
    ascent = Ascent(Surface(method, kernel, X, y), Progress(0))
    return ascent.with_held(LowRankForm(tolerance), kernel.theta)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2])
def test_a_search_ends_where_the_dense_one_does_from_a_rough_start(tolerance):
    """Few inducing inputs do for the smooth kernel at the maximum, by their share of its large variance.

    They would not do for the evidence: a search that took these alone ended 78 nats below the maximum.
    """
    X, y = noisy_problem(7, 250)
    kernel, method = 1.0 * Matern(0.3, nu=1.5), ExpectationPropagation(tolerance=1e-6)
    found = climbed(method, kernel, X, y, tolerance)
    surface = Surface(method, kernel, X, y)
    truth = maximize(surface, 0, np.random.default_rng(0))
    assert truth.log_evidence - 0.3 < surface.value(found.theta) <= truth.log_evidence + 1e-6


@pytest.mark.parametrize(("seed", "most"), [(5, 60), (7, 70)])
def test_a_search_climbs_once_at_each_size_where_what_it_holds_serves(seed, most):
    """Inducing inputs are chosen for the start; where the end would choose others, these may go in a circle.

    The first took 124 evaluations when each size went on until its maximum stood still, the second 126 to and fro.
    """
    X, y = noisy_problem(seed, 3000)
    method, kernel = ExpectationPropagation(tolerance=1e-6), 1.0 * Matern(1.0, nu=2.5)
    found, _ = Search("lbfgs").run(
        method, kernel, X, y, None, form_at=lambda kernel: LowRankForm(1e-4)
    )
    start = kernel.clone_with_theta(found.theta)
    exact = Surface(method, start, X, y, LowRankForm(1e-7).near(start, X))
    assert maximize(exact).log_evidence - exact.value(found.theta) < 0.05
    assert found.evaluations <= most


# --- draws


@pytest.mark.parametrize("method", [Twisted(points=256), MinimaxTilting(points=1024)])
def test_draws_are_corrected_for_what_the_form_leaves_out(method):
    """Half of what is left out, or more, is won back; at 5 standard errors the false-alarm rate is below 1e-4."""
    X, y = noisy_problem(8, 150)
    X_star = noisy_problem(9, 10)[0]
    truth = Twisted(points=512).fit(prior(ROUGH, X, X_star), y, rng=0)
    found = method.fit(low_rank_prior(ROUGH, X, X_star, tolerance=0.05), y, rng=1)
    plain = found.samples.log_probability
    assert found.log_evidence == plain + found.diagnostics["correction"]
    error = 5 * np.hypot(found.log_evidence_se, truth.log_evidence_se)
    assert abs(plain - truth.log_evidence) > 0.15 + error, "there is something to correct"
    left = abs(found.log_evidence - truth.log_evidence)
    assert left < 0.5 * abs(plain - truth.log_evidence) + error
    assert (found.prediction.form_error > 0).all()


def test_draws_agree_with_the_dense_method():
    """At 5 joint standard errors: false-alarm rate below 1e-4, over evidence and 10 test patterns below 1e-3."""
    X, y = noisy_problem(8, 150)
    X_star = noisy_problem(9, 10)[0]
    truth = Twisted(points=1024).fit(prior(ROUGH, X, X_star), y, rng=np.random.default_rng(0))
    P = low_rank_prior(ROUGH, X, X_star, tolerance=1e-6)
    for method in (
        Twisted(points=512),
        MinimaxTilting(points=1024),
        ImportanceSampling(samples=16384, points="antithetic"),
    ):
        found = method.fit(P, y, rng=np.random.default_rng(1))
        joint = np.hypot(found.log_evidence_se, truth.log_evidence_se)
        assert abs(found.log_evidence - truth.log_evidence) < 5 * joint + 1e-3
        gap = np.abs(found.prediction.probability - truth.prediction.probability)
        assert (
            gap
            < 5 * np.hypot(found.prediction.standard_error, truth.prediction.standard_error) + 1e-3
        ).all()
    assert found.diagnostics["k_hat"] < 0.7


@pytest.mark.parametrize(
    ("rank", "slope", "seed", "status"),
    [(6, 1.0, 0, OK), (3, 0.7, 0, UNTRUSTED), (50, 6.0, 18, NOT_CONVERGED)],
)
def test_importance_needs_a_hundred_effective_samples(rank, slope, seed, status):
    """As the dense method does: in the last case k-hat reads 0.57, and 21 of 4096 samples are effective."""
    rng = np.random.default_rng(1)
    K = LowRank(slope * rng.standard_normal((60, rank)) / rank**0.5, np.zeros(60))
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    for samples, expected in ((4096, status), (20, NOT_CONVERGED)):
        method = ImportanceSampling(samples=samples)
        found = method.fit(Prior(K), y, rng=np.random.default_rng(seed))
        assert found.status == expected
        assert (found.diagnostics["effective_samples"] < 100) == (expected == NOT_CONVERGED)
        truth = method.fit(Prior(K.dense()), y, rng=np.random.default_rng(seed))
        assert truth.diagnostics.keys() <= found.diagnostics.keys()


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_the_search_says_where_it_is(verbose, capsys):
    X, y = noisy_problem(1, 150)
    found = GaussianProcessClassifier(1.0 * RBF(1.0), covariance="low-rank", verbose=verbose)
    found.fit(X, y)
    said = capsys.readouterr().out.splitlines()
    evaluations = [
        int(line.split("evaluation ")[1].split(":")[0]) for line in said if " s, " in line
    ]
    last = found._fits[0].found.evaluations
    assert evaluations == [[], list(range(1, last + 1, 10)), list(range(1, last + 1))][verbose]
    if verbose:
        assert "evaluation 1:" in said[0] and "posterior by" in said[-1]


def test_an_interrupt_ends_a_search_at_once():
    code = (
        "import numpy as np; from gpcmc import GaussianProcessClassifier as C; "
        "X = np.random.default_rng(0).random((5000, 2)); y = np.sin(9 * X).sum(axis=1) > 0; "
        "C(covariance='low-rank', verbose=2).fit(X, y)"
    )
    # what a shell starts in the background ignores the signal, and so would its children
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", code], text=True, preexec_fn=heed, **pipes)
    while "evaluation 3" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert said.splitlines()[-1] == "KeyboardInterrupt" and process.returncode != 0


def test_an_error_of_a_method_makes_no_dense_covariance(monkeypatch):
    monkeypatch.setattr("gpcmc._fitting.check_kernel_matrix", lambda *_: pytest.fail("n x n"))
    monkeypatch.setattr(Laplace, "approximate", lambda *_: (_ for _ in ()).throw(ValueError("no")))
    X, y = noisy_problem(1, 30)
    classifier = GaussianProcessClassifier(
        1.0 * RBF(1.0), "laplace", optimizer=None, covariance="low-rank"
    )
    with pytest.raises(ValueError, match="no"):
        classifier.fit(X, y)


def test_a_covariance_too_rough_says_so():
    X, y = noisy_problem(7, 250)
    kernel, rng = 50.0 * Matern(2.0, nu=1.5), np.random.default_rng(0)
    for tolerance, status in ((0.1, TOO_ROUGH), (1e-4, OK)):
        P = low_rank_prior(kernel, X, tolerance=tolerance)
        for method in (Laplace(), ExpectationPropagation(), Twisted(points=64)):
            assert method.fit(P, y, rng=rng).status == status
    options = {"covariance": "low-rank", "optimizer": None, "tolerance": 0.1}
    with pytest.warns(ConvergenceWarning, match="covariance too rough.*lower tolerance"):
        GaussianProcessClassifier(kernel, **options).fit(X, y)


def test_several_classes_in_the_classifier_agree_with_the_dense_one():
    X, labels = three_classes(1, n=150)
    X_star, names = three_classes(2, n=20)[0], np.array(["c", "a", "b"])
    dense_one, found = (
        GaussianProcessClassifier(1.0 * RBF(1.0), "laplace", covariance=a).fit(X, names[labels])
        for a in ("dense", "low-rank")
    )
    assert list(found.classes_) == ["a", "b", "c"] and found.status_ == OK
    here = dense_one.log_marginal_likelihood(found.kernel_.theta)
    assert found.log_marginal_likelihood_ == pytest.approx(here, abs=1e-3)
    assert here > dense_one.log_marginal_likelihood_ - 1e-6
    assert found.log_marginal_likelihood_se_ == 0.0
    p = found.predict_proba(X_star)
    same = GaussianProcessClassifier(found.kernel_, "laplace", optimizer=None)
    truth = same.fit(X, names[labels]).predict_proba(X_star)
    np.testing.assert_allclose(p, truth, atol=2e-3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (found.predict(X_star) == found.classes_[p.argmax(axis=1)]).all()
    theta = np.zeros(2)
    value, gradient = found.log_marginal_likelihood(theta, eval_gradient=True)
    truth, slope = dense_one.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(truth, abs=0.1) == found.log_marginal_likelihood(theta)
    np.testing.assert_allclose(gradient, slope, atol=0.2)
    assert {"rank", "residual", "correction", "correction_rest", "probability_rest"} == set(
        found.diagnostics_
    )


def test_the_classifier_warns_as_the_dense_one_does():
    X, labels = three_classes(1, n=100)
    options = {"inference": "laplace", "covariance": "low-rank"}
    with pytest.warns(ConvergenceWarning, match="ended at a bound of the kernel"):
        bound = GaussianProcessClassifier(1.0 * RBF(1.0, (0.01, 0.5)), **options).fit(X, labels)
    assert bound.at_bound_ == ("k2__length_scale",)
    noise = np.random.default_rng(0).integers(0, 3, 100)
    with pytest.warns(ConvergenceWarning, match="tells nothing of the classes"):
        GaussianProcessClassifier(1.0 * RBF(1.0), **options).fit(X, noise)


def test_three_thousand_patterns_take_no_square_array():
    """And the probabilities of 3000 others are those of the labels' law, within 0.02 nats a pattern."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((6000, 2))
    f = np.stack([3 * np.sin(1.5 * X[:, 0]), 3 * np.cos(1.5 * X[:, 1]), X[:, 0] * X[:, 1]])
    labels = np.argmax(f + rng.gumbel(size=f.shape), axis=0)
    classifier = GaussianProcessClassifier(
        9.0 * RBF(1.5), "laplace", optimizer=None, covariance="low-rank"
    )
    tracemalloc.start()
    classifier.fit(X[:3000], labels[:3000])
    p = classifier.predict_proba(X[3000:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000**2 / 2
    test, own = labels[3000:], softmax(f[:, 3000:], axis=0)
    gap = np.log(own[test, np.arange(3000)]) - np.log(p[np.arange(3000), test])
    assert 0.0 < gap.mean() < 0.02


def test_a_search_takes_no_square_array():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((5000, 2))
    labels = np.where(np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(5000) > 0, 1, -1)
    kernel = ConstantKernel(4.0, "fixed") * RBF(1.0)
    classifier = GaussianProcessClassifier(kernel, covariance="low-rank")
    tracemalloc.start()
    classifier.fit(X, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 5000**2 / 2


def test_a_class_may_be_missing_from_the_first_patterns(monkeypatch):
    X, labels = three_classes(5, n=120)
    labels[:] = np.minimum(labels, 1)
    order = np.random.default_rng(0).permutation(120)
    labels[order[-5:]] = 2
    y, kernel = one_hot(labels), 1.0 * RBF(1.0, (0.3, 10.0))
    method, rng = MulticlassLaplace(), np.random.default_rng(0)
    whole = maximize(Surface(method, kernel, X, y))
    monkeypatch.setattr("gpcmc.evidence.search._FIRST", 40)
    found, _ = Search("lbfgs", restarts=1).run(
        method, kernel, X, y, rng, form_at=lambda kernel: DENSE
    )
    assert found.converged
    np.testing.assert_allclose(found.theta, whole.theta, atol=0.02)


def test_a_softmax_of_too_large_a_rank_is_refused(monkeypatch):
    X, labels = three_classes(9, n=30)
    P = low_rank_prior(ROUGH, X)
    module = sys.modules["gpcmc.covariance.conditioned"]
    monkeypatch.setattr(module, "available_memory", lambda: Limit(1e3, "this machine has"))
    with pytest.raises(MemoryError, match="tolerance: the softmax with 3 classes and a rank of"):
        MulticlassLaplace().fit(P, labels)

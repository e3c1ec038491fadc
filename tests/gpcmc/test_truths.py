"""One table of truths: every method, on every form of covariance that it takes, against answers that it did not make.

What one fit shows (value, stated error, status) is looked at in `fitted`, and what many show together (no bias, errors
that cover) in `runs`, which every method makes once. Seeds are fixed, and false-alarm rates are:

* one comparison at 7 standard errors, 4e-6 where 16 randomisations state the error (Student's t of 15);
* a mean over independent runs at 5 standard errors, 6e-7;
* the number of intervals that hold the truth, of `RUNS`: 1e-6 by the binomial. Beside it stands the sharper statistic,
  the root mean square of deviations in stated errors: over 100 runs, between .6 and 1.5 (1e-6), it sees errors stated
  as .65 of what they are, for which the number of intervals takes 200.
"""

import itertools
from copy import deepcopy
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from markov import Markov
from numpy.random import default_rng
from problems import random_problem, small_problem
from scipy.stats import binom, t
from sklearn.gaussian_process.kernels import DotProduct
from truths import chain_truth, log_half_plane, reference, two_point_posterior

from gpcmc.chains import chain
from gpcmc.covariance import LowRank
from gpcmc.gp import Prior, linear, prior, rbf
from gpcmc.inference import (
    ControlVariables,
    EllipticalSlice,
    ExpectationPropagation,
    HamiltonianMonteCarlo,
    ImportanceSampling,
    Laplace,
    MinimaxTilting,
    Orthant,
    Twisted,
    infer,
)
from gpcmc.orthant.truths import constant_kernel_truth, linear_kernel_truth
from gpcmc.posterior import MAX_K_HAT, MIN_EFFECTIVE, NOT_CONVERGED, OK, UNTRUSTED

LINEAR = DotProduct(0.0, sigma_0_bounds="fixed")
IMPORTANCE = list(itertools.product(("ep", "laplace"), ("random", "antithetic", "sobol")))


class Problem(NamedTuple):
    """A prior in each of its forms, labels, and the answer."""

    forms: dict
    y: np.ndarray
    log_evidence: float
    probability: np.ndarray


def arrays(K, K_star, k_star_star):
    return {"array": Prior(K, np.asarray(K_star), np.asarray(k_star_star))}


def two_patterns(rho):
    K, y, k_star = 4.0 * np.array([[1.0, rho], [rho, 1.0]]), np.array([1.0, -1.0]), [1.0, 0.6]
    log_z, _, p = two_point_posterior(K, y, np.array(k_star), 4.0)
    assert log_z == pytest.approx(float(log_half_plane(-0.8 * rho)), abs=1e-12)
    return Problem(arrays(K, np.array([k_star]).T, [4.0]), y, log_z, np.array([p]))


def one_pattern(beta=30.0):
    """At the training input itself, P(y* = 1 | y = 1) = 2 P(two coordinates > 0)."""
    p = 2.0 * np.exp(float(log_half_plane(beta / (1.0 + beta))))
    return Problem(arrays([[beta]], [[beta]], [beta]), np.ones(1), np.log(0.5), np.array([p]))


def duplicates():
    """Two patterns at each of two inputs, a singular covariance; the test input is the first of them."""
    K, y, at = np.array([[3.0, 1.0], [1.0, 3.0]]), np.array([1.0, 1.0, -1.0, -1.0]), [0, 0, 1, 1]
    log_z, _, p = two_point_posterior(K, y, K[0], 3.0, at)
    K = K[np.ix_(at, at)]
    return Problem(arrays(K, K[:, :1], [3.0]), y, log_z, np.array([p]))


def independent(n, variance):
    """Each pattern by itself, and a test pattern apart from all."""
    y, apart = np.where(np.arange(n) % 3, 1.0, -1.0), np.zeros((n, 1))
    return Problem(arrays(variance * np.eye(n), apart, [0.3]), y, n * np.log(0.5), np.array([0.5]))


def one_class(n):
    """Correlation one half everywhere: 1 / (n + 1), and (n + 1) / (n + 2) at the input of all."""
    ones = np.ones((n, 1))
    forms = arrays(ones @ ones.T, ones, [1.0]) | {"low rank": Prior(LowRank(ones, np.zeros(n)))}
    return Problem(forms, np.ones(n), -np.log(n + 1.0), np.array([(n + 1.0) / (n + 2.0)]))


def linear_in_one_input(n):
    """One latent factor, by quadrature; of rank one, so that one inducing input leaves nothing out."""
    rng = default_rng(n)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    x, x_star = rng.standard_normal(n) + 0.8 * y, rng.standard_normal(8)
    kernel = prior(LINEAR, x[:, None], x_star[:, None])
    low = prior(LINEAR, x[:, None], x_star[:, None], covariance="low-rank", inducing=[[1.0]])
    forms = arrays(kernel.K, kernel.K_star, kernel.k_star_star) | {
        "kernel": kernel,
        "low rank": low,
    }
    return Problem(forms, y, *_answer(linear_kernel_truth(x, y, x_star)))


def _answer(truth):
    return truth.log_evidence, truth.probability


def markov_chain():
    """An Ornstein-Uhlenbeck process, of full rank: one latent value is integrated after the other."""
    rng, n = default_rng(0), 30
    x = 0.25 * np.arange(n) + 0.05 * rng.random(n)
    y = np.where(np.sin(2 * x) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    K, x_star = Markov(x[:, None], 2.0, 0.8), x[[3, 15, 25]] + 0.12
    kernel = prior(K.kernel, x[:, None], x_star[:, None])
    forms = arrays(kernel.K, kernel.K_star, kernel.k_star_star)
    forms |= {"kernel": kernel, "Markov chain": Prior(K, X_star=x_star[:, None])}
    inducing = {"covariance": "low-rank", "tolerance": 1e-12}
    forms["low rank"] = prior(K.kernel, x[:, None], x_star[:, None], **inducing)
    return Problem(forms, y, *chain_truth(2.0, 0.8, x, y, x_star))


#: Each problem, and the forms of its covariance.
PROBLEMS = {
    "one pattern": (one_pattern, ["array"]),
    "two patterns, -.6": (lambda: two_patterns(-0.6), ["array"]),
    "two patterns, .95": (lambda: two_patterns(0.95), ["array"]),
    "duplicates": (duplicates, ["array"]),
    "independent": (lambda: independent(20, 0.3), ["array"]),
    "no variance": (lambda: independent(20, 0.0), ["array"]),
    "one class of 40": (lambda: one_class(40), ["array", "low rank"]),
    "one class of 300": (lambda: one_class(300), ["array", "low rank"]),
    "linear, 30": (lambda: linear_in_one_input(30), ["array", "kernel", "low rank"]),
    "linear, 200": (lambda: linear_in_one_input(200), ["array", "low rank"]),
    "Markov chain": (markov_chain, ["array", "kernel", "low rank", "Markov chain"]),
}
problem = {name: cache(make) for name, (make, _) in PROBLEMS.items()}
#: Options, the largest errors that may be stated of log evidence and of probabilities, and the problems left out.
LARGE = {"one class of 300", "linear, 200"}
HARD = {"no variance"}  # counts of draws are not one half
DRAWN = {
    "orthant, hard": (Orthant(samples=20_000, count="hard"), 0.4, 0.05, LARGE | HARD),
    "orthant, soft": (Orthant(samples=20_000), 0.3, 0.04, LARGE),
    "orthant, adapted": (Orthant(samples=20_000, scheme="adapted"), 0.05, 0.01, LARGE),
    "twisted-ep": (Twisted(points=512), 0.02, 3e-3, set()),
    "minimax-tilting": (MinimaxTilting(points=1024), 0.02, 5e-3, set()),
    "minimax-tilting, given": (MinimaxTilting(points=1024, order="given"), 0.02, 5e-3, LARGE),
    **{
        f"importance, {proposal}, {points}": (
            ImportanceSampling(4096, proposal, points),
            0.1,
            0.05,
            LARGE,
        )
        for proposal, points in IMPORTANCE
    },
}
FEW = LARGE | {"two patterns, -.6", "one class of 40", "Markov chain"}
CHAINS = {
    "ess": (EllipticalSlice(16_000, 100, 2, temperatures=40), 3.0, 0.02, LARGE),
    "hmc": (HamiltonianMonteCarlo(4000, temperatures=30), 1.0, 0.02, LARGE),
    "control-variables": (
        ControlVariables(6000, trace_fraction=0.3, adaptation_rounds=4),
        None,
        0.03,
        FEW,
    ),
}
ANY_FORM = ("twisted", "minimax", "importance")
CELLS = [
    (name, form, method)
    for name, (_, forms) in PROBLEMS.items()
    for form in forms
    for method, (*_, without) in (DRAWN | CHAINS).items()
    if name not in without and (form == "array" or method.startswith(ANY_FORM))
]


@pytest.mark.parametrize(("name", "form", "method"), CELLS)
def test_value_error_and_status(name, form, method):
    """Weights of importance sampling, and of annealing over few temperatures, need not be trusted; errors hold."""
    given = problem[name]()
    chosen, largest, largest_of_p, _ = (DRAWN | CHAINS)[method]
    # what a covariance keeps of its own is left behind, so that planted faults neither miss it nor stay in it
    found = chosen.fit(deepcopy(given.forms[form]), given.y, rng=default_rng(3))
    assert found.status == OK or method.startswith(("importance", "ess", "hmc"))
    if largest is not None:
        assert abs(found.log_evidence - given.log_evidence) < 7 * found.log_evidence_se + 1e-6
        assert found.log_evidence_se < largest
    p = found.prediction
    gap = np.abs(p.probability - given.probability) if len(p.probability) else np.zeros(0)
    assert (gap < 7.5 * p.standard_error + 1e-6).all()
    assert not len(gap) or p.standard_error.max() < largest_of_p
    if name == "no variance":
        np.testing.assert_allclose(p.probability, 0.5, atol=1e-12)
        np.testing.assert_allclose(p.standard_error, 0.0, atol=1e-12)
    if method.startswith(("twisted", "minimax")):
        assert set(found.diagnostics) >= {"k_hat", "effective_samples", "log_weight_bound"}


@pytest.mark.parametrize(
    ("case", "truth", "kernel"),
    [("L", None, linear()), ("L3", None, linear()), ("R", "R_alpha3_beta2_truth", rbf(3.0, 2.0))],
)
@pytest.mark.parametrize("method", ["orthant, adapted", "twisted-ep", "ess", "hmc"])
def test_stored_truths(method, case, truth, kernel):
    """Two linear data sets, and one whose answer is that of long runs, to 1e-4; 50 to 200 probabilities each."""
    X, y, X_star, log_evidence, probability = reference(case, truth)
    found = infer((DRAWN | CHAINS)[method][0], prior(kernel, X, X_star), y, rng=default_rng(12))
    gap = np.abs(found.probability - probability)
    assert (gap < 6 * found.probability_se + 1e-4).all() and found.probability_se.max() < 0.02
    if method in DRAWN:
        assert abs(found.log_evidence - log_evidence) < 6 * found.log_evidence_se + 1e-4


# --- many fits of small budgets: no bias, and errors that cover

RUNS = 100
#: Method, form, and between which levels the share of intervals that hold the truth may be.
REPEATED = {
    "orthant, hard": (Orthant(4000, count="hard"), "array", (0.93, 0.97)),
    "orthant, soft": (Orthant(4000), "array", (0.93, 0.97)),
    "orthant, adapted": (Orthant(2000, scheme="adapted"), "array", (0.92, 0.97)),
    "twisted-ep": (Twisted(points=16), "array", (0.95, 0.95)),
    "twisted-ep, low rank": (Twisted(points=16), "low rank", (0.95, 0.95)),
    "minimax-tilting": (MinimaxTilting(points=32), "array", (0.95, 0.95)),
    # few degrees of freedom, and a law that is the more skew the more the points have cancelled
    **{
        f"importance, {proposal}, {points}": (
            ImportanceSampling(256, proposal, points),
            "array",
            (0.93 if points == "random" else 0.85, 0.97),
        )
        for proposal, points in IMPORTANCE
    },
    "ess": (EllipticalSlice(960, 10, 1, temperatures=0), "array", (0.93, 0.97)),
    "hmc": (
        HamiltonianMonteCarlo(400, 10, chains=8, tuning=20, temperatures=0),
        "array",
        (0.93, 0.97),
    ),
    "control-variables": (
        ControlVariables(1000, 20, start=1, trace_fraction=0.3, adaptation_rounds=0),
        "array",
        (0.9, 0.97),
    ),
}


class Runs(NamedTuple):
    """Estimates of the evidence over the truth (RUNS,), and deviations in stated errors (RUNS,) of it and of p."""

    ratio: np.ndarray
    of_evidence: np.ndarray
    of_probability: np.ndarray


@cache
def steep(seed):
    """15 labels from the model, in one input; the answer is an integral over one latent value."""
    rng = default_rng([14, seed])
    x = 1.5 * rng.standard_normal(15)
    y = np.where(rng.standard_normal(15) < x * rng.standard_normal(), 1.0, -1.0)
    low = prior(LINEAR, x[:, None], [[0.4]], covariance="low-rank", inducing=[[1.0]])
    forms = arrays(np.outer(x, x), 0.4 * x[:, None], [0.16]) | {"low rank": low}
    return Problem(forms, y, *_answer(linear_kernel_truth(x, y, [0.4])))


@cache
def calm(seed):
    """Ten labels along a Markov chain of variance one: weights of importance sampling have a finite variance."""
    rng = default_rng([15, seed])
    x, x_star = 0.5 * np.arange(10) + 0.1 * rng.random(10), np.array([2.3])
    y = np.where(np.sin(2 * x) + rng.standard_normal(10) > 0, 1.0, -1.0)
    K, K_star = (np.exp(-np.abs(x[:, None] - other)) for other in (x, x_star))
    return Problem(arrays(K, K_star, [1.0]), y, *chain_truth(1.0, 1.0, x, y, x_star))


@cache
def runs(name):
    method, form, _ = REPEATED[name]
    ratio, z, z_of_p = [], [], []
    with pytest.MonkeyPatch.context() as patch:  # what is slow in a short chain, and not looked at
        patch.setattr(chain, "convergence", lambda *_: {"effective_samples": 1.0, "r_hat": 1.0})
        for seed in range(RUNS):
            given = calm(seed) if name.startswith("importance") else steep(seed)
            found = method.fit(given.forms[form], given.y, rng=default_rng([1, seed]))
            p = found.prediction
            z_of_p.append((p.probability[0] - given.probability[0]) / p.standard_error[0])
            if found.log_evidence is not None:
                gap = found.log_evidence - given.log_evidence
                ratio.append(np.exp(gap))
                z.append(gap / found.log_evidence_se)
    return Runs(*map(np.array, (ratio, z, z_of_p)))


@pytest.mark.parametrize("name", [name for name in REPEATED if name not in CHAINS])
def test_the_evidence_is_unbiased(name):
    """The soft count has a bias, far below its error."""
    ratio = runs(name).ratio
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1.0) < 5 * error
    assert error < 0.01, "a bias of five per cent must be seen"


@pytest.mark.parametrize("name", REPEATED)
def test_standard_errors_cover(name):
    """95 % intervals, by Student's t of 15 degrees of freedom where 16 randomisations state the error."""
    method, _, (least, most) = REPEATED[name]
    width = t.ppf(0.975, 15) if isinstance(method, Twisted) else 1.96
    low, high = binom.ppf(5e-7, RUNS, least), binom.isf(5e-7, RUNS, most)
    for z in (runs(name).of_evidence, runs(name).of_probability):
        if len(z):
            assert low <= np.count_nonzero(np.abs(z) < width) <= high
            assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5


# --- identities that hold for every method

ADAPTED = Orthant(5000, scheme="adapted")
QUICK = {
    "orthant, hard": Orthant(20_000, count="hard"),
    "orthant, adapted": ADAPTED,
    "twisted-ep": Twisted(points=64),
    "minimax-tilting": MinimaxTilting(points=256),
    "importance, ep, random": ImportanceSampling(2048),
    "importance, ep, antithetic": ImportanceSampling(2048, "ep", "antithetic"),
    "importance, laplace, sobol": ImportanceSampling(2048, "laplace", "sobol"),
    "ess": EllipticalSlice(64, 1, 1, temperatures=20, annealing_runs=300),
    "hmc": HamiltonianMonteCarlo(64, 1, 1, temperatures=10, annealing_runs=200, tuning=20),
}


@pytest.mark.parametrize("name", QUICK)
def test_evidences_of_all_labellings_sum_to_one(name):
    """Independent estimates, 5 standard errors of their sum."""
    K, rng = random_problem(n=4, beta=3.0)[0], default_rng(4)
    total, variance = 0.0, 0.0
    for labels in itertools.product((-1.0, 1.0), repeat=4):
        found = QUICK[name].fit(Prior(K), np.array(labels), rng=rng)
        total += np.exp(found.log_evidence)
        variance += (np.exp(found.log_evidence) * found.log_evidence_se) ** 2
    assert abs(total - 1.0) < 5 * np.sqrt(variance) + 1e-12 < 0.15


SYMMETRIC = QUICK | {
    "ess": EllipticalSlice(4800, 20, 2, temperatures=0),
    "hmc": HamiltonianMonteCarlo(1600, temperatures=0),
    "control-variables": ControlVariables(2000, adaptation_rounds=0),
    "ep": ExpectationPropagation(),
    "laplace": Laplace(),
    "logistic": Laplace(likelihood="logistic"),
}
#: With the same seed the classes change places to this.
SAME = {
    "twisted-ep": 1e-8,
    "minimax-tilting": 1e-10,
    "ep": 1e-10,
    "laplace": 1e-10,
    "logistic": 1e-10,
}


@pytest.mark.parametrize("change", ["classes", "order"])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_classes_and_patterns_may_change_places(name, change):
    """Within 7 standard errors of both estimates where a method draws."""
    P, y = small_problem(20)
    order = default_rng(0).permutation(20) if change == "order" else np.arange(20)
    turned, sign = Prior(P.K[np.ix_(order, order)], P.K_star[order], P.k_star_star), 1.0
    if change == "classes":
        sign = -1.0
    one = SYMMETRIC[name].fit(P, y, rng=default_rng(0))
    two = SYMMETRIC[name].fit(turned, sign * y[order], rng=default_rng(0))
    if one.log_evidence is not None:
        joint = 7 * np.hypot(one.log_evidence_se, two.log_evidence_se) + 1e-9
        allowed = SAME.get(name, joint) if change == "classes" else joint
        assert abs(one.log_evidence - two.log_evidence) < allowed
    p, q = one.prediction, two.prediction
    expected = q.probability if change == "order" else 1.0 - q.probability
    joint = 7 * np.hypot(p.standard_error, q.standard_error)
    assert (np.abs(p.probability - expected) < joint + 1e-8).all()


# --- the edges of what a covariance may be


def extreme(kind, beta):
    """A covariance (20, 20), labels, and the log evidence, which is None where it has no closed form."""
    rng = default_rng(2)
    x = rng.standard_normal(20)
    if kind in ("duplicates", "contradiction"):
        x = np.repeat(x[:10], 2)
    y = np.where(np.arange(20) % 2 == 0 if kind == "contradiction" else x > 0, 1.0, -1.0)
    K, truth = np.exp(-((x[:, None] - x) ** 2)), None
    if kind == "linear":
        K, truth = np.outer(x, x), linear_kernel_truth(np.sqrt(beta) * x, y, [0.0]).log_evidence
    if kind == "constant":
        K, plus = np.ones((20, 20)), int(np.sum(y > 0))
        truth = constant_kernel_truth(beta, plus, 20 - plus).log_evidence
    if kind == "identity":
        K = np.eye(20)
    if kind == "identity" or beta < 1:
        truth = 20 * np.log(0.5)
    return beta * K, y, truth


@pytest.mark.parametrize("beta", [1e-12, 1e6])
@pytest.mark.parametrize("kind", ["linear", "constant", "duplicates", "contradiction", "identity"])
@pytest.mark.parametrize("name", [*SYMMETRIC][1:])
# weights of antithetic points that are zero in floating point
@pytest.mark.filterwarnings("ignore:divide by zero encountered in log")
def test_singular_and_extreme_covariances(name, kind, beta):
    """Numbers are finite and probabilities are some; where the status is ok the evidence is right, too.

    Hard counts are left out: where classes contradict each other no sample is inside.
    """
    K, y, truth = extreme(kind, beta)
    found = SYMMETRIC[name].fit(Prior(K, K[:, :4], K.diagonal()[:4]), y, rng=default_rng(1))
    p = found.prediction.probability
    assert ((p >= 0) & (p <= 1)).all()
    if beta < 1:
        np.testing.assert_allclose(p, 0.5, atol=1e-4)
    if found.log_evidence is not None:
        assert np.isfinite(found.log_evidence) and not np.isnan(found.log_evidence_se)
        gap = abs(found.log_evidence - (found.log_evidence if truth is None else truth))
        assert gap < 7 * found.log_evidence_se + 1e-4 or found.status != OK or name in APPROXIMATE
        assert beta > 1 or gap < 1e-4


APPROXIMATE = ("ep", "laplace", "logistic")


# --- what a status says

ROUGH, ROUGHER, CALM = (0.5, 10.0), (0.5, 50.0), (1.0, 0.3)  # length scale and variance
STATUSES = [
    (ImportanceSampling(proposal="laplace"), 60, ROUGH, UNTRUSTED),
    (ImportanceSampling(), 10, CALM, OK),
    (ImportanceSampling(24), 10, CALM, NOT_CONVERGED),
    (MinimaxTilting(points=4), 40, (0.5, 3.0), NOT_CONVERGED),
    (Orthant(100_000), 80, (0.5, 0.5), OK),
    (Orthant(100_000), 80, ROUGHER, NOT_CONVERGED),
    (Orthant(1000, scheme="adapted"), 80, (0.5, 0.5), OK),
    (Orthant(1000, scheme="adapted"), 80, ROUGHER, NOT_CONVERGED),
    (EllipticalSlice(64, 1, 1, temperatures=0), 30, ROUGH, NOT_CONVERGED),
    (HamiltonianMonteCarlo(64, 1, 1, temperatures=0, tuning=10), 30, ROUGH, NOT_CONVERGED),
    (ControlVariables(64, adaptation_rounds=0), 30, (1.0, 3.0), NOT_CONVERGED),
]


@pytest.mark.parametrize(("method", "n", "kernel", "status"), STATUSES, ids=str)
def test_a_status_is_earned(method, n, kernel, status):
    K, y = random_problem(n=n, alpha=kernel[0], beta=kernel[1])
    found = method.fit(Prior(K), y, rng=default_rng(9))
    assert found.status == status
    said = found.diagnostics
    effective = said.get("effective_eves", said.get("effective_samples"))
    settled = effective >= MIN_EFFECTIVE and said.get("r_hat", 1.0) < 1.05
    assert said["k_hat"] > MAX_K_HAT if status == UNTRUSTED else settled == (status == OK)

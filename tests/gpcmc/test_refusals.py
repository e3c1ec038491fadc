"""What is refused, in one table: for each function, changes of arguments that are good, and what is said of them."""

import csv
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from gpcmc import TruncatedNormal, orthant_probability, rectangle_probability
from gpcmc import _validation as validation
from gpcmc.chains.annealing import annealed_importance_sampling
from gpcmc.chains.hyperparameter_chains import run_chains
from gpcmc.chains.hyperparameters import HyperparameterPrior, model_of
from gpcmc.covariance import LowRank
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import (
    METHODS,
    EllipticalSlice,
    HamiltonianMonteCarlo,
    MulticlassLaplace,
    PseudoMarginal,
)
from gpcmc.orthant import truths

ONE, X3, Y3 = np.ones((1, 1)), np.array([[0.0], [0.7], [1.2]]), np.array([1.0, -1.0, 1.0])
TWO, EACH = (HyperparameterPrior((2.0, 3.0), (0.4, 2.0), count) for count in (1, 3))


def draws(size, method, **box):
    return TruncatedNormal(**box).rvs(size, rng=0, method=method)


def several_classes(labels, **options):
    return MulticlassLaplace(**options).fit(Prior(np.eye(3)), labels)


def pseudo_marginal(kernel, X, prior):
    return PseudoMarginal(prior=prior).fit(Prior(np.eye(3), kernel=kernel, X=X), Y3, rng=0)


#: Each function, and arguments that it takes.
GOOD = {
    "orthant_probability": (orthant_probability, {"cov": np.eye(2), "samples": 1000, "rng": 0}),
    "rectangle_probability": (
        rectangle_probability,
        {"lower": [0, 0, 0], "upper": [1, 1, 1], "cov": np.eye(3)},
    ),
    "interval": (rectangle_probability(0, np.inf, cov=1.0).interval, {}),
    "truncated draws": (
        draws,
        {"lower": 0, "upper": 1, "cov": np.eye(2), "size": 1, "method": "exact"},
    ),
    "truncated moments": (TruncatedNormal(0, 1, cov=np.eye(2)).mean, {}),
    "prior": (prior, {"kernel": rbf(0.5, 3.0), "X": ONE, "X_star": ONE}),
    "prior, low rank": (
        prior,
        {"kernel": rbf(0.5, 3.0), "X": np.eye(3, 2), "covariance": "low-rank"},
    ),
    "factors": (LowRank, {"F": np.ones((3, 1)), "D": np.ones(3)}),
    "labels": (
        lambda y: validation.check_labels("y", y, 2),
        {"y": [1, -1]},
    ),
    "cross-covariances": (
        lambda **given: validation.check_cross_covariance(
            "K_star", given["K_star"], "k_star_star", given["k_star_star"], 2
        ),
        {"K_star": np.zeros((2, 1)), "k_star_star": np.ones(1)},
    ),
    "prior of hyperparameters": (HyperparameterPrior, {"shape": (1.0, 1.0), "rate": (1.0, 1.0)}),
    "model of hyperparameters": (model_of, {"X": X3, "y": Y3, "prior": TWO}),
    "chains over hyperparameters": (run_chains, {"X": X3, "y": Y3, "rng": 0}),
    "annealing": (
        lambda **given: annealed_importance_sampling(np.eye(3), Y3, rng=0, **given),
        {"temperatures": 3, "runs": 4},
    ),
    "several classes": (several_classes, {"labels": [0, 1, 2]}),
    "pseudo-marginal": (
        pseudo_marginal,
        {"kernel": ConstantKernel(1.0) * RBF(1.0), "X": X3, "prior": TWO},
    ),
}
REFUSED = {
    "orthant_probability": [
        ({"cov": np.ones((2, 3))}, "cov must be square"),
        ({"cov": np.array([[1.0, 2.0], [2.0, 1.0]])}, "cov must be positive definite.*2"),
        ({"cov": np.array([[1.0, 0.5], [0.4, 1.0]])}, "cov must be symmetric"),
        ({"cov": np.array([[1.0, np.nan], [np.nan, 1.0]])}, "cov must be finite"),
        ({"samples": 0}, "samples must be an integer >= 1"),
        ({"samples": 10.5}, "samples must be an integer >= 1"),
        ({"count": "medium"}, "count must be one of hard, soft"),
        ({"scheme": "best"}, "scheme must be one of bootstrap, adapted"),
        ({"runs": 0}, "runs must be an integer >= 1"),
        ({"runs": 501}, "samples must be at least 2 for each of the runs"),
        ({"mean": [0.0, 1.0, 2.0]}, r"mean must be a number or of shape \(2,\)"),
        ({"mean": "a"}, "mean must be real numbers"),
        ({"cov": np.eye(2) + 0j}, "cov must be real numbers; got complex"),
        ({"lower": [[0.0, 0.0]]}, "lower must have 1 dimension"),
        ({"lower": np.inf}, "lower must be finite"),
        ({"samples": 10**14}, "samples must be at most 2e.11 .1,000,000 populations of 200,000"),
        ({"samples": 10**10, "runs": 1}, "samples must be fewer than 2,147,483,640 for each"),
        ({"samples": 10**9, "runs": 10**8}, "runs must be at most 1,000,000; got 1e.08"),
        ({"rng": -1}, "rng must be a numpy.random.Generator, .* a seed .* None or a RandomState"),
        ({"rng": "seed"}, "rng must be a numpy.random.Generator"),
        ({"rng": True}, "rng must be a numpy.random.Generator"),
    ],
    "rectangle_probability": [
        ({"lower": [0, np.nan, 0]}, "lower must not be NaN; got NaN at index 1"),
        ({"upper": np.nan}, "upper must not be NaN"),
        ({"lower": [0, 0, 2]}, "lower must not exceed upper; at index 2 they are 2 and 1"),
        ({"lower": [0, 0]}, r"lower must be a number or of shape \(3,\); got shape \(2,\)"),
        ({"lower": "low"}, "lower must be real numbers"),
        ({"upper": 1j}, "upper must be real numbers; got complex"),
        ({"mean": np.inf}, "mean must be finite; got inf at index 0"),
        ({"cov": np.ones((3, 2))}, "cov must be square"),
        ({"cov": np.full((3, 3), np.nan)}, "cov must be finite"),
        ({"cov": np.diag([1.0, -1, 1])}, "cov must have no negative variance; got -1 at index 1"),
        ({"cov": 1.6 * np.eye(3) - 0.6}, "eigenvalue -0.2. .*multiply the variances by 1.22"),
        ({"cov": np.eye(3) + 0.5 * np.eye(3, k=1)}, "cov must be symmetric"),
        ({"cov": np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1.0]])}, "variance zero and covariance 1"),
        ({"method": "genz"}, "method must be one of auto"),
        ({"tolerance": 0}, "tolerance must be"),
        ({"max_samples": 0}, "max_samples must be"),
        ({"confidence": 1.0}, "confidence must be a number between 0 and 1"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"rng": "seed"}, "rng must be"),
        ({"rng": -1}, "rng must be"),
    ],
    "interval": [
        ({"kind": "exact"}, "kind must be one of"),
        ({"confidence": 2.0}, "confidence must be"),
    ],
    "truncated draws": [
        ({"lower": 1, "upper": 1}, "leave a probability above zero"),
        ({"size": -1}, "size must be an integer >= 0"),
        ({"method": "slice"}, "method must be one of exact, gibbs"),
    ],
    "truncated moments": [
        ({"points": 100}, "points must be a power of two"),
    ],
    "prior": [
        ({"X": [[np.nan]], "X_star": [[1.0]]}, "X must be finite"),
        ({"X": [[1.0]], "X_star": [[1.0, 2.0]]}, "X_star must have 1 columns"),
        ({"X": [1.0], "X_star": [[1.0]]}, "X must have 2 dimension"),
        ({"X": [["a"]], "X_star": [[1.0]]}, "X must be real numbers"),
        ({"X": np.empty((0, 1)), "X_star": [[1.0]]}, "X must not be empty"),
        ({"X": [[1.0]], "X_star": np.empty((0, 1))}, "X_star must not be empty"),
    ],
    "prior, low rank": [
        ({"tolerance": 0.0}, "tolerance must be a finite number > 0"),
        ({"tolerance": 1.0}, "tolerance is the share"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"tolerance": "1e-4"}, "tolerance"),
        ({"max_rank": 0}, "max_rank must be an integer >= 1"),
        ({"X_star": np.ones((2, 3))}, "X_star must have 2 columns"),
        ({"inducing": np.ones((2, 1))}, "inducing must have 2 columns"),
        ({"covariance": "banded"}, "covariance must be one of"),
    ],
    "factors": [
        ({"F": np.ones((3, 1)), "D": -np.ones(3)}, "D must not be negative"),
        ({"F": np.ones((3, 1)), "D": np.ones(2)}, "one row a pattern"),
        ({"F": np.ones((3, 0)), "D": np.ones(3)}, "F must have a column"),
        ({"F": np.full((3, 1), np.nan), "D": np.ones(3)}, "F must be finite"),
    ],
    "labels": [
        (
            {"y": [0, 1]},
            r"y must hold -1 and \+1 only; got values \{0, 1\} \(use 2\*y - 1 for 0/1\)",
        ),
        ({"y": [1, 1, 1]}, r"y must have shape \(2,\); got \(3,\)"),
        ({"y": [[1, 1]]}, "y must have 1 dimension"),
        ({"y": [1, np.nan]}, "y must be finite"),
        ({"y": ["a", "b"]}, "y must be real numbers"),
        ({"y": 1.0}, "y must have 1 dimension"),
    ],
    "cross-covariances": [
        (
            {"K_star": np.zeros((3, 2)), "k_star_star": np.ones(2)},
            r"K_star must have shape \(train, test\) = \(2, 2\)",
        ),
        ({"K_star": np.zeros((2, 3)), "k_star_star": np.ones(2)}, r"K_star must have shape"),
        (
            {"K_star": np.zeros((2, 1)), "k_star_star": -np.ones(1)},
            "k_star_star must not be negative",
        ),
        ({"K_star": np.full((2, 1), np.inf), "k_star_star": np.ones(1)}, "K_star must be finite"),
        ({"K_star": np.zeros(2), "k_star_star": np.ones(1)}, "K_star must have 2 dimension"),
    ],
    "prior of hyperparameters": [
        ({"shape": (-1.0, 1.0)}, "shape must be a finite number > 0"),
        ({"shape": (0.0, 1.0)}, "shape must be a finite number > 0"),
        ({"shape": (np.nan, 1.0)}, "shape must be a finite number > 0"),
        ({"shape": (1.0,)}, "shape must be two numbers"),
        ({"length_scales": 0}, "length_scales must be an integer"),
    ],
    "model of hyperparameters": [
        ({"X": np.zeros((3, 4)), "prior": EACH}, "prior must have one length scale, or 4"),
        ({"jitter": 1.0}, "jitter must be at least 0"),
    ],
    "chains over hyperparameters": [
        ({"rng": None}, "rng must be"),
        ({"y": [0.0, 1.0, 1.0]}, "y must hold -1 and"),
        ({"X": np.zeros((0, 2)), "y": []}, "X must not be empty"),
    ],
    "annealing": [
        ({"transition": EllipticalSlice(), "runs": 1}, "runs must be at least 2"),
        ({"transition": HamiltonianMonteCarlo(), "runs": 1}, "runs must be at least 2"),
        (
            {"transition": EllipticalSlice(), "temperatures": 0},
            "temperatures must be an integer >= 1; got 0",
        ),
        (
            {"transition": HamiltonianMonteCarlo(), "temperatures": 0},
            "temperatures must be an integer >= 1; got 0",
        ),
    ],
    "several classes": [
        ({"labels": [0, 2, 2]}, "y must hold 3 labels 0, 1, ..., C - 1"),
        ({"labels": [0, 0, 0]}, "y must hold 3 labels 0, 1, ..., C - 1"),
        ({"labels": [0, 1]}, "y must hold 3 labels 0, 1, ..., C - 1"),
        ({"labels": [1, 2, 3]}, "y must hold 3 labels 0, 1, ..., C - 1"),
        ({"points": 100}, "points must be a power of two; got 100"),
    ],
    "pseudo-marginal": [
        ({"kernel": RBF(1.0)}, "kernel must be ConstantKernel"),
        ({"kernel": ConstantKernel() * RBF([1.0, 2.0, 1.0])}, "kernel must be ConstantKernel"),
        (
            {"kernel": ConstantKernel(1.0) * RBF(1.0) + WhiteKernel()},
            "kernel must be ConstantKernel",
        ),
        ({"kernel": None}, "kernel must be ConstantKernel"),
        (
            {"kernel": ConstantKernel() * RBF([1.0, 1.0]), "X": np.eye(3, 2), "prior": TWO},
            "as many length scales as the kernel, 2; got 1",
        ),
        ({"X": np.eye(3), "prior": EACH}, "as many length scales as the kernel, 1; got 3"),
    ],
}
CASES = [(name, *row) for name, rows in REFUSED.items() for row in rows]
BOTH = [("prior, low rank", *row) for row in REFUSED["prior"]]


@pytest.mark.parametrize(("name", "change", "message"), CASES + BOTH)
def test_a_bad_argument_is_refused_by_name(name, change, message):
    function, good = GOOD[name]
    with pytest.raises(ValueError, match=message):
        function(**good | change)


#: Of the closed forms, by arguments in order.
CLOSED_FORMS = [
    (truths.one_factor_log_probability, [[0.5, 1.0]], "d must hold loadings strictly"),
    (truths.one_factor_log_probability, [[]], "d must hold loadings strictly"),
    (truths.one_factor_log_probability, [[np.nan]], "d must be finite"),
    (truths.one_factor_log_probability, [[[0.5]]], "d must have 1 dimension"),
    (truths.linear_kernel_truth, [[1.0], [0.0], [1.0]], "y must hold -1 and \\+1"),
    (truths.linear_kernel_truth, [[], [], [1.0]], "x must hold at least one"),
    (truths.constant_kernel_truth, [-1.0, 2, 2], "beta must be a finite number > 0"),
    (truths.constant_kernel_truth, [1.0, 2, 0], "n2 must be an integer >= 1"),
    (truths.two_dimensional, [1.0], "rho must lie strictly"),
    (truths.two_dimensional, [np.nan], "rho must lie strictly"),
    (truths.three_dimensional, [np.eye(2)], "R must be a 3 x 3 positive definite"),
    (truths.three_dimensional, [np.ones((3, 3))], "R must be a 3 x 3 positive definite"),
    (truths.equicorrelated_half, [0], "n must be an integer >= 1"),
    (truths.rectangle_rule_log_probability, [[0.5], 0.0, 9.0], "du must be a finite"),
    (truths.rectangle_rule_log_probability, [[0.5], 0.1, np.inf], "limit must be a"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), CLOSED_FORMS)
def test_closed_forms_refuse_what_has_none(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


#: Names of methods, options that these refuse, and what they say.
with Path(__file__).with_name("refused_options.csv").open(encoding="utf-8") as file:
    OPTIONS = list(csv.reader(file))[1:]


@pytest.mark.parametrize(("methods", "options", "message"), OPTIONS)
def test_options_that_cannot_be_are_refused_when_a_method_is_made(methods, options, message):
    for name in methods.split():
        with pytest.raises(ValueError, match=message):
            METHODS[name](**yaml.safe_load(options))

"""Any input to a public function ends in a right answer, or in an error that names the argument.

A call that is known to work has one or two of its arguments replaced by anything. FUZZ_EXAMPLES=2000 draws that many
examples of each, with a new seed.
"""

import os
import re
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import log_ndtr

import gpcmc
from gpcmc.gp import rbf
from gpcmc.inference import ConvergenceError
from gpcmc.orthant import ExtinctionError
from gpcmc.rectangle import AcceptanceError

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
HOUSE = settings(
    max_examples=EXAMPLES or 50,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
#: What is raised where the arguments are good and the method is not: each says what to do.
FAILURES = (ConvergenceError, ExtinctionError, AcceptanceError)
#: An error of one may be seen from another: a limit is on the wrong side of the mean, a variance is zero.
TOGETHER = {"lower", "upper", "mean", "cov"}
#: scikit-learn checks X and y of an estimator, and its own tests ask for these words.
SKLEARN = r"\b(X|y|array|arrays|sample|samples|features?|target|label|labels|classes|numbers?|data|float)\b"
WITH_INPUTS = ("compare", "fit", "predict_proba", "OrdinalGaussianProcessClassifier")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e-200, 1e200, -1e308, np.inf, -np.inf, np.nan]
FLOATS = st.one_of(st.sampled_from(SPECIAL), st.floats(-10, 10), st.floats())
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
# an integer that is large is a long computation, and no mistake
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 64), FLOATS, st.text(max_size=5), st.complex_numbers(),
    st.just(object()), st.just({}), st.just(b"1"), st.just(np.float32(0.5)), st.just(np.int8(3)),
)  # fmt: skip
TABLES = st.one_of(
    arrays.arrays(np.float64, SHAPES, elements=FLOATS),
    arrays.arrays(np.float64, st.sampled_from([(3,), (3, 3)]), elements=FLOATS),
    arrays.arrays(np.float32, SHAPES, elements=st.floats(-4, 4, width=32)),
    arrays.arrays(np.int64, SHAPES, elements=st.integers(-3, 3)),
    arrays.arrays(np.complex128, SHAPES),
    arrays.arrays("U3", SHAPES),
    arrays.arrays(object, SHAPES, elements=SCALARS),
    st.lists(st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=4),
)
WILD = st.one_of(SCALARS, TABLES)
# positive semidefinite, of any size
COVARIANCES = st.tuples(
    arrays.arrays(np.float64, (3, 3), elements=st.floats(-2, 2)), st.integers(-180, 180)
).map(lambda made: made[0] @ made[0].T * 2.0 ** made[1])


class Call(NamedTuple):
    """A function, arguments with which it works, and a check of what it returns."""

    function: object
    arguments: dict
    check: object


def is_estimate(found):
    assert np.all(found.log_probability <= 0) and np.all(found.standard_error >= 0)
    assert not np.isnan([found.log_probability, found.standard_error]).any()


def is_finite(found):
    assert np.isfinite(found).all()


def is_moment(found):
    is_finite(found.value)
    is_finite(found.standard_error)


def is_interval(found):
    assert found[0] <= found[1] <= 0


def is_fitted(found):
    assert found.posterior_.status
    is_distribution(found.predict_proba(found._X_train))


def is_distribution(p):
    is_finite(p)
    assert ((p >= 0) & (p <= 1)).all() and np.allclose(p.sum(axis=1), 1.0)


COV = 0.5 + 0.5 * np.eye(3)
X, Y = np.array([[-1.0, 0.5], [0.0, 1.0], [1.0, -1.0], [2.0, 0.0]]), np.array([0, 0, 1, 1])
OPTIONS = {
    "kernel": rbf(1.0, 2.0), "inference": "ep", "optimizer": None, "n_restarts_optimizer": 0, "random_state": 0,
}  # fmt: skip
OPTIONS_OF_EACH = {key: OPTIONS[key] for key in OPTIONS if key != "kernel"}


def fit(X, y, **options):
    return gpcmc.GaussianProcessClassifier(**options).fit(X, y)


def fit_ordered(X, y, **options):
    return gpcmc.OrdinalGaussianProcessClassifier(**options).fit(X, y)


def truncated(lower, upper, mean, cov):
    return gpcmc.TruncatedNormal(lower, upper, mean, cov).rvs(4, rng=0)


FITTED = fit(X, Y, **OPTIONS)
FOUND = gpcmc.rectangle_probability(-1.0, 2.0, cov=COV, max_samples=4352, rng=0)
INSIDE = gpcmc.TruncatedNormal(-1.0, 2.0, cov=COV)


def of_a_field(kernel, X, neighbours):
    """The probability that all values of a field at inputs are positive."""
    cov = gpcmc.FieldCovariance(kernel, X, neighbours)
    return gpcmc.rectangle_probability(0.0, np.inf, cov=cov, tolerance=0.1, max_samples=4352, rng=0)


CALLS = {
    "orthant_probability": Call(
        gpcmc.orthant_probability,
        {"cov": COV, "samples": 64, "count": "soft", "scheme": "bootstrap", "mean": 0.0, "lower": 0.0,
         "runs": None, "rng": np.random.default_rng(0)},
        is_estimate,
    ),
    "rectangle_probability": Call(
        gpcmc.rectangle_probability,
        {"lower": -1.0, "upper": 2.0, "mean": 0.0, "cov": COV, "df": None, "method": "auto", "tolerance": 0.1,
         "max_samples": 4352, "confidence": 0.95, "n_jobs": 1, "rng": 0},
        is_estimate,
    ),
    "FieldCovariance": Call(
        of_a_field, {"kernel": rbf(1.0, 2.0), "X": X, "neighbours": 2}, is_estimate
    ),
    "interval": Call(FOUND.interval, {"confidence": 0.9, "kind": "guaranteed"}, is_interval),
    "gradient": Call(FOUND.gradient, {"points": 64}, lambda found: is_finite(found.cov)),
    "TruncatedNormal": Call(
        truncated, {"lower": -1.0, "upper": 2.0, "mean": 0.0, "cov": COV}, is_finite
    ),
    "rvs": Call(
        INSIDE.rvs, {"size": 2, "rng": 0, "method": "exact", "max_draws": 4096, "sweeps": 2}, is_finite
    ),
    "mean": Call(INSIDE.mean, {"points": 64, "rng": 0}, is_moment),
    "cov": Call(INSIDE.cov, {"points": 64, "rng": 0}, is_moment),
    "logcdf": Call(INSIDE.logcdf, {"x": np.zeros(3), "rng": 0}, lambda found: None),
    "quantile": Call(INSIDE.quantile, {"p": 0.5, "tail": "lower", "rng": 0}, is_finite),
    "OrdinalGaussianProcessClassifier": Call(
        fit_ordered,
        {"X": X, "y": Y, "kernel": rbf(1.0, 2.0), "inference": "ep", "categories": [0, 1], "edges": [0.0],
         "optimizer": None, "random_state": 0},
        is_fitted,
    ),
    "fit": Call(fit, {"X": X, "y": Y, **OPTIONS}, is_fitted),
    "compare": Call(
        gpcmc.compare, {"kernels": [rbf(1.0, 2.0), rbf(2.0, 1.0)], "X": X, "y": Y, **OPTIONS_OF_EACH},
        lambda found: is_finite(found.log_bayes_factor),
    ),
    "predict_proba": Call(FITTED.predict_proba, {"X": X}, is_distribution),
    "log_marginal_likelihood": Call(
        FITTED.log_marginal_likelihood, {"theta": FITTED.kernel_.theta}, is_finite
    ),
}  # fmt: skip


def test_every_public_name_is_tried():
    results = {
        "Comparison",
        "OrthantEstimate",
        "RectangleEstimate",
        "RectangleEstimates",
    }  # of functions that are
    tried = {*CALLS, "GaussianProcessClassifier"}
    assert set(gpcmc.__all__) - results <= tried


# scikit-learn's own, of its look at X and y
@pytest.mark.filterwarnings(
    "ignore:A column-vector y", "ignore:invalid value encountered in reduce"
)
@pytest.mark.parametrize("name", CALLS)
@HOUSE
@given(data=st.data())
def test_anything_ends_in_an_answer_or_in_an_error_that_names_the_argument(name, data):
    call = CALLS[name]
    names = st.lists(st.sampled_from(sorted(call.arguments)), min_size=1, max_size=2, unique=True)
    replaced = {
        key: data.draw(st.one_of(WILD, COVARIANCES) if key == "cov" else WILD, label=key)
        for key in data.draw(names, label="replaced")
    }
    # a text may be the name of another method, which is not what is tried here
    assume(
        not any(
            value in gpcmc.inference.METHODS
            for value in replaced.values()
            if isinstance(value, str)
        )
    )
    try:
        found = call.function(**{**call.arguments, **replaced})
    except FAILURES:
        return
    except (TypeError, ValueError) as raised:
        error = str(raised)
    else:
        call.check(found)
        return
    words = [*replaced, *(TOGETHER if replaced.keys() & TOGETHER else ())]
    if name in WITH_INPUTS and replaced.keys() & {"X", "y"}:
        words.append(SKLEARN)
    assert re.search("|".join(rf"\b{word}\b" for word in words), error), error


@HOUSE
@given(
    limits=arrays.arrays(
        np.float64,
        (2, 3),
        elements=st.one_of(st.floats(-30, 30), st.sampled_from([np.inf, -np.inf])),
    ),
    mean=arrays.arrays(np.float64, 3, elements=st.floats(-5, 5)),
    sd=arrays.arrays(np.float64, 3, elements=st.floats(0.1, 10)),
    power=st.integers(-400, 400),
)
def test_independent_coordinates_are_a_product_at_every_scale(limits, mean, sd, power):
    """P(lower < v < upper) of independent coordinates, in units of any power of two."""
    lower, upper = np.sort(limits, axis=0)
    assume((lower < upper).all())
    a, b = (lower - mean) / sd, (upper - mean) / sd
    a, b = np.where(a > 0, -b, a), np.where(a > 0, -a, b)  # by symmetry, to the accurate tail
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(np.isneginf(a), -np.inf, log_ndtr(a) - log_ndtr(b))
        truth = (log_ndtr(b) + np.log1p(-np.exp(gap))).sum()
    assume(truth > -1e5 and (gap < -1e-6).all())
    unit = 2.0**power
    found = gpcmc.rectangle_probability(
        lower * unit, upper * unit, mean=mean * unit, cov=np.diag((sd * unit) ** 2)
    )
    assert found.samples == 0
    assert abs(found.log_probability - truth) <= 1e-8 * (1.0 + abs(truth))

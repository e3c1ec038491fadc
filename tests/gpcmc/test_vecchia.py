"""Rectangles of a field's values: factors against dense linear algebra, probabilities against closed forms and arrays.

Estimates are compared by six standard errors of both: a false alarm in some 10^7 comparisons of normal errors, and in
some 10^4 of Student's t for the 16 randomisations.
"""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    WhiteKernel,
)

from gpcmc import FieldCovariance, TruncatedNormal, rectangle_probability
from gpcmc.covariance.factor import DenseFactor
from gpcmc.covariance.kernels import evaluate
from gpcmc.rectangle import field
from gpcmc.rectangle.field import _Field, _resampled
from gpcmc.rectangle.tilt import minimax_tilt
from gpcmc.rectangle.vecchia import PrecisionFactor, VecchiaFactor, earlier

KERNEL = ConstantKernel(2.0) * Matern(0.3, nu=1.5) + WhiteKernel(0.1)
SAMPLED = ["auto", "minimax-tilting", "twisted-ep"]


@pytest.fixture
def no_array(monkeypatch):
    """Regress however few values there are."""
    monkeypatch.setattr(field, "DENSE", 0)


def places(n, d=2, seed=0):
    return np.random.default_rng(seed).random((n, d))


def mixed(n, seed=1):
    """Limits of all kinds: a lower one, an upper one, both, none."""
    rng = np.random.default_rng(seed)
    lower, upper = -1.0 - rng.random(n), 1.0 + rng.random(n)
    kind = np.arange(n) % 4
    lower[(kind == 1) | (kind == 3)] = -np.inf
    upper[(kind == 0) | (kind == 3)] = np.inf
    return lower, upper


def close(one, other):
    """Whether two estimates agree, with what the first says of its neighbours."""
    rest = one.diagnostics.get("correction_rest", 0.0)
    error = np.hypot(one.standard_error, other.standard_error)
    return abs(one.log_probability - other.log_probability) < 6.0 * error + rest


def whole(n=60, most=59):
    """A field and its values' covariance in the order of the factors, with signs."""
    lower, upper = mixed(n)
    limited = np.isfinite(lower) | np.isfinite(upper)
    X, lower, upper = places(n)[limited], lower[limited], upper[limited]
    one = _Field.of(KERNEL, X, lower, upper, most)
    R = evaluate(KERNEL, one.K.X) * one.signs[:, None] * one.signs
    return one, R


def test_with_all_earlier_neighbours_a_factor_is_the_dense_one():
    one, R = whole()
    K, low, high = one._standing
    made, dense = VecchiaFactor.of(K), DenseFactor.of(R.copy())
    x, w = np.random.default_rng(2).random((2, len(R)))
    for found, expected in [
        (made @ x, dense @ x),
        (made @ np.eye(len(R)), dense @ np.eye(len(R))),
        (made.transposed(x), dense.transposed(x)),
        (made.gram() @ x, dense.gram() @ x),
        (made.gram().solve(w, x), dense.gram().solve(w, x)),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    ours, theirs = (minimax_tilt(one, low, high) for one in (made, dense))
    assert ours.converged and ours.log_bound == pytest.approx(theirs.log_bound, abs=1e-6)


def test_the_factor_of_a_precision_is_the_dense_one_in_its_order():
    one, R = whole()
    K = one._standing[0]
    made = PrecisionFactor.of(K.prior, K.precision)
    here = np.ix_(made.order, made.order)
    dense = DenseFactor.of(R[here].copy())
    rng = np.random.default_rng(3)
    nu, tau, x = rng.standard_normal(len(R)), rng.random(len(R)), rng.standard_normal(len(R))
    ours, theirs = made.sited(nu, tau), dense.sited(nu, tau)
    pairs = [(made @ x, dense @ x), (made.transposed(x), dense.transposed(x)), (made.d, dense.d)]
    pairs += [(ours.mean, theirs.mean), (ours.slope, theirs.slope)]
    pairs += [(ours.factor @ x, theirs.factor @ x)]
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert ours.log_constant == pytest.approx(theirs.log_constant, abs=1e-6)


@pytest.mark.parametrize("kind", [VecchiaFactor, PrecisionFactor])
def test_blocks_draw_what_the_factor_multiplies(kind):
    """Innovations placed block after block make L e, whatever the number of neighbours."""
    K = whole(90, 5)[0]._standing[0]
    factor = kind.of(K) if kind is VecchiaFactor else kind.of(K.prior, K.precision)
    e = np.random.default_rng(4).standard_normal((len(factor), 3))
    state, seen = factor.begin(3), np.empty_like(e)
    for k, here in enumerate(factor.parts):
        seen[here] = factor.ahead(k, state) + factor.within(k) @ e[here]
        place = factor.place(k, state)
        place[...] = e[here]
        factor.follow(k, state, place)
    expected = factor @ e
    np.testing.assert_allclose(seen * factor.d[:, None], expected, atol=1e-10)
    kept = state if kind is VecchiaFactor else state[::-1]
    np.testing.assert_allclose(kept, expected, atol=1e-10)


def test_earlier_neighbours_are_the_nearest_and_of_equal_ones_the_first():
    X = places(300, seed=5)
    index, counts = earlier(X, 7)
    assert counts.tolist() == [min(i, 7) for i in range(300)]
    for i in (1, 5, 8, 299):
        nearest = np.argsort(np.linalg.norm(X[:i] - X[i], axis=1))[:7]
        assert index[i, : counts[i]].tolist() == nearest.tolist()
    line = np.array([0.0, 2.0, 1.0, 3.0])[:, None]
    assert earlier(line, 1)[0].tolist() == [[0], [0], [0], [1]]


@pytest.mark.parametrize("method", SAMPLED)
def test_equal_correlations_have_the_closed_form(method, no_array):
    """P(v > 0) = 1 / (n + 1), where correlations are one half."""
    n = 40
    X = 1e-6 * places(n)  # nearly in one place, where the field has correlations of one
    cov = FieldCovariance(RBF(1.0) + WhiteKernel(1.0), X, neighbours=n - 1)
    found = rectangle_probability(0.0, np.inf, cov=cov, method=method, tolerance=0.02, rng=1)
    assert found.method in (method, "minimax-tilting") and found.samples > 0
    assert abs(found.log_probability + np.log(n + 1)) < 6 * found.standard_error
    assert found.diagnostics["correction_rest"] == 0.0  # all earlier values are neighbours


def along(rho, n, limit):
    """Log P(v > limit) of n values of an autoregression, by quadrature from value to value."""
    node, weight = np.polynomial.legendre.leggauss(300)
    x = limit + 0.5 * (9.0 - limit) * (node + 1.0)
    w = 0.5 * (9.0 - limit) * weight
    step = norm.pdf(x[None], rho * x[:, None], np.sqrt(1.0 - rho**2)) * w
    log_p, density = 0.0, norm.pdf(x) * w
    for k in range(n):
        log_p += np.log(density.sum())
        density = density / density.sum()
        density = density @ step if k < n - 1 else density
    return log_p


@pytest.mark.parametrize(("n", "rho", "limit"), [(700, 0.7, -1.5), (2000, 0.5, -2.0)])
def test_a_markov_process_needs_one_neighbour(n, rho, limit):
    x = np.random.default_rng(6).permutation(n).astype(float)[:, None]
    cov = FieldCovariance(Matern(-1.0 / np.log(rho), nu=0.5), x, neighbours=1)
    found = rectangle_probability(
        limit, np.inf, cov=cov, method="twisted-ep", tolerance=0.05, rng=2
    )
    assert found.status == "ok" and found.diagnostics["correction"] == 0.0
    assert abs(found.log_probability - along(rho, n, limit)) < 6 * found.standard_error


@pytest.mark.parametrize("method", SAMPLED)
def test_limits_of_all_kinds_and_a_mean(method, no_array):
    lower, upper = mixed(160)
    mean = 0.2 * np.sin(np.arange(160.0))
    X = places(160)
    options = {"mean": mean, "tolerance": 0.02, "rng": 3}
    cov = FieldCovariance(KERNEL, X, 20)
    found = rectangle_probability(lower, upper, cov=cov, method=method, **options)
    truth = rectangle_probability(lower, upper, cov=evaluate(KERNEL, X), **options)
    assert found.status == truth.status == "ok"
    assert found.diagnostics["rank"] == 120 and close(found, truth)


def test_separation_of_variables(no_array):
    X = places(40)
    options = {"method": "separation", "tolerance": 0.03, "rng": 4}
    found = rectangle_probability(-2.0, 2.0, cov=FieldCovariance(KERNEL, X), **options)
    truth = rectangle_probability(-2.0, 2.0, cov=evaluate(KERNEL, X), **options)
    assert found.method == "separation" and close(found, truth)


@pytest.mark.parametrize(("lower", "upper"), [(-0.5, np.inf), (-1.5, 1.5)])
def test_what_few_neighbours_leave_out_is_corrected_for(lower, upper, no_array):
    X = places(300, seed=7)
    cov = FieldCovariance(KERNEL, X, neighbours=10)
    found = rectangle_probability(lower, upper, cov=cov, tolerance=0.03, rng=5)
    truth = rectangle_probability(lower, upper, cov=evaluate(KERNEL, X), tolerance=0.03, rng=6)
    error = np.hypot(found.standard_error, truth.standard_error)
    assert abs(found.diagnostics["correction"]) > 8 * error  # without it the test would fail
    assert found.diagnostics["correction_rest"] < 0.2 and close(found, truth)


def test_a_rest_beyond_the_tolerance_is_a_status_and_widens_the_interval(no_array, monkeypatch):
    monkeypatch.setattr("gpcmc.covariance.sparse_correction._EXACT", 0)  # as for many values
    cov = FieldCovariance(KERNEL, places(300, seed=7), neighbours=3)
    found = rectangle_probability(-0.5, np.inf, cov=cov, tolerance=0.2, rng=5)
    rest = found.diagnostics["correction_rest"]
    assert rest > 0.2 and found.status == "covariance too rough"
    low, high = found.interval()
    assert low < found.log_probability - rest and high > found.log_probability + rest


def test_without_sites_nothing_is_known_of_what_is_left_out(no_array, monkeypatch):
    monkeypatch.setattr(_Field, "guide", None)
    cov = FieldCovariance(KERNEL, places(30), neighbours=5)
    found = rectangle_probability(-0.5, np.inf, cov=cov, tolerance=0.2, rng=5)
    assert found.status == "covariance too rough"
    assert found.diagnostics["correction_rest"] == np.inf
    with pytest.raises(ValueError, match="leave expectation propagation no proposal"):
        rectangle_probability(-0.5, np.inf, cov=cov, method="twisted-ep", rng=5)


def test_the_tail_of_a_method_decides_for_the_other(no_array):
    """The box: minimax tilting has weights without a mean, and twisted draws are good."""
    cov = FieldCovariance(Matern(0.15, nu=1.5) + WhiteKernel(0.01), places(600, seed=8), 15)
    found = rectangle_probability(-1.0, 1.0, cov=cov, tolerance=0.3, rng=7)
    assert found.method == "twisted-ep" and found.diagnostics["resampled"] > 0


def test_wider_sites_have_more_ancestors(no_array):
    """They pay in an orthant of strongly correlated values."""
    n = 500
    kernel = Matern(0.17, nu=1.5) + WhiteKernel(0.01)
    one = _Field.of(kernel, places(n, seed=9), np.zeros(n), np.full(n, np.inf), 20)
    own, wider = (_resampled(one.twisted(by), 256, np.random.default_rng(1)) for by in (1.0, 0.4))
    count = [each.diagnostics["effective_samples"] for each in (own, wider)]
    assert count[1] > 1.5 * count[0]
    gap = abs(own.log_probability - wider.log_probability)
    assert gap < 6 * np.hypot(own.standard_error, wider.standard_error)


def test_many_particles_are_split_into_more_randomisations(monkeypatch):
    one = whole(80, 20)[0]
    proposal = one.twisted(0.8)
    few = _resampled(proposal, 1024, np.random.default_rng(8))
    monkeypatch.setattr(field, "_STATES", 128 * len(one))
    many = _resampled(proposal, 1024, np.random.default_rng(9))
    assert few.points == many.points == 1024 and few.samples == many.samples == 16 * 1024
    assert (len(few.share), len(many.share)) == (16, 128)
    gap = abs(few.log_probability - many.log_probability)
    assert gap < 6 * np.hypot(few.standard_error, many.standard_error)


def test_equal_seeds_are_equal_bits_in_any_number_of_threads(no_array):
    cov = FieldCovariance(KERNEL, places(120), 10)
    for method in ("minimax-tilting", "twisted-ep"):
        options = {"cov": cov, "method": method, "tolerance": 0.05, "rng": 11}
        one, two = (rectangle_probability(-1, np.inf, n_jobs=k, **options) for k in (1, 2))
        assert one == two


def test_a_small_covariance_is_made_an_array():
    X = places(50)
    lower, upper = mixed(50)
    options = {"tolerance": 0.05, "rng": 1}
    found = rectangle_probability(lower, upper, cov=FieldCovariance(KERNEL, X), **options)
    limited = np.isfinite(lower) | np.isfinite(upper)
    array = evaluate(KERNEL, X[limited])
    expected = rectangle_probability(lower[limited], upper[limited], cov=array, **options)
    assert found == expected and found.gradient().lower.shape == (38,)


def test_values_without_limits_and_limits_that_meet():
    X = places(600)
    cov = FieldCovariance(KERNEL, X, 5)
    free = rectangle_probability(-np.inf, np.inf, cov=cov)
    assert (free.log_probability, free.status, free.samples) == (0.0, "ok", 0)
    upper = np.full(600, np.inf)
    upper[3] = -1.0
    none = rectangle_probability(-1.0, upper, cov=cov)
    assert (none.log_probability, none.status, none.samples) == (-np.inf, "ok", 0)


@pytest.mark.parametrize("kernel", [KERNEL, Matern(1.0, nu=1.5)], ids=["nugget", "none"])
def test_duplicates(kernel, no_array):
    X = np.repeat(places(40), 2, axis=0)
    options = {"tolerance": 0.03, "rng": 1}
    found = rectangle_probability(-0.5, np.inf, cov=FieldCovariance(kernel, X, 20), **options)
    truth = rectangle_probability(-0.5, np.inf, cov=evaluate(kernel, X), **options)
    assert found.status == "ok" and close(found, truth)


def test_a_kernel_that_is_not_positive_definite_is_named(no_array):
    """That of scikit-learn is not, with more than one input."""
    cov = FieldCovariance(ExpSineSquared(1.0, 0.3), places(60), 30)
    with pytest.raises(ValueError, match="cov: neighbours' covariances by the kernel ExpSine"):
        rectangle_probability(-0.5, np.inf, cov=cov)


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("kernel must be a kernel of scikit-learn", (np.eye(2), places(2))),
        ("must be stationary .* give the array", (DotProduct(), places(2))),
        ("must have a variance", (ConstantKernel(0.0, "fixed") * RBF(), places(2))),
        ("X must not be empty", (KERNEL, np.empty((0, 2)))),
        (r"X must have 2 dimension\(s\)", (KERNEL, np.zeros(3))),
        ("X", (KERNEL, [[np.nan, 1.0]])),
        ("neighbours must be", (KERNEL, places(2), 0)),
    ],
)
def test_a_covariance_is_checked(message, arguments):
    with pytest.raises(ValueError, match=message):
        FieldCovariance(*arguments)


def test_requests_are_refused_by_name(no_array):
    cov = FieldCovariance(KERNEL, places(30), 5)
    for message, options in [
        ("df must be None with a FieldCovariance", {"df": 3.0}),
        (r"lower must be a number or of shape \(30,\)", {"lower": np.zeros((2, 30))}),
        ("lower must not exceed upper; at index 0", {"lower": 2.0, "upper": 1.0}),
        ("mean must be finite", {"mean": np.inf}),
        ("method must be", {"method": "gibbs"}),
    ]:
        with pytest.raises(ValueError, match=message):
            rectangle_probability(**{"lower": -1.0, "upper": np.inf, "cov": cov} | options)
    found = rectangle_probability(-1.0, np.inf, cov=cov, tolerance=0.1, rng=1)
    with pytest.raises(ValueError, match="kind='guaranteed' is for a covariance as an array"):
        found.interval(kind="guaranteed")
    with pytest.raises(ValueError, match="the gradient is for a covariance as an array"):
        found.gradient()
    with pytest.raises(ValueError, match="cov"):
        TruncatedNormal(-1.0, np.inf, cov=cov)

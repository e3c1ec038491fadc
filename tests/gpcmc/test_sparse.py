"""The sparse form (Vecchia): exact with all neighbours and for a Markov process, and what it leaves out elsewhere.

The contract of a covariance is tested in `test_covariance`, for this form too.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel

from gpcmc.covariance import Dense, Prior
from gpcmc.covariance.kernels import evaluate
from gpcmc.covariance.neighbours import Neighbours
from gpcmc.covariance.sparse import sparse
from gpcmc.covariance.sparse_correction import _beyond
from gpcmc.gp import prior
from gpcmc.inference import (
    ExpectationPropagation,
    ImportanceSampling,
    Laplace,
    MinimaxTilting,
    MulticlassLaplace,
    Twisted,
)
from gpcmc.posterior import OK, TOO_ROUGH
from gpcmc.rectangle import proposals
from gpcmc.rectangle.tilt import minimax_tilt

EXPONENTIAL = 3.0 * Matern(0.3, nu=0.5)


def problem(n, d=2, seed=0, kernel=EXPONENTIAL):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    K = evaluate(kernel, X) + 1e-10 * np.eye(n)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    return X, np.where(f + rng.standard_normal(n) > 0, 1.0, -1.0), rng.random((7, d))


def both(kernel, X, X_star, neighbours, front=None):
    """The dense prior and the sparse one."""
    return (
        Prior(Dense(evaluate(kernel, X), kernel, X), X_star=X_star),
        Prior(sparse(kernel, X, neighbours=neighbours, front=front), X_star=X_star),
    )


EXACT = pytest.mark.parametrize(
    ("n", "d", "neighbours"),
    [(120, 2, (119, 0)), (120, 2, (69, 50)), (250, 1, (1, 0))],
    ids=["all neighbours", "all, 50 in front", "Markov"],
)
METHODS = [
    ExpectationPropagation(),
    ExpectationPropagation(likelihood="logistic"),
    Laplace(),
    Laplace(likelihood="logistic"),
]


@EXACT
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_gaussian_methods_are_those_of_the_dense_form(n, d, neighbours, method):
    X, y, X_star = problem(n, d)
    dense, own = (
        method.fit(one, y, rng=np.random.default_rng(0))
        for one in both(EXPONENTIAL, X, X_star, *neighbours)
    )
    assert own.log_evidence == pytest.approx(dense.log_evidence, abs=1e-6) and own.status == OK
    np.testing.assert_allclose(own.prediction.probability, dense.prediction.probability, atol=1e-6)
    np.testing.assert_allclose(own.variance, dense.variance, atol=1e-6)
    gradients = [
        one.covariance.contract(method.gradient(one.covariance, y, one)) for one in (dense, own)
    ]
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4, atol=1e-4)


@EXACT
def test_the_softmax_is_that_of_the_dense_form(n, d, neighbours):
    X, _, X_star = problem(n, d)
    labels, method = np.random.default_rng(1).integers(3, size=n), MulticlassLaplace()
    dense, own = (
        method.fit(one, labels, rng=np.random.default_rng(0))
        for one in both(EXPONENTIAL, X, X_star, *neighbours)
    )
    assert own.log_evidence == pytest.approx(dense.log_evidence, abs=1e-6)
    np.testing.assert_allclose(own.prediction.probability, dense.prediction.probability, atol=1e-6)
    gradients = [
        one.covariance.contract(method.gradient(one.covariance, one.y, one)) for one in (dense, own)
    ]
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4, atol=1e-4)


@cache
def truth_of(n, d):
    """A long run on the dense form."""
    X, y, X_star = problem(n, d)
    dense, _ = both(EXPONENTIAL, X, X_star, 1)
    return Twisted(points=512).fit(dense, y, rng=np.random.default_rng(1))


@EXACT
@pytest.mark.parametrize(
    "method",
    [Twisted(points=256), MinimaxTilting(points=512), ImportanceSampling()],
    ids=["twisted", "minimax", "importance"],
)
def test_monte_carlo_has_the_evidence_of_the_dense_form(n, d, neighbours, method):
    """Within four standard errors of a dense run: a false alarm in 16,000."""
    X, y, X_star = problem(n, d)
    _, own = both(EXPONENTIAL, X, X_star, *neighbours)
    truth = truth_of(n, d)
    found = method.fit(own, y, rng=np.random.default_rng(0))
    error = np.hypot(found.log_evidence_se, truth.log_evidence_se)
    assert abs(found.log_evidence - truth.log_evidence) < 4.0 * error
    errors = np.hypot(found.prediction.standard_error, truth.prediction.standard_error)
    gap = np.abs(found.prediction.probability - truth.prediction.probability)
    assert (gap < 5.0 * errors + 1e-4).all()


def test_twisted_ep_is_exact_for_the_sparse_law_itself():
    """With six neighbours the law is another than the kernel's, and its array has the same evidence: four errors."""
    X, y, X_star = problem(150)
    K = sparse(EXPONENTIAL, X, neighbours=6)
    own = Twisted(points=256).fit(Prior(K, X_star=X_star), y, rng=np.random.default_rng(0))
    K_star, k_star_star = K.cross(X_star).covariances(), K.cross(X_star).variance
    array = Twisted(points=512).fit(
        Prior(K.dense(), K_star, k_star_star), y, rng=np.random.default_rng(1)
    )
    change = own.diagnostics["correction"]
    error = np.hypot(own.log_evidence_se, array.log_evidence_se)
    assert abs(own.log_evidence - change - array.log_evidence) < 4.0 * error
    gap = np.abs(own.prediction.probability - array.prediction.probability)
    assert (
        gap < 5.0 * np.hypot(own.prediction.standard_error, array.prediction.standard_error)
    ).all()


# --- the factor


def factor_and_joint(noise=0.7, n=60):
    """A factor, and the covariance of its coordinates: v and f of each pattern, in the order of the draws."""
    X, y, _ = problem(n)
    K = sparse(EXPONENTIAL, X, neighbours=5)
    factor, order = K.factor(y, noise), K.near.symbolic.order[::-1]
    A, c = K.dense()[np.ix_(order, order)], y[order]
    joint = np.empty((2 * n, 2 * n))
    joint[::2, ::2] = c[:, None] * A * c + noise * np.eye(n)
    joint[::2, 1::2], joint[1::2, ::2], joint[1::2, 1::2] = c[:, None] * A, A * c, A
    return factor, joint, y


def test_a_factor_is_that_of_the_values_and_the_latent_ones():
    factor, joint, _ = factor_and_joint()
    n, L = len(joint), np.linalg.cholesky(joint)
    x = np.random.default_rng(0).standard_normal(n)
    np.testing.assert_allclose(factor @ np.eye(n), L, atol=1e-9)
    np.testing.assert_allclose(factor.transposed(x), L.T @ x, atol=1e-9)
    np.testing.assert_allclose(factor.d, L.diagonal(), rtol=1e-9)
    G = L / L.diagonal()[:, None]
    A, w = (G @ G.T)[::2, ::2], np.random.default_rng(1).uniform(0, 1, n)
    np.testing.assert_allclose((factor.gram() @ x)[::2], A @ x[::2], atol=1e-8)
    root = np.sqrt(w[::2])
    matrix = np.diag(1 - w[::2]) + root[:, None] * A * root
    np.testing.assert_allclose(
        factor.gram().solve(w, x)[::2], np.linalg.solve(matrix, x[::2]), atol=1e-8
    )


def test_sites_make_of_a_factor_what_they_make_of_its_covariance():
    factor, joint, y = factor_and_joint()
    rng = np.random.default_rng(3)
    nu, tau = (
        factor.coordinates(rng.standard_normal(len(y))),
        factor.coordinates(rng.uniform(0, 2, len(y))),
    )
    found = factor.sited(nu, tau)
    S = np.linalg.inv(np.linalg.inv(joint) + np.diag(tau))
    L = found.factor @ np.eye(len(joint))
    np.testing.assert_allclose(L @ L.T, S, atol=1e-8)
    np.testing.assert_allclose(found.mean, S @ nu, atol=1e-8)
    np.testing.assert_allclose(found.slope, nu - tau * (S @ nu), atol=1e-8)
    half = 0.5 * np.linalg.slogdet(np.eye(len(joint)) + joint * tau)[1]
    assert found.log_constant == pytest.approx(
        -0.5 * (S @ nu) @ (nu - tau * (S @ nu)) - half, rel=1e-8
    )


def test_blocks_draw_and_weigh_by_the_factor():
    """What a pass takes for innovations is L^-1 of its coordinates, and its state the latent values."""
    factor, joint, y = factor_and_joint()
    rng = np.random.default_rng(0)
    low, high = factor.limits(np.zeros(len(y)), np.full(len(y), np.inf))
    one = proposals.Pass.start(proposals.tilted(factor, np.zeros(len(joint)), low, high), 4)
    V = np.abs(rng.standard_normal((len(joint), 4)))
    for k, here in enumerate(factor.parts):
        one.weigh(k, one.ahead(k), V[here] - low[here, None])
    np.testing.assert_allclose(one.state, V[1::2][::-1], atol=1e-8)


def test_the_bound_of_minimax_tilting_holds():
    factor, _, y = factor_and_joint()
    low, high = factor.limits(np.zeros(len(y)), np.full(len(y), np.inf))
    tilt = minimax_tilt(factor, low, high)
    assert tilt.converged
    one = proposals.Pass.start(proposals.tilted(factor, tilt.mu, low, high), 2000)
    rng = np.random.default_rng(0)
    for k, here in enumerate(factor.parts):
        size = here.stop - here.start
        one.draw(
            k,
            one.ahead(k),
            np.empty((size, 2000)),
            lambda part: rng.random((part.stop - part.start, 2000)),
        )
    assert one.log_weights.max() <= tilt.log_bound


# --- neighbours, and what is left out


@pytest.mark.parametrize("d", [1, 2, 5])
def test_neighbours_are_the_nearest_of_the_earlier(d):
    X = np.random.default_rng(0).random((700, d))
    near = Neighbours.of(RBF(np.arange(1.0, d + 1)), X, 7)
    Z, place = X / np.arange(1.0, d + 1), np.argsort(near.order)
    for i in (0, 3, 100, 511, 650, 699):
        earlier = np.flatnonzero(place < place[i])
        # with one input those just before, on the line
        far = -place[earlier] if d == 1 else np.linalg.norm(Z[earlier] - Z[i], axis=1)
        nearest = earlier[np.argsort(far)[:7]]
        assert set(near.index[i, : near.counts[i]]) == set(nearest)


def test_the_front_is_among_all_later_neighbours():
    """And the others are the nearest of the rest, for patterns and for test inputs; fewer leaves the front whole."""
    X, front, m = np.random.default_rng(0).random((700, 3)), 5, 4
    near = Neighbours.of(RBF(0.4), X, m, front)
    place, first = np.argsort(near.order), set(near.order[:front])
    for i in near.order[:front]:
        assert set(near.index[i, : near.counts[i]]) == set(near.order[: place[i]])
    for i in near.order[[front, front + 2, 300, 699]]:
        earlier = np.array([j for j in near.order[: place[i]] if j not in first], dtype=int)
        nearest = earlier[np.argsort(np.linalg.norm(X[earlier] - X[i], axis=1))[:m]]
        found = near.index[i, : near.counts[i]]
        assert set(found[:front]) == first and list(found[front:]) == list(nearest)
        fewer = near.fewer(2)
        assert list(fewer.index[i, : fewer.counts[i]]) == list(found[: front + 2])
    (at,) = near.nearest(np.full((1, 3), 0.5))
    others = np.array([j for j in range(700) if j not in first])
    nearest = others[np.argsort(np.linalg.norm(X[others] - 0.5, axis=1))[: 2 * m + 1]]
    assert list(at[:front]) == list(near.order[:front]) and list(at[front:]) == list(nearest)


def test_a_front_is_for_a_sum_of_a_smooth_and_a_rough_part():
    """With as many values to regress on, it leaves a fourth of the error or less; a sum gets it by default."""
    kernel = 10.0 * RBF(2.8) + 1.0 * Matern(0.28, nu=0.5)
    X, y, X_star = problem(400, 8, kernel=kernel)
    method = ExpectationPropagation()
    dense = method.fit(both(kernel, X, X_star, 1)[0], y)
    alone, front, usual = (
        method.fit(both(kernel, X, X_star, *how)[1], y) for how in [(24, 0), (12, 12), (12,)]
    )
    left = [abs(one.log_evidence - dense.log_evidence) for one in (alone, front)]
    assert left[1] < 0.25 * left[0]
    assert usual.log_evidence == front.log_evidence and usual.diagnostics["neighbours"] == 12.0
    gaps = [
        np.abs(one.prediction.probability - dense.prediction.probability).max()
        for one in (alone, front)
    ]
    assert gaps[1] < gaps[0]
    assert sparse(kernel.k1, X, neighbours=12).near.front == 0
    assert sparse(kernel.k1 + WhiteKernel(0.1), X, neighbours=12).near.front == 0
    with pytest.raises(ValueError, match="front must be"):
        prior(kernel, X, covariance="sparse", front=-1)


@pytest.mark.parametrize("exactly", [True, False])
def test_what_is_left_out_is_told(exactly, monkeypatch):
    """Against the dense form: corrections leave less than the rest, with all columns of the error and without them."""
    monkeypatch.setattr("gpcmc.covariance.sparse_correction._EXACT", 2000 if exactly else 100)
    X, y, X_star = problem(400, kernel=EXPONENTIAL)
    dense = ExpectationPropagation().fit(
        both(EXPONENTIAL, X, X_star, 1)[0], y, rng=np.random.default_rng(0)
    )
    for neighbours in (12, 16, 24):
        found = ExpectationPropagation().fit(
            both(EXPONENTIAL, X, X_star, neighbours)[1], y, rng=np.random.default_rng(0)
        )
        told = found.diagnostics
        assert told["neighbours"] == neighbours
        left = abs(found.log_evidence - dense.log_evidence)
        assert left <= told["correction_rest"] + 1e-3
        gap = np.abs(found.prediction.probability - dense.prediction.probability)
        assert (gap <= found.prediction.form_error + 1e-3).all()


def terms(K, C):
    """A conditioned covariance of C functions, the diagonal blocks W (C n, C n), and I (x) K as arrays."""
    rng, n = np.random.default_rng(2), len(K)
    if C == 1:
        S = rng.uniform(0.1, 2.0, n)
        return K.conditioned(S), np.diag(S), K.dense()
    pi = rng.dirichlet(np.ones(C), n).T
    W = np.block([[np.diag(pi[c] * ((c == d) - pi[d])) for d in range(C)] for c in range(C)])
    return K.conditioned_softmax(pi), W, np.kron(np.eye(C), K.dense())


@pytest.mark.parametrize("C", [1, 3])
def test_terms_of_a_model_that_holds_are_drawn(C):
    """nu = W f + e has covariance W K W + W: of standard normals that are unit vectors, exactly."""
    K = sparse(EXPONENTIAL, problem(25)[0], neighbours=4)
    conditioned, W, A = terms(K, C)
    n = len(K)
    root = K.draws(np.eye(n))
    np.testing.assert_allclose(root @ root.T, K.dense(), atol=1e-9)
    made = conditioned.noise(np.eye(C * n).reshape(C, n, C * n)).reshape(C * n, C * n)
    np.testing.assert_allclose(made @ made.T, W, atol=1e-9)
    x = np.random.default_rng(0).standard_normal((C, n, 5))
    flat = x.reshape(C * n, 5)
    np.testing.assert_allclose(conditioned.times_noise(x).reshape(C * n, 5), W @ flat, atol=1e-9)
    inverse = A - A @ W @ np.linalg.solve(np.eye(C * n) + A @ W, A)
    np.testing.assert_allclose(conditioned.lifted(x).reshape(C * n, 5), inverse @ flat, atol=1e-8)
    np.testing.assert_allclose(conditioned.precisions.ravel(), W.diagonal(), atol=1e-12)


@pytest.mark.parametrize("exactly", [True, False])
def test_the_correction_is_the_change_with_the_terms_held(exactly, monkeypatch):
    """By arrays: of the kernel's own covariance, and of that of twice the neighbours."""
    monkeypatch.setattr("gpcmc.covariance.sparse_correction._EXACT", 2000 if exactly else 0)
    X, y, _ = problem(60)
    K, method = sparse(EXPONENTIAL, X, neighbours=3), ExpectationPropagation()
    found = method.approximate(K, y)
    tau, nu = found.sites
    other = evaluate(EXPONENTIAL, X)
    if not exactly:
        other = sparse(EXPONENTIAL, X, neighbours=6).dense()

    def gaussian(A):
        """The log of the integral of the terms exp(nu f - tau f^2 / 2) over N(0, A)."""
        P = np.linalg.inv(A) + np.diag(tau)
        return 0.5 * nu @ np.linalg.solve(P, nu) - 0.5 * np.linalg.slogdet(A @ P)[1]

    change = K.correction(method.gradient(K, y, found)).change
    assert change == pytest.approx(gaussian(other) - gaussian(K.dense()), abs=1e-5)
    assert abs(change) > 0.1


def test_what_is_left_falls_as_a_power_of_the_neighbours():
    """Where each doubling leaves a third, twice the neighbours leave half of what they found."""

    def left(units):
        """Variances whose divergences sum to so many, beside noise of precision one."""
        return np.expm1(np.full(10, 0.2 * units))

    def law(twice):
        return SimpleNamespace(
            by=SimpleNamespace(D=left(3.0)),
            finer=SimpleNamespace(by=SimpleNamespace(D=left(twice))),
            left_by_half=lambda: left(9.0),
        )

    terms = SimpleNamespace(precisions=np.ones((1, 10)))
    assert _beyond(law(1.0), terms) == pytest.approx(0.5)
    assert _beyond(law(3.0), terms) == 0.0


FIELDS = [(nu, d) for d in (2, 4, 8) for nu in (0.5, 1.5, 2.5, np.inf)]


@pytest.mark.parametrize("exactly", [True, False])
def test_the_rest_is_some_deviations_of_what_is_left(exactly, monkeypatch):
    """Twelve fields against the dense form: neither silent nor loud.

    With the kernel's own covariance less than a fifth of a nat is left, and told. With twice the neighbours the errors
    over their rests would be normal of deviation .4 if all were as said: one above 1.5 in 5,000 fields.
    """
    monkeypatch.setattr("gpcmc.covariance.sparse_correction._EXACT", 2000 if exactly else 0)
    method, ratios = ExpectationPropagation(), []
    for nu, d in FIELDS:
        kernel = 3.0 * Matern(0.1 * d**0.5, nu=nu)
        X, y, _ = problem(300, d, seed=[d, 300], kernel=kernel)
        dense, own = (method.fit(one, y) for one in both(kernel, X, None, 16))
        left, rest = own.log_evidence - dense.log_evidence, own.diagnostics["correction_rest"]
        ratios.append(left / rest)
        if exactly:
            assert abs(left) < 0.2 and rest < 2.0
    assert np.max(np.abs(ratios)) < (1.0 if exactly else 1.5)
    if not exactly:
        assert 0.1 < np.sqrt(np.mean(np.square(ratios))) < 0.8


def test_labels_that_the_model_does_not_expect_raise_the_rest(monkeypatch):
    """Labels in stripes finer than the kernel's range: the change is many deviations, and the rest follows."""
    monkeypatch.setattr("gpcmc.covariance.sparse_correction._EXACT", 0)
    kernel = 30.0 * RBF(0.3)
    X = np.random.default_rng(0).random((300, 2))
    y = np.where(np.sin(40.0 * X[:, 0]) > 0, 1.0, -1.0)
    dense, own = (ExpectationPropagation().fit(one, y) for one in both(kernel, X, None, 8))
    left = abs(own.log_evidence - dense.log_evidence)
    assert left < 2.0 * own.diagnostics["correction_rest"]


@pytest.mark.parametrize("d", [2, 4, 8])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
def test_errors_of_probabilities_are_told_to_within_a_factor_of_ten(nu, d):
    """The largest of 200, against the dense form: neither below it nor ten times above, in all twelve fields."""
    rng = np.random.default_rng([d, 7])
    kernel, X, X_star = (
        3.0 * Matern(0.1 * d**0.5, nu=nu),
        rng.random((500, d)),
        rng.random((200, d)),
    )
    L = np.linalg.cholesky(evaluate(kernel, X) + 1e-8 * np.eye(500))
    y = np.where(L @ rng.standard_normal(500) + rng.standard_normal(500) > 0, 1.0, -1.0)
    dense, found = (
        ExpectationPropagation().fit(one, y, rng=np.random.default_rng(0))
        for one in both(kernel, X, X_star, 20)
    )
    off = np.abs(found.prediction.probability - dense.prediction.probability).max()
    assert off <= found.prediction.form_error.max() <= 10.0 * off


@pytest.mark.parametrize(("neighbours", "fine"), [(10, False), (30, True)])
def test_the_status_follows_the_error(neighbours, fine):
    """An exponential kernel in two inputs: with 30 neighbours it is below the limit, and no alarm is given."""
    kernel = 3.0 * Matern(0.1 * 2**0.5, nu=0.5)
    X, y, _ = problem(500, kernel=kernel)
    X_star = np.random.default_rng(5).random((200, 2))
    dense, own = (
        ExpectationPropagation().fit(one, y) for one in both(kernel, X, X_star, neighbours)
    )
    off = np.abs(own.prediction.probability - dense.prediction.probability).max()
    assert (off < 0.01) == fine
    assert own.status == (OK if fine else TOO_ROUGH)


def test_a_kernel_must_be_stationary():
    with pytest.raises(ValueError, match="must be stationary for a sparse covariance"):
        sparse(RBF(1.0) + DotProduct(), np.ones((3, 2)), neighbours=2)


def test_duplicates_are_no_error():
    X, y, _ = problem(60)
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    found = ExpectationPropagation().fit(
        Prior(sparse(2.0 * RBF(0.5), X, neighbours=10)), y, rng=np.random.default_rng(0)
    )
    dense = ExpectationPropagation().fit(
        Prior(evaluate(2.0 * RBF(0.5), X)), y, rng=np.random.default_rng(0)
    )
    assert abs(found.log_evidence - dense.log_evidence) < 0.1
    noisy = sparse(2.0 * RBF(0.5) + WhiteKernel(0.1), X, neighbours=10)
    assert np.isfinite(
        ExpectationPropagation().fit(Prior(noisy), y, rng=np.random.default_rng(0)).log_evidence
    )

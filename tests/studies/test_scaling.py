"""How each method scales: runs where the truth is known, and orders of patterns."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from small import check, load

from gpcmc.gp import prior, rbf
from gpcmc.inference import METHODS as LIBRARY
from studies.atiya2021.evidence_alone import UNDERFLOW, Annealed, AnnealedLatent, GenzBretz
from studies.atiya2021.methods import METHODS
from studies.atiya2021.ordered import OrderedSampler, farthest_first
from studies.atiya2021.runs import EXTINCT
from studies.atiya2021.scaling import columns, from_process, run_once, two_normals

#: Every method of the study, with options that take a moment.
QUICK = {
    "sampler": ("orthant", {"count": "soft", "samples": 4000}),
    "sampler-hard": ("orthant", {"count": "hard", "samples": 4000}),
    "sampler-min-max": ("ordered", {"order": "min-max", "samples": 4000}),
    "sampler-pivoting": ("ordered", {"order": "pivoting", "samples": 4000}),
    "adapted": ("orthant", {"scheme": "adapted", "samples": 4000}),
    "minimax-tilting": ("minimax-tilting", {"points": 64, "randomizations": 8}),
    "twisted-ep": ("twisted-ep", {"points": 64, "randomizations": 8}),
    "importance-ep": ("importance", {"samples": 4000}),
    "ess-annealed": ("annealed", {"sampler": "ess", "temperatures": 200}),
    "hmc-annealed": ("annealed", {"sampler": "hmc", "temperatures": 50}),
    "latent": ("annealed-latent", {"chains": 2000}),
    "genz-bretz": ("genz-bretz", {"points": 500}),
    "laplace": ("laplace", {}),
    "ep": ("ep", {}),
}
#: Nats by which an approximation may miss: that of Laplace's method is poor where few patterns say little.
APPROXIMATE = {"laplace": 0.15, "ep": 0.02}


def quick(name):
    method, options = QUICK[name]
    return METHODS[method](**options)


def check_estimate(name, data, alpha, beta, truth):
    made = run_once(data, alpha, beta, quick(name), "1/run")
    line = columns(made)
    allowed = APPROXIMATE.get(name, 0.0) * len(data[1])
    error = abs(line["log_evidence"] - truth)
    assert error <= allowed + 5 * line["log_evidence_se"] + 1e-9, (name, error)


def arcsine(data, alpha, beta):
    """The evidence of up to three patterns, by the orthant probabilities of Sheppard and of David."""
    X, y = data
    R = np.eye(len(y)) + y[:, None] * rbf(alpha, beta)(X) * y
    angles = np.arcsin((R / (1.0 + beta))[np.triu_indices(len(y), 1)]).sum()
    return math.log(
        {1: 0.5, 2: 0.25 + angles / (2 * np.pi), 3: 0.125 + angles / (4 * np.pi)}[len(y)]
    )


@pytest.mark.parametrize("name", QUICK)
def test_methods_are_right_where_the_truth_is_known(name):
    for n in (1, 2, 3):
        data = two_normals(2, n, f"1/three/N{n}")
        check_estimate(name, data, 1.0, 2.0, arcsine(data, 1.0, 2.0))
    # patterns that are alone
    check_estimate(name, two_normals(8, 9, "1/alone"), 1e-4, 3.0, -9 * math.log(2.0))
    # the same pattern n times: n + 1 variables, each as likely to be the least
    same = np.zeros((10, 2)), np.ones(10)
    check_estimate(name, same, 1.0, 1.0, -math.log(11.0))


def test_patterns_are_balanced_and_keyed_by_their_seed():
    X, y = two_normals(8, 21, "1/a")
    assert X.shape == (21, 8) and sorted(y) == [-1.0] * 10 + [1.0] * 11
    assert len(set(np.flatnonzero(np.diff(y)))) > 4, "shuffled"
    again, other = two_normals(8, 21, "1/a")[0], two_normals(8, 21, "1/b")[0]
    assert np.array_equal(X, again) and not np.array_equal(X, other)
    many, labels = two_normals(8, 20_000, "1/many")
    np.testing.assert_allclose(many[labels > 0].mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(many[labels < 0].mean(axis=0), 1.0, atol=0.05)
    np.testing.assert_allclose(many[labels < 0].var(axis=0), 0.5, atol=0.05)


def test_labels_are_drawn_from_the_model_of_their_kernel():
    """Of two patterns labels agree as often as the orthant probability says; Monte Carlo, with a fixed seed."""
    kernel = {"alpha": 3.0, "beta": 8.0}
    agree, expected = [], []
    for k in range(400):
        X, y = from_process(2, 2, f"1/model/{k}", **kernel)
        agree.append(y[0] == y[1])
        same = X, np.ones(2)
        expected.append(2.0 * math.exp(arcsine(same, **kernel)))
    share = np.mean(expected)
    assert 0.65 < share < 0.85
    spread = math.sqrt(share * (1.0 - share) / len(agree))
    assert abs(np.mean(agree) - share) < 3.0 * spread
    again, other = (from_process(2, 2, f"1/model/{k}", **kernel)[0] for k in (399, 0))
    assert np.array_equal(again, X) and not np.array_equal(other, X)


def test_published_runs_have_the_defaults_of_the_library():
    own = {"million", "adapted", "sampler-hard"}
    for name, row in check("atiya2021", load("published")).atiya2021.scaling.methods.items():
        made = METHODS[row.method](**row.options)
        if row.method in LIBRARY and name not in own:
            assert made == LIBRARY[row.method](), name
        if row.method == "annealed":
            chain = LIBRARY[made.sampler]()
            assert (made.temperatures, made.runs) == (chain.temperatures, chain.annealing_runs)


def test_the_farthest_pattern_comes_next():
    X, _ = two_normals(2, 40, "1/far")
    X[7] = X[3]  # a pattern that comes twice
    order = farthest_first(X)
    assert sorted(order) == list(range(40))
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    assert order[0] == np.argmin(np.linalg.norm(X - X.mean(axis=0), axis=1))
    for k in range(1, 40):
        nearest = distance[:, order[:k]].min(axis=1)
        assert nearest[order[k]] == pytest.approx(nearest.max())
    assert {order[-1], order[-2]} & {3, 7}
    assert list(farthest_first(np.zeros((3, 1)))) == [0, 1, 2]


@pytest.mark.parametrize("order", ["min-max", "pivoting"])
def test_an_order_leaves_the_estimate_unbiased(order):
    data = two_normals(2, 3, "1/three/N3")
    method, truth = OrderedSampler(order=order, samples=60), math.exp(arcsine(data, 1.0, 2.0))
    gp = prior(rbf(1.0, 2.0), data[0])
    rng = np.random.default_rng(1)
    found = np.exp([method.fit(gp, data[1], rng=rng).log_evidence for _ in range(200)])
    assert abs(found.mean() - truth) < 4 * found.std() / np.sqrt(200)


@pytest.mark.parametrize("order", ["min-max", "pivoting"])
def test_predictions_do_not_depend_on_the_order(order):
    X, y = two_normals(2, 30, "1/predict")
    gp = prior(rbf(1.0, 2.0), X[:24], X[24:])
    expected = LIBRARY["ep"]().fit(gp, y[:24]).prediction.probability
    method = OrderedSampler(order=order, samples=40_000)
    found = method.fit(gp, y[:24], rng=np.random.default_rng(1)).prediction.probability
    np.testing.assert_allclose(found, expected, atol=0.05)
    alone = prior(rbf(1.0, 2.0), X[:24])
    later = method.fit(alone, y[:24], rng=np.random.default_rng(1))
    found = later.predict(gp.K_star, gp.k_star_star).probability
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_the_sampler_keeps_its_own_status():
    data = two_normals(2, 60, "1/warn")
    line = columns(run_once(data, 0.5, 3.0, METHODS["orthant"](samples=500, count="hard"), "1/x"))
    assert line["status"] == "not converged" and line["effective_eves"] < 100
    assert line["log_evidence"] < 0 and line["log_evidence_se"] > 0


def test_a_run_that_failed_has_a_status_and_no_numbers(monkeypatch):
    data = two_normals(2, 60, "1/warn")
    assert columns(run_once(data, 0.5, 3.0, OrderedSampler(samples=3), "1/x")) == {
        "status": EXTINCT
    }

    def cdf(limits, **options):
        return np.full(len(limits), 1e-310)

    monkeypatch.setattr(multivariate_normal, "cdf", cdf)
    assert columns(run_once(data, 0.5, 3.0, GenzBretz(), "1/x")) == {"status": UNDERFLOW}


@pytest.mark.parametrize("method", [Annealed(), AnnealedLatent(), GenzBretz()])
def test_methods_without_predictions_say_so(method):
    X, y = two_normals(2, 6, "1/few")
    with pytest.raises(ValueError, match="prior must have no test inputs.* got 2"):
        method.fit(prior(rbf(1.0, 1.0), X, X[:2]), y, rng=np.random.default_rng(1))
    found = method.fit(prior(rbf(1.0, 1.0), X), y, rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="predict by another"):
        found.predict(np.ones((6, 1)), np.full(1, 2.0))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Annealed(sampler="nuts"), "sampler must be"),
        (lambda: Annealed(temperatures=0), "temperatures must be"),
        (lambda: Annealed(runs=1), "runs must be at least 2"),
        (lambda: AnnealedLatent(chains=24), "chains must be at least 25"),
        (lambda: GenzBretz(points=99), "points must be at least 100"),
        (lambda: GenzBretz(randomizations=1), "randomizations must be at least 2"),
        (lambda: OrderedSampler(order="maxmin"), "order must be"),
        (lambda: OrderedSampler(samples=0), "samples must be"),
    ],
)
def test_options_that_are_wrong_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()

"""Kernels compared, draws handed to ArviZ, intervals of probabilities, and the Pareto shape of weights."""

import doctest
import sys
import types

import numpy as np
import pytest
from scipy.stats import genpareto, multivariate_normal
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, DotProduct

import gpcmc.comparison
from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.comparison import compare
from gpcmc.gp import prior
from gpcmc.inference import EllipticalSlice, Laplace, PseudoMarginal, draws_of, to_arviz
from gpcmc.weights import pareto_shape

X, Y = make_moons(30, noise=0.3, random_state=0)


def test_bayes_factors_are_those_of_exact_evidences():
    """Three patterns: the evidence is a normal orthant of three variables, which SciPy integrates to 1e-5."""
    x, y = np.array([[0.0], [0.7], [1.9]]), np.array([0, 1, 1])
    kernels = {"smooth": 2.0 * RBF(1.0), "rough": 2.0 * RBF(0.1), "linear": DotProduct(1.0)}
    found = compare(kernels, x, y, optimizer=None, random_state=0)
    signs = 2.0 * y - 1.0
    exact = [
        np.log(multivariate_normal(np.zeros(3), np.eye(3) + signs[:, None] * k(x) * signs).cdf(np.zeros(3)))
        for k in kernels.values()
    ]  # fmt: skip
    factors = np.array(exact) - exact[int(np.argmax(found.log_evidence))]
    assert (np.abs(found.log_bayes_factor - factors) < 5 * found.log_bayes_factor_se + 1e-4).all()
    assert found.names == ("smooth", "rough", "linear") and not found.maximized.any()
    assert "maximised over" not in str(found)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_maximised_is_said():
    found = compare([1.0 * RBF(1.0), DotProduct(1.0)], X, Y, inference="laplace")
    assert list(found.maximized) == [2, 1] and found.log_bayes_factor.max() == 0.0
    assert str(found).splitlines()[1].startswith(found.names[int(found.log_evidence.argmax())])
    assert "maximised over the hyperparameters" in str(found)


def test_a_warning_names_its_kernel_and_an_approximation_has_no_error():
    kernels = {"free": 1.0 * RBF(1.0), "bounded": 1.0 * RBF(1.0, (0.99, 1.01))}
    with pytest.warns(ConvergenceWarning, match="ended at a bound") as caught:
        found = compare(kernels, X, Y, inference="ep")
    assert [str(w.message)[:18] for w in caught if "bound" in str(w.message)] == [
        "kernel 'bounded': "
    ]
    assert caught[0].filename == __file__
    assert (
        found.approximate and str(found).count("(approximate)") == 4 and "0.000)" not in str(found)
    )
    drawn = compare(kernels, X, Y, optimizer=None, random_state=0)
    assert not drawn.approximate and "approximate" not in str(drawn)


@pytest.mark.parametrize(
    ("kernels", "options", "message"),
    [
        ([RBF(1.0)], {}, "at least two different kernels"),
        ([RBF(1.0), RBF(2.0)], {"inference": "ep"}, "one against the rest is no model of all"),
        ([RBF(1.0), RBF(2.0)], {"inference": EllipticalSlice(40, 5, 2, 2, 0)}, "no marginal likelihood"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_cannot_be_compared_is_refused(kernels, options, message):
    data = load_iris(return_X_y=True) if options.get("inference") == "ep" else (X, Y)
    with pytest.raises(ValueError, match=message):
        compare(kernels, data[0][::5], data[1][::5], optimizer=None, **options)


def test_the_example_of_the_docstring():
    assert doctest.testmod(gpcmc.comparison).failed == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_full_bayes_gives_draws_and_intervals(monkeypatch):
    method = PseudoMarginal("laplace", 16, 60, 40, 2, draws=20, predictor=Laplace())
    model = GaussianProcessClassifier(1.0 * RBF(1.0), method, random_state=0).fit(X, Y)
    posterior = model.posterior_
    draws = draws_of(posterior)
    assert (
        draws["posterior"]["variance"].shape == draws["posterior"]["length_scale"].shape == (2, 60)
    )
    theta = posterior.chains.theta
    np.testing.assert_allclose(draws["posterior"]["length_scale"], np.exp(theta[..., 1]))
    p, interval = (
        posterior.predict_inputs(X[:4]).probability,
        posterior.predict_interval(X[:4], 0.8),
    )
    assert interval.shape == (4, 2) and (interval[:, 0] < p).all() and (p < interval[:, 1]).all()
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        posterior.predict_interval(X[:4], 1.0)
    module = types.ModuleType("arviz_base")
    module.from_dict = dict
    monkeypatch.setitem(sys.modules, "arviz_base", module)
    assert set(to_arviz(posterior)) == {"posterior", "sample_stats"}
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match="pip install arviz-base"):
        to_arviz(posterior)


def test_draws_of_chains_are_latent_values():
    """Their log likelihoods are those that the chain kept."""
    from scipy.special import log_ndtr

    y = 2.0 * Y - 1.0
    blocks = prior(2.0 * RBF(0.8), X)
    method = EllipticalSlice(samples=80, burn_in=5, chains=2, thin=2, temperatures=0)
    posterior = method.fit(blocks, y, rng=np.random.default_rng(0))
    found = draws_of(posterior, blocks.K)
    f = found["posterior"]["f"]
    assert f.shape == (2, 20, 30)
    np.testing.assert_allclose(log_ndtr(y * f).sum(axis=2), found["sample_stats"]["lp"], rtol=1e-6)
    assert draws_of(posterior)["posterior"]["w"] is posterior.w
    with pytest.raises(ValueError, match="K must be of order 30"):
        draws_of(posterior, np.eye(3))
    with pytest.raises(ValueError, match="that of a sampler that runs chains"):
        draws_of(Laplace().fit(blocks, y))


@pytest.mark.parametrize("shape", [-0.3, 0.2, 0.7, 1.2])
def test_the_pareto_shape_is_found(shape):
    """20,000 draws of the distribution itself; the tail of 424 tells the shape to (1 + k) / sqrt(424)."""
    rng = np.random.default_rng(0)
    w = genpareto(shape).rvs(20_000, random_state=rng)
    expected = (424 * shape + 5) / 434  # the prior's ten weights at 1/2
    assert pareto_shape(np.log(w)) == pytest.approx(expected, abs=4 * (1 + abs(shape)) / 424**0.5)


def test_the_pareto_shape_is_that_of_arviz():
    """To the bit where that package takes tails as short; see the kept results."""
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    rng = np.random.default_rng(1)
    for m in (300, 1000, 4096):
        log_w = 3.0 * rng.standard_normal(m)
        assert pareto_shape(log_w) == pytest.approx(float(array_stats.psislw(-log_w)[1]), rel=1e-9)
    assert np.isfinite(pareto_shape(rng.standard_normal(25)))

"""The one interface of all methods, and what importing the library loads."""

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gpcmc
from gpcmc._validation import machine_memory
from gpcmc.gp import prior, rbf
from gpcmc.inference import (
    METHODS,
    ConvergenceError,
    ExpectationPropagation,
    HamiltonianMonteCarlo,
    Method,
    Orthant,
    Twisted,
    infer,
    method_class,
)

#: Options that make the methods that draw quick.
QUICK = {
    "orthant": {"samples": 2000},
    "twisted-ep": {"points": 64},
    "minimax-tilting": {"points": 64},
    "importance": {"samples": 256},
    "ess": {"samples": 320, "burn_in": 5, "thin": 1, "temperatures": 5},
    "hmc": {"samples": 160, "burn_in": 5, "temperatures": 5, "tuning": 5},
    "control-variables": {"iterations": 100, "burn_in": 5, "adaptation_rounds": 1},
    "pseudo-marginal": {"iterations": 8, "burn_in": 10, "chains": 2, "draws": 8},
}
EVERY = pytest.mark.parametrize("name", METHODS)
#: Their posteriors predict at other test inputs.
LATER = [name for name in METHODS if name not in ("orthant", "pseudo-marginal")]


def problem():
    rng = np.random.default_rng(0)
    X, X_star = rng.standard_normal((12, 2)), rng.standard_normal((4, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(12) > 0, 1.0, -1.0)
    return X, X_star, prior(rbf(1.5, 2.0), X, X_star), y


def fit(name, blocks, y):
    return method_class(name)(**QUICK.get(name, {})).fit(blocks, y, rng=np.random.default_rng(1))


@EVERY
def test_a_posterior_has_all_that_the_interface_says(name):
    _, _, blocks, y = problem()
    posterior = fit(name, blocks, y)
    p, se = posterior.prediction.probability, posterior.prediction.standard_error
    assert p.shape == se.shape == (4,) and ((p > 0) & (p < 1)).all() and (se >= 0).all()
    assert (posterior.log_evidence is None) == (posterior.log_evidence_se is None)
    assert posterior.work and all(type(count) is int for count in posterior.work.values())
    assert all(type(value) is float for value in posterior.diagnostics.values())
    assert isinstance(posterior.status, str)
    record = infer(
        method_class(name)(**QUICK.get(name, {})), blocks, y, rng=np.random.default_rng(1)
    )
    np.testing.assert_array_equal(record.probability, p)
    np.testing.assert_array_equal(record.probability_se, se)
    for field in ("log_evidence", "log_evidence_se", "work", "diagnostics", "status"):
        assert getattr(record, field) == getattr(posterior, field)


@pytest.mark.parametrize("name", LATER)
def test_a_fit_predicts_as_its_posterior_does_later(name):
    _, _, blocks, y = problem()
    posterior = fit(name, blocks, y)
    later = posterior.predict(blocks.K_star, blocks.k_star_star)
    np.testing.assert_array_equal(later.probability, posterior.prediction.probability)
    np.testing.assert_array_equal(later.standard_error, posterior.prediction.standard_error)


@EVERY
def test_a_fit_without_test_inputs_finds_the_same_evidence(name):
    X, _, blocks, y = problem()
    posterior = fit(name, prior(rbf(1.5, 2.0), X), y)
    assert posterior.prediction.probability.shape == (0,)
    assert posterior.log_evidence == fit(name, blocks, y).log_evidence


@EVERY
def test_arguments_are_checked_for_every_method(name):
    _, _, blocks, y = problem()
    method, rng = METHODS[name](**QUICK.get(name, {})), np.random.default_rng(0)
    assert isinstance(method, Method)
    with pytest.raises(ValueError, match="prior must be a gpcmc.gp.Prior.* got ndarray"):
        method.fit(blocks.K, y, rng=rng)
    with pytest.raises(ValueError, match="y must have shape"):
        method.fit(blocks, y[:3], rng=rng)
    with pytest.raises(ValueError, match="prior.K must be positive semidefinite"):
        method.fit(replace(blocks, K=blocks.K - np.eye(12)), y, rng=rng)
    with pytest.raises(ValueError, match="prior.K_star must have shape"):
        method.fit(replace(blocks, K_star=blocks.K_star[:3]), y, rng=rng)
    with pytest.raises(ValueError, match="prior.k_star_star must not be negative"):
        method.fit(replace(blocks, k_star_star=-blocks.k_star_star), y, rng=rng)
    if method.deterministic:
        assert method.fit(blocks, y).status == "ok"
    else:
        with pytest.raises(ValueError, match="rng must be a numpy.random.Generator"):
            method.fit(blocks, y)


def test_the_last_iterate_of_a_fit_that_does_not_converge_can_predict():
    _, _, blocks, y = problem()
    with pytest.raises(ConvergenceError) as failure:
        ExpectationPropagation(max_sweeps=1).fit(blocks, y)
    posterior = failure.value.posterior
    assert posterior.prediction.probability.shape == (0,)
    assert posterior.predict(blocks.K_star, blocks.k_star_star).probability.shape == (4,)


def test_names_and_former_names_of_methods():
    assert method_class("twisted-ep") is method_class("best") is METHODS["twisted-ep"] is Twisted
    assert all(method_class(name) is cls for name, cls in METHODS.items())
    assert "best" not in METHODS and "gpml" not in METHODS
    for bad in ("vb", "", None, Orthant):
        with pytest.raises(ValueError, match="method must be one of orthant, twisted-ep.*; got"):
            method_class(bad)


def test_options_are_read_by_name_and_are_frozen():
    assert HamiltonianMonteCarlo(chains=4).chains == 4
    with pytest.raises(AttributeError):
        HamiltonianMonteCarlo().chains = 3


# --- imports

HEAVY = ("sklearn", "scipy.stats", "scipy.optimize", "scipy.spatial", "pandas", "arviz_stats")


def loaded(statement):
    """Return the modules that a new interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "statement",
    ["import gpcmc", "from gpcmc import orthant_probability", "import gpcmc.inference, gpcmc.gp"],
)
def test_importing_the_library_loads_nothing_heavy(statement):
    found = loaded(statement)
    assert not found & {*HEAVY, "matplotlib", "studies", "recheck", "snakemake"}
    if statement == "import gpcmc":
        assert "numpy" not in found


def test_importing_the_library_takes_less_than_a_third_of_a_second():
    """CPU seconds, which do not depend on what else this machine does."""
    code = (
        "import time; start = time.process_time(); import gpcmc; print(time.process_time() - start)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 0.3


def test_the_library_knows_no_study_and_no_engine():
    folder = Path(gpcmc.__file__).parent
    allowed = {
        *sys.stdlib_module_names, "gpcmc", "numpy", "scipy", "sklearn", "threadpoolctl", "arviz_stats"
    }  # fmt: skip
    sources = sorted(folder.rglob("*.py"))
    assert len(sources) > 20
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, source
                names = [node.module]
            else:
                continue
            assert {name.split(".")[0] for name in names} <= allowed, (source, names)


def test_the_public_names_are_there():
    assert set(gpcmc.__all__) <= set(dir(gpcmc))
    defaults = gpcmc.GaussianProcessClassifier().get_params()
    assert defaults["inference"] == "ep" and defaults["optimizer"] == "lbfgs"
    estimate = gpcmc.orthant_probability(np.eye(2), samples=100, rng=np.random.default_rng(0))
    assert isinstance(estimate, gpcmc.OrthantEstimate)
    with pytest.raises(AttributeError, match="has no attribute 'Classifier'"):
        _ = gpcmc.Classifier


@EVERY
def test_a_size_beyond_the_memory_is_refused(name, monkeypatch):
    _, _, blocks, y = problem()
    needed = method_class(name)(**QUICK.get(name, {})).memory(12)
    assert needed >= 6 * 8 * 12**2
    monkeypatch.setattr("gpcmc._validation.machine_memory", lambda: needed)
    fit(name, blocks, y)
    monkeypatch.setattr("gpcmc._validation.machine_memory", lambda: 0.99 * needed)
    with pytest.raises(MemoryError, match=r"needs about 0.0 GiB for n = 12 .* Laplace's method"):
        fit(name, blocks, y)


def test_a_refusal_says_what_fits(monkeypatch):
    monkeypatch.setattr("gpcmc._validation.machine_memory", lambda: 24 * 2.0**30)
    with pytest.raises(MemoryError) as caught:
        Twisted().check_size(20_000)
    assert str(caught.value) == (
        "Twisted needs about 36.4 GiB for n = 20000 training patterns; this machine has 24.0 GiB; "
        "Laplace's method needs 17.9"
    )
    with pytest.raises(MemoryError, match="with Laplace's method 23170 patterns would fit"):
        Twisted().check_size(60_000)
    assert ExpectationPropagation().check_size(10_000) is None


def test_stored_draws_need_memory():
    few, many = (HamiltonianMonteCarlo(samples=k) for k in (4_000, 4_000_000))
    assert many.memory(100) - few.memory(100) == 8 * 100 * 3_996_000


def test_memory_is_not_limited_where_the_system_does_not_say(monkeypatch):
    monkeypatch.delattr("os.sysconf")
    assert machine_memory() == np.inf

"""The one interface of all methods, and what importing the library loads."""

import ast
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_array_equal

import gpcmc
from gpcmc._memory import Limit, available_memory
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
FIELDS = ("log_evidence", "log_evidence_se", "work", "diagnostics", "status")
EVERY = pytest.mark.parametrize("name", METHODS)
#: Their posteriors predict at other test inputs.
LATER = [name for name in METHODS if name not in ("orthant", "pseudo-marginal")]


def problem():
    rng = default_rng(0)
    X, X_star = rng.standard_normal((12, 2)), rng.standard_normal((4, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(12) > 0, 1.0, -1.0)
    return X, X_star, prior(rbf(1.5, 2.0), X, X_star), y


def fit(name, blocks, y, seed=1):
    return method_class(name)(**QUICK.get(name, {})).fit(blocks, y, rng=default_rng(seed))


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
    record = infer(method_class(name)(**QUICK.get(name, {})), blocks, y, rng=default_rng(1))
    assert_array_equal(record.probability, p)
    assert_array_equal(record.probability_se, se)
    for field in FIELDS:
        assert getattr(record, field) == getattr(posterior, field)


@EVERY
def test_a_fit_without_test_inputs_finds_the_same_and_predicts_later(name):
    X, _, blocks, y = problem()
    alone, at_once = fit(name, prior(rbf(1.5, 2.0), X), y), fit(name, blocks, y)
    assert alone.prediction.probability.shape == (0,)
    for field in FIELDS:
        assert getattr(alone, field) == getattr(at_once, field)
    if name in LATER:
        for posterior in (alone, at_once):
            later = posterior.predict(blocks.K_star, blocks.k_star_star)
            assert_array_equal(later.probability, at_once.prediction.probability)
            assert_array_equal(later.standard_error, at_once.prediction.standard_error)


@EVERY
def test_the_same_seed_gives_the_same_bits_also_after_pickling(name):
    _, _, blocks, y = problem()
    if name not in LATER:
        blocks = prior(rbf(1.5, 2.0), blocks.X) if name == "orthant" else blocks
    one, two, third = (fit(name, blocks, y, seed) for seed in (1, 1, 2))
    for field in FIELDS:
        assert getattr(one, field) == getattr(two, field)

    def predicted(posterior):
        if name == "pseudo-marginal":
            return posterior.predict_inputs(blocks.X[:3])
        return posterior.predict(blocks.K[:, :3], blocks.K.diagonal()[:3])

    drawn = not METHODS[name].deterministic
    before, after, other = map(predicted, (one, pickle.loads(pickle.dumps(two)), third))
    assert_array_equal(before.probability, after.probability)
    assert_array_equal(before.standard_error, after.standard_error)
    assert (before.probability != other.probability).any() == drawn


#: What a fit says of a part of the prior, or of labels, that is changed so.
WRONG = {
    "prior.K must be square": ("K", lambda K: K[:, :4]),
    "prior.K must be finite": ("K", lambda K: np.where(K[1, 2] == K, np.nan, K)),
    "prior.K must be symmetric": ("K", lambda K: K + np.tri(12)),
    "prior.K must be positive semidefinite": ("K", lambda K: K - np.eye(12)),
    "prior.K must have no negative variance": ("K", np.negative),
    "prior.K_star must have shape": ("K_star", lambda K_star: K_star[:3]),
    "prior.k_star_star must not be negative": ("k_star_star", np.negative),
    "y must have shape": ("y", lambda y: y[:3]),
    "y must hold -1 and": ("y", lambda y: 0 * y),
}


@EVERY
def test_arguments_are_checked_for_every_method(name):
    _, _, blocks, y = problem()
    method, rng = METHODS[name](**QUICK.get(name, {})), default_rng(0)
    assert isinstance(method, Method)
    with pytest.raises(ValueError, match="prior must be a gpcmc.gp.Prior.* got ndarray"):
        method.fit(blocks.K, y, rng=rng)
    for message, (part, change) in WRONG.items():
        wrong = {} if part == "y" else {part: change(getattr(blocks, part))}
        with pytest.raises(ValueError, match=message):
            method.fit(replace(blocks, **wrong), change(y) if part == "y" else y, rng=rng)
    if method.deterministic:
        assert method.fit(blocks, y).status == "ok"
    else:
        with pytest.raises(ValueError, match="rng must be a numpy.random.Generator"):
            method.fit(blocks, y)


@EVERY
def test_later_test_covariances_are_checked(name):
    _, _, blocks, y = problem()
    posterior = fit(name, blocks, y)
    with pytest.raises(ValueError, match="K_star must have shape"):
        posterior.predict(blocks.K_star[:3], blocks.k_star_star)
    with pytest.raises(ValueError, match="k_star_star must not be negative"):
        posterior.predict(blocks.K_star, -blocks.k_star_star)
    if name in LATER:
        with pytest.raises(ValueError, match="K_star and k_star_star.* (belong to K|covariances)"):
            posterior.predict(blocks.K_star, 0.01 * blocks.k_star_star)


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
    estimate = gpcmc.orthant_probability(np.eye(2), samples=100, rng=default_rng(0))
    assert isinstance(estimate, gpcmc.OrthantEstimate)
    with pytest.raises(AttributeError, match="has no attribute 'Classifier'"):
        _ = gpcmc.Classifier


def allow(monkeypatch, size):
    """Let this process have so many bytes."""
    limit = Limit(size, "this machine has")
    monkeypatch.setattr("gpcmc._validation.available_memory", lambda: limit)


@EVERY
def test_a_size_beyond_the_memory_is_refused(name, monkeypatch):
    _, _, blocks, y = problem()
    needed = method_class(name)(**QUICK.get(name, {})).memory(12)
    assert needed >= 6 * 8 * 12**2
    allow(monkeypatch, needed)
    fit(name, blocks, y)
    allow(monkeypatch, 0.99 * needed)
    with pytest.raises(MemoryError, match=r"needs about 0.0 GiB for n = 12 .* Laplace's method"):
        fit(name, blocks, y)


def test_a_refusal_says_what_fits(monkeypatch):
    allow(monkeypatch, 20 * 2.0**30)
    with pytest.raises(MemoryError) as caught:
        Twisted().check_size(20_000)
    assert str(caught.value) == (
        "Twisted needs about 24.0 GiB for n = 20000 training patterns; this machine has 20.0 GiB; "
        "Laplace's method needs 17.9"
    )
    with pytest.raises(MemoryError, match="with Laplace's method 21151 patterns would fit"):
        Twisted().check_size(60_000)
    assert ExpectationPropagation().check_size(10_000) is None


def test_stored_draws_need_memory():
    few, many = (HamiltonianMonteCarlo(samples=k) for k in (4_000, 4_000_000))
    assert many.memory(100) - few.memory(100) == 8 * 100 * 3_996_000


def test_memory_is_not_limited_where_the_system_does_not_say(monkeypatch, tmp_path):
    monkeypatch.setattr("gpcmc._memory._ROOT", tmp_path)  # no /proc, no /sys
    monkeypatch.delattr("os.sysconf")
    assert available_memory().bytes == np.inf


@pytest.mark.parametrize(
    ("cgroup", "files"),
    [
        ("0::/job/step", {"sys/fs/cgroup/job/memory.max": 3e6, "sys/fs/cgroup/memory.max": 5e6}),
        ("4:memory:/docker/1", {"sys/fs/cgroup/memory/memory.limit_in_bytes": 3e6}),
    ],
)
def test_a_control_group_limits_the_memory(cgroup, files, monkeypatch, tmp_path):
    """Both versions; the nearest group may be without a limit, or not be seen from a container."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"1:name=systemd:/\n{cgroup}\n")
    for name, limit in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{limit:.0f}\n")
    monkeypatch.setattr("gpcmc._memory._ROOT", tmp_path)
    assert available_memory() == (3e6, "the control group of this process allows")
    with pytest.raises(MemoryError, match="control group of this process allows 0.0 GiB"):
        ExpectationPropagation().check_size(1000)


def test_the_limit_of_the_address_space_counts():
    """In a process of its own: of 1.5 GiB, what is mapped already is not left."""
    code = (
        "import resource; from gpcmc.inference import ExpectationPropagation as EP\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))\n"
        "EP().check_size(500)\n"
        "try: EP().check_size(5000)\n"
        "except MemoryError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "limit of its address space (ulimit -v) leaves" in run.stdout

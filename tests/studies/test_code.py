"""Digests of code: an edit runs again what depends on it, and nothing else."""

import shutil
import sys
from contextlib import contextmanager

import pytest

from gpcmc.gp import prior, rbf
from gpcmc.inference import ConvergenceError, infer
from studies.atiya2021.methods import DETERMINISTIC, METHODS, MODULES, WITHOUT_PREDICTIONS
from studies.atiya2021.problems import synthetic_problem
from studies.common import code
from studies.common.seeds import generator

EXPERIMENT = "studies.atiya2021.experiments.experiment4"
#: Options with which a method takes a moment.
QUICK = {
    "orthant": {"samples": 1000},
    "twisted-ep": {"points": 16, "randomizations": 4},
    "minimax-tilting": {"points": 16, "randomizations": 4},
    "importance": {"samples": 64},
    "ess": {"samples": 1600, "burn_in": 10, "temperatures": 10},
    "hmc": {"samples": 1600, "burn_in": 10, "temperatures": 10},
    "gpml": {"samples": 8, "skip": 2, "burn_in": 2},
    "control-variables": {"iterations": 200, "burn_in": 10, "adaptation_rounds": 5},
    "ordered": {"samples": 1000},
    "annealed": {"temperatures": 10},
    "genz-bretz": {"points": 100},
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A copy of the packages, with notes of their digests: only what is edited is read anew."""
    folder = tmp_path_factory.mktemp("packages")
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "figures", "measures")
    for package in code.PACKAGES:
        shutil.copytree(code._SOURCE / package, folder / package, ignore=ignored)
    return folder


@pytest.fixture
def copy(packages, monkeypatch):
    """The same, in the place of the packages."""
    monkeypatch.setattr(code, "_SOURCE", packages)
    look_again(packages)
    return packages


def look_again(folder):
    """Look at every file again, as the next process does."""
    code.forget_modules()
    code.read_digests(folder / "notes.json")


@contextmanager
def edited(folder, file, edit):
    """A file with another line at its end."""
    source = folder / file
    text = source.read_text(encoding="utf-8")
    source.write_text(f"{text}\n{edit}\n", encoding="utf-8")
    look_again(folder)
    yield
    source.write_text(text, encoding="utf-8")


@pytest.fixture(autouse=True)
def forgotten():
    """Whatever a test looked at is looked at anew by the next one."""
    yield
    code.forget_modules()


ALL = ["orthant", "ess", "hmc", "laplace"]


@pytest.mark.parametrize(
    ("file", "edit", "spoiled"),
    [
        ("gpcmc/chains/hamiltonian.py", "x = 1", ["hmc"]),
        ("gpcmc/chains/annealing.py", "x = 1", ["ess", "hmc"]),
        ("gpcmc/orthant/_sampler.pyx", "x = 1", ALL),
        ("gpcmc/orthant/_kernels.h", "int x;", ALL),
        ("studies/atiya2021/experiment4.py", "x = 1", ALL),
        ("studies/atiya2021/experiments/experiment4.py", "x = 1", ALL),
        ("studies/atiya2021/problems.py", "x = 1", ALL),
        ("gpcmc/chains/hamiltonian.py", "# a comment\n\n", []),
        ("gpcmc/inference/__init__.py", "x = 1", []),
        ("studies/atiya2021/methods.py", "x = 1", []),
        ("studies/atiya2021/config.py", "x = 1", []),
        ("studies/atiya2021/settings.py", "x = 1", []),
        ("studies/common/rows.py", "x = 1", []),
        ("studies/common/data/download.py", "x = 1", []),
    ],
)
def test_an_edited_module_runs_the_jobs_again_that_depend_on_it(copy, file, edit, spoiled):
    def keys():
        return {name: code.digest([EXPERIMENT, MODULES[name]]) for name in ALL}

    before = keys()
    code.note_digests(copy / "notes.json")
    with edited(copy, file, edit):
        after = keys()
    assert sorted(name for name in before if before[name] != after[name]) == sorted(spoiled)


def test_a_named_module_counts_where_an_imported_one_does_not(copy):
    named = ["studies.atiya2021.problems", "studies.common.data.download"]
    before = code.digest(named)
    with edited(copy, "studies/common/data/download.py", "x = 1"):
        assert code.digest(named) != before
    with pytest.raises(ValueError, match="must name modules of .* got 'numpy'"):
        code.digest(["numpy"])


def test_the_table_of_modules_is_that_of_the_methods():
    assert {name: METHODS[name].__module__ for name in METHODS} == MODULES
    assert {name for name in METHODS if METHODS[name].deterministic} == set(DETERMINISTIC)


def test_comments_and_docstrings_are_no_code(copy):
    def digest(text):
        (copy / "gpcmc/made.py").write_text(text)
        look_again(copy)
        return code.digest(["gpcmc.made"])

    bare = digest('def f(x):\n    y = "# no comment"\n    return y\n')
    commented = '"""Doc."""\n\n# c\ndef f(x):  # c\n    """D,\n\n    lines."""\n    y = "# no comment"\n\n    return y'
    assert digest(commented) == bare
    assert digest('def f(x):\n    y = "# another"\n    return y\n') != bare
    assert digest('def f(x):\n    y = ""\n    return y\n') != bare


@pytest.mark.parametrize("method", sorted(MODULES))
def test_no_module_outside_the_digest_runs(method):
    """What the digest of a method covers is all the code of this package that its run enters."""
    problem = synthetic_problem(1, generator("7/problem"))
    fitter = METHODS[method](**QUICK.get(method, {}))
    entered = set()

    def watch(frame, event, argument):
        entered.add(frame.f_globals.get("__name__", ""))

    sys.setprofile(watch)
    try:
        X_star = None if method in WITHOUT_PREDICTIONS else problem.X_test[:3]
        gp = prior(rbf(1.0, 1.0), problem.X_train[:12], X_star)
        infer(fitter, gp, problem.y_train[:12], rng=generator("7/run"))
    except ConvergenceError:
        pass  # so short a chain need not converge
    finally:
        sys.setprofile(None)
    ours = {name for name in entered if name.startswith(code.PACKAGES) and "." in name}
    assert MODULES[method] in ours
    assert ours <= code.code_digests([EXPERIMENT, MODULES[method]]).keys()

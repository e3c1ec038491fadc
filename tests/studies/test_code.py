"""Digests of code: an edit runs again what depends on it, and nothing else."""

import functools
import shutil
import sys

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


def copy_of_the_packages(folder, monkeypatch):
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "figures", "measures")
    for package in code.PACKAGES:
        shutil.copytree(code._SOURCE / package, folder / package, ignore=ignored)
    monkeypatch.setattr(code, "_SOURCE", folder)
    forget(monkeypatch)
    return folder


def forget(monkeypatch):
    """Look at every file again."""
    for name in ("_module", "_path"):
        monkeypatch.setattr(code, name, functools.cache(getattr(code, name).__wrapped__))


ALL = ["orthant", "ess", "hmc", "laplace"]


@pytest.mark.parametrize(
    ("file", "edit", "spoiled"),
    [
        ("gpcmc/inference/hamiltonian.py", "x = 1", ["hmc"]),
        ("gpcmc/inference/annealing.py", "x = 1", ["ess", "hmc"]),
        ("gpcmc/orthant/_sampler.pyx", "x = 1", ALL),
        ("gpcmc/orthant/_kernels.h", "int x;", ALL),
        ("studies/atiya2021/experiment4.py", "x = 1", ALL),
        ("studies/atiya2021/experiments/experiment4.py", "x = 1", ALL),
        ("studies/atiya2021/problems.py", "x = 1", ALL),
        ("gpcmc/inference/hamiltonian.py", "# a comment\n\n", []),
        ("gpcmc/inference/__init__.py", "x = 1", []),
        ("studies/atiya2021/methods.py", "x = 1", []),
        ("studies/atiya2021/config.py", "x = 1", []),
        ("studies/common/rows.py", "x = 1", []),
        ("studies/common/data/download.py", "x = 1", []),
    ],
)
def test_an_edited_module_runs_the_jobs_again_that_depend_on_it(
    tmp_path, monkeypatch, file, edit, spoiled
):
    folder = copy_of_the_packages(tmp_path, monkeypatch)

    def keys():
        return {name: code.digest([EXPERIMENT, MODULES[name]]) for name in ALL}

    before = keys()
    with open(folder / file, "a") as source:
        source.write(f"\n{edit}\n")
    forget(monkeypatch)
    after = keys()
    assert sorted(name for name in before if before[name] != after[name]) == sorted(spoiled)


def test_a_named_module_counts_where_an_imported_one_does_not(tmp_path, monkeypatch):
    folder = copy_of_the_packages(tmp_path, monkeypatch)
    named = ["studies.atiya2021.problems", "studies.common.data.download"]
    before = code.digest(named)
    with open(folder / "studies/common/data/download.py", "a") as source:
        source.write("\nx = 1\n")
    forget(monkeypatch)
    assert code.digest(named) != before
    with pytest.raises(ValueError, match="must name modules of .* got 'numpy'"):
        code.digest(["numpy"])


def test_the_table_of_modules_is_that_of_the_methods():
    assert {name: METHODS[name].__module__ for name in METHODS} == MODULES
    assert {name for name in METHODS if METHODS[name].deterministic} == set(DETERMINISTIC)


def test_comments_and_docstrings_are_no_code(tmp_path, monkeypatch):
    folder = copy_of_the_packages(tmp_path, monkeypatch)

    def digest(text):
        (folder / "gpcmc/made.py").write_text(text)
        forget(monkeypatch)
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


def test_no_method_rests_on_covariances_of_low_rank():
    """These take the methods, and not the other way round: an edit there makes no kept row old."""
    names = ["gpcmc.gaussian.ep", "gpcmc.rectangle.classification", "gpcmc.gaussian.laplace"]
    found = code.code_digests(names)
    assert "gpcmc.methods" in found
    assert not [name for name in found if name.startswith("gpcmc.lowrank")]

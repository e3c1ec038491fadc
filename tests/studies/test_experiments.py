"""Problems, seeds and pieces of the experiments, and small runs of them."""

import dataclasses
import functools
import json
import shutil
import sys

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gpcmc.gp import prior, rbf
from gpcmc.inference import ConvergenceError, infer
from studies.atiya2021 import calibration, experiment1, experiment4, problems
from studies.atiya2021.calibration import BUDGET, calibrate, calibrate_all, uncalibrated
from studies.atiya2021.experiment2 import experiment2
from studies.atiya2021.methods import DETERMINISTIC, METHODS, MODULES
from studies.atiya2021.problems import (
    EXPERIMENT2,
    Problem,
    data_set_seed,
    further_data_set,
    synthetic_problem,
    two_class_data,
)
from studies.common import code, data, pieces
from studies.common.pieces import Pieces
from studies.common.seeds import generator, seed

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
}


def test_seeds_name_streams():
    path = seed(1, "experiment1", "N50")
    assert path == "1/experiment1/N50"
    assert generator(path).random() == generator("1/experiment1/N50").random()
    others = ["1", "2/experiment1/N50", "1/experiment1/N5", "1/experiment1", "1/experiment1/N50/0"]
    assert len({generator(p).random() for p in [path, *others]}) == 6
    with pytest.raises(ValueError, match="path must begin with the root"):
        generator("experiment1/N50")


def test_finished_pieces_survive_and_stale_ones_do_not(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return [{"x": 0.1, "y": float("nan")}], [{"seconds": 1.0}], {"p": np.arange(3.0)}

    def run(samples=2):
        pieces = Pieces(tmp_path / "job", ["studies.common.seeds"], {"grid": [1, samples]})
        return pieces, pieces.get("set1", compute)

    (_, first), (_, second) = run(), run()
    assert len(calls) == 1
    assert first[0][0]["x"] == second[0][0]["x"]
    np.testing.assert_array_equal(second[2]["p"], np.arange(3.0))
    other, _ = run(3)
    assert len(calls) == 2
    other.finish()
    assert (tmp_path / "job" / "done").exists()
    (piece,) = (tmp_path / "job").glob("*.npz")
    (record,) = (tmp_path / "job").glob("*.json")
    assert piece.stem == f"set1-{record.stem}", "pieces of other keys are not kept"
    assert json.loads(record.read_text())["parameters"] == {"grid": [1, 3]}
    run(4)
    assert not (tmp_path / "job" / "done").exists(), "a job that has begun again is not done"


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
        ("studies/atiya2021/problems.py", "x = 1", ALL),
        ("gpcmc/inference/hamiltonian.py", "# a comment\n\n", []),
        ("gpcmc/inference/__init__.py", "x = 1", []),
        ("studies/atiya2021/methods.py", "x = 1", []),
        ("studies/atiya2021/jobs.py", "x = 1", []),
        ("studies/common/pieces.py", "x = 1", []),
        ("studies/common/data/parse.py", "x = 1", []),
    ],
)
def test_an_edited_module_spoils_the_pieces_that_depend_on_it(
    tmp_path, monkeypatch, file, edit, spoiled
):
    folder = copy_of_the_packages(tmp_path, monkeypatch)

    def keys():
        return {name: code.digest(["studies.atiya2021.experiment4", MODULES[name]]) for name in ALL}

    before = keys()
    made_from = pieces.record(["studies.atiya2021.experiment4", MODULES["hmc"]], None)
    assert pieces.outdated(made_from) == []
    with open(folder / file, "a") as source:
        source.write(f"\n{edit}\n")
    forget(monkeypatch)
    after = keys()
    assert sorted(name for name in before if before[name] != after[name]) == sorted(spoiled)
    changed = pieces.outdated(made_from)
    assert bool(changed) == ("hmc" in spoiled)
    assert all(name.startswith(code.PACKAGES) for name in changed)


def test_a_named_module_counts_where_an_imported_one_does_not(tmp_path, monkeypatch):
    folder = copy_of_the_packages(tmp_path, monkeypatch)
    named = ["studies.atiya2021.problems", "studies.common.data.parse"]
    before = code.digest(named)
    with open(folder / "studies/common/data/parse.py", "a") as source:
        source.write("\nx = 1\n")
    forget(monkeypatch)
    assert code.digest(named) != before
    with pytest.raises(ValueError, match="must name modules of gpcmc or studies; got 'numpy'"):
        code.digest(["numpy"])


def test_the_table_of_modules_is_that_of_the_methods():
    assert {name: METHODS[name].__module__ for name in METHODS} == MODULES
    assert {name for name in METHODS if METHODS[name].deterministic} == set(DETERMINISTIC)


def test_patterns_are_named_by_what_they_are_but_for_rounding():
    problem = synthetic_problem(1, generator("7/problem"))
    name = problems.patterns_digest(problem)
    nearly = dataclasses.replace(problem, X_train=problem.X_train + 1e-13)
    assert problems.patterns_digest(nearly) == name
    for field in ("X_train", "y_train", "X_test", "y_test", "bayes_posterior"):
        other = dataclasses.replace(problem, **{field: getattr(problem, field)[::-1]})
        assert problems.patterns_digest(other) != name
    assert problems.patterns_digest(None) is None


def test_a_library_of_another_version_spoils_pieces():
    made_from = pieces.record(["gpcmc.inference.ep"], None)
    made_from["libraries"]["numpy"] = "1.0"
    assert pieces.outdated(made_from) == ["numpy"]
    assert pieces.outdated(made_from | {"modules": ["gpcmc.gone"]}) == ["gpcmc.gone"]


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
def test_no_module_outside_the_key_runs(method):
    """What a method's key rests on is all the code of this package that its run enters."""
    problem = synthetic_problem(1, generator("7/problem"))
    fitter = METHODS[method](**QUICK.get(method, {}))
    entered = set()

    def watch(frame, event, argument):
        entered.add(frame.f_globals.get("__name__", ""))

    sys.setprofile(watch)
    try:
        gp = prior(rbf(1.0, 1.0), problem.X_train[:12], problem.X_test[:3])
        infer(fitter, gp, problem.y_train[:12], rng=generator("7/run"))
    except ConvergenceError:
        pass  # so short a chain need not converge
    finally:
        sys.setprofile(None)
    ours = {name for name in entered if name.startswith(code.PACKAGES) and "." in name}
    assert MODULES[method] in ours
    assert ours <= code.code_digests(["studies.atiya2021.experiment4", MODULES[method]]).keys()


def test_an_interrupted_job_redoes_only_what_was_unfinished(tmp_path, monkeypatch):
    grid = [{"samples": 100, "instances": 4}]
    options = {"root": 1, "grid": grid, "count": "hard", "scheme": "bootstrap"}
    whole = experiment1.experiment1(10, pieces=Pieces(tmp_path / "whole", [], options), **options)

    pieces = Pieces(tmp_path / "parts", [], options)
    original, calls = experiment1.orthant_probability, []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(experiment1, "orthant_probability", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiment1.experiment1(10, pieces=pieces, **options)
    resumed = experiment1.experiment1(10, pieces=pieces, **options)
    assert len(calls) == 5, "two problems were finished, the third ran twice, the fourth once"
    assert resumed[0] == whole[0]


def test_two_class_data_have_the_stated_law():
    problem = EXPERIMENT2[3]
    xs, ys = [], []
    for k in range(200):
        x, y, x_star = two_class_data(problem, np.random.default_rng(k))
        assert (len(x), len(x_star)) == (400, 200)
        assert y.sum() == 0
        xs.append(x)
        ys.append(y)
    x, y = np.concatenate(xs), np.concatenate(ys)
    # 40,000 draws a class: means to 5 standard errors
    for label, mean, deviation in zip((1, -1), problem.means, problem.deviations, strict=True):
        assert abs(x[y == label].mean() - mean) < 5 * deviation / 200
        assert x[y == label].std() == pytest.approx(deviation, rel=0.02)
    assert abs(np.corrcoef(y[:-1], y[1:])[0, 1]) < 0.02, "classes must be shuffled"


@pytest.mark.parametrize("number", sorted(problems.SYNTHETIC))
def test_synthetic_problems(number):
    law = problems.SYNTHETIC[number]
    problem = synthetic_problem(number, np.random.default_rng(0))
    assert problem.X_train.shape == (law.n_train, len(law.mean))
    assert problem.X_test.shape == (law.n_test, len(law.mean))
    assert problem.y_train.sum() == 0
    x = problem.X_test[0]
    one = multivariate_normal.pdf(x, np.zeros(len(x)), np.eye(len(x)))
    two = multivariate_normal.pdf(x, law.mean, law.cov)
    assert problem.bayes_posterior[0] == pytest.approx(one / (one + two))
    # the posterior is calibrated: it agrees with the labels on average, to 5 standard errors
    many = [synthetic_problem(number, np.random.default_rng(k)) for k in range(40)]
    p = np.concatenate([m.bayes_posterior for m in many])
    y = np.concatenate([m.y_test for m in many]) > 0
    assert abs(p.mean() - y.mean()) < 5 * np.sqrt(np.mean(p * (1 - p)) / len(p))


def test_covariance_of_ten_dimensions_is_the_papers():
    cov = problems.SYNTHETIC[5].cov
    assert cov[0, 0] == 0.5 and cov[0, 1] == cov[1, 0] == 0.2 and cov[0, 2] == 0.0
    assert np.linalg.eigvalsh(cov)[0] == pytest.approx(0.116, abs=1e-3)


@pytest.mark.slow
def test_experiment2_errors_are_small_and_fall(tmp_path):
    grid = [{"samples": m, "datasets": 2, "runs": 3} for m in (500, 50_000)]
    rows, timing, arrays = experiment2(
        1, root=1, grid=grid, pieces=Pieces(tmp_path, [], 0), count="hard", scheme="bootstrap"
    )
    assert len(rows) == len(timing) == 12
    assert set(arrays) == {"truth_dataset0", "truth_dataset1"}
    mae = {m: np.mean([r["mae"] for r in rows if r["samples"] == m]) for m in (500, 50_000)}
    assert mae[50_000] < mae[500] / 3  # ten times the root: a factor 10 expected
    assert all(
        abs(r["estimate"] - r["truth"]) < 6 * r["standard_error"]
        for r in rows
        if r["samples"] > 500
    )


def test_experiment4_methods_agree_and_missing_data_are_said(tmp_path):
    problem = synthetic_problem(1, np.random.default_rng(0))
    options = {"root": 1, "hyperparameters": [{"set": 3, "alpha": 3.0, "beta": 2.0}]}
    results = {}
    for method, given, replicates in (
        ("orthant", {"samples": 20_000}, 3), ("laplace", {}, None), ("ep", {}, None),
    ):  # fmt: skip
        pieces = Pieces(tmp_path / method, [], 0)
        rows, _, arrays = experiment4.experiment4(
            1, f"row-{method}", problem, method=method, replicates=replicates, data_sets=1,
            options=given, pieces=pieces, **options,
        )  # fmt: skip
        assert {row["method"] for row in rows} == {f"row-{method}"}
        assert arrays["ok_set3"].all() and list(arrays["dataset_set3"]) == [0] * (replicates or 1)
        assert [row["status"] for row in rows] == ["ok"] * (replicates or 1)
        assert not rows[0]["trivial"]
        results[method] = rows[0]["log_evidence"], arrays["probability_set3"].mean(axis=0)
    assert results["ep"][0] == pytest.approx(results["orthant"][0], abs=0.1)
    np.testing.assert_allclose(results["ep"][1], results["orthant"][1], atol=0.02)
    np.testing.assert_allclose(results["laplace"][1], results["ep"][1], atol=0.05)
    rows, timing, arrays = experiment4.experiment4(
        7,
        "ep",
        None,
        method="ep",
        replicates=None,
        data_sets=1,
        options={},
        pieces=Pieces(tmp_path / "none", [], 0),
        **options,
    )
    assert rows[0]["status"] == "data not available"
    assert [row["cpu_seconds"] for row in timing] == [None] * len(rows) and not arrays


def test_a_kernel_of_isolated_patterns_is_marked_trivial(tmp_path):
    problem = synthetic_problem(1, np.random.default_rng(0))
    rows, _, arrays = experiment4.experiment4(
        1, "ep", problem, root=1, hyperparameters=[{"set": 4, "alpha": 1e-6, "beta": 0.5}],
        method="ep", replicates=None, data_sets=1, options={}, pieces=Pieces(tmp_path, [], 0),
    )  # fmt: skip
    assert rows[0]["trivial"]
    assert rows[0]["log_evidence"] == pytest.approx(-50 * np.log(2))
    np.testing.assert_allclose(arrays["probability_set4"], 0.5)


def test_further_data_sets_get_one_run_each(tmp_path):
    problem = synthetic_problem(1, generator(data_set_seed(1, 0, 5)))
    rows, _, arrays = experiment4.experiment4(
        1, "orthant", problem, root=5, hyperparameters=[{"set": 3, "alpha": 3.0, "beta": 2.0}],
        method="orthant", replicates=3, data_sets=3, options={"samples": 500, "scheme": "adapted"},
        pieces=Pieces(tmp_path, [], 0),
    )  # fmt: skip
    assert [(row["dataset"], row["replicate"]) for row in rows] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (2, 0),
    ]
    assert len({row["seed"] for row in rows}) == 5
    of_dataset = [np.mean([r["log_evidence"] for r in rows if r["dataset"] == d]) for d in range(3)]
    assert np.ptp(of_dataset) > 0.5, "other data have another evidence"
    assert list(arrays["dataset_set3"]) == [0, 0, 0, 1, 2]


@pytest.mark.parametrize("standardise", [True, False])
def test_further_data_sets_of_real_data_are_other_splits(standardise):
    rng = np.random.default_rng(3)
    X, y = rng.normal(2.0, 3.0, (90, 2)), np.repeat([1.0, -1.0], [30, 60])
    raw = data.RawData("made", X, y, (), ("-1", "+1"), ())
    parts = data.split(raw, 40, 50, standardise=standardise, rng=rng)
    first = Problem(parts.X_train, parts.y_train, parts.X_test, parts.y_test, np.full(50, np.nan))
    one, two = (further_data_set(7, first, k, root=5, standardise=standardise) for k in (1, 2))
    for other in (one, two):
        assert other.X_train.shape == (40, 2) and other.X_test.shape == (50, 2)
        assert abs(np.sum(other.y_train > 0) - 40 / 3) < 1, "stratified"
        if standardise:
            np.testing.assert_allclose(other.X_train.mean(axis=0), 0.0, atol=1e-12)
            np.testing.assert_allclose(other.X_train.std(axis=0), 1.0)
        # the same patterns, up to the shift and scale of each split
        pooled = np.concatenate([other.X_train, other.X_test])
        standard = (pooled - pooled.mean(axis=0)) / pooled.std(axis=0)
        expected = (X - X.mean(axis=0)) / X.std(axis=0)
        np.testing.assert_allclose(np.sort(standard, axis=0), np.sort(expected, axis=0))
    assert not np.array_equal(one.y_train, two.y_train)
    again = further_data_set(7, first, 1, root=5, standardise=standardise)
    np.testing.assert_array_equal(again.X_train, one.X_train)


def test_a_chain_of_the_toolbox_is_read_in_three_ways(tmp_path):
    problem = synthetic_problem(1, generator(data_set_seed(1, 0, 5)))
    options = {"sampler": "ess", "samples": 8, "skip": 2, "burn_in": 2, "annealing_runs": 2}
    rows, _, arrays = experiment4.experiment4(
        1, "chain", problem, root=5, hyperparameters=[{"set": 3, "alpha": 3.0, "beta": 2.0}],
        method="gpml", replicates=3, data_sets=2, options=options, pieces=Pieces(tmp_path, [], 0),
    )  # fmt: skip
    np.testing.assert_array_equal(arrays["probability_twice_set3"], arrays["probability_set3"])
    assert [row["mae_post_twice"] for row in rows] == [row["mae_post"] for row in rows]
    for name in ("once", "moments"):
        assert arrays[f"probability_{name}_set3"].shape == (4, 50)
        assert not np.allclose(arrays[f"probability_{name}_set3"], arrays["probability_set3"])
        errors = np.abs(arrays[f"probability_{name}_set3"][0] - problem.bayes_posterior)
        assert rows[0][f"mae_post_{name}"] == pytest.approx(np.mean(errors))


@pytest.mark.slow
def test_a_failed_run_has_its_seconds_and_pieces_of_few_runs_make_the_same(tmp_path, monkeypatch):
    problem = synthetic_problem(6, generator(data_set_seed(6, 0, 5)))
    options = {
        "root": 5,
        "hyperparameters": [{"set": 6, "alpha": 0.5, "beta": 3.0}],
        "method": "orthant",
        "replicates": 4,
        "data_sets": 1,
        "options": {"samples": 2000, "runs": 1},
    }
    rows, timing, arrays = experiment4.experiment4(
        6, "orthant", problem, pieces=Pieces(tmp_path / "whole", [], 0), **options
    )
    assert "extinct" in {row["status"] for row in rows}, "of so few samples"
    assert [row["replicate"] for row in timing] == [0, 1, 2, 3]
    assert all(row["cpu_seconds"] > 0 for row in timing)
    monkeypatch.setattr(experiment4, "RUNS", 1)
    parts, _, of_parts = experiment4.experiment4(
        6, "orthant", problem, pieces=Pieces(tmp_path / "parts", [], 0), **options
    )
    assert len(list((tmp_path / "parts").glob("set6_run*.npz"))) == 4
    assert parts == rows and of_parts.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(of_parts[name], array)


def test_the_sampler_says_how_near_to_extinction_it_was(tmp_path):
    problem = synthetic_problem(1, generator(data_set_seed(1, 0, 5)))
    rows, _, _ = experiment4.experiment4(
        1, "orthant", problem, root=5, hyperparameters=[{"set": 3, "alpha": 3.0, "beta": 2.0}],
        method="orthant", replicates=1, data_sets=1, options={"samples": 1000},
        pieces=Pieces(tmp_path, [], 0),
    )  # fmt: skip
    assert rows[0]["extinct_populations"] == 0.0
    assert 0.0 < rows[0]["least_stage_probability"] < 0.5  # that of the first pattern


class Clock:
    """A processor whose runs take what the test says."""

    def __init__(self, monkeypatch, cost):
        self.now = 0.0
        monkeypatch.setattr(calibration.time, "process_time", lambda: self.now)

        def infer(method, gp, y, *, rng):
            self.now += cost(method)

        monkeypatch.setattr(calibration, "infer", infer)


def test_calibrated_counts_take_the_budget(monkeypatch):
    """Also where a long run is dearer a sample than a short one, as when it leaves the caches."""

    def cost(method):
        if hasattr(method, "points"):
            return 0.2 + 1e-4 * method.points
        return 0.1 + 1e-5 * method.samples * (1.0 if method.samples < 50_000 else 1.4)

    Clock(monkeypatch, cost)
    problem = synthetic_problem(1, np.random.default_rng(0))
    rows = {
        "orthant": {"method": "orthant", "options": {}},
        "best": {"method": "twisted-ep", "options": {}},
        "fixed": {"method": "orthant", "options": {"samples": 10}},
    }
    for budget in (0.11, 0.5, 3.0, 200.0):
        same, counts = calibrate(problem, rows, root=1, alpha=5.0, beta=1.0, budget=budget)
        assert same == budget and counts.keys() == {"orthant", "best"}
        taken = cost(METHODS["orthant"](**counts["orthant"]))
        assert taken == pytest.approx(max(budget, 0.12), rel=0.15), budget
        taken = cost(METHODS["twisted-ep"](**counts["best"]))
        assert 1 / 1.5 < taken / max(budget, 0.2) < 1.5, budget
    measured, _ = calibrate(problem, rows | {BUDGET: rows["fixed"]}, root=1, alpha=5.0, beta=1.0)
    assert measured == pytest.approx(0.1001)


def test_a_run_that_may_not_be_compared_says_so_and_is_marked(tmp_path):
    problem = synthetic_problem(1, generator(data_set_seed(1, 0, 5)))
    rows, timing, arrays = experiment4.experiment4(
        1, "ess", problem, root=5, hyperparameters=[{"set": 6, "alpha": 0.5, "beta": 3.0}],
        method="ess", replicates=3, data_sets=1, pieces=Pieces(tmp_path, [], 0),
        options={"samples": 64, "burn_in": 2, "temperatures": 0, "thin": 1, "chains": 4},
    )  # fmt: skip
    assert {row["status"] for row in rows} == {"not converged"}
    assert rows[0]["log_evidence"] is None and rows[0]["effective_samples"] < 100
    assert not arrays["ok_set6"].any() and len(timing) == 3


def test_a_calibration_ignores_the_counts_that_it_finds(monkeypatch):
    row = {"method": "ess", "replicates": 3, "samples": list(range(9)), "thin": 5, "burn_in": 7}
    assert uncalibrated(row, 2) == {"method": "ess", "options": {"thin": 5, "burn_in": 7}}
    listed = {"method": "hmc", "leapfrog_steps": list(range(9)), "replicates": [3] * 9}
    assert uncalibrated(listed, 2) == {"method": "hmc", "options": {"leapfrog_steps": 1}}
    Clock(monkeypatch, lambda method: 0.1 + 1e-5 * getattr(method, "samples", 0))
    methods = {
        "orthant": {"method": "orthant", "samples": [9] * 9, "replicates": 3},
        "control-variables": {"method": "control-variables", "replicates": 3},
    }
    first = dict.fromkeys(range(1, 10), synthetic_problem(1, np.random.default_rng(0)))
    text = calibrate_all(problems=first, methods=methods, root=1, alpha=5.0, beta=1.0)
    assert (
        text.startswith("# Made by `snakemake calibrate`")
        and "orthant" in text
        and "[2000, 2000" in text
    )
    with pytest.raises(ValueError, match="problem 7 must have data"):
        calibrate_all(problems=first | {7: None}, methods=methods, root=1, alpha=5.0, beta=1.0)

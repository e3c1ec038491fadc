"""Rows of the paper's experiments: plans, small runs, known truths, and the calibration of counts."""

import dataclasses

import numpy as np
import pytest
from small import QUICK, atiya2021, first, modules, plan, run_rows

from studies.atiya2021 import calibration
from studies.atiya2021.calibration import BUDGET, calibrate, calibrate_all, uncalibrated
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import synthetic_problem
from studies.atiya2021.settings import Row

EXPERIMENTS = modules("atiya2021", "experiments")


def rows_of(experiment, *block, seed=5, **changes):
    return plan("atiya2021", experiment, atiya2021(*block), seed=seed, **changes)


def ran(*block, experiment="experiment4", problem=None, **changes):
    """Lines, arrays and timing of the rows of some methods and settings."""
    inputs = {"problem": first(1) if problem is None else problem}
    table = run_rows(EXPERIMENTS[experiment].run, rows_of(experiment, *block, **changes), inputs)
    return table.rows.to_dict("records"), table.arrays, table.timing.to_dict("records")


def lines_of(experiment, **changes):
    return ran(experiment=experiment, seed=20210308, **changes)[0]


def test_runs_of_experiment_1_estimate_the_known_truth():
    lines = lines_of("experiment1")
    assert [(line["instance"], line["samples"]) for line in lines[:3]] == [
        (0, 100),
        (0, 300),
        (1, 100),
    ]
    for line in lines:
        assert abs(line["estimate"] - line["truth"]) < 6 * line["standard_error"]
        assert line["bias_eq43"] == -line["variance_eq44"] / 2


def test_fine_grids_are_exact():
    lines = lines_of("quadrature")
    assert {line["du"] for line in lines} == {0.2, 0.1, 0.05, 0.02}
    assert all(line["ape_percent"] < 1e-9 for line in lines if line["du"] < 0.1)


def test_errors_of_experiment_2_are_small_and_fall():
    grid = [{"samples": m, "datasets": 2, "runs": 3} for m in (500, 50_000)]
    rows = lines_of("experiment2", experiment2__grid=grid)
    assert len(rows) == 12
    mae = {m: np.mean([r["mae"] for r in rows if r["samples"] == m]) for m in (500, 50_000)}
    assert mae[50_000] < mae[500] / 3  # ten times the root: a factor 10 expected
    assert all(
        abs(r["estimate"] - r["truth"]) < 6 * r["standard_error"]
        for r in rows
        if r["samples"] > 500
    )


def test_a_sample_size_of_experiment_2_may_be_for_some_problems():
    """A problem that has more runs than others keeps the rows that it shares with them."""
    few, size = {"samples": 500, "datasets": 3, "runs": 1}, {"datasets": 2, "runs": 2}
    grids = (
        [few, size | {"samples": 100}],
        [
            few,
            size | {"samples": 100, "problems": [1, 3]},
            {"samples": 100, "datasets": 3, "runs": 4, "problems": [2]},
        ],
    )
    both = [
        rows_of("experiment2", experiment2__problems=[1, 2], experiment2__grid=grid)
        for grid in grids
    ]
    names = [{row["row"]: row["seed"] for row in rows} for rows in both]
    more = names[1].keys() - names[0].keys()
    assert names[0].items() <= names[1].items()
    assert len(more) == 12 - 4 and all(name.startswith("problem2/") for name in more)


def test_a_method_of_the_study_of_scaling_may_be_for_some_sizes():
    own = {"method": "orthant", "samples": 50, "smallest": 13, "largest": 16}
    curve = {"patterns": 16, "kernels": ["rough"], "counts": {}}
    methods = {"some": own, "all": {"method": "ep"}}
    rows = rows_of("scaling", scaling__methods=methods, scaling__curve=curve)
    sizes = {name: {r["N"] for r in rows if r["method"] == name} for name in ("some", "all")}
    assert sizes == {"some": {16}, "all": {12, 16}}


def test_both_counts_share_their_samples():
    lines = {(r["order"], r["count"]): r for r in lines_of("ordering") if r["dataset"] == 0}
    assert {order for order, _ in lines} == {"sorted", "shuffled", "interleaved"}
    for order in ("sorted", "shuffled", "interleaved"):
        hard, soft = lines[order, "hard"], lines[order, "soft"]
        assert hard["seed"] == soft["seed"]
        assert hard["log_evidence_error"] != soft["log_evidence_error"]


def test_defects_are_compared_on_shared_chains():
    one, other = (EXPERIMENTS[name].run for name in ("defects_reference", "defects"))
    reference = run_rows(one, rows_of("defects_reference", seed=20210308), {})
    given = {"reference": reference.arrays}
    rows = {row["row"]: row for row in rows_of("defects", seed=20210308)}
    found = other(rows["smooth/ess/samples8/replicate0"], given)
    lines = {line["switched"]: line for line in found.lines}
    assert lines.keys() > {"all", "none"} and len({line["seed"] for line in found.lines}) == 1
    (known,) = reference.rows.loc[reference.rows["case"] == "smooth", "log_evidence"]
    for line in found.lines:
        assert line["reference"] == known
        assert line["log_evidence_error"] == line["log_evidence"] - known
    assert len(found.timing) < len(found.lines), "sets that differ in reading share their chains"
    linear = other(rows["linear/ess/samples8/replicate0"], given)
    assert all(line["reference_se"] == 0.0 for line in linear.lines), "the truth is known"


def test_images_as_scanned_are_for_the_methods_of_the_paper():
    methods = {"orthant": QUICK["adapted"], "ep": {"method": "ep"}}
    changes = {"experiment4__problems": [1, 9], "experiment4__scanned": True}
    plan = rows_of("experiment4", methods, **changes)
    assert {(row["problem"], row["method"]) for row in plan} == {
        (1, "orthant"), (1, "ep"), (9, "orthant"), (9, "ep"), ("9_raw", "orthant"),
    }  # fmt: skip
    smoothed, scanned = (
        [row["seed"] for row in plan if (row["problem"], row["method"]) == (problem, "orthant")]
        for problem in (9, "9_raw")
    )
    assert scanned == smoothed, "only the images differ"


def test_methods_agree_and_missing_data_are_said():
    methods = {
        "row-orthant": {"method": "orthant", "samples": 20_000, "replicates": 3},
        "row-laplace": {"method": "laplace"},
        "row-ep": {"method": "ep"},
    }
    problem = dataclasses.asdict(synthetic_problem(1, np.random.default_rng(0)))
    rows, arrays, _ = ran(methods, problem=problem, seed=1)
    assert {row["status"] for row in rows} == {"ok"}
    assert not any(row["trivial"] for row in rows)
    p = dict(zip(arrays["problem1/probability/rows"], arrays["problem1/probability"], strict=True))
    evidence = {row["method"]: row["log_evidence"] for row in rows if row["replicate"] == 0}
    mean = {
        name: np.mean([one for row, one in p.items() if f"/{name}/" in row], axis=0)
        for name in methods
    }
    assert evidence["row-ep"] == pytest.approx(evidence["row-orthant"], abs=0.1)
    np.testing.assert_allclose(mean["row-ep"], mean["row-orthant"], atol=0.02)
    np.testing.assert_allclose(mean["row-laplace"], mean["row-ep"], atol=0.05)
    rows, arrays, timing = ran(methods, problem={})
    assert {row["status"] for row in rows} == {"data not available"}
    assert len(rows) == len(timing) == 5 and not arrays


def test_a_kernel_of_isolated_patterns_is_marked_trivial():
    methods = {name: QUICK[name] for name in ("adapted", "ep")}
    rows, arrays, _ = ran(methods, [(4, 1e-6, 0.5)])
    for row in rows:
        assert row["trivial"]
        assert row["log_evidence"] == pytest.approx(-50 * np.log(2))
    np.testing.assert_allclose(arrays["problem1/probability"], 0.5)


def test_further_data_sets_get_one_run_each():
    rows, _, _ = ran({"orthant": QUICK["adapted"] | {"samples": 500, "data_sets": 3}})
    runs = [(row["dataset"], row["replicate"]) for row in rows]
    assert runs == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]
    assert len({row["seed"] for row in rows}) == 5
    of_dataset = [np.mean([r["log_evidence"] for r in rows if r["dataset"] == d]) for d in range(3)]
    assert np.ptp(of_dataset) > 0.5, "other data have another evidence"


def test_a_chain_of_the_toolbox_is_read_in_three_ways():
    rows, arrays, _ = ran({"chain": QUICK["chain"]})
    assert "problem1/probability_twice" not in arrays, "it is the prediction"
    assert [row["mae_post_twice"] for row in rows] == [row["mae_post"] for row in rows]
    for name in ("once", "moments"):
        found = arrays[f"problem1/probability_{name}"]
        assert found.shape == (4, 50)
        assert not np.allclose(found, arrays["problem1/probability"])
        errors = np.abs(found[0] - first(1)["bayes_posterior"])
        assert rows[0][f"mae_post_{name}"] == pytest.approx(np.mean(errors))
    (_, *_), arrays, _ = ran({"chain": QUICK["chain"]}, experiment="benchmark")
    assert {name.removesuffix("/rows") for name in arrays} == {"problem1/probability"}


def test_a_failed_run_has_its_seconds():
    methods = {"orthant": {"method": "orthant", "samples": 2000, "runs": 1, "replicates": 4}}
    rows, _, timing = ran(methods, [(6, 0.5, 3.0)], problem=first(6), experiment4__problems=[6])
    assert "extinct" in {row["status"] for row in rows}, "of so few samples"
    assert [row["row"] for row in timing] == [row["row"] for row in rows]
    assert all(row["cpu_seconds"] > 0 for row in timing)


def test_the_sampler_says_how_near_to_extinction_it_was():
    rows, _, _ = ran({"orthant": {"method": "orthant", "samples": 1000, "replicates": 3}})
    assert rows[0]["extinct_populations"] == 0.0
    assert 0.0 < rows[0]["least_stage_probability"] < 0.5  # that of the first pattern


def test_a_run_that_may_not_be_compared_says_so():
    options = {"samples": 64, "burn_in": 2, "temperatures": 0, "thin": 1, "chains": 4}
    rows, _, timing = ran({"ess": {"method": "ess", "replicates": 3, **options}}, [(6, 0.5, 3.0)])
    assert {row["status"] for row in rows} == {"not converged"}
    assert np.isnan(rows[0]["log_evidence"]) and rows[0]["effective_samples"] < 100
    assert len(timing) == 3


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


def test_a_calibration_ignores_the_counts_that_it_finds(monkeypatch):
    row = Row(method="ess", replicates=3, samples=list(range(9)), thin=5, burn_in=7)
    assert uncalibrated(row, 2) == {"method": "ess", "options": {"thin": 5, "burn_in": 7}}
    listed = Row(method="hmc", leapfrog_steps=list(range(9)), replicates=[3] * 9)
    assert uncalibrated(listed, 2) == {"method": "hmc", "options": {"leapfrog_steps": 1}}
    Clock(monkeypatch, lambda method: 0.1 + 1e-5 * getattr(method, "samples", 0))
    methods = {
        "orthant": Row(method="orthant", samples=[9] * 9, replicates=3),
        "control-variables": Row(method="control-variables", replicates=3),
    }
    patterns = dict.fromkeys(range(1, 10), synthetic_problem(1, np.random.default_rng(0)))
    text = calibrate_all(patterns, methods, root=1, alpha=5.0, beta=1.0)
    assert (
        text.startswith("# Made by `snakemake calibrate`")
        and "orthant" in text
        and "[2000, 2000" in text
    )
    with pytest.raises(ValueError, match="problem 7 must have data"):
        calibrate_all(patterns | {7: None}, methods, root=1, alpha=5.0, beta=1.0)

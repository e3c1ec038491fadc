"""Measures of Experiments 4 and 5 from small tables whose numbers are known."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import SMALL, modules, plan

from recheck.judge.measures import as_measures, estimate
from recheck.judge.published import read_published
from recheck.judge.verdicts import judge
from recheck.record.files import DamagedFileError, write_arrays, write_csv
from studies.atiya2021.measures.benchmark import _equal
from studies.atiya2021.measures.common import statuses
from studies.atiya2021.measures.experiment4 import PUBLISHED_SETTINGS, _pairs, contrasts
from studies.atiya2021.measures.experiment4_claims import _only_chains
from studies.atiya2021.measures.experiment4_runs import PAPER, from_median
from studies.atiya2021.problems import Problem
from studies.atiya2021.reference import digest
from studies.common.measuring import Rows, measured
from studies.common.rows import Table, run_rows, write_table

TRAIN, TEST = 6, 5
READINGS = ("twice", "moments", "once")
STUDY = Path(__file__).resolve().parents[2] / "data/published/atiya2021"
METHODS = [*PAPER.values(), "ep", "laplace", "best"]
BAYES = np.linspace(0.1, 0.9, TEST)
PUBLISHED = """id,table,column,printed,bracket,bracket_kind,scale,units,runs,section
table4/P1/new/mae-post,4,table4/new/mae-post,0.1177,,,log,1,1,6.4
table4/P1/ess/mae-post,4,table4/ess/mae-post,0.1177,,,log,1,1,6.4
table4/P1/new/mae-med,4,table4/new/mae-med,1.4e-3,,,log,1,1,6.4
table4/P1/titsias/mae-med,4,table4/titsias/mae-med,1.7e-3,,,log,1,1,6.4
table4/P1/ess/mae-med,4,table4/ess/mae-med,2.6e-3,,,log,1,1,6.4
table4/P1/hmc/mae-med,4,table4/hmc/mae-med,8.1e-3,,,log,1,1,6.4
table4/P7/new/mae-med,4,table4/new/mae-med,1.8e-3,,,log,1,1,6.4
"""


#: What each part of the measures reads.
PARTS = {
    "experiment4": ["experiment4", "spread"],
    "benchmark": ["benchmark", "experiment4"],
    "experiment5": ["posterior_chains", "experiment5", "tuning", "tuning_gradient"],
}


def measure(part, root, published=STUDY, reference=None):
    given = Rows(root, published, reference or root, PARTS[part])
    return measured(import_module(f"studies.atiya2021.measures.{part}"), given)


class Study:
    """Tables of a small run, and what is in them."""

    def __init__(self, folder, *, settings=PUBLISHED_SETTINGS, iterations=50_000):
        self.root, self.reference = folder / "run", folder / "reference"
        self.published = folder / "published"
        self.published.mkdir(parents=True)
        (self.published / "cells.csv").write_text(PUBLISHED)
        for name in ("claims.yaml", "readings.yaml", "protocol.yaml"):
            text = (STUDY / name).read_text(encoding="utf-8")
            (self.published / name).write_text(text, encoding="utf-8")
        rng = np.random.default_rng(1)
        self.problem = Problem(
            rng.normal(size=(TRAIN, 2)),
            np.array([-1.0, 1.0] * (TRAIN // 2)),
            rng.normal(size=(TEST, 2)),
            np.where(BAYES > 0.5, 1.0, -1.0),
            BAYES,
        )
        arrays = {name: getattr(self.problem, name) for name in Problem.__dataclass_fields__}
        write_arrays(self.root / "experiment4/problem1.npz", arrays)
        self.rows, self.probability = {}, {}
        for method in METHODS:
            self.add(method, rng, settings, iterations)
        spread = [
            (f"problem1/dataset{d}", 1, d, f"7/P1/{d}", k, "laplace", 0.1 + 0.02 * d)
            for d in (0, 1)
            for k in settings
        ]
        columns = ["row", "problem", "dataset", "seed", "set", "method", "mae_post"]
        write_csv(self.root / "spread.csv", pd.DataFrame(spread, columns=columns))
        self.truth(settings)

    def add(self, method, rng, settings, iterations, experiment="experiment4"):
        exact, rows, arrays = method in ("ep", "laplace"), [], {}
        runs = [(0, 0)] if exact else [(0, 0), (0, 1), (1, 0)]
        for number, (alpha, beta) in settings.items():
            p = np.clip(BAYES + 0.05 * rng.normal(size=(len(runs), TEST)), 0.01, 0.99)
            read = {}
            if "-gpml" in method:
                read = {"twice": p} | {
                    name: np.clip(p + 0.02 * rng.normal(size=p.shape), 0.01, 0.99)
                    for name in READINGS[1:]
                }
            arrays |= {f"probability_{name}_set{number}": found for name, found in read.items()}
            arrays[f"probability_set{number}"] = p
            for place, ((dataset, replicate), one) in enumerate(zip(runs, p, strict=True)):
                row = {"problem": 1, "method": method, "alpha": alpha, "beta": beta, "set": number}
                row |= {"dataset": dataset, "replicate": replicate, "trivial": False}
                row |= {"seed": None if exact else f"7/set{number}/{method}/{dataset}-{replicate}"}
                row |= {"status": "ok", "log_evidence": -4 + 0.1 * rng.normal()}
                row |= {"log_evidence_se": 0.0 if exact else 0.05 + 0.01 * rng.random()}
                row |= {"mae_post": np.abs(one - BAYES).mean(), "error_rate": 0.2, "samples": 100}
                row |= {"effective_samples": 50.0}
                for name, found in read.items():
                    row[f"mae_post_{name}"] = np.abs(found[place] - BAYES).mean()
                row |= {"iterations": iterations} if method == PAPER["titsias"] else {}
                row |= {"count": "soft", "scheme": "bootstrap"} if method == PAPER["new"] else {}
                rows.append(row)
        self.rows[experiment, method] = pd.DataFrame(rows)
        self.probability[experiment, method] = arrays
        self.write(experiment)

    def write(self, experiment):
        frames, arrays = [], {}
        for (where, method), rows in self.rows.items():
            if where != experiment:
                continue
            name = "problem1/{method}/set{set}/dataset{dataset}/replicate{replicate}"
            names = [name.format_map(row) for row in rows.to_dict("records")]
            frames.append(rows.assign(row=names))
            for key, stacked in self.probability[where, method].items():
                column, _, number = key.rpartition("_set")
                own = [row for row in names if f"/set{number}/" in row]
                if column != "probability_twice":  # it is the prediction
                    arrays.setdefault(f"problem1/{column}", []).extend(
                        zip(own, stacked, strict=True)
                    )
        table = pd.concat(frames, ignore_index=True)
        timing = table[["row"]].assign(cpu_seconds=1.0 + table["set"])
        stacks = {key: np.stack([one for _, one in own]) for key, own in arrays.items()}
        stacks |= {f"{key}/rows": np.array([row for row, _ in own]) for key, own in arrays.items()}
        write_table(self.root / experiment, Table(table, timing, stacks))

    def truth(self, settings):
        rows, arrays = [], {}
        for number, (alpha, beta) in settings.items():
            name = f"problem1_set{number}"
            arrays |= {name: BAYES, f"{name}_se": np.full(TEST, 1e-4)}
            row = {"problem": 1, "set": number, "alpha": alpha, "beta": beta}
            row |= {"digest": digest(self.problem, alpha, beta), "trivial": False}
            row |= {"log_evidence": -4.0, "log_evidence_se": 1e-4, "certifier_se": 1e-3, "z": 0.5}
            rows.append(row | {"verdict": "certified", "randomizations": 32})
        write_csv(self.reference / "certified/evidence.csv", pd.DataFrame(rows))
        write_arrays(self.reference / "certified/probabilities.npz", arrays)

    def change(self, method, where, experiment="experiment4", **values):
        """Change columns of the rows that fit a query."""
        rows = self.rows[experiment, method]
        for name, value in values.items():
            rows.loc[rows.eval(where), name] = value
        self.write(experiment)

    def measures(self, part="experiment4"):
        return measure(part, self.root, self.published, self.reference)

    def estimates(self, part="experiment4"):
        return estimate(self.measures(part)).set_index(["id", "reading"])


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that no test changes, its measures and its estimates."""
    study = Study(tmp_path_factory.mktemp("whole"))
    rows = study.measures()
    return study, rows, estimate(rows).set_index(["id", "reading"])


def settings_mean(study, method, dataset, replicate):
    rows = study.rows["experiment4", method]
    return rows[(rows["dataset"] == dataset) & (rows["replicate"] == replicate)]["mae_post"].mean()


def test_a_cell_has_a_row_a_data_set_and_run_averaged_over_settings(whole):
    study, rows, _ = whole
    mine = rows[rows["id"] == "table4/P1/new/mae-post"].set_index(["unit", "run"])
    assert len(mine) == 3
    for dataset, replicate in ((0, 0), (0, 1), (1, 0)):
        row = mine.loc[(f"experiment4/P1/dataset{dataset}", str(replicate))]
        expected = settings_mean(study, "orthant", dataset, replicate)
        np.testing.assert_allclose(row["value"], expected, rtol=1e-12)
    assert row["source"] == "experiment4.csv:4,7,10,13,16,19"
    assert row["seed"] == "7"


def levels(**given):
    """The reading of a median: the defaults of what is unsaid, with some levels replaced."""
    chosen = {"count": "equal-seconds", "hmc": "equal-seconds", "ess": "equal-seconds"}
    chosen |= {"variance": "once"} | given
    return ";".join(f"{choice}={chosen[choice]}" for choice in sorted(chosen))


def test_readings_of_the_toolbox(whole):
    study, rows, found = whole
    for name in READINGS:
        chain = found.loc[("table4/P1/ess/mae-post", f"ess=equal-seconds;variance={name}")]
        column = f"mae_post_{name}"
        values = study.rows["experiment4", "ess-gpml"].groupby(["dataset", "replicate"])[column]
        means = values.mean()
        assert chain["value"] == pytest.approx((means[0].mean() + means[1].mean()) / 2)
        assert (chain["units"], chain["runs"]) == (2, 3)
        errors = []
        for number in PUBLISHED_SETTINGS:
            paper = [
                study.probability["experiment4", m][
                    f"probability_{name}_set{number}"
                    if m.endswith("gpml")
                    else f"probability_set{number}"
                ][2]
                for m in PAPER.values()
            ]
            errors.append(np.abs(paper[0] - np.median(paper, axis=0)).mean())
        reading = levels(variance=name)
        mine = rows[(rows["id"] == "table4/P1/new/mae-med") & (rows["reading"] == reading)]
        value = mine.loc[mine["unit"] == "experiment4/P1/dataset1", "value"].item()
        np.testing.assert_allclose(value, np.mean(errors), rtol=1e-12)
    assert ("table4/P1/new/mae-post", "count=equal-seconds") in found.index
    assert not found.index.get_level_values("reading").str.contains("million").any()


@pytest.mark.slow
def test_a_reading_takes_its_own_runs(study):
    rng = np.random.default_rng(5)
    for row, options in (
        ("orthant-million-hard", {"count": "hard", "scheme": "bootstrap"}),
        ("hmc-gpml-20", {}),
        ("ess-gpml-400", {}),
    ):
        study.add(row, rng, PUBLISHED_SETTINGS, 50_000)
        study.change(row, "problem == 1", **options)
    found = study.estimates()
    named = found.index.get_level_values("id")
    assert not named.str.contains("/(?:orthant-million-hard|hmc-gpml-20)(?:/|$)").any()
    hard = found.loc[("table4/P1/new/mae-post", "count=million-hard"), "value"]
    means = study.rows["experiment4", "orthant-million-hard"].groupby(["dataset", "replicate"])
    means = means["mae_post"].mean()
    assert hard == pytest.approx((means[0].mean() + means[1].mean()) / 2)
    both = levels(count="million-hard", hmc="20")
    assert found.loc[("table4/P1/ess/mae-med", both), "units"] == 2
    alone = (levels(hmc="20"), levels(count="million-hard"), levels(ess="400"))
    every = (both, levels(), *alone)
    values = {found.loc[("table4/P1/ess/mae-med", one), "value"] for one in every}
    assert len(values) == 5, "the median moves with the other methods"
    contrasts = found.loc["contrast/table4/P1/ess-new/mae-post"].index
    assert set(contrasts) == {
        f"count={count};ess={ess};variance={name}"
        for count in ("equal-seconds", "million-hard")
        for ess in ("equal-seconds", "400")
        for name in READINGS
    }


def test_the_benchmark_has_parts_and_the_whole(study):
    rng = np.random.default_rng(6)
    study.add("orthant-part8", rng, PUBLISHED_SETTINGS, 50_000, experiment="benchmark")
    rows = study.measures("benchmark").set_index(["id", "run"])
    whole, part = (
        [rows.loc[(f"benchmark/P1/S2/orthant/part{k}/mae", str(run)), "value"] for run in (0, 1)]
        for k in (1, 8)
    )
    for found, key in ((whole, ("experiment4", "orthant")), (part, ("benchmark", "orthant-part8"))):
        own = study.probability[key]["probability_set2"][:2]
        np.testing.assert_allclose(found, np.abs(own - BAYES).mean(axis=1))
    assert set(rows.index.get_level_values("run")) == {"0", "1"}, "the first data set alone"
    for key in (("benchmark", "orthant-part8"), ("experiment4", "orthant")):
        study.change(key[1], "`set` == 4", experiment=key[0], trivial=True)
    settings = study.measures("benchmark")["id"].str.split("/").str[2]
    assert set(settings) == {"S1", "S2", "S3", "S5", "S6"}, "where the prior is not trivial"
    methods = rows.index.get_level_values("id").str.split("/").str[3]
    assert set(methods) == {"orthant"}, "of the whole, only rows that have parts"


def test_methods_are_compared_at_equal_seconds():
    """Errors of power laws, whose ratio at any time is known; a curve that begins after the other ends is left out."""
    laws = {"orthant": (1.0, -0.5), "hmc": (3.0, -0.75), "ess": (0.2, -0.5), "late": (1.0, -0.5)}
    spans = {"orthant": (1.0, 64.0), "hmc": (0.5, 16.0), "ess": (2.0, 300.0), "late": (65.0, 90.0)}
    runs = pd.DataFrame(
        {"problem": problem, "set": 4, "method": method, "part": part, "source": "benchmark.csv:2"}
        | {"cpu_seconds": seconds, "nats": problem * laws[method][0] * seconds ** laws[method][1]}
        for problem in (1, 2)
        for method, span in spans.items()
        for part, seconds in zip("81", span, strict=True)
    )
    found = {row["id"]: row["value"] for row in _equal(runs, "nats")}
    ratios = {"hmc": 3.0 * 16.0**-0.25, "ess": 0.2}
    for method, ratio in ratios.items():
        path = f"equal/{method}/nats"
        assert found[f"{path}/common"] == 2 and found[f"{path}/closer"] == 2 * (ratio < 1)
        assert found[f"{path}/ratio"] == pytest.approx(ratio)
    assert not any("late" in name for name in found)


def test_deviations_pair_runs_in_order():
    found = from_median({"a": [[0.1], [0.2], [0.9]], "b": [[0.3], [0.2]]})
    np.testing.assert_allclose(found["a"], [0.1, 0.0])


@pytest.mark.slow
def test_at_the_papers_budget_every_run_counts(study):
    study.change("hmc-gpml", "`set` == 2", status="not converged")
    assert study.estimates().loc[("table4/P1/hmc/mae-med", levels()), "status"] == "ok"


@pytest.mark.slow
def test_below_it_only_those_that_converged(tmp_path):
    study = Study(tmp_path, iterations=100)
    study.change("hmc-gpml", "`set` == 2 and dataset == 0", status="not converged")
    found = study.estimates()
    assert found.loc[("table4/P1/hmc/mae-med", levels()), "units"] == 1
    rows = study.measures()
    rows = rows[(rows["id"] == "table4/P1/hmc/mae-med") & (rows["reading"] == levels())]
    assert rows["status"].tolist() == ["not converged", "ok"]
    average = (
        study.measures().set_index("id").loc["experiment4/P1/certified/hmc-gpml/mae-reference"]
    )
    assert average["status"] == "5 of 6"
    assert np.isfinite(average["value"])


@pytest.mark.slow
def test_missing_settings_and_missing_data(tmp_path):
    study = Study(tmp_path, settings={k: PUBLISHED_SETTINGS[k] for k in (1, 4)})
    found = study.estimates()
    assert (
        found.loc[("table4/P1/new/mae-post", "count=equal-seconds"), "status"] == "not comparable"
    )
    assert found.loc[("table4/P1/new/mae-med", levels()), "status"] == "not comparable"
    columns = ["mae_post", "error_rate", "log_evidence", "log_evidence_se"]
    nothing = dict.fromkeys(columns, np.nan) | {"status": "data not available"}
    for method in METHODS:
        study.change(method, "problem == 1", **nothing)
        study.probability["experiment4", method] = {}
    study.write("experiment4")
    write_arrays(study.root / "experiment4/problem1.npz", {})
    found = study.estimates()
    for name in (
        ("table4/P1/new/mae-post", "count=equal-seconds"),
        ("experiment4/P1/certified/orthant/nats", ""),
    ):
        assert found.loc[name, "status"] == "data not available"


def test_settings_are_summarised_once(whole):
    study, _, found = whole
    rows = study.rows["experiment4", "orthant"].query("dataset == 0")
    logs = rows.query("`set` == 3")["log_evidence"].to_numpy()
    difference = found.loc[("experiment4/P1/S3/orthant/difference", "")]
    np.testing.assert_allclose(difference["value"], np.log(np.exp(logs).mean()) + 4)
    average = found.loc[("experiment4/P1/certified/orthant/nats", ""), "value"]
    np.testing.assert_allclose(average, (rows["log_evidence"] + 4).abs().mean())
    assert found.loc[("experiment4/P1/certified/ep/nats", ""), "se"] == 0


@pytest.mark.slow
def test_a_setting_with_one_run_has_the_mean_variance_of_the_others(study):
    study.change("orthant", "`set` == 2 and replicate == 1", status="not converged")
    rows = study.rows["experiment4", "orthant"].query("dataset == 0 and status == 'ok'")
    variances = (rows["log_evidence"] + 4).abs().groupby(rows["set"]).var() / 2
    expected = np.sqrt(variances.fillna(variances.mean()).sum()) / 6
    found = study.estimates().loc[("experiment4/P1/certified/orthant/nats", ""), "se"]
    assert found == pytest.approx(expected)


@pytest.mark.slow
def test_runs_with_another_count_are_not_comparable(study):
    study.change("orthant", "problem == 1", count="hard")
    status = study.estimates().loc[("table4/P1/new/mae-post", "count=equal-seconds"), "status"]
    assert status == "not comparable"


def test_contrasts_are_between_cells_on_the_same_images():
    rows = [
        {"id": f"table4/P9/{paper}/mae-post", "reading": f"images={images}", "value": number}
        | {"unit": "experiment4/P9/dataset0", "run": 0, "scale": "log"}
        for paper, images, number in (
            ("new", "raw", 0.1),
            ("new", "smoothed", 0.2),
            ("ess", "raw", 0.4),
        )
    ]
    (row,) = contrasts(as_measures(rows)).to_dict("records")
    assert (row["id"], row["reading"]) == ("contrast/table4/P9/ess-new/mae-post", "images=raw")
    assert row["value"] == pytest.approx(0.3)


@pytest.mark.slow
def test_claims_on_table_4_are_read_under_each_count_of_the_variance(study):
    far, near = (
        study.probability["experiment4", "hmc-gpml"],
        study.probability["experiment4", "orthant"],
    )
    for number in PUBLISHED_SETTINGS:
        far[f"probability_set{number}"] = near[f"probability_set{number}"] + 0.4
        far[f"probability_once_set{number}"] = near[f"probability_set{number}"]
    study.write("experiment4")
    study.change("orthant", "problem == 1", mae_post=0.2)
    study.change("ess-gpml", "problem == 1", mae_post_twice=0.21, mae_post_once=0.4)
    found = study.estimates()["value"]
    assert found[("claim/median/hmc", "variance=twice")] == 1
    assert found[("claim/median/hmc", "variance=once")] == 0
    alike = [found[("claim/mae-post/alike", f"variance={level}")] for level in ("twice", "once")]
    assert alike == [1, 0], "5 and 67 %, and data sets differ by 13 %"


def test_a_run_that_is_off_is_judged_by_the_reference_and_not_by_itself(study):
    """Runs that are nats off and say so: their own errors would excuse each of them, the reference's does not."""
    study.change("orthant", "`set` == 6", log_evidence=-9.0, log_evidence_se=3.0)
    study.change("orthant", "`set` == 5 and replicate == 0", log_evidence_se=3.0)
    rows = study.measures()
    verdicts = judge(rows, estimate(rows), read_published(study.published), 1).frame
    verdict = verdicts.set_index("id").loc["claim/works/right"]
    assert verdict["ours"] == pytest.approx(5.0)
    assert verdict["verdict"] == "differs"
    # the old rule: what a run says of itself, here with many degrees of freedom
    right = rows["id"] == "claim/works/right"
    own = rows.assign(se=rows["se"].where(~right, 3.0), df=rows["df"].where(~right, 30.0))
    blind = judge(own, estimate(own), read_published(study.published), 1).frame
    assert blind.set_index("id").loc["claim/works/right", "verdict"] == "undecided"


def test_runs_that_are_off_are_counted_by_what_they_report(study):
    study.change("orthant", "`set` == 6", log_evidence=-9.0, log_evidence_se=1.0)
    study.change("best", "`set` == 6", log_evidence=-9.0, log_evidence_se=0.05)
    rows = study.measures()
    found = estimate(rows).set_index("id")["value"]
    for method, warned, refused in (("orthant", 2, 2), ("best", 0, 0)):
        path = f"calibration/{method}"
        numbers = [found[f"{path}/{name}"] for name in ("runs", "off", "off-warned")]
        assert numbers == [12, 2, warned]
        assert found[f"{path}/off-confident"] == 2 - warned
        assert found[f"{path}/off-refused"] == found[f"{path}/refused"] == refused
    own = study.rows["experiment4", "best"].query("dataset == 0")
    score = (own["log_evidence"] + 4) / np.hypot(own["log_evidence_se"], 1e-4)
    assert found["calibration/best/rms-z"] == pytest.approx(np.sqrt((score**2).mean()))
    assert found["calibration/best/coverage"] == pytest.approx((score.abs() < 1.96).mean())
    failed = rows[(rows["id"] == "claim/works/no-failure") & (rows["value"] > 0)]
    assert failed.empty, "a run that fails its diagnostics has an answer nevertheless"


def test_errors_are_set_beside_what_eves_foretell_and_beside_the_references(study):
    """Runs with 25 eves that are off by twice their standard error; a method with the reference's value or another."""
    study.change("orthant", "`set` == 5", log_evidence=-3.6, log_evidence_se=0.2)
    study.change("best", "`set` < 9", log_evidence=-4.0)
    rows = study.measures()
    found = estimate(rows).set_index("id")["value"]
    assert found["calibration/orthant/eves/runs-20-50"] == 2
    assert found["calibration/orthant/eves/rms-20-50"] == pytest.approx(2.0, rel=1e-3)
    assert found["gain/best/resolved"] == 0
    study.change("best", "`set` < 9", log_evidence=-3.9)
    problems = found["gain/best/nats/every-run/problems"]
    assert estimate(study.measures()).set_index("id").loc["gain/best/resolved", "value"] == problems


def test_one_rule_of_status_for_all_methods():
    """Rows that tell no eves are judged by their standard error, and a row's own status is never improved."""
    rows = pd.DataFrame(
        [
            ("bootstrap", "ok", np.nan, 0.05, "ok"),
            ("bootstrap", "ok", np.nan, 0.2, "not converged"),
            ("bootstrap", "ok", 150.0, 0.2, "ok"),
            ("bootstrap", "ok", 50.0, 0.05, "not converged"),
            ("bootstrap", "extinct", np.nan, np.nan, "extinct"),
            ("adapted", "ok", 150.0, 0.2, "ok"),
            (np.nan, "ok", np.nan, 5.0, "ok"),
        ],
        columns=["scheme", "status", "effective_eves", "log_evidence_se", "expected"],
    )
    assert statuses(rows).tolist() == rows["expected"].tolist()


def test_the_samplers_runs_stay_in_table_4_whatever_their_genealogy(study):
    before = study.estimates()
    study.change("orthant", "`set` == 6", log_evidence_se=1.0)
    after = study.estimates()
    cells = before.index.get_level_values("id").str.startswith(("table4/", "contrast/"))
    columns = ["value", "se", "units", "runs", "status"]
    pd.testing.assert_frame_equal(after.loc[before.index[cells], columns], before[cells][columns])
    average = after.loc[("experiment4/P1/certified/orthant/nats", "")]
    assert average["status"] == "5 of 6"
    assert after.loc[("experiment4/P1/every-run/orthant/nats", ""), "status"] == "ok"


def test_seconds_stand_beside_errors_and_their_ratios_to_the_samplers(whole):
    _, _, found = whole
    assert found.loc[("setting/P1/S4/hmc-gpml/seconds", ""), "value"] == pytest.approx(5.0)
    assert found.loc[("budget/hmc-gpml/P1/rough-max", ""), "value"] == pytest.approx(1.0)


def test_claims(whole):
    _, rows, found = whole
    failures = rows[rows["id"] == "claim/works/no-failure"]
    assert len(failures) == 18
    assert failures["value"].eq(0).all()
    worst = rows[rows["id"] == "claim/works/right"]
    assert len(worst) == 12
    assert worst["se"].gt(0).all()
    once = ("median/close", "variance=once")
    for claim, reading in (once, ("evidence/ess", ""), ("sampler/same-speed", "")):
        one = found.loc[(f"claim/{claim}", reading)]  # one problem is no sample
        assert one["status"] == "not comparable"
    assert found.loc[("between/table4/P1/mae-post", ""), "units"] == 2


def test_the_claim_on_chains_takes_the_better_chain_of_each_setting():
    errors = {"ep": [2e-4, 4e-4, 1e-3], "ess": [1e-4, 8e-4, 1e-3], "hmc": [4e-4, 2e-4, np.nan]}
    rows = pd.DataFrame({"problem": [1, 1, 2], "set": [1, 2, 1], "certified": True, "source": "x"})
    strict = pd.concat([rows.assign(method=m, mae_reference=e) for m, e in errors.items()])
    found = _only_chains(
        strict
    )  # twice the better error in both settings of Problem 1, once in Problem 2
    np.testing.assert_allclose(found["value"], np.sqrt(2))


def test_only_problems_with_all_settings_count_the_sampler_as_closer():
    nats = {"orthant": [0.1, 0.3, 0.2, 0.5], "ep": [0.4, 0.1, 0.1, 0.6], "ess": [1, 1, 1, np.nan]}
    rows = pd.DataFrame({"problem": [1, 1, 2, 3], "set": [1, 2, 1, 1], "source": "x"})
    several = [rows.assign(method=m, nats=e, mae_reference=np.nan) for m, e in nats.items()]
    found = pd.DataFrame(_pairs(pd.concat(several), "")).set_index("id")["value"]
    assert dict(found) == {
        # by setting; and below by problem
        "ep/common/nats/orthant": 4,
        "ep/closer/nats/orthant": 2,
        "ep/common/nats/ess": 3,
        "ep/closer/nats/ess": 3,
        "sampler/common/nats/ep": 3,
        "sampler/closer/nats/ep": 2,
        "sampler/common/nats/ess": 2,
        "sampler/closer/nats/ess": 2,
    }


def test_bad_files_are_refused_by_name(study):
    study.change("orthant", "`set` == 2", mae_post=np.nan)
    with pytest.raises(ValueError, match=r"experiment4.csv: line 5: mae_post is nan"):
        study.measures()
    path = study.root / "experiment4.csv"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(DamagedFileError, match=r"experiment4\.csv"):
        study.measures()


def test_a_reference_of_other_data_is_refused(study):
    arrays = {name: getattr(study.problem, name) for name in Problem.__dataclass_fields__}
    write_arrays(study.root / "experiment4/problem1.npz", arrays | {"y_train": np.ones(TRAIN)})
    with pytest.raises(ValueError, match="setting 1 was computed on other data"):
        study.measures()


def write(root, experiment, lines, timing):
    write_table(root / experiment, Table(pd.DataFrame(lines), pd.DataFrame(timing), {}))


def tune(root):
    """Two posteriors, of which one has converged, and two ways of tuning on one problem."""
    lines, pairs, seconds = [], [], []
    for method, status, effective in (
        ("pm-ep-1", "ok", 200.0),
        ("surrogate", "not converged", 9.0),
    ):
        line = {"row": f"problem1/{method}", "problem": 1, "method": method, "seed": f"7/{method}"}
        line |= {"chains": 4, "status": status, "acceptance": 0.3, "log_loss": 0.5}
        line |= {"iterations": 100, "burn_in": 10, "log_loss_se": 0.01}
        for name in ("log_alpha", "log_beta"):
            line |= {f"{name}_mean": 1.0, f"{name}_mean_se": 0.1, f"{name}_sd": 0.5}
            line |= {f"{name}_r_hat": 1.01, f"{name}_effective_samples": effective}
        lines.append(line)
        for pair in (0, 1):
            key = {"row": f"problem1/{method}/pair{pair}"}
            pairs.append(key | {"problem": 1, "method": method, "pair": pair})
            seconds.append(key | {"cpu_seconds": 2.0})
    write(root, "experiment5", lines, [{"row": line["row"], "cpu_seconds": 1.0} for line in lines])
    write(root, "posterior_chains", pairs, seconds)
    rows, timing = [], []
    for method, samples, short in (("orthant-2000", 2000, 2.0), ("orthant-20000", 20_000, 0.5)):
        for replicate in (0, 1):
            key = {"problem": 1, "method": method, "replicate": replicate, "stage": "search"}
            key["row"] = f"problem1/{method}/replicate{replicate}"
            row = key | {"status": "ok", "samples": samples, "log_alpha": 1.0, "log_beta": 0.5}
            row |= {"evidence_se": 0.01, "log_loss": 0.5, "seed": "7", "at_bound": False}
            row |= {"error_rate": 0.2, "evaluations": 30, "evidence": -30.25 - short - replicate}
            rows.append(row)
            timing.append({"row": key["row"], "stage": "search", "cpu_seconds": 3.0})
            # the second look is half a nat better
            rows.append(row | {"stage": "final", "evidence": row["evidence"] + 0.5})
            timing.append({"row": key["row"], "stage": "final", "cpu_seconds": 1.0})
    # the simplex that climbs expectation propagation's evidence, and two rows with its gradient
    ep = {"row": "problem1/ep/replicate0", "problem": 1, "method": "ep", "replicate": 0}
    ep |= {"status": "ok", "error_rate": 0.2, "evidence": -30.25, "evidence_se": 0.01}
    ep |= {"log_loss": 0.5, "estimate": -30.5, "log_alpha": 1.0, "log_beta": 0.5}
    rows.append(ep | {"stage": "search", "evaluations": 40})
    timing.append({"row": ep["row"], "stage": "search", "cpu_seconds": 3.0})
    write(root, "tuning", rows, timing)
    ep |= {"stage": "gradient", "climbed": "ep", "evaluations": 10}
    rows = [
        ep | {"method": "ep-gradient", "relevance": False, "evidence": -30.125, "estimate": -30.0},
        ep | {"method": "ep-ard", "relevance": True, "evidence": -28.25, "log_loss": 0.75},
        ep | {"method": "logistic", "relevance": False, "evidence": None, "climbed": "laplace"},
    ]
    rows = [row | {"row": f"problem1/{row['method']}"} for row in rows]
    timing = [{"row": row["row"], "cpu_seconds": 0.5} for row in rows]
    write(root, "tuning_gradient", rows, timing)


def test_experiment5(tmp_path):
    tune(tmp_path)
    found = estimate(measure("experiment5", tmp_path)).set_index("id")
    assert found.loc["experiment5/P1/surrogate/log-alpha-mean", "status"] == "not converged"
    assert found.loc["experiment5/P1/surrogate/effective-samples", "value"] == 9.0
    rate = found.loc["experiment5/P1/pm-ep-1/effective-per-second", "value"]
    assert rate == 50.0, "four chains took four seconds"
    assert found.loc["tuning/small/samples", "value"] == 2000
    assert found.loc["tuning/P1/orthant-2000/search/shortfall", "value"] == 2.5
    seconds = [
        found.loc[f"tuning/P1/orthant-2000/{s}/cpu-seconds", "value"] for s in ("search", "final")
    ]
    assert seconds == [3.0, 4.0], "a second look needs the search"
    assert found.loc["claim/tuning/small", "value"] == 1.0
    assert found.loc["claim/tuning/again", "value"] == -0.5
    gradient = {
        id.removeprefix("tuning/"): value
        for id, value in found["value"].items()
        if "/ep-" in id or "logistic" in id or id.startswith("tuning/ep-")
    }
    assert gradient["P1/ep-gradient/gradient/evidence-above"] == 0.125
    assert gradient["P1/ep-gradient/gradient/estimate-above"] == 0.5
    assert gradient["P1/ep-gradient/gradient/shortfall"] == -0.125
    # a difference names the lines of both, so that it is not taken for one with other settings of the simplex
    sources = found["source"].to_dict()
    for name, both in {"evidence-above": True, "shortfall": True, "log-loss": False}.items():
        source = sources[f"tuning/P1/ep-gradient/gradient/{name}"]
        assert "tuning_gradient.csv" in source and ("tuning.csv" in source) == both, name
    assert gradient["P1/ep-gradient/gradient/cpu-seconds"] == 0.5
    assert gradient["P1/ep-ard/gradient/evidence-above"] == gradient["ep-ard/most-above"] == 2.0
    assert "P1/ep-ard/gradient/estimate-above" not in gradient, "it is another surface"
    assert (gradient["ep-ard/worse"], gradient["ep-gradient/apart"]) == (1, 0.125)
    assert gradient["ep-gradient/evaluations"] == 10
    assert gradient["ep-gradient/simplex-evaluations"] == 40
    assert gradient["P1/logistic/gradient/log-loss"] == 0.5
    assert not any(f"P1/logistic/gradient/{x}" in gradient for x in ("evidence", "evidence-above"))


def test_without_data_experiment_5_says_so(tmp_path):
    for experiment in PARTS["experiment5"]:
        rows = plan("atiya2021", experiment, SMALL["atiya2021"].block)
        run = modules("atiya2021", "experiments")[experiment].run
        write_table(tmp_path / experiment, run_rows(run, rows, {"problem": {}}))
    found = measure("experiment5", tmp_path)
    assert set(found["status"]) == {"data not available"}
    assert not found["id"].str.contains("nan").any()

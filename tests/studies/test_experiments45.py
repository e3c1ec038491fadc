"""Measures of Experiments 4 and 5 from small raw files whose numbers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recheck.files import DamagedFileError, write_arrays, write_csv
from recheck.measures import as_measures, estimate
from studies.atiya2021.measures import PARTS
from studies.atiya2021.measures.experiment4 import PUBLISHED_SETTINGS, _problems, contrasts
from studies.atiya2021.measures.experiment4_claims import _only_chains
from studies.atiya2021.measures.experiment4_runs import PAPER, from_median
from studies.atiya2021.problems import Problem
from studies.atiya2021.reference import digest

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


class Study:
    """Folders of a small run, and what is in them."""

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
        keys = [(0, 0), (1, 0)]
        spread = [
            (1, d, f"7/P1/{d}", k, "laplace", 0.1 + 0.02 * d) for d, _ in keys for k in settings
        ]
        columns = ["problem", "dataset", "seed", "set", "method", "mae_post"]
        write_csv(self.root / "experiment4/spread.csv", pd.DataFrame(spread, columns=columns))
        self.truth(settings)

    def add(self, method, rng, settings, iterations, folder="experiment4"):
        exact, rows, arrays = method in ("ep", "laplace"), [], {}
        runs = [(0, 0)] if exact else [(0, 0), (0, 1), (1, 0)]
        for number, (alpha, beta) in settings.items():
            p = np.clip(BAYES + 0.05 * rng.normal(size=(len(runs), TEST)), 0.01, 0.99)
            names = {
                "probability": p,
                "probability_se": 0 * p,
                "ok": np.ones(len(runs), dtype=bool),
            }
            read = {}
            if "-gpml" in method:
                read = {"twice": p} | {
                    name: np.clip(p + 0.02 * rng.normal(size=p.shape), 0.01, 0.99)
                    for name in READINGS[1:]
                }
            names |= {f"probability_{name}": found for name, found in read.items()}
            names |= {"dataset": [d for d, _ in runs], "replicate": [r for _, r in runs]}
            arrays |= {f"{name}_set{number}": np.asarray(values) for name, values in names.items()}
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
        key = (folder, method)
        self.rows[key], self.probability[key] = pd.DataFrame(rows), arrays
        self.write(*key)

    def write(self, folder, method):
        path, rows = self.root / folder / "problem1", self.rows[folder, method]
        write_csv(path / f"{method}.csv", rows)
        write_arrays(path / f"{method}.npz", self.probability[folder, method])
        keys = ["problem", "method", "set", "dataset", "replicate"]
        timing = rows[keys].assign(cpu_seconds=1.0 + rows["set"])
        write_csv(path / f"{method}_timing.csv", timing)

    def truth(self, settings):
        rows, arrays = [], {}
        for number, (alpha, beta) in settings.items():
            name = f"problem1_set{number}"
            arrays |= {name: BAYES, f"{name}_se": np.full(TEST, 1e-4)}
            row = {"problem": 1, "set": number, "alpha": alpha, "beta": beta}
            row |= {"digest": digest(self.problem, alpha, beta), "trivial": False}
            row |= {"log_evidence": -4.0, "log_evidence_se": 1e-4, "certifier_se": 1e-3, "z": 0.5}
            rows.append(row | {"verdict": "certified", "randomizations": 32})
        write_csv(self.reference / "evidence.csv", pd.DataFrame(rows))
        write_arrays(self.reference / "probabilities.npz", arrays)

    def change(self, method, where, folder="experiment4", **values):
        """Change columns of the rows that fit a query."""
        rows = self.rows[folder, method]
        for name, value in values.items():
            rows.loc[rows.eval(where), name] = value
        self.write(folder, method)

    def measures(self, part="experiment4"):
        return PARTS[part](self.root, self.published, self.reference)

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


def settings_mean(study, method, dataset, replicate, folder="experiment4"):
    rows = study.rows[folder, method]
    return rows[(rows["dataset"] == dataset) & (rows["replicate"] == replicate)]["mae_post"].mean()


def test_a_cell_has_a_row_a_data_set_and_run_averaged_over_settings(whole):
    study, rows, _ = whole
    mine = rows[rows["id"] == "table4/P1/new/mae-post"].set_index(["unit", "run"])
    assert len(mine) == 3
    for dataset, replicate in ((0, 0), (0, 1), (1, 0)):
        row = mine.loc[(f"experiment4/P1/dataset{dataset}", str(replicate))]
        expected = settings_mean(study, "orthant", dataset, replicate)
        np.testing.assert_allclose(row["value"], expected, rtol=1e-12)
    assert row["source"] == "experiment4/problem1/orthant.csv:4,7,10,13,16,19"
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
    study.add("orthant-part8", rng, PUBLISHED_SETTINGS, 50_000, folder="benchmark/part8")
    rows = study.measures("benchmark").set_index(["id", "run"])
    whole, part = (
        [rows.loc[(f"benchmark/P1/S2/orthant/part{k}/mae", str(run)), "value"] for run in (0, 1)]
        for k in (1, 8)
    )
    for found, key in (
        (whole, ("experiment4", "orthant")),
        (part, ("benchmark/part8", "orthant-part8")),
    ):
        own = study.probability[key]["probability_set2"][:2]
        np.testing.assert_allclose(found, np.abs(own - BAYES).mean(axis=1))
    assert set(rows.index.get_level_values("run")) == {"0", "1"}, "the first data set alone"
    for key in (("benchmark/part8", "orthant-part8"), ("experiment4", "orthant")):
        study.change(key[1], "`set` == 4", folder=key[0], trivial=True)
    settings = study.measures("benchmark")["id"].str.split("/").str[2]
    assert set(settings) == {"S1", "S2", "S3", "S5", "S6"}, "where the prior is not trivial"
    methods = rows.index.get_level_values("id").str.split("/").str[3]
    assert set(methods) == {"orthant"}, "of the whole, only rows that have parts"


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
    arrays = study.probability["experiment4", "hmc-gpml"]
    arrays["ok_set2"] = np.array([False, False, True])
    study.write("experiment4", "hmc-gpml")
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
        study.write("experiment4", method)
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
        far[f"probability_twice_set{number}"] = near[f"probability_set{number}"] + 0.4
        far[f"probability_once_set{number}"] = near[f"probability_set{number}"]
    study.write("experiment4", "hmc-gpml")
    study.change("orthant", "problem == 1", mae_post=0.2)
    study.change("ess-gpml", "problem == 1", mae_post_twice=0.21, mae_post_once=0.4)
    found = study.estimates()["value"]
    assert found[("claim/median/hmc", "variance=twice")] == 1
    assert found[("claim/median/hmc", "variance=once")] == 0
    alike = [found[("claim/mae-post/alike", f"variance={level}")] for level in ("twice", "once")]
    assert alike == [1, 0], "5 and 67 %, and data sets differ by 13 %"


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
    found = pd.DataFrame(_problems(pd.concat(several))).set_index("id")["value"]
    assert dict(found) == {
        "sampler/common/nats/ep": 3,
        "sampler/closer/nats/ep": 2,
        "sampler/common/nats/ess": 2,
        "sampler/closer/nats/ess": 2,
    }


def test_bad_files_are_refused_by_name(study):
    study.change("orthant", "`set` == 2", mae_post=np.nan)
    with pytest.raises(ValueError, match=r"problem1/orthant.csv: line 5: mae_post is nan"):
        study.measures()
    path = study.root / "experiment4/problem1/ep.csv"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(DamagedFileError, match=r"ep\.csv"):
        study.measures()


def test_a_reference_of_other_data_is_refused(study):
    arrays = {name: getattr(study.problem, name) for name in Problem.__dataclass_fields__}
    write_arrays(study.root / "experiment4/problem1.npz", arrays | {"y_train": np.ones(TRAIN)})
    with pytest.raises(ValueError, match="setting 1 was computed on other data"):
        study.measures()


def test_without_results_there_are_no_rows(tmp_path):
    (tmp_path / "cells.csv").write_text(PUBLISHED)
    for part in ("experiment4", "experiment5"):
        assert PARTS[part](tmp_path, tmp_path, tmp_path).empty


def tune(root):
    """Two chains, of which one has converged, and two ways of tuning on one problem."""
    folder = root / "experiment5"
    for method, status, effective in (
        ("pm-ep-1", "ok", 200.0),
        ("surrogate", "not converged", 9.0),
    ):
        row = {"problem": 1, "method": method, "seed": f"7/{method}", "chains": 2, "status": status}
        row |= {"iterations": 100, "burn_in": 10, "acceptance": 0.3, "log_loss": 0.5}
        row |= {"log_loss_se": 0.01}
        for name in ("log_alpha", "log_beta"):
            row |= {f"{name}_mean": 1.0, f"{name}_mean_se": 0.1, f"{name}_sd": 0.5}
            row |= {f"{name}_r_hat": 1.01, f"{name}_effective_samples": effective}
        rates = {f"log_{x}_effective_per_second": effective for x in ("alpha", "beta")}
        path = folder / "problem1" / method
        write_csv(f"{path}.csv", pd.DataFrame([row]))
        seconds = {"problem": 1, "method": method, "cpu_seconds": 2.0} | rates
        write_csv(f"{path}_timing.csv", pd.DataFrame([seconds]))
    rows, timing = [], []
    for method, samples, short in (("orthant-2000", 2000, 2.0), ("orthant-20000", 20_000, 0.5)):
        for replicate in (0, 1):
            key = {"problem": 1, "method": method, "replicate": replicate, "stage": "search"}
            row = key | {"status": "ok", "samples": samples, "log_alpha": 1.0, "log_beta": 0.5}
            row |= {"evidence": -30 - short, "evidence_se": 0.01, "log_loss": 0.5, "seed": "7"}
            row |= {"evidence_shortfall": short + replicate, "error_rate": 0.2, "evaluations": 30}
            rows.append(row | {"at_bound": False})
            timing.append(key | {"cpu_seconds": 3.0})
            # the second look is half a nat better
            rows.append(row | {"stage": "final", "evidence_shortfall": short + replicate - 0.5})
            timing.append(key | {"stage": "final", "cpu_seconds": 1.0})
    # the simplex that climbs expectation propagation's evidence, and two rows with its gradient
    ep = {"problem": 1, "method": "ep", "replicate": 0, "status": "ok", "error_rate": 0.2}
    found = {"evidence": -30.25, "evidence_se": 0.01, "evidence_shortfall": 0.0, "log_loss": 0.5}
    found |= {"estimate": -30.5, "log_alpha": 1.0, "log_beta": 0.5, "evaluations": 40}
    rows.append(ep | found | {"stage": "search"})
    timing.append({**dict(list(ep.items())[:3]), "stage": "search", "cpu_seconds": 3.0})
    write_csv(folder / "problem1_tuning.csv", pd.DataFrame(rows))
    write_csv(folder / "problem1_tuning_timing.csv", pd.DataFrame(timing))
    ep |= found | {"stage": "gradient", "climbed": "ep", "evaluations": 10}
    rows = [
        ep | {"method": "ep-gradient", "relevance": False, "evidence": -30.125, "estimate": -30.0},
        ep | {"method": "ep-ard", "relevance": True, "evidence": -28.25, "log_loss": 0.75},
        ep | {"method": "logistic", "relevance": False, "evidence": None, "climbed": "laplace"},
    ]
    timing = [
        {key: row[key] for key in ("problem", "method", "replicate", "stage")}
        | {"cpu_seconds": 0.5}
        for row in rows
    ]
    write_csv(folder / "problem1_gradient.csv", pd.DataFrame(rows))
    write_csv(folder / "problem1_gradient_timing.csv", pd.DataFrame(timing))


def test_experiment5(tmp_path):
    tune(tmp_path)
    found = estimate(PARTS["experiment5"](tmp_path, tmp_path, tmp_path)).set_index("id")
    assert found.loc["experiment5/P1/surrogate/log-alpha-mean", "status"] == "not converged"
    assert found.loc["experiment5/P1/surrogate/effective-samples", "value"] == 9.0
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
        assert "_gradient.csv" in source and ("_tuning.csv" in source) == both, name
    assert gradient["P1/ep-gradient/gradient/cpu-seconds"] == 0.5
    assert gradient["P1/ep-ard/gradient/evidence-above"] == gradient["ep-ard/most-above"] == 2.0
    assert "P1/ep-ard/gradient/estimate-above" not in gradient, "it is another surface"
    assert (gradient["ep-ard/worse"], gradient["ep-gradient/apart"]) == (1, 0.125)
    assert gradient["ep-gradient/evaluations"] == 10
    assert gradient["ep-gradient/simplex-evaluations"] == 40
    assert gradient["P1/logistic/gradient/log-loss"] == 0.5
    assert not any(f"P1/logistic/gradient/{x}" in gradient for x in ("evidence", "evidence-above"))

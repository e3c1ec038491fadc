"""Tables, figures, values and text of Experiments 3 and 5 and of the toolbox's defects, on made results.

The results are made with known properties and little noise, so that no test can fail by chance but where
it says so.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from scipy.stats import norm

from gpcmc.audit import ResultFiles, judge_claims, read_claims, tradeoff
from gpcmc.audit.published import PUBLISHED_SETS
from gpcmc.inference.gpml import APPLICABLE, DEFECTS
from gpcmc.report import comparisons, defects, hyperparameters, style

ROOT = Path(__file__).parent.parent
TRUTH = -174.0
REGISTRY = pd.DataFrame()  # none of these reads it
CLAIMS = read_claims(ROOT / "data" / "published" / "claims.yaml")

#: Rows of Experiment 3: CPU seconds at size 0, error of log evidence in nats and MAE there. All fall as the
#: square root of time; those of the toolbox at ten times the orthant sampler's seconds.
ROWS: dict[str, tuple[float, float | None, float | None]] = {
    "orthant": (0.1, 0.3, 4e-3),
    "orthant-adapted": (0.1, 0.06, 4e-4),
    "best": (0.5, 1e-3, 1e-4),
    "minimax-tilting": (0.2, 1e-2, 4e-4),
    "importance-ep": (0.2, 1e-3, 1e-4),
    "ess": (0.2, None, 3e-3),
    "hmc": (0.1, None, 8e-3),
    "ess-ais": (0.1, 0.3, 0.4),
    "hmc-ais": (0.1, 0.6, 0.4),
    "ess-gpml": (1.0, 0.3, 4e-3),
    "hmc-gpml": (1.0, 0.6, 8e-3),
    "laplace": (0.01, 1e-3, 1e-3),
    "ep": (0.1, 2e-3, 1e-5),
}
SIZES = [1, 10, 100, 1000]
RUNS = 10


def experiment3(
    folder: Path, rows: dict[str, tuple[float, float | None, float | None]] = ROWS
) -> dict[str, tuple[Path, ...]]:
    folder.mkdir(parents=True, exist_ok=True)
    paths, timings = [], []
    for name, (seconds, nats, mae) in rows.items():
        exact = name in ("laplace", "ep")
        found, timing = [], []
        for size, grown in enumerate([1] if exact else SIZES):
            for run in range(1 if exact else RUNS):
                spread = 1.0 if exact else 0.9 + 0.2 * run / (RUNS - 1)
                key = {"method": name, "size": size, "run": run}
                row = key | {"status": "ok", "truth": TRUTH, "samples": 1000 * grown}
                if not exact:
                    row["seed"] = f"1/{name}/{size}/{run}"
                shrink = spread / math.sqrt(grown)
                if nats is not None:
                    error = nats * shrink * (-1) ** run
                    row |= {"log_evidence": TRUTH + error, "log_evidence_error": error}
                    row["ape_percent"] = 100 * abs(error / TRUTH)
                if mae is not None:
                    row["probability_mae"] = mae * shrink
                found.append(row)
                timing.append(key | {"cpu_seconds": seconds * grown})
        paths.append(folder / f"{name}.csv")
        timings.append(folder / f"{name}_timing.csv")
        pd.DataFrame(found).to_csv(paths[-1], index=False)
        pd.DataFrame(timing).to_csv(timings[-1], index=False)
    return {"experiment3": tuple(paths), "experiment3_timing": tuple(timings)}


#: What each defect adds to the error of log evidence, nats, and to the MAE.
EFFECTS = {
    "right-end-point": (0.5, 0.0),
    "double-variance": (0.0, 1e-3),
    "stale-energy": (-20.0, 0.0),
    "shrinking-step": (-0.01, 0.0),
}


def made_defects(folder: Path) -> dict[str, tuple[Path, ...]]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for case in ("linear", "smooth", "rough"):
        for sampler, every in APPLICABLE.items():
            sets = {"all": every, "none": ()}
            for one in every:
                sets |= {f"without {one}": tuple(d for d in every if d != one)}
                sets |= {f"only {one}": (one,)}
            rows = []
            for samples in (8, 20):
                for replicate in range(4):
                    noise = 0.3 * (-1) ** replicate  # shared, so that it drops out of differences
                    for switched, on in sets.items():
                        # the effect of the shrinking step is less than the noise of its own
                        own = 0.1 * (-1) ** (replicate // 2) * ("shrinking-step" in on)
                        nats = noise + own + sum(EFFECTS[d][0] for d in on) * 8 / samples
                        mae = 2e-3 + sum(EFFECTS[d][1] for d in on) + 1e-4 * noise
                        rows.append(
                            {
                                "sampler": sampler,
                                "switched": switched,
                                "samples": samples,
                                "replicate": replicate,
                                "status": "not converged",
                                "log_evidence_error": nats,
                                "ape_percent": abs(nats),
                                "probability_mae": mae,
                            }
                        )
            paths.append(folder / f"{case}_{sampler}.csv")
            pd.DataFrame(rows).to_csv(paths[-1], index=False)
    return {"defects": tuple(paths)}


def experiment5(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Problems 1, 7 and 8 (no data); all methods agree but for noise of half a joint error, one has not converged."""
    rng = np.random.default_rng(5)
    rows, timings, draws = [], [], []
    for problem in (1, 7, 8):
        here = folder / f"problem{problem}"
        here.mkdir(parents=True, exist_ok=True)
        for place, method in enumerate(("pm-laplace-1", "pm-ep-64", "surrogate", "further_one")):
            key = {"problem": problem, "method": method}
            status = "not converged" if method == "pm-laplace-1" else "ok"
            row, timing = key | {"status": "data not available"}, key | {"cpu_seconds": None}
            arrays: dict[str, np.ndarray] = {}
            if problem != 8:
                row |= {"status": status, "acceptance": 0.3, "log_loss": 0.41, "log_loss_se": 0.01}
                timing = key | {"cpu_seconds": 10.0, "prediction_cpu_seconds": 1.0}
                for which, mean in (("log_alpha", 1.0), ("log_beta", 0.5)):
                    # a chain that has not converged is far off, and must not be compared
                    mean = mean + (50.0 if status != "ok" else 0.02 * place)
                    row |= {f"{which}_mean": mean, f"{which}_mean_se": 0.04, f"{which}_sd": 0.5}
                    row |= {f"{which}_r_hat": 1.01, f"{which}_effective_samples": 150.0 + place}
                    timing[f"{which}_effective_per_second"] = 15.0 + place
                    arrays[which] = mean + 0.5 * rng.standard_normal((4, 20))
            rows.append(here / f"{method}.csv")
            timings.append(here / f"{method}_timing.csv")
            draws.append(here / f"{method}.npz")
            pd.DataFrame([row]).to_csv(rows[-1], index=False)
            pd.DataFrame([timing]).to_csv(timings[-1], index=False)
            np.savez(draws[-1], **arrays)  # type: ignore[arg-type]
    names = ("experiment5", "experiment5_timing", "draws")
    return dict(zip(names, (tuple(rows), tuple(timings), tuple(draws)), strict=True))


#: Nats below the best: the search's, and after the second look.
SHORT = {"laplace": 1.5, "ep": 0.2, "best": 0.0, "orthant-2000": 0.8, "orthant-20000": 0.3}


def made_tuning(folder: Path) -> dict[str, tuple[Path, ...]]:
    folder.mkdir(parents=True, exist_ok=True)
    rows, timing = [], []
    for method, short in SHORT.items():
        orthant = method.startswith("orthant")
        for replicate in range(3 if orthant else 1):
            for stage in ("search", "final") if orthant else ("search",):
                key = {"problem": 1, "method": method, "replicate": replicate, "stage": stage}
                nats = short if stage == "search" else short / 4
                bad = orthant and replicate == 2  # must not enter an average
                row = key | {"status": "not converged" if bad else "ok", "evaluations": 60}
                row |= {"evidence": -100 - nats - 1e3 * bad, "evidence_se": 0.001}
                row |= {"log_alpha": 1.0, "log_beta": 0.3, "at_bound": method == "laplace"}
                row |= {"log_loss": 0.4, "error_rate": 0.2}
                if not bad:
                    row["evidence_shortfall"] = nats
                if orthant:
                    search = stage == "search"
                    row["samples"] = int(method.split("-")[1]) if search else 100_000
                rows.append(row)
                timing.append(key | {"cpu_seconds": 3.0 if stage == "search" else 5.0})
    pd.DataFrame(rows).to_csv(folder / "problem1_tuning.csv", index=False)
    pd.DataFrame(timing).to_csv(folder / "problem1_tuning_timing.csv", index=False)
    missing = pd.DataFrame([{"problem": 8, "method": "ep", "replicate": 0, "stage": "search"}])
    for name, column in (
        ("", {"status": "data not available"}),
        ("_timing", {"cpu_seconds": None}),
    ):
        missing.assign(**column).to_csv(folder / f"problem8_tuning{name}.csv", index=False)
    return {
        "tuning": (folder / "problem1_tuning.csv", folder / "problem8_tuning.csv"),
        "tuning_timing": tuple(folder / f"problem{p}_tuning_timing.csv" for p in (1, 8)),
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ResultFiles:
    folder = tmp_path_factory.mktemp("results")
    return ResultFiles(
        **experiment3(folder / "experiment3"),
        **made_defects(folder / "defects"),
        **experiment5(folder / "experiment5"),
        **made_tuning(folder / "tuning"),
    )


NOTHING = ResultFiles()


def changed(
    folder: Path, files: ResultFiles, name: str, change: object, *, field: str = "experiment3"
) -> ResultFiles:
    """The same files, one of them changed."""
    path = next(p for p in getattr(files, field) if p.stem == name)
    frame = pd.read_csv(path)
    new = folder / path.name
    change(frame).to_csv(new, index=False)  # type: ignore[operator]
    others = tuple(new if p == path else p for p in getattr(files, field))
    return replace(files, **{field: others})


# ---------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", comparisons.TABLES)
def test_every_table_is_made_with_and_without_results(
    name: str, full: bool, files: ResultFiles
) -> None:
    table = comparisons.TABLES[name](REGISTRY, files if full else NOTHING)
    assert not re.search(r"\bnan\b|\binf\b", table.tex)
    width = 0
    for line in table.tex.splitlines():
        if line.startswith(r"\begin{tabular}"):
            width = len(line.removeprefix(r"\begin{tabular}").strip("{}"))
        elif line.endswith(r"\\"):
            spanned = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert line.count(" & ") + 1 + spanned == width, line
    assert ("not run" in table.tex) is not full
    assert len(table.frame) or not full


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", comparisons.FIGURES)
def test_every_figure_is_drawn_with_and_without_results(
    name: str, full: bool, files: ResultFiles, tmp_path: Path
) -> None:
    with style.style():
        drawn = comparisons.FIGURES[name](REGISTRY, files if full else NOTHING)
        style.save(drawn, tmp_path / "a.pdf", tmp_path / "a.png")
    said = [text.get_text() for axes in drawn.axes for text in axes.texts]
    assert any("not run" in text for text in said) is not full


def test_values_have_the_same_keys_whatever_was_run(files: ResultFiles) -> None:
    full, none = comparisons.values(files), comparisons.values(NOTHING)
    assert full.keys() == none.keys()
    for value in (*full.values(), *none.values()):
        assert value.text
        assert not re.search(r"\bnan\b|\binf\b", value.text)
    assert none["claims/evidence-ten/shipped/phrase"].text == "not run"
    assert none["posterior/chains"].text == "not run"
    assert none["tuning/small/worst"].value is None


def test_the_text_asks_for_values_that_there_are_and_types_no_decimal() -> None:
    text = re.sub(r"(?<!\\)%.*", "", (ROOT / "paper" / "comparisons.tex").read_text())
    used = set(re.findall(r"\\(?:if)?val\{([^}#]+)\}", text))
    assert len(used) > 80
    verdicts = {key for key in used if key.startswith(("claim/", "audit/time/"))}
    assert used - set(comparisons.values(NOTHING)) == verdicts
    ids = {claim.id for claim in CLAIMS}
    judged = {key for key in verdicts if key.startswith("claim/")}
    assert {key.removeprefix("claim/").removesuffix("/words") for key in judged} <= ids
    assert not re.findall(r"\d\.\d|(?<![\w.])\.\d|\d\s*(?:\\times|\\cdot)\s*10\^", text)
    assert text.count("{") == text.count("}")
    assert set(re.findall(r"\\input\{tables/(\w+)\}", text)) == set(comparisons.TABLES)
    assert set(re.findall(r"\\includegraphics\{figures/(\w+)\}", text)) == set(comparisons.FIGURES)
    labels = re.findall(r"\\label\{((?:tab|fig):\w+)\}", text)
    assert len(set(labels)) == len(comparisons.TABLES) + len(comparisons.FIGURES)
    assert all(f"\\ref{{{label}}}" in text for label in labels)


def test_a_file_without_a_column_is_refused(files: ResultFiles, tmp_path: Path) -> None:
    worse = changed(tmp_path, files, "ess", lambda frame: frame.drop(columns="status"))
    with pytest.raises(ValueError, match="status"):
        tradeoff.points(worse)


# ---------------------------------------------------------------------------- Experiment 3


def point(frame: pd.DataFrame, measure: str, series: str, size: int) -> pd.Series:
    line = tradeoff.line_of(frame, measure, series)
    return line[line["size"] == size].iloc[0]


def test_a_point_is_the_mean_of_its_runs_and_its_logarithm_is_taken_last(
    files: ResultFiles,
) -> None:
    frame = tradeoff.points(files)
    rows = pd.read_csv(next(p for p in files.experiment3 if p.stem == "orthant"))
    rows = rows[rows["size"] == 1]
    for measure, column in (("evidence", "ape_percent"), ("probability", "probability_mae")):
        found = point(frame, measure, "orthant", 1)
        se = rows[column].std() / math.sqrt(RUNS)
        assert found["error"] == pytest.approx(rows[column].mean())
        assert found["error_se"] == pytest.approx(se)
        assert found["log_error"] == pytest.approx(math.log(rows[column].mean()))
        assert found["log_error_se"] == pytest.approx(se / rows[column].mean())
        assert found["cpu_seconds"] == pytest.approx(1.0)
    found = point(frame, "evidence", "orthant", 1)
    assert found["nats"] == pytest.approx(rows["log_evidence_error"].abs().mean())
    assert found["bias"] == pytest.approx(rows["log_evidence_error"].mean())
    assert abs(found["bias"]) < 0.2 * found["nats"]  # signs alternate


def test_each_measure_of_a_proper_chain_comes_from_its_own_row(files: ResultFiles) -> None:
    frame = tradeoff.points(files)
    assert point(frame, "probability", "ess", 0)["method"] == "ess"
    assert point(frame, "probability", "ess", 0)["error"] == pytest.approx(3e-3)
    assert point(frame, "evidence", "ess", 0)["method"] == "ess-ais"
    assert not (frame["series"] == "ess-ais").any()


def test_runs_that_have_not_converged_are_never_averaged_with_others(
    files: ResultFiles, tmp_path: Path
) -> None:
    def spoil(frame: pd.DataFrame, runs: int) -> pd.DataFrame:
        bad = (frame["size"] == 1) & (frame["run"] < runs)
        frame.loc[bad, "status"] = "not converged"
        frame.loc[bad, ["ape_percent", "probability_mae"]] = 1e6
        return frame

    few = tradeoff.points(changed(tmp_path, files, "orthant", lambda f: spoil(f, 4)))
    for measure in tradeoff.MEASURES:
        found = point(few, measure, "orthant", 1)
        assert found["full"] and found["ok"] == 6 and found["averaged"] == 6
        assert found["error"] < 1.0
    most = tradeoff.points(changed(tmp_path, files, "orthant", lambda f: spoil(f, 6)))
    found = point(most, "evidence", "orthant", 1)
    assert not found["full"] and found["status"] == "not converged" and found["ok"] == 4
    assert found["error"] == 1e6 and found["averaged"] == 6
    # and it has no part in the interpolation
    line = tradeoff.line_of(most, "evidence", "orthant")
    target = math.log(100 * 0.3 / 174 / math.sqrt(10))
    assert tradeoff.crossing(line, target).log == pytest.approx(math.log(1.0), abs=1e-9)
    tex = comparisons.TABLES["tradeoff"](
        REGISTRY, changed(tmp_path, files, "orthant", lambda f: spoil(f, 6))
    ).tex
    assert re.search(
        r"10\\,000 samples & 4 of 10 & \\multicolumn\{6\}\{c\}\{\\textit\{not con", tex
    )


def line(cpu: list[float], error: list[float], se: float = 0.0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "cpu_seconds": cpu,
            "log_error": np.log(error),
            "log_error_se": se,
            "averaged": 1000,
            "full": True,
            "deterministic": False,
        }
    )


def test_a_crossing_is_interpolated_on_logarithmic_axes() -> None:
    falling = line([1, 10, 100], [1.0, 0.1, 0.01])
    found = tradeoff.crossing(falling, math.log(0.03))
    assert found.kind == "measured" and math.exp(found.log) == pytest.approx(100 / 3)
    for target, kind, seconds in ((2.0, "at most", 1), (0.005, "extrapolated", 400)):
        found = tradeoff.crossing(falling, math.log(target))
        assert found.kind == kind and math.exp(found.log) == pytest.approx(seconds)
    found = tradeoff.crossing(falling, math.log(0.005), converges=False)
    assert found.kind == "at least" and math.exp(found.log) == pytest.approx(100)
    assert tradeoff.crossing(falling, math.log(1e-4)).kind == "at least"  # too far
    # noise that makes it rise for a while does not make it quicker
    assert tradeoff.crossing(line([1, 10, 100], [0.02, 0.05, 0.01]), math.log(0.03)).log > math.log(
        10
    )
    assert tradeoff.crossing(falling.iloc[:0], 0.0).kind == "none"
    assert tradeoff.crossing(falling.assign(deterministic=True), math.log(1e-3)).kind == "none"


def test_the_standard_error_of_a_crossing_is_that_of_repetitions() -> None:
    """20,000 repetitions: the ratio of deviations has a relative error of 0.5 %, and 5 % is ten of them."""
    rng = np.random.default_rng(11)
    base, target = np.log([1.0, 0.1]), math.log(0.25)
    said = tradeoff.crossing(line([1, 10], [1.0, 0.1], 0.03), target, 0.02).se
    noisy = base + 0.03 * rng.standard_normal((20_000, 2))
    aims = target + 0.02 * rng.standard_normal(20_000)
    found = math.log(10) * (noisy[:, 0] - aims) / (noisy[:, 0] - noisy[:, 1])
    assert said == pytest.approx(np.std(found), rel=0.05)


def test_a_bound_is_as_doubtful_as_its_margin_is_small() -> None:
    """By hand: margins of nothing, of two joint errors and of many, normal and with two runs (Cauchy)."""
    points = line([1, 10], [1.0, 0.1], 0.03)
    for margin, tail in ((0.0, 0.5), (2 * 0.05, norm.sf(2.0)), (1.0, norm.sf(20.0))):
        found = tradeoff.crossing(points, margin, 0.04)
        assert (found.kind, found.log, found.se) == ("at most", 0.0, 0.0)
        assert found.doubt == pytest.approx(tail, rel=0.01)
    few = points.assign(averaged=2)
    assert tradeoff.crossing(few, 0.03).doubt == pytest.approx(0.25)
    least = tradeoff.crossing(few, math.log(0.1) - 0.03, converges=False)
    assert (least.kind, least.doubt) == ("at least", pytest.approx(0.25))
    assert tradeoff.crossing(line([1, 10], [1.0, 0.1]), 1.0).doubt == 0.0


def test_few_runs_are_few_degrees_of_freedom_and_widen_nothing() -> None:
    """Half-way between two sizes of 3 and 5 runs with one error: df = (1 + 1)^2/(1/2 + 1/4)."""
    points = line([1, 10], [1.0, 0.1], 0.03)
    target = math.log(0.1) / 2
    many, few = (tradeoff.crossing(points.assign(averaged=runs), target) for runs in (1000, [3, 5]))
    assert few.se == pytest.approx(many.se)
    assert few.se == pytest.approx(0.03 / math.sqrt(2))  # ln 10 seconds for ln 10 of error
    assert few.df == pytest.approx(4 / (1 / 2 + 1 / 4))
    further = tradeoff.crossing(points.assign(averaged=3), math.log(0.09))
    assert (further.kind, further.df) == ("extrapolated", pytest.approx(2.0))
    assert further.se == pytest.approx(0.06)
    ratio = few.over(further)
    a, b = few.se**2, further.se**2
    assert ratio.df == pytest.approx((a + b) ** 2 / (a**2 / few.df + b**2 / 2))


def test_a_ratio_of_bounds_is_a_bound_in_the_right_sense() -> None:
    one = tradeoff.Crossing(1.0, 0.1, "measured")
    two = tradeoff.Crossing(3.0, 0.0, "at most")
    assert one.over(two).kind == "at least" and two.over(one).kind == "at most"
    assert one.over(two).log == pytest.approx(-2.0)
    assert two.over(two).kind == "none"
    doubtful = tradeoff.Crossing(3.0, 0.0, "at most", doubt=0.2)
    assert one.over(doubtful).doubt == doubtful.over(one).doubt == 0.2
    assert one.over(tradeoff.Crossing(0.0, 0.0, "extrapolated")).kind == "extrapolated"


def judged(files: ResultFiles) -> pd.DataFrame:
    """Verdicts of the statements on CPU time by their ids without ``time/``."""
    some = [claim for claim in CLAIMS if claim.id.startswith("time/")]
    given = ResultFiles(experiment3=files.experiment3, experiment3_timing=files.experiment3_timing)
    frame = judge_claims(some, REGISTRY, given)
    return frame.set_index(frame["id"].str.removeprefix("time/"))


def test_planted_ratios_give_the_papers_verdicts_and_reversed_ones_do_not(
    files: ResultFiles, tmp_path: Path
) -> None:
    found = judged(files)
    ten = found.loc["evidence-ten/shipped"]
    assert ten["effect"] == pytest.approx(10.0, rel=0.02) and ten["verdict"] == "equivalent"
    assert 0 < ten["df"] < 1e6 and ten["se"] > 0
    # done properly it takes as long as the orthant sampler: not ten times, and not slower
    proper = found.loc["evidence-ten/proper"]
    assert proper["effect"] == pytest.approx(1.0, rel=0.02) and proper["verdict"] == "discrepant"
    assert found.loc["probability-tie/proper", "verdict"] == "equivalent"
    assert found.loc["evidence-hmc/proper", "verdict"] == "consistent"
    assert found.loc["evidence-hmc/proper", "effect"] == pytest.approx(4, rel=0.1)
    # the orthant sampler a hundred times slower: everything turns round
    slow = dict(ROWS) | {"orthant": (10.0, 0.3, 4e-3)}
    turned = judged(ResultFiles(**experiment3(tmp_path / "slow", slow)))["verdict"]
    assert turned["evidence-ten/shipped"] == turned["evidence-hmc/proper"] == "discrepant"
    assert turned["probability-ess/proper"] == "consistent"


def test_the_table_has_the_audits_verdicts_and_none_of_its_own(files: ResultFiles) -> None:
    table = comparisons.TABLES["claims"](REGISTRY, files)
    keys = re.findall(r"\\val\{claim/(time/[^}]+)/words\}", table.tex)
    assert set(keys) == {claim.id for claim in CLAIMS if claim.id.startswith("time/")}
    assert "verdict" not in table.frame
    assert not any(key.endswith("/verdict") for key in comparisons.values(files) if "claim" in key)


def test_a_sampler_that_has_not_converged_is_shown_at_face_value_and_decides_nothing(
    files: ResultFiles, tmp_path: Path
) -> None:
    bad = changed(tmp_path, files, "ess-gpml", lambda frame: frame.assign(status="not converged"))
    found = tradeoff.claims(tradeoff.points(bad)).set_index(["claim", "form"])
    row = found.loc[("evidence-ten", "shipped")]
    assert row["status"] == "not converged"
    judgement = judged(bad).loc["evidence-ten/shipped"]
    assert (judgement["verdict"], judgement["note"]) == ("not comparable", "not converged")
    said = comparisons.values(bad)
    assert said["claims/evidence-ten/shipped/phrase"].value is None
    assert said["claims/evidence-ten/shipped/phrase"].text == "not converged"
    assert said["claims/evidence-ten/shipped/face"].value == pytest.approx(10.0, rel=0.02)
    assert "ESS as shipped (not converged)" in said["tradeoff/evidence/not-converged"].text
    assert said["tradeoff/evidence/ess-gpml/cpu"].value is None
    assert r"\dagger" in comparisons.TABLES["claims"](REGISTRY, bad).tex
    assert r"\dagger" not in comparisons.TABLES["claims"](REGISTRY, files).tex


def test_moderate_accuracy_is_a_first_size_that_counts_and_not_the_last(
    files: ResultFiles, tmp_path: Path
) -> None:
    def row(*sizes: int) -> pd.Series:
        """Slice sampling as shipped, whose runs have converged at these sizes only."""
        converged = dict.fromkeys(sizes, "ok")
        bad = changed(
            tmp_path,
            files,
            "ess-gpml",
            lambda frame: frame.assign(status=frame["size"].map(converged).fillna("not converged")),
        )
        found = tradeoff.claims(tradeoff.points(bad)).set_index(["claim", "form"])
        assert found.loc[("probability-ess", "shipped"), "status"] == "ok"
        return found.loc[("probability-tie", "shipped")]

    assert row(*range(len(SIZES)))["status"] == "ok"
    assert row(len(SIZES) - 1)["status"] == "not converged"
    only = row(0)
    assert only["status"] == "one size only" and math.isnan(only["log_error"])


def test_a_method_that_is_missing_reads_not_run(files: ResultFiles) -> None:
    there = tuple(p for p in files.experiment3 if p.stem not in ("best", "ess-gpml"))
    fewer = replace(files, experiment3=there)
    tex = comparisons.TABLES["targets"](REGISTRY, fewer).tex
    assert re.search(r"twisted \(best\) & \\multicolumn\{2\}\{c\}\{\\textit\{not run\}\}", tex)
    said = comparisons.values(fewer)
    assert said["tradeoff/not-run"].text == "twisted (best), ESS as shipped"
    assert said["claims/evidence-ten/shipped/phrase"].text == "not run"
    assert said["tradeoff/evidence/best/phrase"].text == "not run"


def test_a_row_that_nobody_knows_is_a_series_of_its_own(files: ResultFiles, tmp_path: Path) -> None:
    more = experiment3(tmp_path, {"a_new_one": (0.1, 0.1, 1e-3)})
    both = ResultFiles(**{name: getattr(files, name) + paths for name, paths in more.items()})
    assert r"a\_new\_one" in comparisons.TABLES["tradeoff"](REGISTRY, both).tex


def test_figures_1_and_2_show_natural_logarithms_and_the_published_points(
    files: ResultFiles, tmp_path: Path
) -> None:
    bad = changed(tmp_path, files, "hmc-gpml", lambda frame: frame.assign(status="not converged"))
    with style.style():
        first = comparisons.FIGURES["figure1"](REGISTRY, bad)
        second = comparisons.FIGURES["figure2"](REGISTRY, bad)

    def drawn(axes: object) -> dict[tuple[str, bool], np.ndarray]:
        """Points by marker and whether they are hollow."""
        return {
            (
                str(one.get_marker()),
                to_hex(one.get_markerfacecolor()) == "#ffffff",
            ): np.column_stack([one.get_xdata(), one.get_ydata()])
            for one in axes.get_lines()  # type: ignore[attr-defined]
            if len(one.get_xdata()) and one.get_marker() not in ("None", "", "|", "_")
        }

    points = drawn(first.axes[0])
    orthant = points["o", False]
    np.testing.assert_allclose(orthant[:, 0], [0.1, 1, 10, 100])
    np.testing.assert_allclose(orthant[:, 1], np.log(4e-3 / np.sqrt(SIZES)), rtol=1e-6)
    assert (">", True) in points and (">", False) not in points  # as shipped, hollow
    left, right = second.axes
    np.testing.assert_allclose(
        drawn(left)["o", False][:, 1], np.log(100 * 0.3 / 174 / np.sqrt(SIZES)), rtol=1e-6
    )
    np.testing.assert_allclose(drawn(right)["o", False][:, 1], 0.3 / np.sqrt(SIZES), rtol=1e-6)
    assert right.get_yscale() == "log"
    published = {tuple(row) for key, p in drawn(left).items() if "$" in key[0] for row in p}
    assert published == {(525.0, -4.52), (5350.0, -4.70)}
    said = [text.get_text() for text in second.legends[0].get_texts()]
    assert sum("published" in text and "another machine" in text for text in said) == 2
    assert "HMC as shipped (not converged)" in said
    # every method has a mark of its own, so that they can be told apart in grey
    handles = second.legends[0].legend_handles
    assert len({str(one.get_marker()) for one in handles}) == len(handles)  # type: ignore[union-attr]


def test_what_expectation_propagation_costs_the_sampler(files: ResultFiles) -> None:
    """Its error is 150 times below that of the first size: too far to extrapolate; Laplace's MAE is not."""
    said = comparisons.values(files)
    assert said["tradeoff/probability/laplace/match"].value == pytest.approx(1.6, rel=1e-6)
    assert said["tradeoff/probability/ep/error"].value == pytest.approx(1e-5)
    # the largest size takes 100 s, and is extrapolated to a hundred times that
    assert said["tradeoff/probability/ep/match"].text == r"more than $10000$\,s (extrapolated)"
    assert said["tradeoff/probability/ep/match"].value == pytest.approx(1e4)
    assert said["tradeoff/probability/laplace/cpu"].text == "not reached"


# ---------------------------------------------------------------------------- defects


def test_names_of_defects_are_those_of_the_toolbox(files: ResultFiles) -> None:
    assert set(EFFECTS) == set(DEFECTS)
    assert set(defects.defect_effects(files)["defect"]) == set(DEFECTS)


def test_a_planted_defect_is_found_with_its_sign(files: ResultFiles) -> None:
    found = defects.defect_effects(files).set_index(
        ["case", "sampler", "samples", "defect", "setting"]
    )
    for setting in ("repaired", "alone"):
        for sampler in ("ess", "hmc"):
            row = found.loc[("rough", sampler, 8, "right-end-point", setting)]
            assert row["nats"] == pytest.approx(0.5) and row["mae"] == pytest.approx(0, abs=1e-12)
            row = found.loc[("rough", sampler, 20, "double-variance", setting)]
            assert row["mae"] == pytest.approx(1e-3)
        row = found.loc[("linear", "hmc", 8, "stale-energy", setting)]
        assert row["nats"] == pytest.approx(-20.0)
        noisy = found.loc[("linear", "hmc", 8, "shrinking-step", setting)]
        assert noisy["nats_se"] == pytest.approx(0.1 / math.sqrt(3)) and not noisy["nats_clear"]
    assert ("linear", "ess", 8, "stale-energy", "alone") not in found.index


def test_values_of_defects_are_those_at_the_largest_number_of_samples(
    files: ResultFiles, tmp_path: Path
) -> None:
    def differ(frame: pd.DataFrame) -> pd.DataFrame:
        wobble = 1 + 0.01 * frame["replicate"]
        on = frame["switched"].isin(["all", "without double-variance", "without right-end-point"])
        frame.loc[on, "log_evidence_error"] *= wobble
        return frame

    # differences that are the same to the last bit have no standard error, and are not called clear
    said = comparisons.values(changed(tmp_path, files, "rough_hmc", differ, field="defects"))
    assert said["defects/samples"].text == "20"
    assert said["defects/rough/hmc/all/nats"].value == pytest.approx(-7.8, abs=0.3)
    assert said["defects/hmc/largest"].text.startswith("stale-energy (linear, $-8.")
    assert said["defects/hmc/clear"].text.startswith("right-end-point (rough)")
    assert said["defects/rough/hmc/without-stale-energy/mape"].value < 1
    assert said["defects/short"].value is not None
    assert said["defects/rough/hmc/stale-energy/repaired/nats"].value == pytest.approx(-8, abs=0.3)
    assert said["defects/rough/hmc/shrinking-step/alone/nats"].text == "no clear effect"
    assert said["defects/rough/ess/stale-energy/alone/nats"].text == "not run"
    assert said["defects/linear/ess/only-double-variance/log-mae"].value == pytest.approx(
        math.log(3e-3)
    )
    assert said["defects/runs"].value == 48 and said["defects/converged"].value == 0


def test_small_errors_of_defects_have_a_linear_axis_and_large_ones_say_where_theirs_is(
    files: ResultFiles, tmp_path: Path
) -> None:
    def shrink(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(log_evidence_error=frame["log_evidence_error"] / 50)

    for name in ("rough_hmc", "rough_ess"):
        files = changed(tmp_path, files, name, shrink, field="defects")
    above = defects.defects_figure(REGISTRY, files).axes[:3]
    assert [axes.get_xscale() for axes in above] == ["symlog", "symlog", "linear"]
    assert ["linear between" in axes.get_xlabel() for axes in above] == [True, True, False]
    ticks = [label.get_text() for label in above[2].get_xticklabels()]
    assert "0" in ticks and max(map(len, ticks)) <= 5


# ---------------------------------------------------------------------------- Experiment 5


def test_methods_that_agree_agree_and_one_that_does_not_is_found(
    files: ResultFiles, tmp_path: Path
) -> None:
    frame = hyperparameters.chains(files)
    pairs = hyperparameters.agreement(frame)
    assert len(pairs) == 2 * 3 * 2  # problems, pairs of converged methods, parameters
    assert "pm-laplace-1" not in {*pairs["first"], *pairs["second"]}
    assert pairs["z"].abs().max() == pytest.approx(0.04 / math.hypot(0.04, 0.04))
    said = comparisons.values(files)
    assert said["posterior/apart"].value is None and said["posterior/converged"].value == 6
    assert (said["posterior/prior/beta-rate"].text, said["tuning/largest-beta"].text) == (
        "$0.1$",
        "$10$",
    )
    assert said["posterior/compared"].value == pairs["problem"].nunique()
    assert said["posterior/chains"].value == 8  # the problem without data is not among them
    # Bonferroni: 12 pairs at one in a hundred together
    assert said["posterior/threshold"].value == pytest.approx(3.3415, abs=1e-3)

    def move(row: pd.DataFrame) -> pd.DataFrame:
        return row.assign(log_beta_mean=row["log_beta_mean"] - 0.3)

    path = next(
        p for p in files.experiment5 if p.parent.name == "problem7" and p.stem == "surrogate"
    )
    moved = tmp_path / "surrogate.csv"
    move(pd.read_csv(path)).to_csv(moved, index=False)
    others = tuple(moved if p == path else p for p in files.experiment5)
    said = comparisons.values(replace(files, experiment5=others))
    assert said["posterior/apart"].text == "differ"
    assert "Crabs" in said["posterior/largest-pair"].text
    assert "surrogate" in said["posterior/largest-pair"].text


def test_the_fastest_chain_is_named_problem_by_problem(files: ResultFiles, tmp_path: Path) -> None:
    """One that is faster wherever it converged is not passed over because it did so on fewer problems."""
    said = comparisons.values(files)["posterior/fastest"].text
    assert said == r"further\_one (Problem 1, Crabs)"
    path = next(
        p for p in files.experiment5 if p.parent.name == "problem7" and p.stem == "further_one"
    )
    lost = tmp_path / "further_one.csv"
    pd.read_csv(path).assign(status="not converged").to_csv(lost, index=False)
    others = tuple(lost if p == path else p for p in files.experiment5)
    said = comparisons.values(replace(files, experiment5=others))
    assert said["posterior/fastest"].text == r"further\_one (Problem 1); surrogate (Crabs)"
    slowest = said["posterior/slowest"].text
    assert "Problem 1" in slowest and "Crabs" in slowest and "further" not in slowest


def test_the_threshold_is_exceeded_as_rarely_as_it_says() -> None:
    """20,000 draws of 10 z: about 200 exceed it; outside 130 to 270 is less likely than 1e-6."""
    z = np.random.default_rng(3).standard_normal((20_000, 10))
    count = int((np.abs(z).max(axis=1) > hyperparameters.threshold(10)).sum())
    assert 130 <= count <= 270


def test_chains_that_have_not_converged_show_why_and_nothing_else(files: ResultFiles) -> None:
    tex = comparisons.TABLES["chains"](REGISTRY, files).tex
    bad = next(row for row in tex.splitlines() if "PM, Laplace, 1 " in row)
    assert r"\multicolumn{4}{c}{\textit{not converged}}" in bad
    assert "1.010" in bad and "$150$" in bad and "51." not in bad and "0.41" not in bad
    assert r"further\_one" in tex
    assert (
        r"Breast Cancer & PM, Laplace, 1 & \multicolumn{4}{c}{\textit{data not available}}" in tex
    )


def test_the_posterior_figure_marks_the_six_sets(files: ResultFiles) -> None:
    with style.style():
        drawn = comparisons.FIGURES["posterior"](REGISTRY, files)
    titles = [axes.get_title(loc="left") for axes in drawn.axes]
    assert titles[0].startswith("Problem 1: further_one")  # most effective samples
    assert "Breast Cancer: data not available" in titles
    for axes in drawn.axes[:2]:
        assert [text.get_text() for text in axes.texts] == list("123456")
        marks = {
            (round(float(x), 3), round(float(y), 3))
            for one in axes.get_lines()
            if one.get_marker() == "s"
            for x, y in zip(one.get_xdata(), one.get_ydata(), strict=True)
        }
        assert (round(math.log(5), 3), 0.0) in marks and (-0.693, round(math.log(3), 3)) in marks


def test_sets_are_those_of_experiment_4() -> None:
    text = (ROOT / "config" / "config.yaml").read_text()
    found = re.findall(r"\{set: (\d), alpha: ([\d.]+), beta: ([\d.]+)\}", text)
    assert {int(k): (float(a), float(b)) for k, a, b in found} == PUBLISHED_SETS


def test_tuning_averages_what_may_be_compared_and_adds_up_its_time(files: ResultFiles) -> None:
    means = hyperparameters.tuning_means(hyperparameters.tuned(files))
    row = means.set_index(["method", "stage"]).loc[("orthant-2000", "final")]
    assert row["ok"] == 2 and row["runs"] == 3
    assert row["shortfall"] == pytest.approx(0.2) and row["evidence"] == pytest.approx(-100.2)
    assert row["cpu_seconds"] == pytest.approx(8.0)  # the search's three and its own five
    tex = comparisons.TABLES["tuning"](REGISTRY, files).tex
    assert r"orthant, $M=2\,000$ & 2 of 3" in tex and r"second look, $M=100\,000$" in tex
    assert r"$^b$" in next(one for one in tex.splitlines() if "Laplace" in one)
    assert hyperparameters.tuner("orthant-adapted-1000", 1000.0).startswith("adapted, ")


def test_whether_few_samples_suffice_follows_the_numbers(
    files: ResultFiles, tmp_path: Path
) -> None:
    said = comparisons.values(files)
    assert said["tuning/small/samples"].value == 2000
    assert said["tuning/final-samples"].value == 100_000
    assert said["tuning/judge-se"].value == pytest.approx(0.001)
    assert said["tuning/large/samples"].value == 20_000
    assert said["tuning/small/worst"].value == pytest.approx(0.8)
    assert said["tuning/small-final/worst"].value == pytest.approx(0.2)
    assert said["tuning/small/suffices"].text == "suffices"
    assert said["tuning/laplace/misses"].text == "does not suffice"
    assert said["tuning/laplace/suffices"].value is None

    def worse(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(evidence_shortfall=frame["evidence_shortfall"] * 2)

    said = comparisons.values(changed(tmp_path, files, "problem1_tuning", worse, field="tuning"))
    assert said["tuning/small/suffices"].value is None
    assert said["tuning/small/misses"].text == "does not suffice"

"""Explanations, the gate before the paper, and negative controls: an audit that cannot fail is found out."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_results import everything, experiment1, experiment2
from test_workflow import copy_project

from gpcmc.audit import (
    Comparisons,
    ResultFiles,
    agreement,
    audit,
    check_controls,
    check_explained,
    controls,
    explain,
    judge_claims,
    read_audit,
    read_claims,
    read_explanations,
    read_registry,
    unexplained,
    write_rows,
)
from gpcmc.audit.claims import CHECKS
from gpcmc.audit.compare import column_of
from gpcmc.audit.controls import (
    COLUMNS,
    _all,
    _broken,
    _Control,
    _killed,
    _red,
    _row,
    _swapped,
    _Trial,
    line,
    of_known_chance,
)
from gpcmc.experiments.broken import KINDS, broken_runs
from gpcmc.report.audit import Audited, add_values, appendix, claims_table, controls_table, page
from gpcmc.report.audit import line as audit_line
from gpcmc.report.value import Values, code_of

ROOT = Path(__file__).parent.parent
PUBLISHED = ROOT / "data" / "published"
REGISTRY = read_registry(PUBLISHED)
CLAIMS = read_claims(PUBLISHED / "claims.yaml")
KNOWN = {*REGISTRY["id"], *REGISTRY.apply(column_of, axis=1), *(claim.id for claim in CLAIMS)}


def made_controls(folder: Path, off: float = 3.0) -> tuple[Path, ...]:
    """Made rows of the smallest problems: sound ones, and two kinds that err `off` times as much."""
    paths = []
    for kind in KINDS:
        work = folder / f"made-{kind}"
        work.mkdir(parents=True)
        rng = np.random.default_rng(4)
        first = experiment1(work, rng)[0]
        second = experiment2(work, rng, between=0.05, data_sets=12)[0]
        for path, name in ((first, "experiment1"), (second, "experiment2")):
            frame = pd.read_csv(path).query("samples == 10000")
            factor = 1.0 if kind == "sound" else off
            frame["estimate"] = frame["truth"] + factor * (frame["estimate"] - frame["truth"])
            if "mae" in frame:
                frame["mae"] *= factor
            paths.append(folder / f"{kind}_{name}.csv")
            frame.to_csv(paths[-1], index=False)
    return tuple(paths)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, ResultFiles]:
    """Published values that agree with the made results, and these."""
    folder = tmp_path_factory.mktemp("results")
    files = everything(
        folder / "run", methods=("orthant", "control-variables", "ess-gpml", "hmc-gpml")
    )
    files = dataclasses.replace(files, broken=made_controls(folder / "controls"))
    registry = REGISTRY.copy()
    cells = audit(registry, files).compared.cells.set_index("id")["difference"]
    right = registry["id"].map(np.exp(cells)).fillna(1.0)
    for name in ("published", "published_bracket", "rounding"):
        registry[name] = registry[name] * right
    return registry, files


def table_of(faults: list[_Control]) -> pd.DataFrame:
    return pd.DataFrame([*(_row(*one) for one in faults), _all(faults)], columns=COLUMNS)


@pytest.fixture(scope="module")
def tried(run: tuple[pd.DataFrame, ResultFiles]) -> pd.DataFrame:
    registry, files = run
    judged = judge_claims(CLAIMS, registry, ResultFiles())
    return controls(registry, files, PUBLISHED, CLAIMS, judged)


# ---------------------------------------------------------------------------- explanations


def test_the_explanations_are_of_things_that_there_are() -> None:
    found = read_explanations(PUBLISHED / "explanations.yaml", KNOWN)
    assert found["variance/experiment1"].evidence == "tables/variance.csv"
    assert all(len(one.reason) > 40 for one in found.values())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{id: table9/N1, ours: below, reason: so, evidence: audit.csv}", "table9/N1"),
        ("{id: [dimension, x], ours: below, reason: so, evidence: audit.csv}", "called 'x'"),
        (
            "{id: dimension, ours: below, reason: '', evidence: audit.csv}",
            "reason and its evidence",
        ),
        ("{id: dimension, ours: beside, reason: so, evidence: a}", "below.*above.*'beside'"),
        ("{id: dimension, reason: so, evidence: a}", "needed are id, ours, reason and evidence"),
        ("{id: dimension, ours: above, reason: so, evidence: a, more: b}", "needed are id, ours"),
    ],
)
def test_a_wrong_explanation_is_refused(row: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "explanations.yaml"
    path.write_text(f"- {row}\n")
    with pytest.raises(ValueError, match=said):
        read_explanations(path, KNOWN)
    path.write_text("- {id: dimension, ours: above, reason: so, evidence: a}\n" * 2)
    with pytest.raises(ValueError, match="explained twice"):
        read_explanations(path, KNOWN)
    path.write_text("")
    assert read_explanations(path, KNOWN) == {}


def test_an_unexplained_discrepancy_stops_the_published_paper_only(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"id": ["a", "dimension", "c"], "verdict": ["discrepant"] * 2 + ["equivalent"], "z": -3.0}
    )
    path = tmp_path / "explanations.yaml"
    path.write_text(
        "- {id: dimension, ours: below, reason: a reason, evidence: tables/floor.csv}\n"
    )
    explained = explain(frame, read_explanations(path, KNOWN))
    assert explained["explanation"].tolist() == ["", "a reason", ""]
    assert unexplained([explained]) == ["a"]
    check_explained([explained], "standard")
    with pytest.raises(
        RuntimeError, match=r"1 rows .* at scale published .*\(a: discrepant, .*explanations.yaml"
    ):
        check_explained([explained], "published")
    check_explained([explained[explained["id"] != "a"]], "published")
    # an explanation does not make a cell discrepant that is not
    silent = explain(frame.assign(verdict="consistent"), read_explanations(path, KNOWN))
    assert set(silent["explanation"]) == {""}


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_reason_for_the_other_side_explains_nothing(
    sign: int, run: tuple[pd.DataFrame, ResultFiles], tmp_path: Path
) -> None:
    """Our errors at N = 500 a hundred times too small or too large, and a formula that is off either way."""
    registry, files = run
    path = next(path for path in files.experiment1 if path.stem == "N500")
    frame = pd.read_csv(path)
    frame["estimate"] = frame["truth"] + 100.0**sign * (frame["estimate"] - frame["truth"])
    frame.to_csv(tmp_path / path.name, index=False)
    first = tuple(tmp_path / path.name if p == path else p for p in files.experiment1)
    found = audit(registry, dataclasses.replace(files, experiment1=first))
    claims = pd.DataFrame(
        {"id": ["variance/experiment1"], "verdict": ["discrepant"], "low": [0.8], "high": [1.25]}
    ).assign(effect=1.0 - 0.5 * sign, z=-4.0)
    reasons = read_explanations(PUBLISHED / "explanations.yaml", KNOWN)
    frames = [explain(part, reasons) for part in (found.cells, found.columns, claims)]
    lost = set(unexplained(frames))
    floor = {"table1/N500", "table1/N500/M3000000", "table1/N500/M100000"}
    red = pd.concat([part[part["verdict"] == "discrepant"]["id"] for part in frames])
    assert floor <= set(red)
    if sign > 0:  # the reasons are for errors that are too small and variances that are too large
        assert {*floor, "variance/experiment1"} <= lost
        said = frames[1].set_index("id").loc["table1/N500", "unexplained"]
        assert said == "the known reason is for ours below, and it is above"
        with pytest.raises(RuntimeError, match="known reason is for ours above, and it is below"):
            check_explained(frames, "published")
    else:
        assert not lost & {*floor, "variance/experiment1"}


def test_a_cell_that_leaves_the_comparison_needs_a_reason_at_the_published_scale(
    run: tuple[pd.DataFrame, ResultFiles],
) -> None:
    registry, files = run
    cells = audit(registry, files).cells
    names = ["table1/N50/M10000", "table1/N50/M30000", "table2/problem1/M10000"]
    mine = [cells["id"] == name for name in names]
    cells.loc[mine[0], ["z", "verdict"]] = math.nan, "not comparable"
    cells.loc[mine[1], ["z", "ours", "verdict"]] = math.nan, math.nan, "not run"
    # runs that do not count: the note says which and why
    cells.loc[mine[2], ["z", "ours", "verdict"]] = math.nan, math.nan, "not comparable"
    explained = explain(cells, read_explanations(PUBLISHED / "explanations.yaml", KNOWN))
    open_cells = set(explained["id"][explained["unexplained"] != ""])
    assert names[0] in open_cells and names[1] in open_cells and names[2] not in open_cells
    # one data set of real data says nothing of others, and the reason for that is known
    crabs = explained.set_index("id").loc["table4/problem7/ess/mae_med"]
    assert crabs["verdict"] == "not comparable" and "one data set" in crabs["explanation"]
    assert not set(unexplained([explained])) & set(names)
    check_explained([explained], "standard")
    with pytest.raises(RuntimeError, match="table1/N50/M30000: not run, no reason is known"):
        check_explained([explained], "published")


@pytest.mark.slow
def test_evidence_that_no_rule_makes_stops_the_workflow(tmp_path: Path) -> None:
    folder = copy_project(tmp_path / "project")
    path = folder / "data" / "published" / "explanations.yaml"
    command = [sys.executable, "-m", "snakemake", "--configfile", "config/tiny.yaml", "-n", "audit"]

    def dry_run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)

    done = dry_run()
    assert done.returncode == 0
    assert "Problem 6" not in done.stdout  # nor does evidence make a scale run what it leaves out
    path.write_text("- {id: dimension, ours: below, reason: so, evidence: tables/nothing.csv}\n")
    done = dry_run()
    assert done.returncode != 0
    assert "results/tiny/tables/nothing.csv" in done.stdout + done.stderr


# ---------------------------------------------------------------------------- controls


def test_every_control_of_every_table_is_tried(tried: pd.DataFrame) -> None:
    assert tried.groupby("table").size().to_dict() == {
        **{1: 11, 2: 11, 3: 11, 4: 8},
        **{"claims": 1, "all": 1},
    }
    altered = tried[tried["control"] == "raised by 30 %"].set_index(["table", "place"])["trials"]
    assert altered[1].to_dict() == {"one cell": 18, "one column": 3, "whole table": 1}
    assert altered[4, "one cell"] == 24  # MAE-POST; MAE-MED rests on one data set here
    swapped = tried[tried["control"] == "columns swapped"].set_index("table")["trials"]
    assert swapped.to_dict() == {1: 3, 2: 6, 3: 6, 4: 6}
    assert (tried["killed"] <= tried["trials"]).all() and (
        tried["missed"] <= tried["required"]
    ).all()


def test_dropped_cells_and_statements_are_always_found(tried: pd.DataFrame) -> None:
    dropped = tried[tried["control"] == "dropped"]
    assert dropped["trials"].tolist() == [18, 24, 24, 59, len(CLAIMS)]
    assert (dropped["killed"] == dropped["trials"]).all()
    assert set(dropped["verdict"]) == {"killed"}


def test_broken_runs_are_found_and_sound_ones_survive(tried: pd.DataFrame) -> None:
    runs = tried[tried["place"].str.startswith("runs of")].set_index(["control", "table"])
    assert set(runs.loc["sound", "verdict"]) == {"survives"}
    for kind in ("wrong tail", "biased truth"):
        assert runs.loc[(kind, 1), "verdict"] == runs.loc[(kind, 2), "verdict"] == "killed"
        assert runs.loc[(kind, 1), "required"] == 1


def test_kill_rates_are_what_the_simulation_expects(tried: pd.DataFrame) -> None:
    """Values that agree exactly are killed where the alteration alone is significant: at a power of one half."""
    part = tried[tried["control"].str.contains("30 %") & (tried["table"] == 1)]
    for _, row in part.iterrows():
        assert (row["kill_rate"] > 0.5) == (row["expected"] > 0.5), row
    whole = part[part["place"] == "whole table"]
    for _, row in whole.iterrows():
        assert (row["smallest_table"] < 1.3) == (row["expected"] > 0.8)
    assert (part["smallest_table"] <= part["smallest_column"]).all()
    assert (part["smallest_column"] <= part["smallest_cell"]).all()


def test_swapping_moves_both_columns_against_each_other() -> None:
    cells = pd.DataFrame(
        {
            "id": [f"table2/problem{p}/M{m}" for p in (1, 2) for m in (10000, 30000)]
            + ["table2/problem2/M9"],
            "column": ["one"] * 2 + ["two"] * 3,
            "published": [1.0, 2.0, 3.0, 4.0, 5.0],
        }
    )
    shift = _swapped(cells, "one", "two")
    np.testing.assert_allclose(shift, [math.log(3), math.log(2), -math.log(3), -math.log(2), 0.0])


def test_what_was_discrepant_before_is_no_kill() -> None:
    cells = pd.DataFrame(
        [(f"c{k}", 1, f"c{k}", f"c{k}", 1.0, 5.0 * (k == 0), 0.5, 1e9, 0.0) for k in range(3)],
        columns=["id", "table", "unit", "column", "published", "difference", "sd", "df", "share"],
    )
    columns = pd.DataFrame(columns=["id", "table", "cells", "difference", "sd", "df"])
    compared = Comparisons(cells, columns)
    assert _red(compared) == {"c0"}
    small = np.full(3, 0.01)
    assert not _killed(compared, _red(compared), small)
    large = np.array([0.01, 5.0, 0.0])
    assert _killed(compared, _red(compared), large)
    # what turns red without being touched is no kill either
    assert not _killed(compared, set(), np.array([0.0, 0.01, 0.0]))


def test_what_touches_a_discrepancy_need_not_be_found(
    run: tuple[pd.DataFrame, ResultFiles], tried: pd.DataFrame
) -> None:
    """A published cell a million times too large: neither it nor its column nor its table is asked for."""
    registry, files = run
    name = "table1/N50/M10000"
    worse = registry.copy()
    mine = worse["id"] == name
    for column in ("published", "published_bracket", "rounding"):
        worse.loc[mine, column] *= 1e6
    judged = judge_claims(CLAIMS, registry, ResultFiles())
    frame = controls(worse, dataclasses.replace(files, broken=()), PUBLISHED, CLAIMS, judged)
    keys = ["control", "table", "place"]
    places = [("raised by 30 %", 1, place) for place in ("one cell", "one column", "whole table")]
    before, after = (part.set_index(keys)["required"] for part in (tried, frame))
    assert after[places[2]] == 0 and after[places[1]] <= 2
    swapped = ("columns swapped", 1, "two columns")
    assert before[swapped] == 2 and after[swapped] <= 1
    assert frame["missed"].sum() == 0


def test_a_false_alarm_is_no_kill_and_is_said(
    run: tuple[pd.DataFrame, ResultFiles], tried: pd.DataFrame, tmp_path: Path
) -> None:
    """Runs called sound that err tenfold."""
    registry, files = run
    path = next(path for path in files.broken if path.stem == "sound_experiment1")
    frame = pd.read_csv(path)
    frame["estimate"] = frame["truth"] + 10 * (frame["estimate"] - frame["truth"])
    frame.to_csv(tmp_path / path.name, index=False)
    loud = tuple(tmp_path / path.name if p == path else p for p in files.broken)
    rows = table_of(_broken(registry, dataclasses.replace(files, broken=loud)))
    row = rows[(rows["control"] == "sound") & (rows["table"] == 1)].iloc[0]
    assert row["verdict"] == "false alarm" and row["killed"] == 0
    # what is wrong as well is no kill beside it, and need not be one
    rest = rows[(rows["control"] != "sound") & (rows["table"] == 1)]
    assert (rest["killed"] == 0).all() and (rest["required"] == 0).all()
    faults = tried[~tried["control"].isin(["sound", "dropped", "all"])]
    assert line(tried).startswith(f"{faults['killed'].sum()} of {faults['trials'].sum()} planted")
    # to leave a row out is a fault of another kind: it only has to be counted
    left_out = tried[tried["control"] == "dropped"]["trials"].sum()
    assert line(tried).endswith(f"; {left_out} of {left_out} rows that were dropped")
    assert left_out == len(REGISTRY) + len(CLAIMS)
    assert "FALSE ALARM" not in line(tried)
    assert "(FALSE ALARM: sound runs of table1/N50/M" in line(rows)
    check_controls(rows, "standard")
    with pytest.raises(RuntimeError, match="FALSE ALARM: sound runs of table1/N50"):
        check_controls(rows, "published")


def test_a_blind_audit_is_found_out(
    run: tuple[pd.DataFrame, ResultFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nothing were ever called discrepant, controls would be missed: an error at the published scale."""
    registry, files = run
    original = Comparisons.judged

    def blind(self: Comparisons) -> pd.DataFrame:
        return original(self).replace({"verdict": {"discrepant": "consistent"}})

    monkeypatch.setattr(Comparisons, "judged", blind)
    judged = judge_claims(CLAIMS, registry, ResultFiles())
    frame = controls(registry, files, PUBLISHED, CLAIMS, judged)
    assert frame["missed"].sum() >= 2
    assert "MISSED: " in line(frame) and "wrong tail" in line(frame)
    check_controls(frame, "standard")
    with pytest.raises(RuntimeError, match="wrong tail"):
        check_controls(frame, "published")


def test_a_fault_that_is_likely_found_and_is_not_has_survived() -> None:
    """Chances of 0.9 and 0.5: too low to require a kill, but one of them is no want of power."""
    rng = np.random.default_rng(3)
    for chance, verdict in ((0.9, "survived"), (0.5, "no power")):
        found = rng.random(10_000) < chance
        one = _row("wrong tail", 1, "runs", [_Trial(False, found)])
        assert one["verdict"] == verdict and one["required"] == one["missed"] == 0


@pytest.mark.parametrize(("killed", "verdict"), [(14, "as expected"), (4, "too few")])
def test_too_few_kills_are_seen_where_none_is_required(killed: int, verdict: str) -> None:
    """Twenty trials of a chance of 0.7: four or fewer kills come up once in a million times."""
    found = np.random.default_rng(3).random((20, 10_000)) < 0.7
    trials = [_Trial(place < killed, found[place]) for place in range(20)]
    frame = table_of(
        [
            _Control("raised by 30 %", 1, "one cell", trials),
            # neither is one whose chance the simulation knows
            _Control("columns swapped", 1, "two columns", [_Trial(False, found[0], False)] * 30),
            _Control("sound", 1, "runs", [_Trial(False, found[0])] * 30),
        ]
    )
    assert frame["missed"].sum() == 0
    last = of_known_chance(frame)
    assert (last["trials"], last["killed"], last["verdict"]) == (20, killed, verdict)
    assert last["expected"] == pytest.approx(0.7, abs=0.01)
    check_controls(frame, "standard")
    if verdict == "too few":
        assert last["p_few"] < 0.001
        with pytest.raises(RuntimeError, match="TOO FEW FAULTS FOUND"):
            check_controls(frame, "published")
    else:
        assert last["p_few"] > 0.2 and "TOO FEW" not in line(frame)
        check_controls(frame, "published")


def test_a_sharp_audit_passes_its_controls(tried: pd.DataFrame) -> None:
    assert tried["missed"].sum() == 0
    check_controls(tried, "published")
    assert "MISSED" not in line(tried)


def test_broken_runs_are_broken_as_stated() -> None:
    sound, tail, truth = (
        broken_runs(kind, root=20210308, instances=6, data_sets=2, runs=1) for kind in KINDS
    )
    error = [
        np.mean([abs(row["estimate"] - row["truth"]) / abs(row["truth"]) for row in rows])
        for rows, _ in (sound, tail, truth)
    ]
    assert error[0] < 0.005 and error[1] > 1.5 * error[0]
    assert error[2] == pytest.approx(0.02, abs=0.005)
    mae = [np.mean([row["mae"] for row in rows]) for _, rows in (sound, tail, truth)]
    assert mae[0] < 0.008 and mae[1] > 2 * mae[0] and mae[2] > 2 * mae[0]
    # the biased truth is the only difference of its runs
    assert [row["estimate"] for row in truth[0]] == [row["estimate"] for row in sound[0]]
    # sound runs err as they say of themselves: chi^2 of 6, below its 99.9 % point
    chi = sum(((r["estimate"] - r["truth"]) / r["standard_error"]) ** 2 for r in sound[0])
    assert chi < 22.5
    with pytest.raises(ValueError, match="kind"):
        broken_runs("magic", root=1, instances=1, data_sets=1, runs=1)


# ---------------------------------------------------------------------------- what readers get


@pytest.fixture(scope="module")
def audited(run: tuple[pd.DataFrame, ResultFiles], tried: pd.DataFrame) -> Audited:
    _, files = run
    found = audit(REGISTRY, files)  # the real published values: there are discrepancies
    claims = judge_claims(CLAIMS, REGISTRY, files)
    explanations = read_explanations(PUBLISHED / "explanations.yaml", KNOWN)
    frames = [explain(frame, explanations) for frame in (found.cells, found.columns, claims)]
    return Audited(*frames, agreement(found.compared), tried)


def test_every_row_has_an_anchor(audited: Audited) -> None:
    cells, claims = appendix(audited), claims_table(audited)
    for name in audited.cells["id"]:
        assert cells.count(f"\\hypertarget{{audit:{name}}}") == 1
    for name in audited.columns["id"]:
        assert cells.count(f"\\hypertarget{{audit:{name}}}") == 1
    for name in audited.claims["id"]:
        assert claims.count(f"\\hypertarget{{audit:{name}}}") == 1
    assert "nan" not in (cells + claims + controls_table(audited)).replace("dominant", "")


def test_regions_are_printed_as_they_are_tested(audited: Audited) -> None:
    rows = claims_table(audited).splitlines()
    for claim in CLAIMS:
        region = next(row for row in rows if f"audit:{claim.id}}}" in row).split(" & ")[3]
        printed = [text.replace(r"\cdot10^{", "e").strip("}$") for text in region.split()]
        ends = [float(text) for text in printed if text not in ("below", "above", "to", "--")]
        assert ends == [end for end in (claim.low, claim.high) if math.isfinite(end)]


def test_a_bound_and_an_extrapolation_are_printed_as_such(audited: Audited) -> None:
    kinds = {"time/evidence-ess/proper": "at least", "time/evidence-hmc/proper": "extrapolated"}
    claims = audited.claims.copy()
    for name, kind in kinds.items():
        mine = claims["id"] == name
        claims.loc[mine, ["effect", "se", "kind", "log"]] = [3.25, 0.0, kind, True]
        claims.loc[mine, "verdict"] = "consistent"
    new = audited._replace(claims=claims)
    table = claims_table(new)
    assert " at least $3.25$ & consistent" in table
    assert " $3.25$ (extrapolated) & consistent" in table
    out = Values()
    add_values(out, new)
    said = {name: out[f"claim/{name}/effect"] for name in kinds}
    assert [one.text for one in said.values()] == ["at least $3.25$", "$3.25$ (extrapolated)"]
    assert {one.value for one in said.values()} == {3.25}
    # the sums over statements on CPU time are of the same verdicts
    assert out["audit/time/proper/stands"].value == 2
    assert out["audit/time/proper/does-not-stand"].value == 0
    # the paper says nothing of chains done properly: they are counted apart
    proper = new.claims["id"].str.endswith("/proper")
    assert out["audit/variants"].value == proper.sum() == 6
    assert out["audit/claims"].value == len(CLAIMS) - 6
    assert out["audit/variants/stands"].value == 2
    for _, claim in audited.claims.iterrows():
        assert out[f"claim/{claim['id']}/effect"].made == code_of(CHECKS[claim["check"]])
    parts = ("stands", "does-not-stand", "is-not-decided", "not-judged")
    for kind in ("claims", "variants"):
        assert (
            sum(out[f"audit/{kind}/{part}"].value for part in parts) == out[f"audit/{kind}"].value
        )


def test_controls_are_counted_by_kind_in_the_text(audited: Audited) -> None:
    out = Values()
    add_values(out, audited)
    frame = audited.controls
    kinds = frame["control"]
    for key, rows in (
        ("controls", frame[~kinds.isin(["sound", "dropped", "all"])]),
        ("controls/dropped", frame[kinds == "dropped"]),
    ):
        for name in ("trials", "killed", "required", "missed"):
            assert out[f"{key}/{name}"].value == rows[name].sum()
    known = of_known_chance(frame)
    assert out["controls/known/trials"].value == known["trials"] > 0
    assert out["controls/known/killed"].value == known["killed"]
    assert out["controls/known/p"].value == pytest.approx(known["p_few"])
    assert out["controls/too-few"].value is None
    assert out["controls/table1/raised/trials"].value == out["controls/table1/lowered/trials"].value
    one = frame[(frame["table"] == 1) & (frame["place"] == "one cell")].set_index("control")
    raised = one.loc["raised by 30 %"]
    assert out["controls/table1/raised/killed"].value == raised["killed"]
    expected = raised["expected"] * raised["trials"]
    assert out["controls/table1/raised/expected"].value == pytest.approx(expected)


def test_published_values_have_their_printed_digits(audited: Audited) -> None:
    cells = appendix(audited)
    assert "M3000000 & $0.012(" in cells and "mae\\_post & $0.06711(" in cells
    assert "e-" not in cells and "$-0.0$" not in cells


def test_reasons_stand_below_their_discrepancies(audited: Audited) -> None:
    claims = claims_table(audited)
    assert "Reason (tables/variance.csv): Eq. (44) adds up binomial variances" in claims
    lost = audited.unexplained
    assert lost and "variance/experiment1" not in lost
    text = appendix(audited) + claims
    assert text.count("Not explained: no reason is known.") == len(lost)
    assert all(name in audit_line(audited) for name in lost)
    assert "\n" not in audit_line(audited)


def test_the_page_is_self_contained_and_has_every_row(audited: Audited) -> None:
    html = page(audited, ROOT / "workflow" / "report" / "audit.html.j2", "smoke")
    for frame in (audited.cells, audited.columns, audited.claims):
        for name in frame["id"]:
            assert html.count(f'id="audit:{name}"') == 1
    assert "http" not in html and "src=" not in html and "<link" not in html
    assert "nan</td>" not in html and "&lt;NA&gt;" not in html
    assert html == page(audited, ROOT / "workflow" / "report" / "audit.html.j2", "smoke")


def test_agreement_that_is_too_good_is_in_the_line(audited: Audited) -> None:
    assert "TOO GOOD" not in audit_line(audited)
    small = audited.agreement.assign(p_low=0.001)
    assert "AGREEMENT TOO GOOD" in audit_line(audited._replace(agreement=small))


def test_files_of_the_audit_survive_writing(audited: Audited, tmp_path: Path) -> None:
    for name, frame in audited._asdict().items():
        write_rows(frame, tmp_path / f"{name}.csv")
    again = Audited.read({name: tmp_path / f"{name}.csv" for name in Audited._fields})
    assert again.unexplained == audited.unexplained
    assert again.claims["verdict"].tolist() == audited.claims["verdict"].tolist()
    assert audit_line(again) == audit_line(audited)
    assert read_audit(tmp_path / "cells.csv")["explanation"].isna().sum() == 0

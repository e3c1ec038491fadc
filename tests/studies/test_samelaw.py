"""What is judged of a row that is run again, and the answers of `run_again`. Seeds are fixed."""

import numpy as np
import pandas as pd
import pytest

from studies.common import rerun
from studies.common.kept import DIFFERENT, SAME_LAW, UNJUDGED
from studies.common.rows import Table, part_of
from studies.common.samelaw import Beside, beside

GIVEN = {"method": "ess", "samples": 100, "seed": "a"}


def table(changes=None, runs=6):
    """Kept replicates of one setting, as texts; one line a run."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {
            "row": [f"r{k}" for k in range(runs)],
            "method": "ess",
            "samples": "100",
            "seed": [f"s{k}" for k in range(runs)],
            "log_evidence": rng.normal(-30.0, 0.1, runs).astype(str),
            "log_evidence_se": "0.1",
            "mae": rng.normal(0.5, 0.01, runs).astype(str),
            "status": ["ok"] * (runs - 1) + ["not converged"],
            "work_sweeps": "7",
            "exact": "2.5",
            "exact_se": "0.0",
        }
    )
    for name, value in (changes or {}).items():
        rows.loc[rows["row"] == "r0", name] = value
    return Table(rows, rows[["row"]].assign(cpu_seconds="0.1"), {})


def of(changes, runs=6):
    kept = table(runs=runs)
    new = part_of(table(changes, runs), ["r0"])
    return beside(kept, part_of(kept, ["r0"]), new, {"row": "r0", **GIVEN}, "study, ess")


@pytest.mark.parametrize(
    ("changes", "pairs", "unjudged", "wrong"),
    [
        ({}, [], [], ""),
        ({"log_evidence": "-30.1"}, ["study, ess, log_evidence"], [], ""),
        ({"log_evidence": "-30.1", "mae": "0.51"}, ["study, ess, log_evidence", "study, ess, mae"], [], ""),
        ({"work_sweeps": "9"}, [], [], ""),
        ({"status": "not converged"}, [], [], ""),
        ({"status": "other"}, [], [], "line 1, status: ok kept, other here"),
        ({"exact": "2.6"}, [], [], "line 1, exact: 2.5 kept, 2.6 here, without an error"),
        ({"exact": "2.500000001"}, [], [], ""),
        ({"mae": ""}, [], [], "line 1, mae: .* kept, nothing here"),
    ],
)  # fmt: skip
def test_what_is_judged_and_what_no_random_number_explains(changes, pairs, unjudged, wrong):
    found = of(changes)
    assert [pair.group for pair in found.pairs] == pairs
    assert found.unjudged == unjudged
    assert bool(found.wrong) == bool(wrong)
    if wrong:
        assert pd.Series([found.wrong]).str.fullmatch(wrong).all()


def test_a_number_without_error_and_replicates_is_not_judged():
    assert of({"mae": "0.51"}, runs=3).unjudged == ["mae"]
    (pair,) = of({"mae": "0.51"}).pairs
    assert pair.degrees == 5.0


def test_a_word_is_wrong_if_no_replicate_has_it_and_not_judged_without_replicates():
    assert of({"status": "other"}).wrong
    found = of({"status": "other"}, runs=3)
    assert found.unjudged == ["status"] and not found.wrong
    assert of({"mae": ""}, runs=3).wrong, "a number that is gone"


def test_a_standard_error_that_is_named_alone_is_that_of_the_log_evidence():
    kept = table()
    kept = kept._replace(rows=kept.rows.rename(columns={"log_evidence_se": "standard_error"}))
    new = part_of(kept, ["r0"])
    new = new._replace(rows=new.rows.assign(log_evidence="-30.1"))
    found = beside(kept, part_of(kept, ["r0"]), new, {"row": "r0", **GIVEN}, "study, ess")
    assert found.pairs[0].error == pytest.approx(0.1 * 2**0.5)


def line(row, apart):
    names = {"study": "s", "experiment": "e", "row": row, "outcome": DIFFERENT, "difference": "x"}
    code = "other" if row == "alone" else "code"
    return {**names, "apart": apart, "draws": row != "exact", "code": code}


def test_a_bias_over_all_rows_is_different_and_other_random_numbers_are_not():
    """A bias of three standard errors in each of twelve rows, beside twelve whose random numbers alone are others."""
    rng = np.random.default_rng(5)
    lines = []
    for bias in (0.0, 3.0):
        for k in range(12):
            value = -30.0 + 0.1 * (rng.normal() + bias)
            found = of({"log_evidence": str(value)})
            pair = found.pairs[0]._replace(group=f"bias {bias}", kept=-30.0 + 0.1 * rng.normal())
            lines.append(line(f"{bias}/{k}", found._replace(pairs=[pair])))
    lines.append(line("none", Beside([], ["mae"], "")))
    # beside rows of the same law, and where there are none
    lines += [line(name, Beside([], ["mae"], "")) for name in ("exact", "alone")]
    lines.append(line("text", Beside([], [], "line 1, status: ok kept, other here")))
    rerun._judge(lines)
    outcomes = {one["row"]: one["outcome"] for one in lines}
    for row, outcome in outcomes.items():
        expected = UNJUDGED if row == "none" else SAME_LAW if row.startswith("0.0") else DIFFERENT
        assert outcome == expected, row
    why = {one["row"]: one["difference"] for one in lines}
    assert "errors" in why["3.0/0"] and why["text"].startswith("line 1, status")
    assert why["0.0/0"] == "1 estimates within their errors"

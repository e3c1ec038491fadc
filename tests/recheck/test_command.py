"""The command: the study of the README, simulated studies whose answers are known, and wrong input."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calibrate import Shape, simulate

from recheck.judge.command import DIFFERS, NOTHING, SAME, WRONG, main
from recheck.judge.compare import Comparer
from recheck.judge.measures import as_measures
from recheck.judge.planning import Spread, detectable, plan
from recheck.judge.published import Published
from recheck.judge.starting import read_ours, read_study

PI = Path(__file__).parent / "pi"
ERROR = "bracket,bracket_kind"


@pytest.fixture
def files(tmp_path):
    """Write a table of printed numbers and one of ours."""

    def write(printed="id,printed\na,1.00\n", ours="id,value\na,1.01\na,0.95\na,1.08\n"):
        paths = tmp_path / "printed.csv", tmp_path / "ours.csv"
        for path, text in zip(paths, (printed, ours), strict=True):
            path.write_text(text)
        return [str(path) for path in paths]

    return write


def test_the_study_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(PI)
    import measures as pi

    pi.run(tmp_path)
    pi.measure(tmp_path).to_csv(tmp_path / "ours.csv", index=False)
    sys.modules.pop("measures")
    study = str(PI / "data/published/pi")
    given = [study, str(tmp_path / "ours.csv")]
    assert main(["judge", *given, "--json", str(tmp_path / "all.json")]) == DIFFERS
    rows = json.loads((tmp_path / "all.json").read_text())
    verdicts = {row["id"]: row["verdict"] for row in rows}
    assert verdicts["table1/M100"] == "agrees" and verdicts["claim/bias"] == "agrees"
    assert verdicts["table1/M1024"] == "depends on a reading"
    assert verdicts["table1/M10000"] == "differs"
    capsys.readouterr()
    assert main(["explain", *given, "bias"]) == SAME
    text = capsys.readouterr().out
    assert "claim/bias: agrees" in text and "positive inside" in text
    assert main(["explain", *given, "table1/M10000"]) == SAME
    assert "printed: 0.035 (0.004), 50 units with 1 run" in capsys.readouterr().out
    assert main(["plan", *given]) == SAME
    assert "table1/M10000" in capsys.readouterr().out


def test_verdicts_on_numbers_whose_origin_is_known(files, capsys):
    """Twelve studies of four numbers; the last number of each is off by a factor of three.

    One study of twenty may call a true number different: more than 4 of twelve have a probability of 2e-4. The last
    number is always found, for three is far beyond what is detectable.
    """
    rng, alarms = np.random.default_rng(11), 0
    for _ in range(12):
        ours = ["id,unit,value"]
        printed = ["id,printed,units"]
        for name in "abcd":
            values = np.exp(0.2 * rng.standard_normal(25))
            theirs = values[:5].mean() * (3.0 if name == "d" else 1.0)
            printed.append(f"{name},{theirs:.3f},5")
            ours += [f"{name},u{k},{value}" for k, value in enumerate(values[5:])]
        paths = files("\n".join(printed), "\n".join(ours))
        assert main(["judge", *paths]) == DIFFERS
        rows = capsys.readouterr().out.partition("\n\n")[0].splitlines()[1:]
        verdicts = ["differs" if "differs" in line.split() else "" for line in rows]
        assert verdicts[-1] == "differs"
        alarms += "differs" in verdicts[:-1]
    assert alarms <= 4


def test_a_plan_finds_what_it_promises():
    """A design is planned from a pilot of 400 units; then 400 printed numbers are off by the factor.

    The share that is found has the power of 80 %, within 3.3 standard deviations of 2 % and what the pilot does not
    know.
    """
    shape = Shape("pilot", (400,), (4,), their_units=3, their_runs=2, between=0.3, run_sd=0.4)
    drawn = simulate(shape, 1, 1)
    study = Published(drawn.published.cells)
    row = plan(drawn.measures, study, 2.5).iloc[0]
    n, runs, level = int(row["units"]), int(row["runs"]), study.protocol.family_error
    cell = study.cells.iloc[0].to_dict()
    values = drawn.measures.groupby("unit")["value"]
    spread = Spread.of({name: own.to_numpy() for name, own in values}, 3)
    reached = [detectable(spread, cell, (k, runs), level, 0.8) for k in (n - 1, n)]
    assert reached[0] > math.log(2.5) >= reached[1]
    design = Shape("plan", (n,), (runs,), their_units=3, their_runs=2, between=0.3, run_sd=0.4)
    found = []
    for sign in (-1, 1):
        made = simulate(design, 200, 2, sign * math.log(2.5))
        comparer = Comparer(made.measures, made.published, 1)
        found += [comparer.cell(f"s{k}/c0", {}).p <= level for k in range(200)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.09)


def test_a_plan_says_where_no_design_helps(files, capsys):
    ours = [
        f"a,u{k},{r},{math.exp(k % 7 - 3) * (1 + 0.1 * r)}" for k in range(14) for r in range(2)
    ]
    paths = files(ours="\n".join(["id,unit,run,value", *ours]))
    assert main(["plan", *paths]) == SAME
    assert "varies too much by itself" in capsys.readouterr().out
    frame = plan(
        as_measures([{"id": "a", "value": 1.0, "scale": "log"}]), read_study(Path(paths[0])), 2.0
    )
    assert frame["note"].iloc[0].startswith("the pilot needs two")


def test_a_folder_is_started_and_judged(files, tmp_path, capsys):
    folder = tmp_path / "study"
    printed, ours = files(printed="id,printed,scale\na,1.00,\nb,-0.5,\n")
    arguments = ["init", printed, str(folder), "--margin", "1.5", "--rounding", "truncated"]
    assert main(arguments) == SAME and main(arguments) == WRONG  # nothing is overwritten
    study = read_study(folder)
    assert study.protocol.spreads
    assert study.protocol.margins.agree == 1.5
    assert study.cells.loc["b", ["scale", "value", "rounded"]].tolist() == [
        "linear",
        -0.55,
        "truncated",
    ]
    capsys.readouterr()
    assert main(["judge", str(folder), ours]) == WRONG
    assert "b is compared as a difference: needed is" in capsys.readouterr().err
    (folder / "cells.csv").write_text(
        pd.read_csv(folder / "cells.csv", dtype=str)[:1].to_csv(index=False)
    )
    assert main(["judge", str(folder), ours]) == SAME
    empty = tmp_path / "none.csv"
    empty.write_text("id,value\n")
    assert main(["judge", str(folder), str(empty)]) == NOTHING


@pytest.mark.parametrize(
    ("printed", "ours", "message"),
    [
        ("id\na\n", None, "columns ['printed'] are missing"),
        ("id,printed\n", None, "it has no rows"),
        ("id,printed,sd\na,1,2\n", None, "columns ['sd'] are unknown"),
        ("id,printed\na,x\n", None, "printed.csv: cell a: printed: needed is a number"),
        ("id,printed\na,1e400\n", None, "cell a: printed: needed is a number of at most 25 digits"),
        ("id,printed\na;b,1\n", None, "id 'a;b': needed are letters, digits and"),
        (
            "id,printed,bracket\na,1,0.1\n",
            None,
            "1 numbers have a bracket, the first is '1 0.1' (a). What is it?",
        ),
        ("id,printed\na,1 ± 0.1\n", None, "Type --brackets 'standard deviation'"),
        (
            f"id,printed,{ERROR}\na,1,0.1,standard error\n",
            None,
            "cell a: units: a bracket needs units of 2",
        ),
        (
            f"id,printed,{ERROR},units\na,1,(-0.02),standard error,9\n",
            None,
            "cell a: bracket: needed is a standard error, which is not negative, given was '(-0.02)'",
        ),
        (
            f"id,printed,{ERROR},units\na,1,x,standard error,9\n",
            None,
            "cell a: bracket: needed is a number",
        ),
        ("\n", None, "printed.csv: it has no rows; needed is a CSV file"),
        (None, "\n", "ours.csv: it has no rows; needed is a CSV file"),
        ("id,printed,units\na,1,0\n", None, "units: needed is a positive integer"),
        ("id,printed,rounded\na,1,up\n", None, "rounded: needed is one of"),
        (None, "id,value\nb,1\n", "ids ['b'] are not printed; printed are ['a']"),
        (None, "id,value\na,one\n", "line 2: value: needed is a number such as"),
        (None, "id,number\na,1\n", "columns ['value'] are missing"),
        (None, "id,value,extra\na,1,2\n", "columns ['extra'] are unknown"),
        (None, "id,value\na,-1\n", "is compared as a ratio and negative"),
    ],
)
def test_wrong_input_is_named(files, tmp_path, capsys, printed, ours, message):
    """Printed numbers are refused before a study is made of them, too."""
    given = {name: text for name, text in (("printed", printed), ("ours", ours)) if text}
    paths = files(**given)
    for arguments in [
        ["judge", *paths],
        *([["init", paths[0], str(tmp_path / "s")]] if printed else []),
    ]:
        assert main(arguments) == WRONG
        assert message in capsys.readouterr().err


def test_the_file_of_verdicts_has_the_scale_of_the_table(files, tmp_path, capsys):
    """The ratio of geometric means of ours and of what was printed, 0.5, lies within its interval."""
    paths = files("id,printed\na,2.00\n", "id,value\na,0.9\na,1.0\na,1.1\n")
    main(["judge", *paths, "--json", str(tmp_path / "all.json")])
    (row,) = json.loads((tmp_path / "all.json").read_text())
    assert (
        row["effect"] == pytest.approx(0.99 ** (1 / 3) / 2)
        and row["low"] < row["effect"] < row["high"]
    )
    assert f" {row['effect']:.3f} " in capsys.readouterr().out


def test_a_mean_with_its_error_says_what_is_needed(files, capsys):
    assert main(["judge", *files(ours="id,value,se\na,1,0.1\n")]) == NOTHING
    assert main(["explain", *files(ours="id,value,se\na,1,0.1\n"), "a"]) == SAME
    assert "needed is a row for each unit or run, without se" in capsys.readouterr().out
    linear = "id,printed,scale\na,0.12,linear\n"
    assert main(["explain", *files(linear, "id,value,se\na,0.121,0.001\n"), "a"]) == SAME
    assert "needed is df, the units behind it less one" in capsys.readouterr().out
    assert main(["judge", *files(linear, "id,value,se,df\na,0.121,0.001,9\n")]) == SAME
    assert "agrees" in capsys.readouterr().out


@pytest.mark.parametrize("design", ["1,1,", "1,3,", "5,1,", "5,3,", "20,1,0.01"])
@pytest.mark.parametrize("runs", [1, 3])
def test_a_plan_has_the_detectable_factor_of_the_judge(files, tmp_path, capsys, design, runs):
    """On the pilot's own design; runs vary so much that some estimates of the variance between units are below zero."""
    values = 0.12 * np.exp(0.4 * np.random.default_rng(1).standard_normal((8, runs)))
    ours = [f"a,{u},{r},{value}" for (u, r), value in np.ndenumerate(values)]
    kind = "" if design.endswith(",") else "standard error"
    printed = f"id,printed,units,runs,{ERROR}\na,0.12,{design},{kind}\n"
    paths = files(printed, "\n".join(["id,unit,run,value", *ours]))
    main(["judge", *paths, "--json", str(tmp_path / "all.json")])
    row = json.loads((tmp_path / "all.json").read_text())[0]
    study = read_study(Path(paths[0]))
    pilot, study, _ = read_ours(Path(paths[1]), study)
    found = plan(pilot, study, 9.0).iloc[0]
    wanted = row["detectable"] or math.inf  # null where nothing was compared
    assert found["detectable"] == pytest.approx(wanted, rel=1e-12)
    capsys.readouterr()
    assert main(["plan", *paths, "--factor", "9"]) == SAME
    head, line = capsys.readouterr().out.splitlines()
    if math.isfinite(found["units"]):
        shown = [line[head.index(name) :].split()[0] for name in ("units", "runs")]
        assert shown == [str(int(found["units"])), str(int(found["runs"]))]


def test_wrong_arguments_are_named(files, tmp_path, capsys):
    paths = files()
    for arguments, message in {
        ("explain", *paths, "z"): "there is no verdict of this id",
        ("plan", *paths, "--factor", "1"): "factor: needed is a number above 1",
        ("judge", str(tmp_path / "no"), paths[1]): "there is no such file",
        ("init", paths[0], str(tmp_path / "s"), "--margin", "0.5"): "margin",
    }.items():
        assert main(arguments) == WRONG
        assert message in capsys.readouterr().err

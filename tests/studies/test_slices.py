"""Slices of long jobs: the same pieces and results as without, and a plan that uses all cores."""

import json
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_jobs import experiment4_job, patterns

from studies.atiya2021.jobs import Job, run_job
from studies.common.kept import keep
from studies.common.pieces import Pieces, decode
from studies.common.slices import Slice, gather, plan, seconds_of

ROOT = Path(__file__).resolve().parents[2]
PLANS = sorted(ROOT.glob("data/reference/*/kept/slices.json"))


def pieces_of(folder, job):
    """Rows and arrays by piece; seconds are never the same twice."""
    found = {}
    for path in sorted(folder.glob("*.npz")):
        name = path.stem.rpartition("-")[0]
        rows, _, arrays = decode(job, name, path.read_bytes())
        found[path.name] = rows, {key: value.tobytes() for key, value in arrays.items()}
    return found


def defects_job():
    arguments = {
        "case": "rough", "sampler": "ess", "root": 1, "grid": [{"samples": 8, "replicates": 3}],
        "skip": 2, "burn_in": 2, "reference_points": 16,
    }  # fmt: skip
    outputs = {"rows": "defects/rough_ess.csv"}
    return Job(
        "defects/rough_ess", "defects", outputs, {}, arguments, ("studies.atiya2021.defects",)
    )


def orthant_job():
    return experiment4_job(method="orthant", options={"samples": 300}, replicates=7)


CASES = {
    # a piece of five runs, divided at them over two slices, and one of two runs, which no slice names
    "runs of a piece": (
        orthant_job,
        [["set3_run0/0", "set3_run0/3", "set3_run0/4"], ["set3_run0/1", "set3_run0/2"]],
        ["set3_run0"],
    ),
    "pieces": (orthant_job, [["set3_run5"], ["set3_run0"]], ["set3_run0", "set3_run5"]),
    # a piece that the others are made with, made by both slices
    "a common piece": (
        defects_job,
        [[f"rough-ess-samples8-replicate{k}" for k in of] for of in ([0, 2], [1])],
        ["rough-ess-samples8-replicate0", "rough-reference"],
    ),
    "names of another scale": (orthant_job, [["set9_run0", "set3_run5/7", "set3_run5"]], ["set3_run5"]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("made", "slices", "expected"), CASES.values(), ids=CASES)
def test_a_job_in_slices_makes_the_same_bytes(made, slices, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    job = made()
    for way in ("whole", "sliced"):
        run_job(patterns(1), tmp_path / way, tmp_path / "none")
    run_job(job, tmp_path / "whole", tmp_path / "whole-pieces")
    folder, runs = tmp_path / "pieces" / job.name, tmp_path / "runs"
    for units in slices:
        check = Slice(job.name, units, folder, runs)
        run_job(job, tmp_path / "sliced", tmp_path / "pieces", verify=check)
    assert not (tmp_path / "sliced" / job.outputs["rows"]).exists()
    gather(job.name, folder, runs)
    made_by_slices = {path.name: path.read_bytes() for path in folder.glob("*.npz")}
    assert {name.rpartition("-")[0] for name in made_by_slices} >= set(expected)
    run_job(job, tmp_path / "sliced", tmp_path / "pieces")
    for name, content in made_by_slices.items():
        assert (folder / name).read_bytes() == content, "a finished piece was made again"
    assert pieces_of(folder, job.name) == pieces_of(tmp_path / "whole-pieces" / job.name, job.name)
    for output in {"rows", "arrays"} & job.outputs.keys():
        for ending in ("", ".digest"):
            path = f"{job.outputs[output]}{ending}"
            assert (tmp_path / "sliced" / path).read_bytes() == (
                tmp_path / "whole" / path
            ).read_bytes()


def test_runs_are_joined_only_where_all_are_there(tmp_path):
    def compute(runs):
        return (
            [{"run": k} for k in runs],
            [{"cpu_seconds": 1.0} for k in runs],
            {"x": np.array(runs)},
        )

    whole = partial(compute, [5, 6, 7])
    folders = tmp_path / "pieces", tmp_path / "runs"
    for units in (["p/0", "p/2"], ["p/1"]):
        gather("job", *folders)
        assert not list(tmp_path.glob("pieces/*.npz"))
        check = Slice("job", units, *folders)
        check.begin({"modules": ["studies.common.seeds"], "parameters": 1})
        assert check.get("p", whole) == ([], [], {})
    gather("job", *folders)
    made = Pieces(folders[0], ["studies.common.seeds"], 1, job="job")
    rows, timing, arrays = made.get("p", lambda: pytest.fail("it was computed again"))
    assert rows == whole()[0] and len(timing) == 3 and arrays["x"].tolist() == [5, 6, 7]
    again = Slice("job", ["p/0"], folders[0], tmp_path / "none")
    again.begin({"modules": ["studies.common.seeds"], "parameters": 1})
    refuse = partial(lambda runs: pytest.fail("a run of a finished piece was made"), [5, 6, 7])
    assert again.get("p", refuse) == ([], [], {})
    damaged = next(folders[1].glob("p.1of3*"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    for path in folders[0].glob("*.npz"):
        path.unlink()
    gather("job", *folders)
    assert not list(folders[0].glob("*.npz")), "the job computes what is damaged"


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.parts[-3])
def test_the_plan_names_the_kept_pieces(path):
    """`python benchmarks/makespan.py` makes it from their seconds, which takes a minute to read."""
    for job, slices in json.loads(path.read_text()).items():
        with zipfile.ZipFile(path.parent / f"pieces/{job}.zip") as archive:
            kept = {n.rpartition("-")[0] for n in archive.namelist() if n.endswith(".npz")}
        units = [unit for units in slices for unit in units]
        assert len(set(units)) == len(units), "no unit is computed twice"
        assert {unit.partition("/")[0] for unit in units} == {
            name for name in kept if not name.endswith("-reference")
        }


def test_no_job_of_the_published_scale_takes_more_than_ten_minutes():
    found = pd.read_csv(ROOT / "docs/makespan.csv").set_index("jobs")
    assert (found.loc["long jobs in slices", "longest"] <= 10).all()


def test_long_jobs_are_planned_by_the_seconds_of_their_pieces(tmp_path):
    def store(job, *pieces):
        made = Pieces(tmp_path / "run" / job, ["studies.common.seeds"], 1, job=job)
        for k, seconds in enumerate(pieces):
            rows = [{"run": run} for run in range(len(seconds))]
            timing = [{"cpu_seconds": one} for one in seconds]
            made.get(f"p{k}", lambda piece=(rows, timing, {}): piece)

    store("experiment1/N50", [50.0], [30.0], [20.0])
    store("experiment1/N200", [50.0], [70.0], [20.0])
    store("experiment4/problem6_hmc", [90.0, 80.0])
    store("experiment5/problem7_pm", [90.0], [80.0])
    keep(tmp_path / "run", tmp_path / "store")
    assert plan(tmp_path / "store", limit=100.0) == {
        "experiment1/N200": [["p1"], ["p0", "p2"]],
        "experiment4/problem6_hmc": [["p0/0"], ["p0/1"]],
    }
    kept = {"p": ([], [{"cpu_seconds": 2.0}, {"cpu_seconds": 3.0}], {})}
    assert seconds_of(["p/1"], kept) == 3.0 and seconds_of(["p"], kept) == 5.0

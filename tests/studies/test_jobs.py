"""Jobs from configuration to files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from recheck.files import DamagedFileError, digest_path, read_arrays, read_csv
from studies.atiya2021 import jobs as module
from studies.atiya2021.jobs import Job, run_job
from studies.atiya2021.problems import Problem, data_set_seed, synthetic_problem
from studies.atiya2021.runners import load_problem
from studies.common.seeds import generator
from studies.common.verify import Verification

ROOT = Path(__file__).resolve().parents[2]
SETTING = {"set": 3, "alpha": 3.0, "beta": 2.0}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)

    def call(job, **given):
        run_job(job, tmp_path / "results", tmp_path / "pieces", **given)
        return tmp_path / "results"

    return call


def patterns(number, **arguments):
    return Job(
        f"problem{number}", "problem", {"arrays": f"experiment4/problem{number}.npz"},
        module.raw_status(number), {"number": number, "root": 1, **arguments}, (),
    )  # fmt: skip


def experiment4_job(number=1, method="ep", options=None, replicates=None, kind="experiment4"):
    arguments = {
        "number": number, "name": "row", "root": 1, "hyperparameters": [SETTING],
        "method": method, "options": options or {}, "replicates": replicates, "data_sets": 1,
    }  # fmt: skip
    stem = f"experiment4/problem{number}/row"
    outputs = {"rows": f"{stem}.csv", "timing": f"{stem}_timing.csv", "arrays": f"{stem}.npz"}
    modules = ("studies.atiya2021.experiment4", module.MODULES[method])
    inputs = {"problem": f"experiment4/problem{number}.npz"}
    return Job(f"experiment4/problem{number}_row", kind, outputs, inputs, arguments, modules)


def test_a_problem_and_a_method_on_it(run, tmp_path):
    results = run(patterns(1))
    expected = synthetic_problem(1, generator(data_set_seed(1, 0, 1)))
    problem = load_problem(results / "experiment4/problem1.npz")
    assert isinstance(problem, Problem)
    np.testing.assert_array_equal(problem.X_train, expected.X_train)
    job = experiment4_job(method="orthant", options={"samples": 500}, replicates=3)
    run(job)
    rows = read_csv(results / job.outputs["rows"])
    assert list(rows["replicate"]) == [0, 1, 2] and list(rows.columns[:6]) == [
        "problem", "method", "set", "alpha", "beta", "dataset",
    ]  # fmt: skip
    assert "cpu_seconds" not in rows and len(read_csv(results / job.outputs["timing"])) == 3
    assert read_arrays(results / job.outputs["arrays"])["probability_set3"].shape == (3, 50)
    folder = tmp_path / "pieces" / job.name
    assert {path.suffix for path in folder.iterdir()} == {".json", ".npz", ""}
    assert (folder / "done").exists()
    # equal bytes from finished pieces and from none
    paths = [results / job.outputs[which] for which in ("rows", "arrays")]
    before = [path.read_bytes() for path in paths]
    run(job)
    assert [path.read_bytes() for path in paths] == before
    shutil.rmtree(folder)
    run(job)
    assert [path.read_bytes() for path in paths] == before
    about = json.loads(digest_path(paths[0]).read_text())
    assert about["rows"] == 3 and job.name in json.dumps(about)


def test_a_damaged_input_is_refused(run, tmp_path):
    results = run(patterns(1))
    path = results / "experiment4/problem1.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DamagedFileError, match="problem1.npz"):
        run(experiment4_job())
    assert not (results / "experiment4/problem1/row.csv").exists()


def test_missing_data_make_rows_that_say_so(run, tmp_path):
    status = tmp_path / "data/crabs.csv.json"
    status.parent.mkdir()
    status.write_text(json.dumps({"available": False}))
    results = run(patterns(7, standardise=True))
    assert load_problem(results / "experiment4/problem7.npz") is None
    run(experiment4_job(7))
    rows = read_csv(results / "experiment4/problem7/row.csv")
    assert list(rows["status"]) == ["data not available"]
    assert read_arrays(results / "experiment4/problem7/row.npz") == {}


def test_jobs_without_pieces_and_without_rows(run):
    def results_of(kind, arguments, rows):
        job = Job(kind, kind, {"rows": rows}, {}, arguments, ())
        return read_csv(run(job) / rows)

    found = results_of(
        "quadrature", {"dimensions": [50], "root": 1, "instances": 2, "steps": [0.1], "limit": 8.0}, "q.csv"
    )  # fmt: skip
    assert list(found["instance"]) == [0, 1]
    given = {"root": 1, "hyperparameters": [SETTING]}
    assert len(results_of("spread", {"data_sets": {"1": 2, "3": 3}, **given}, "s.csv")) == 5
    none = results_of("spread", {"data_sets": {}, **given}, "none.csv")
    assert len(none) == 0 and "mae_post" in none
    assert len(results_of("equations", {"root": 1}, "equations.csv")) == 8


def test_a_verified_job_writes_nothing(run, tmp_path):
    results = run(patterns(1))
    job = experiment4_job()
    run(job)
    (path,) = (tmp_path / "pieces" / job.name).glob("*.npz")
    from studies.common.pieces import decode

    name = path.stem.rsplit("-", 1)[0]
    kept = decode(job.name, name, path.read_bytes())
    shutil.rmtree(results / "experiment4/problem1")
    shutil.rmtree(tmp_path / "pieces")
    check = Verification({name: kept}, {name}, "bytes")
    run(job, verify=check)
    assert check.found == {name: ""} and check.record["modules"] == sorted(job.modules)
    assert not (results / "experiment4/problem1").exists() and not (tmp_path / "pieces").exists()
    with pytest.raises(ValueError, match="job must keep pieces to be verified"):
        run(patterns(1), verify=check)

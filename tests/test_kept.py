"""What the repository keeps of a run: pieces, tables to compare with, the archive; and the notebook."""

import ast
import hashlib
import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from nbclient.exceptions import CellExecutionError

from gpcmc.experiments.pieces import Pieces
from gpcmc.report import kept
from gpcmc.report.archive import write_archive
from gpcmc.report.kept import compare, keep_pieces, keep_results, resume
from gpcmc.report.notebook import execute_notebook

ROOT = Path(__file__).resolve().parents[1]
MODULES = ["gpcmc.experiments.seeds"]


def make(folder, names=("a", "b"), parameters=1, modules=MODULES):
    """Pieces of a job; returns which of them were computed."""
    computed = []

    def compute(name):
        computed.append(name)
        return [{"name": name}], [], {"x": np.arange(3.0)}

    pieces = Pieces(folder, modules, parameters)
    for name in names:
        pieces.get(name, lambda name=name: compute(name))
    return computed


def edit_record(folder, **changes):
    for path in folder.glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# --- pieces


def test_pieces_come_back_and_only_the_rest_is_computed(tmp_path):
    make(tmp_path / "run/experiment4/problem1_ep")
    make(tmp_path / "run/experiment1/N50.finished")  # as the workflow sets aside a complete job
    kept_ones = keep_pieces(tmp_path / "run", tmp_path / "store")
    assert [(job.job, job.pieces) for job in kept_ones] == [
        ("experiment1/N50", 2),
        ("experiment4/problem1_ep", 2),
    ]
    back = resume(tmp_path / "store", tmp_path / "other")
    assert back == kept_ones
    assert make(tmp_path / "other/experiment1/N50", "abc") == ["c"]
    assert make(tmp_path / "other/experiment4/problem1_ep", parameters=2) == ["a", "b"]
    assert not list((tmp_path / "other").rglob("*.partial"))


def test_the_store_grows_and_its_bytes_depend_on_the_pieces_alone(tmp_path):
    make(tmp_path / "run/job", "a")
    keep_pieces(tmp_path / "run", tmp_path / "store")
    make(tmp_path / "more/job", "b")
    assert keep_pieces(tmp_path / "more", tmp_path / "store")[0].pieces == 2
    make(tmp_path / "both/job", "ba")
    keep_pieces(tmp_path / "both", tmp_path / "at once")
    assert (tmp_path / "store/job.zip").read_bytes() == (tmp_path / "at once/job.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "store/job.zip") as archive:
        assert {member.date_time[0] for member in archive.infolist()} == {1980}, "no clock"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"code": {"gpcmc.experiments.seeds": "0"}}, "gpcmc.experiments.seeds"),
        ({"libraries": {"numpy": "1.0"}}, "numpy"),
        ({"modules": ["gpcmc.gone"]}, "gpcmc.gone"),
    ],
)
def test_pieces_of_other_sources_are_neither_kept_nor_put_back(tmp_path, changes, named):
    make(tmp_path / "run/old")
    make(tmp_path / "run/new")
    keep_pieces(tmp_path / "run", tmp_path / "store")
    # the same pieces, as a tree with other sources would have stored them
    edit_record(tmp_path / "run/old", **changes)
    files = {path.name: path.read_bytes() for path in (tmp_path / "run/old").iterdir()}
    kept._pack(files, tmp_path / "store/old.zip")
    new, old = resume(tmp_path / "store", tmp_path / "other")
    assert (new.job, new.pieces, new.outdated) == ("new", 2, ())
    assert (old.job, old.pieces) == ("old", 0)
    assert named in old.outdated
    assert not (tmp_path / "other/old").exists()
    assert named in kept.summary_of_pieces([new, old], "put back")
    keep_pieces(tmp_path / "run", tmp_path / "store")
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["new.zip"]


def test_resuming_from_nothing_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="store must hold archives of pieces"):
        resume(tmp_path / "store", tmp_path / "run")


# --- comparison


@pytest.fixture
def stored(tmp_path):
    """A finished run and its kept tables."""
    results = tmp_path / "results"
    for name in ("experiment1", "tables", "logs"):
        (results / name).mkdir(parents=True)
    rows = pd.DataFrame({"seed": ["1/a", "1/b"], "estimate": [-31.25, 2e-9], "status": "ok"})
    rows.to_csv(results / "experiment1/N50.csv", index=False)
    big = pd.DataFrame({"x": np.arange(30_000) / 7})
    big.to_csv(results / "experiment1/N200.csv", index=False)
    pd.DataFrame({"cpu_seconds": [1.0]}).to_csv(results / "experiment1/N50_timing.csv", index=False)
    pd.DataFrame({"cell": [3.5]}).to_csv(results / "tables/table1.csv", index=False)
    pd.DataFrame({"s": [3.5]}).to_csv(results / "tables/seconds.csv", index=False)
    for name in ("provenance.json", "summary.txt", "schema.json", "logs/a.log"):
        (results / name).write_text("{}\n")
    assert keep_results(results, tmp_path / "store") == 7
    return results, tmp_path / "store"


def verdicts(results, store):
    return compare(results, store).set_index("file")["verdict"].to_dict()


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_same_run_is_the_same_bytes(stored):
    results, store = stored
    found = verdicts(results, store)
    assert found.pop("tables/seconds.csv") == kept.SECONDS
    assert set(found.values()) == {kept.SAME}
    assert list(found) == ["experiment1/N200.csv", "experiment1/N50.csv", "tables/table1.csv"]
    assert (store / "experiment1/N200.csv.gz").exists(), "large tables are compressed"
    assert (store / "provenance.json").exists()


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ("-31.250000000000004", kept.ROUNDED),
        ("-31.2500001", kept.ROUNDED),
        ("-31.250004", kept.DIFFERENT),
        ("nan", kept.DIFFERENT),
        ("", kept.DIFFERENT),
    ],
)
def test_rounding_is_told_from_a_difference(stored, new, verdict):
    results, store = stored
    change(results / "experiment1/N50.csv", "-31.25", new)
    assert verdicts(results, store)["experiment1/N50.csv"] == verdict


def test_the_first_difference_is_named_in_the_order_of_the_workflow(stored):
    results, store = stored
    change(results / "tables/table1.csv", "3.5", "3.6")
    change(results / "experiment1/N50.csv", "1/b,2e-09,ok", "1/b,2e-09,extinct")
    frame = compare(results, store)
    row = frame.set_index("file").loc["experiment1/N50.csv"]
    assert (row.verdict, row.cells, row["row"], row.column) == (kept.DIFFERENT, 1, 2, "status")
    assert (row.kept, row.here) == ("ok", "extinct")
    said = kept.summary_of_comparison(frame)
    assert "first difference: experiment1/N50.csv, row 2, column status" in said
    assert "kept ok, here extinct" in said


def test_lost_new_and_misshapen_tables_are_named(stored):
    results, store = stored
    (results / "tables/table1.csv").unlink()
    (results / "tables/table9.csv").write_text("x\n1\n")
    change(results / "experiment1/N50.csv", "seed", "sede")
    frame = compare(results, store)
    found = frame.set_index("file")["verdict"]
    assert found["tables/table1.csv"] == kept.MISSING
    assert found["tables/table9.csv"] == kept.NEW
    assert found["experiment1/N50.csv"] == kept.SHAPE
    said = kept.summary_of_comparison(frame)
    assert "tables/table1.csv: missing here" in said and "sede" in said


# --- archive


def unpack(archive):
    with tarfile.open(archive) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    for name in ("src/a.py", "data/registry.csv", "data/raw/private.csv", "build/lib/a.py",
                 "results/tiny/audit.csv", "results/tiny/codecheck.yml", "results/tiny/provenance.json",
                 "results/tiny/logs/a.log", "results/smoke/audit.csv",
                 "figures/tiny/a.pdf", ".snakemake/x", "Makefile"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


IN_IT = {
    "src/a.py",
    "data/registry.csv",
    "Makefile",
    "results/tiny/audit.csv",
    "results/tiny/codecheck.yml",
    "results/tiny/provenance.json",
    "codecheck.yml",
    "figures/tiny/a.pdf",
}


def git(folder, *arguments):
    given = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    command = ["git", *given, *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def made_from(folder, commit, dirty=False):
    record = json.dumps({"commit": commit, "dirty": dirty})
    (folder / "results/tiny/provenance.json").write_text(record)


@pytest.mark.parametrize("versioned", [True, False])
def test_the_archive_has_sources_results_and_their_checksums(project, versioned):
    if versioned:
        (project / ".gitignore").write_text(
            "/build/\n/data/raw/\n/results/\n/figures/\n.*\n!.gitignore\n"
        )
        git(project, "init")
        git(project, "add", ".")
        git(project, "commit", "-m", "x")
        made_from(project, git(project, "rev-parse", "HEAD"))
    target = project / "build/gpcmc-tiny.tar.gz"
    count = write_archive(project, "tiny", target)
    files = {name.removeprefix("gpcmc-tiny/"): data for name, data in unpack(target).items()}
    assert len(files) == count
    manifest = files.pop("MANIFEST.sha256").decode().splitlines()
    assert files.keys() == IN_IT | ({".gitignore"} if versioned else set())
    assert manifest == [f"{hashlib.sha256(files[n]).hexdigest()}  {n}" for n in sorted(files)]
    again = project / "build/other/gpcmc-tiny.tar.gz"
    (project / "src/a.py").touch()
    write_archive(project, "tiny", again)
    assert again.read_bytes() == target.read_bytes()


def test_the_archive_is_of_a_commit_and_of_a_run(project):
    git(project, "init")
    git(project, "add", "src")
    git(project, "commit", "-m", "x")
    with pytest.raises(ValueError, match="scale must name a scale with results; got 'huge'"):
        write_archive(project, "huge", project / "build/a.tar.gz")
    (project / "src/a.py").write_text("edited")
    with pytest.raises(ValueError, match=r"must be those of the commit.*src/a\.py"):
        write_archive(project, "tiny", project / "build/a.tar.gz")
    assert not (project / "build/a.tar.gz").exists()


def test_the_archive_refuses_results_of_another_commit(project):
    """Sources of one commit beside a manifest, a stamp and links that name another."""
    git(project, "init")
    git(project, "add", "src")
    git(project, "commit", "-m", "x")
    first = git(project, "rev-parse", "HEAD")
    made_from(project, first, dirty=True)
    with pytest.raises(ValueError, match=f"{first} with uncommitted changes"):
        write_archive(project, "tiny", project / "build/a.tar.gz")
    made_from(project, first)
    git(project, "commit", "--allow-empty", "-m", "y")
    second = git(project, "rev-parse", "HEAD")
    with pytest.raises(ValueError, match=rf"which is {second}.* says {first}\. .*make archive"):
        write_archive(project, "tiny", project / "build/a.tar.gz")
    git(project, "checkout", first)
    write_archive(project, "tiny", project / "build/a.tar.gz")


def test_what_git_complains_of_is_said(project):
    (project / ".git").mkdir()
    with pytest.raises(RuntimeError, match=r"git status .* failed: fatal: not a git repository"):
        write_archive(project, "tiny", project / "build/a.tar.gz")


# --- notebook


def notebook(folder, *sources):
    made = nbformat.v4.new_notebook()
    for number, source in enumerate(sources):
        cell = nbformat.v4.new_code_cell(source, id=f"cell-{number}")
        cell.metadata["tags"] = ["parameters"] if number == 0 else []
        made.cells.append(cell)
    nbformat.write(made, folder / "made.ipynb")
    return folder / "made.ipynb"


@pytest.mark.slow
def test_a_notebook_is_executed_at_its_scale_to_the_same_bytes(tmp_path):
    source = notebook(tmp_path, 'scale = "standard"\nx = 1', "import os\nscale, x, os.getcwd()")
    outputs = []
    for name in ("one.ipynb", "two.ipynb"):
        execute_notebook(source, tmp_path / name, scale="tiny", root=tmp_path)
        outputs.append((tmp_path / name).read_bytes())
    assert outputs[0] == outputs[1]
    made = nbformat.reads(outputs[0].decode(), as_version=4)
    shown = made.cells[1].outputs[0]["data"]["text/plain"]  # on several lines if the folder is deep
    assert ast.literal_eval(shown) == ("tiny", 1, str(tmp_path))
    assert all("execution" not in cell.metadata for cell in made.cells)
    failing = notebook(tmp_path, 'scale = "standard"', "assert 1 == 2")
    with pytest.raises(CellExecutionError):
        execute_notebook(failing, tmp_path / "failed.ipynb", scale="tiny", root=tmp_path)
    assert not (tmp_path / "failed.ipynb").exists()


def test_a_notebook_without_a_scale_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must set `scale`; 0 do"):
        execute_notebook(
            notebook(tmp_path, "x = 1"), tmp_path / "one.ipynb", scale="tiny", root=tmp_path
        )


def test_the_notebook_is_committed_without_outputs():
    made = nbformat.read(ROOT / "notebooks/audit.ipynb", as_version=4)
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    assert code and not any(cell.outputs or cell.execution_count for cell in code)
    assert "language_info" not in made.metadata or "version" not in made.metadata.language_info

"""Runs that are killed, run twice at once, or run out of room, in temporary copies of the project.

The runs are a part of the tiny scale: both kinds of Experiments 1 and 2, and three methods of Experiment 4.
"""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from test_workflow import copy_project, digests, snakemake

pytestmark = pytest.mark.slow

METHODS = ["laplace", "ep", "orthant"]
TARGETS = [
    "experiment1",
    "experiment2",
    *(f"results/tiny/experiment4/problem1/{method}.csv" for method in METHODS),
]


def start(folder, *arguments, **options):
    """A run as the leader of its own group, with its output in `folder/run.log`."""
    command = [sys.executable, "-m", "snakemake", "--configfile", "config/tiny.yaml", *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= options.pop("environment", {})
    with open(folder / "run.log", "w") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **options,
        )


def kill(run):
    """SIGKILL to the run and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.wait()


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited for nothing"
        time.sleep(0.05)


def jobs(text):
    """What the jobs of a run say of themselves: of those that began, and of those that finished."""
    names = dict(re.findall(r"^(?:local)?(?:Job|rule) (\d+): (.*)$", text, flags=re.MULTILINE))
    finished = re.findall(r"^Finished jobid: (\d+) ", text, flags=re.MULTILINE)
    return set(names.values()), {names[number] for number in finished if number in names}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project in which the targets were made without interruption."""
    folder = copy_project(tmp_path_factory.mktemp("whole") / "project")
    done = snakemake(folder, "--cores", "1", *TARGETS)
    assert done.returncode == 0, done.stdout
    began, ended = jobs(done.stdout)
    assert began == ended
    assert "Experiment 1, N = 50" in ended
    return folder


@pytest.fixture
def built(finished, tmp_path):
    """A project with its package built and no results."""
    folder = tmp_path / "project"
    shutil.copytree(finished, folder, symlinks=True)
    shutil.rmtree(folder / "results")
    shutil.rmtree(folder / "build/pieces")
    return folder


def test_a_run_killed_at_random_moments_goes_on_where_it_was(finished, tmp_path):
    """Five kills at random moments, the first of them while the package is built."""
    folder = copy_project(tmp_path / "project")
    rng = np.random.default_rng(20210308)
    ended, pieces = set(), {}
    for attempt in range(5):
        run = start(folder, "--cores", "2", *TARGETS)
        if attempt > 0:  # the others come after that
            wait_for((folder / "build/package.json").exists)
        wait_for(lambda: "\nJob " in (folder / "run.log").read_text())
        if attempt == 4:  # however slow the machine is, there is something to lose
            wait_for(lambda: any(folder.glob("build/pieces/**/*.npz")))
        time.sleep(rng.uniform(0.5, 5.0))
        kill(run)
        began, now = jobs((folder / "run.log").read_text())
        assert not began & ended, "a finished job ran again"
        ended |= now
        pieces |= {
            path.name: path.stat().st_mtime_ns for path in folder.glob("build/pieces/**/*.npz")
        }
    assert ended and pieces, "nothing was finished before the kills: the test tells nothing"
    done = snakemake(folder, "--cores", "2", *TARGETS)
    assert done.returncode == 0, done.stdout
    began, _ = jobs(done.stdout)
    assert not began & ended, "a finished job ran again"
    assert digests(folder) == digests(finished)
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("build/pieces/**/*.npz")}
    assert kept.items() >= pieces.items(), "a finished piece was made again"
    assert "Nothing to be done" in snakemake(folder, "--dry-run", *TARGETS).stdout


def test_a_half_written_table_of_a_killed_job_is_never_taken_for_a_result(finished, built):
    # stands in for the worst moment of a kill: within the writing of a table
    (built / "build/lib/sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if 'GPCMC_TEST_DIE' in os.environ and sys.argv[0].endswith('experiment1.py'):\n"
        "    import pandas\n"
        "    write = pandas.DataFrame.to_csv\n"
        "    def half(frame, path, **options):\n"
        "        write(frame.head(2), path, **options)\n"
        "        os.killpg(0, signal.SIGKILL)\n"
        "    pandas.DataFrame.to_csv = half\n"
    )
    table = "results/tiny/experiment1/N50.csv"
    run = start(built, "--cores", "1", table, environment={"GPCMC_TEST_DIE": "1"})
    assert run.wait(timeout=120) == -signal.SIGKILL
    whole = (finished / table).read_bytes()
    assert 0 < len((built / table).read_bytes()) < len(whole)
    refused = snakemake(built, "--cores", "1", table, "--workflow-profile", "none")
    assert refused.returncode != 0
    assert "incomplete" in refused.stdout and table in refused.stdout
    done = snakemake(built, "--cores", "1", table)
    assert done.returncode == 0, done.stdout
    assert (built / table).read_bytes() == whole


def test_of_two_runs_at_once_the_second_says_so_and_stops(finished, built):
    first = start(built, "--cores", "1", *TARGETS)
    try:
        wait_for(lambda: "\nJob " in (built / "run.log").read_text())
        os.killpg(
            first.pid, signal.SIGSTOP
        )  # so that it is at work for as long as this test needs it
        second = snakemake(built, "--cores", "1", "results/tiny/equations.csv")
        assert second.returncode != 0
        assert f"Another run is at work in this folder (process {first.pid}" in second.stdout
        assert not (built / "results/tiny/equations.csv").exists()
        assert snakemake(built, "--dry-run").returncode == 0, "looking is allowed"
        os.killpg(first.pid, signal.SIGCONT)
        assert first.wait(timeout=300) == 0, (built / "run.log").read_text()
    finally:
        kill(first)
    assert digests(built) == digests(finished)


def test_jobs_that_outlive_their_run_keep_others_out(built):
    table = "results/tiny/experiment2/problem1.csv"
    run = start(built, "--cores", "1", table)
    try:
        wait_for(lambda: "\nJob " in (built / "run.log").read_text())
        wait_for(lambda: list(built.glob("results/tiny/logs/experiment2/*.log")))
        os.killpg(run.pid, signal.SIGSTOP)  # its job sleeps, for as long as this test needs it
        os.kill(run.pid, signal.SIGKILL)  # the run alone
        run.wait()
        refused = snakemake(built, "--cores", "1", table)
        assert refused.returncode != 0
        assert "Another run is at work" in refused.stdout and "left behind" in refused.stdout
    finally:
        kill(run)
    assert snakemake(built, "--cores", "1", table).returncode == 0


@contextlib.contextmanager
def small_disk(folder):
    """A file system of 40 kB in the place of a folder."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("kind", ["disk", "limit"])
def test_a_full_disk_is_said_and_leaves_nothing_behind(finished, built, kind):
    """40 kB are too few for Problem 6; as a small disk, and as a limit of the size of files."""
    target = "results/tiny/experiment4/problem6.npz"
    (built / "results/tiny").mkdir(parents=True)
    shutil.copy2(finished / "results/tiny/schema.json", built / "results/tiny")
    room = 40 * 1024
    limits = (room, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    limit, disk, words = (
        (None, small_disk((built / target).parent), "No space left on device")
        if kind == "disk"
        else (
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
            contextlib.nullcontext(),
            "File too large",
        )
    )
    with disk:
        run = start(built, "--cores", "1", target, preexec_fn=limit)
        assert run.wait(timeout=120) == 1
        assert words in (built / "run.log").read_text()
        assert not (built / target).exists()
    done = snakemake(built, "--cores", "1", target)
    assert done.returncode == 0, done.stdout
    with np.load(built / target) as stored:
        assert stored["X_train"].shape == (1000, 2)


def test_results_of_another_schema_are_refused_by_name(built):
    folder = built / "results/tiny"
    (folder / "experiment1").mkdir(parents=True)
    (folder / "experiment1/N50.csv").write_text("x\n1\n")
    for stamp, found in ((None, "version none"), (json.dumps({"version": 0}), "version 0")):
        if stamp:
            (folder / "schema.json").write_text(stamp)
        refused = snakemake(built, "--cores", "1", *TARGETS)
        assert refused.returncode != 0
        assert "results/tiny was written under another schema" in refused.stdout
        assert found in refused.stdout
    assert (folder / "experiment1/N50.csv").read_text() == "x\n1\n", "nothing is touched"


def test_stored_pieces_are_put_back_and_only_the_rest_is_computed(finished, built):
    """CPU seconds are never the same twice: where they are, nothing was computed."""
    done = snakemake(finished, "--cores", "1", "keep_pieces")
    assert done.returncode == 0, done.stdout
    assert "8 pieces of 5 jobs kept" in done.stdout
    shutil.copytree(finished / "data/reference/tiny", built / "data/reference/tiny")
    (built / "data/reference/tiny/pieces/experiment4/problem1_ep.zip").unlink()
    done = snakemake(built, "--cores", "1", "resume")
    assert done.returncode == 0, done.stdout
    assert "7 pieces of 4 jobs put back" in done.stdout
    done = snakemake(built, "--cores", "1", *TARGETS)
    assert done.returncode == 0, done.stdout
    assert digests(built) == digests(finished)
    timings = [path.relative_to(finished) for path in finished.rglob("results/**/*_timing.csv")]
    assert len(timings) == 5
    computed = [t for t in timings if (finished / t).read_bytes() != (built / t).read_bytes()]
    assert [path.name for path in computed] == ["ep_timing.csv"]

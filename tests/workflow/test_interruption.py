"""Runs that are killed, run twice at once, or run out of room, in temporary copies of the project.

The runs are a part of the tiny scale in small packs: Experiments 1 and 2, and the order of the patterns.
"""

import contextlib
import os
import re
import resource
import signal
import subprocess
import time

import numpy as np
import pytest
from running import change, command, digests, environment, snakemake

from studies.common.blocks import read_block

pytestmark = pytest.mark.slow

STUDY = "results/tiny/atiya2021"
TARGETS = ["experiment1", "experiment2"]
#: Packs so small that the targets are a dozen jobs.
PACKS = ["pack={seconds: 0.15, across: experiment}"]
#: A job of Experiment 1.
BLOCK = f"{STUDY}/rows/experiment1-0.npz"


def start(folder, *arguments, variables=None, settings=PACKS, **options):
    """A run as the leader of its own group, with its output in `folder/run.log`."""
    with open(folder / "run.log", "w") as log:
        return subprocess.Popen(
            command(*arguments, settings=settings),
            cwd=folder,
            env=environment(**(variables or {})),
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


def small(folder, *arguments, **more):
    """Run Snakemake to its end, with small packs."""
    return snakemake(folder, *arguments, settings=PACKS, **more)


def jobs(text):
    """What the jobs of a run say of themselves: of those that began, and of those that finished."""
    names = dict(re.findall(r"^(?:local)?(?:Job|rule) (\d+): (.*)$", text, flags=re.MULTILINE))
    finished = re.findall(r"^Finished jobid: (\d+) ", text, flags=re.MULTILINE)
    return set(names.values()), {names[number] for number in finished if number in names}


def same_as(folder, finished):
    """Whether the raw results of a part are those of the finished run."""
    one, two = digests(folder), digests(finished)
    return len(one) > 5 and all(two[name] == digest for name, digest in one.items())


def test_a_run_killed_at_random_moments_goes_on_where_it_was(finished, built):
    """Three kills at random moments; jobs that had finished do not run again."""
    folder = built
    rng = np.random.default_rng(20210308)
    ended = set()
    for attempt in range(3):
        run = start(folder, *TARGETS, "--cores", "2")
        wait_for(lambda: "\nJob " in (folder / "run.log").read_text())
        if attempt == 2 and not ended:  # however slow the machine is, there is something to lose
            wait_for(lambda: jobs((folder / "run.log").read_text())[1])
        time.sleep(rng.uniform(0.5, 4.0))
        kill(run)
        began, now = jobs((folder / "run.log").read_text())
        assert not began & ended, "a finished job ran again"
        ended |= now
    assert ended, "nothing was finished before the kills: the test tells nothing"
    done = small(folder, *TARGETS, "--cores", "2")
    assert done.returncode == 0, done.stdout
    began, _ = jobs(done.stdout)
    assert not began & ended, "a finished job ran again"
    assert same_as(folder, finished)


def test_a_half_written_table_of_a_killed_job_is_never_taken_for_a_result(finished, built):
    # stands in for the worst moments of a kill: within the writing of a table, and between it and its digest
    (built / "src/sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "where = os.environ.get('TEST_DIE')\n"
        "if where and 'run.py' in ' '.join(sys.orig_argv):\n"
        "    replace = os.replace\n"
        "    def die(source, target, **options):\n"
        "        if str(target).endswith(where):\n"
        "            open(target, 'wb').write(open(source, 'rb').read()[:200])\n"
        "            os.killpg(0, signal.SIGKILL)\n"
        "        replace(source, target, **options)\n"
        "    os.replace = die\n"
    )
    table = BLOCK
    for ending in ("/experiment1-0.npz", "/experiment1-0.npz.digest"):
        run = start(built, table, "--cores", "1", variables={"TEST_DIE": ending})
        assert run.wait(timeout=120) == -signal.SIGKILL
        assert (built / table).exists()
    refused = small(built, table, "--cores", "1", "--workflow-profile", "none")
    assert refused.returncode != 0
    assert "incomplete" in refused.stdout and table in refused.stdout
    done = small(built, TARGETS[0], "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert same_as(built, finished)


def test_of_two_runs_at_once_the_second_says_so_and_stops(finished, built):
    first = start(built, "experiment1", "--cores", "1")
    try:
        wait_for(lambda: "\nJob " in (built / "run.log").read_text())
        os.killpg(
            first.pid, signal.SIGSTOP
        )  # so that it is at work for as long as this test needs it
        second = small(built, f"{STUDY}/rows/equations-0.npz", "--cores", "1")
        assert second.returncode != 0
        assert f"Another run is at work in this folder (process {first.pid}" in second.stdout
        assert not (built / STUDY / "rows/equations-0.npz").exists()
        assert small(built, "--dry-run").returncode == 0, "looking is allowed"
        os.killpg(first.pid, signal.SIGCONT)
        assert first.wait(timeout=300) == 0, (built / "run.log").read_text()
    finally:
        kill(first)
    assert read_block(built / BLOCK)


def test_jobs_that_outlive_their_run_keep_others_out(built):
    table = "experiment2"
    run = start(built, table, "--cores", "1")
    try:
        wait_for(lambda: "\nJob " in (built / "run.log").read_text())
        wait_for(lambda: list(built.glob("results/tiny/logs/atiya2021/experiment2-*.log")))
        os.killpg(run.pid, signal.SIGSTOP)  # its job sleeps, for as long as this test needs it
        os.kill(run.pid, signal.SIGKILL)  # the run alone
        run.wait()
        refused = small(built, table, "--cores", "1")
        assert refused.returncode != 0
        assert (
            "A job that another run left behind is at work in this folder (process "
            in refused.stdout
        )
    finally:
        kill(run)
    assert small(built, table, "--cores", "1").returncode == 0


@contextlib.contextmanager
def small_disk(folder):
    """A file system of 30 kB in the place of a folder."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=30k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("kind", ["disk", "limit"])
def test_a_full_disk_is_said_and_leaves_nothing_behind(built, kind):
    """30 kB are too few for the draws of Neal's priors; as a small disk, and as a limit of the size of files."""
    target = "results/tiny/neal1997/rows/priors-0.npz"
    room = 30 * 1024
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
        run = start(built, target, "--cores", "1", preexec_fn=limit)
        assert run.wait(timeout=120) == 1
        assert words in (built / "run.log").read_text()
        assert not (built / target).exists()
    done = small(built, target, "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert list(read_block(built / target)["priors"]) == ["long"]


def test_of_extensions_that_a_full_disk_cut_short_nothing_is_left(built):
    (built / "build/compiled.json").unlink()
    source = built / "src/gpcmc/orthant/_sampler.pyx"
    change(source, source.read_bytes())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    run = start(
        *(built, "build/compiled.json", "--cores", "1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40 * 1024, limit)),
    )
    assert run.wait(timeout=120) == 1
    assert "File too large" in (built / "run.log").read_text()
    assert not (built / "build/cython").exists()

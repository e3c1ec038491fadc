"""The workflow on a real SLURM cluster of one node: same bytes as a local run, also after what goes wrong on clusters.

`make test-slurm` runs these tests, the others do not: they install packages and start daemons.
"""

import os
import subprocess

import pytest
from one_node import CannotSetUpError, Cluster
from running import digests
from test_interruption import TARGETS, kill, same_as, start, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("TEST_SLURM" not in os.environ, reason="`make test-slurm` runs it"),
]

#: The profile, and what a cluster of one node without accounting needs in a hurry.
PROFILE = [
    *("--profile", "profiles/slurm", "--slurm-status-command", "squeue", "--latency-wait", "20"),
    *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "3"),
]


@pytest.fixture(scope="module")
def cluster():
    try:
        cluster = Cluster()
        cluster.start()
    except CannotSetUpError as error:
        pytest.skip(f"SLURM cannot be set up here: {error}")
    yield cluster
    cluster.close()


def run(folder, cluster, *arguments, **settings):
    """Snakemake with the profile, to its end; what it printed."""
    started = start(folder, *PROFILE, *arguments, variables=cluster.variables, **settings)
    try:
        code = started.wait(timeout=3600)
    except subprocess.TimeoutExpired:
        kill(started)
        code = "none: it took too long"
    return code, (folder / "run.log").read_text()


def test_the_tiny_scale_makes_the_same_bytes(cluster, finished, built):
    """All of it: a job of rows for each study, and two allocations for the patterns and for what follows the rows."""
    code, said = run(built, cluster, "all", settings=[])
    assert code == 0, said[-5000:]
    assert "with SLURM jobid" in said or "SLURM jobid" in said, said[-5000:]
    assert digests(built) == digests(finished)


def cancel(cluster, folder):
    """Cancel a job that is at work."""
    wait_for(lambda: cluster.running(), seconds=240)
    cluster.ask("scancel", cluster.running()[0])


def restart(cluster, folder):
    """Restart the controller while jobs are running."""
    wait_for(lambda: len(cluster.running()) > 0, seconds=240)
    cluster.stop_controller()
    cluster.start_controller()


def nothing(cluster, folder):
    """The memory that jobs are given does the harm."""


@pytest.mark.parametrize(
    ("harm", "arguments"),
    [
        pytest.param(cancel, [], id="a job is cancelled"),
        pytest.param(nothing, ["--set-resources", "run:mem_mb=40"], id="memory"),
        pytest.param(restart, [], id="the controller restarts"),
    ],
)
def test_the_same_command_again_finishes_with_the_same_bytes(
    cluster, finished, built, harm, arguments
):
    first = start(built, *TARGETS, *PROFILE, *arguments, variables=cluster.variables)
    try:
        harm(cluster, built)
        code = first.wait(timeout=600)
    finally:
        kill(first)
    said = (built / "run.log").read_text()
    if harm is not restart:
        assert code != 0, "a job that was ended was taken for one that had finished"
    wait_for(lambda: not cluster.running(), seconds=120)
    code, again = run(built, cluster, *TARGETS)
    assert code == 0, said[-3000:] + again[-5000:]
    assert same_as(built, finished)

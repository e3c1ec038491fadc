"""One tiny run for all tests of the workflow, whichever worker asks first."""

import fcntl
import os

import pytest
from running import copy_project, linked, snakemake


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A project whose tiny run is finished; tests that change it work on a copy."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with open(shared / "tiny.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shared / "tiny" / "project"
        if not folder.exists():
            copy_project(folder)
            done = snakemake(folder, "--cores", "2", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
            (folder / "run.log").write_text(done.stdout)
        log = (folder / "run.log").read_text()
        assert (folder / "results/tiny/MANIFEST.sha256").exists(), log
    return folder


@pytest.fixture
def changed(finished, tmp_path):
    """A copy of the finished project."""
    return linked(finished, tmp_path / "project")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A project whose extensions are built, and in which nothing was run."""
    folder = tmp_path_factory.mktemp("compiled") / "project"
    copy_project(folder)
    done = snakemake(folder, "build/compiled.json", "--cores", "1")
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture
def built(compiled, tmp_path):
    """A copy of it."""
    return linked(compiled, tmp_path / "project")

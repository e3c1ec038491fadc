"""One tiny run for all tests of the workflow, whichever worker asks first."""

import fcntl
import os

import pytest
from running import copy_project, linked, snakemake


def once(tmp_path_factory, name, make):
    """A project that the first worker who asks makes, and the others find."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shared / name / "project"
        if not folder.exists():
            (folder.parent / "run.log").write_text(make(folder).stdout)
        return folder, (folder.parent / "run.log").read_text()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A project whose extensions are built, and in which nothing was run."""

    def make(folder):
        copy_project(folder)
        return snakemake(folder, "build/compiled.json", "--cores", "1")

    folder, log = once(tmp_path_factory, "compiled", make)
    assert (folder / "build/compiled.json").exists(), log
    return folder


@pytest.fixture(scope="session")
def finished(compiled, tmp_path_factory):
    """A project whose tiny run is finished; tests that change it work on a copy."""

    def make(folder):
        linked(compiled, folder)
        return snakemake(folder, "--cores", "2", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")

    folder, log = once(tmp_path_factory, "tiny", make)
    assert (folder / "results/tiny/MANIFEST.sha256").exists(), log
    return folder


@pytest.fixture
def changed(finished, tmp_path):
    """A copy of the finished project."""
    return linked(finished, tmp_path / "project")


@pytest.fixture
def built(compiled, tmp_path):
    """A copy of the project in which nothing was run."""
    return linked(compiled, tmp_path / "project")

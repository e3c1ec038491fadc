"""The judge as a distribution of its own: built from its folder, unpacked, and used with its own dependencies alone."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "recheck"
#: Runs the examples of the README where neither the rest of the repository nor any extra can be imported.
ALONE = """
import doctest, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("gpcmc", "studies", "jinja2", "matplotlib", "pypandoc", "sklearn"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import recheck
assert recheck.__file__.startswith(sys.argv[1]), recheck.__file__
found = doctest.testfile(sys.argv[2], module_relative=False)
assert found.attempted >= 5, found
from recheck.judge.command import main
sys.exit(found.failed or main(["judge", *sys.argv[3:]]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel that was built from a copy: a build leaves folders beside its sources.

    -P: the folder has a module ``numbers``, which is not the standard one.
    """
    folder = tmp_path_factory.mktemp("distribution")
    leave = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    shutil.copytree(SOURCE, folder / "recheck", ignore=leave)
    code = "from setuptools import build_meta; build_meta.build_wheel('../dist')"
    subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=folder / "recheck", check=True, capture_output=True
    )
    (path,) = (folder / "dist").glob("recheck-*.whl")
    return path


def test_a_wheel_has_the_judge_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = {Path(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(about["METADATA"]).decode()
        assert b"recheck = recheck.judge.command:main" in archive.read(about["entry_points.txt"])
    kept = [path for end in ("py", "j2", "csl") for path in SOURCE.rglob(f"*.{end}")]
    kept.append(SOURCE / "STUDY.md")
    assert names == {f"recheck/{path.relative_to(SOURCE)}" for path in kept}
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert {line.split()[1].split(">")[0] for line in needed if "extra" not in line} == {
        *("numpy", "pandas", "pydantic", "pyyaml", "scipy")
    }
    assert tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["name"] == "recheck"


def test_the_examples_of_the_readme_run_on_the_wheel_alone(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    (tmp_path / "printed.csv").write_text("id,printed\na,1.00\n")
    (tmp_path / "ours.csv").write_text("id,value\na,1.01\na,0.95\na,1.08\n")
    paths = [
        tmp_path / "installed",
        SOURCE / "README.md",
        tmp_path / "printed.csv",
        tmp_path / "ours.csv",
    ]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE, *map(str, paths)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(paths[0]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agrees" in done.stdout

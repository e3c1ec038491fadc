"""pyproject.toml, requirements.lock and environment.yml name the same packages and versions; what make runs."""

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
# conda's name of a package where it is not the index's.
CONDA_NAMES = {
    "matplotlib-base": "matplotlib",
    "pypandoc": "pypandoc-binary",
    "python-build": "build",
    "snakemake-minimal": "snakemake",
}
# What conda must bring and the lock cannot: the interpreter, its installer and a compiler.
CONDA_ONLY = {"c-compiler", "pip", "python"}


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def declared(project) -> dict[str, Requirement]:
    """Every package that pyproject.toml names, with its bounds."""
    lists = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    requirements = [Requirement(line) for lines in lists for line in lines]
    return {canonicalize_name(r.name): r for r in requirements}


@pytest.fixture(scope="module")
def lock_text() -> str:
    return (ROOT / "requirements.lock").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def locked(lock_text) -> list[tuple[Requirement, int]]:
    """Every entry of the lock, with the number of its hashes."""
    entries = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"(?m)^ *#.*\n?", "", lock_text).strip())
    return [
        (
            Requirement(entry.split("\\\n")[0]),
            len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry)),
        )
        for entry in entries
    ]


@pytest.fixture(scope="module")
def locked_versions(locked) -> dict[str, str]:
    return {canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r, _ in locked}


@pytest.fixture(scope="module")
def conda() -> dict[str, str]:
    """Package -> version in environment.yml, under the index's names."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    pins = {}
    for line in environment["dependencies"]:
        name, _, version = line.partition(" ")
        if name not in CONDA_ONLY:
            pins[CONDA_NAMES.get(name, name)] = version.removeprefix("==")
    return pins


def test_every_lock_entry_is_exact_and_hashed(locked):
    assert len(locked) > 50
    for requirement, hashes in locked:
        assert [s.operator for s in requirement.specifier] == ["=="], requirement
        assert hashes >= 1, f"no sha256 for {requirement}"


def test_lock_has_one_version_a_package(locked):
    names = [canonicalize_name(r.name) for r, _ in locked]
    assert sorted(names) == sorted(set(names))


def test_lock_names_no_index_and_no_folder(lock_text):
    assert not re.search(r"://|--(?:extra-)?index-url|--find-links|(?m:^#.* /)", lock_text)


def test_lock_has_all_that_pyproject_names(declared, locked_versions):
    assert declared.keys() <= locked_versions.keys()
    for name, requirement in declared.items():
        assert locked_versions[name] in requirement.specifier, f"{requirement}: run `make lock`"


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_holds_what_pyproject_names_for_every_python(declared, locked, python):
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    kept = {
        canonicalize_name(r.name)
        for r, _ in locked
        if r.marker is None or r.marker.evaluate(environment)
    }
    assert declared.keys() <= kept


def test_build_requirements_are_locked(project, locked_versions):
    """The workflow builds without isolation, so the backend comes from the lock."""
    for line in project["build-system"]["requires"]:
        requirement = Requirement(line)
        assert locked_versions[canonicalize_name(requirement.name)] in requirement.specifier


def test_environment_names_the_packages_of_pyproject(declared, conda):
    assert conda.keys() == declared.keys()


def test_environment_has_the_versions_of_the_lock(declared, conda, locked_versions):
    assert conda == {name: locked_versions[name] for name in declared}


def test_the_library_says_its_version(project):
    text = (ROOT / "src/gpcmc/__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{project["project"]["version"]}"' in text


def test_a_wheel_holds_the_library_alone(project, tmp_path):
    """Built from the declarations of pyproject.toml, with files of any content in the place of compiled modules."""
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy2(ROOT / name, tmp_path)
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignore)
    command = [sys.executable, "-c", "import setuptools; setuptools.setup()", "--quiet"]
    command += ["bdist_wheel", "--dist-dir", "wheel"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        about = email.message_from_bytes(archive.read(metadata))
    assert {name.split("/")[0] for name in names} == {
        "gpcmc",
        f"gpcmc-{project['project']['version']}.dist-info",
    }
    assert {"gpcmc/py.typed", "gpcmc/classifier.py", "gpcmc/gaussian/ep.py"} <= set(names)
    assert about["Description-Content-Type"] == "text/markdown"
    assert about.get_payload(decode=True) == (ROOT / "src/gpcmc/README.md").read_bytes()
    assert {line.split(",")[0] for line in about.get_all("Project-URL")} == set(
        project["project"]["urls"]
    )
    needs = [n for n in about.get_all("Requires-Dist") if "extra ==" not in n]
    always = {canonicalize_name(Requirement(n).name) for n in needs}
    assert always == {"arviz-stats", "numpy", "scikit-learn", "scipy", "threadpoolctl"}


def test_the_library_imports_what_it_declares(project):
    """Neither the packages of the studies nor those of the workflow."""
    declared = {canonicalize_name(Requirement(n).name) for n in project["project"]["dependencies"]}
    known = {"arviz_stats": "arviz-stats", "sklearn": "scikit-learn"}
    for path in (ROOT / "src/gpcmc").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        names = [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
        names += [n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module]
        found = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"gpcmc"}
        assert {known.get(name, name) for name in found} <= declared, path


def test_hosted_checks_run_the_commands_of_readme():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[-4:] == ["make lint", "make docs", "make test", "make paper SCALE=smoke"]
    assert set(job["strategy"]["matrix"]["python"]) <= set(PYTHONS)


def test_wheels_are_of_every_python_and_for_no_processor():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)
    assert project["tool"]["cibuildwheel"]["build"] == [
        f"cp{version.replace('.', '')}-*" for version in PYTHONS
    ]
    named = [c for c in project["project"]["classifiers"] if "Python :: 3." in c]
    assert [c.rpartition(" ")[2] for c in named] == PYTHONS
    assert not re.search(r"-m(arch|tune|cpu)", (ROOT / "setup.py").read_text(encoding="utf-8"))


def test_a_release_is_tested_by_the_targets_of_make():
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    commands = [step["run"].split()[1] for step in jobs["sdist"]["steps"] if "run" in step]
    assert commands == ["test-wheel", "sanitize"]
    assert set(jobs["publish"]["needs"]) == {"wheels", "sdist"}
    assert "refs/tags/v" in jobs["publish"]["if"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"(?m)^{target}:", makefile) for target in commands)


def test_own_checks_lint_first_and_then_go_in_the_order_of_readme():
    steps = re.findall(r"(?m)^step (.*)$", (ROOT / ".ci/run").read_text(encoding="utf-8"))
    assert steps == ["make lint", "make docs", "make paper SCALE=smoke", "make test"]


def dry_make(folder, *arguments, target="paper"):
    """What make would run, one command a line."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(
        ["make", "--dry-run", *filter(None, [target]), *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.fixture
def commanded(tmp_path):
    """A folder with all that `make --dry-run paper` reads."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config/default.yaml").write_text(
        "seed: 1\nscale: half-size # a name with a hyphen\n"
    )
    for name in ("requirements.lock", "pyproject.toml", "setup.py"):
        (tmp_path / name).touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "scale"), [([], "half-size"), (["SCALE=published"], "published")]
)
def test_make_paper_prints_the_summary_of_its_scale(commanded, given, scale):
    """What else make gives to Snakemake is in test_make.py."""
    run, said = dry_make(commanded, *given).stdout.splitlines()[-2:]
    assert run.split()[1:] == ["workflow/scripts/start.py", "all", "--cores", "all"]
    for name in ("half-size", "published"):
        (commanded / f"results/{name}").mkdir(parents=True)
        (commanded / f"results/{name}/summary.txt").write_text(name)
    variables = {k: v for k, v in os.environ.items() if k != "SCALE"}
    variables |= dict(one.split("=") for one in given)
    done = subprocess.run(
        ["bash", "-c", said], cwd=commanded, env=variables, capture_output=True, text=True
    )
    assert done.stdout == scale


def test_make_does_not_empty_what_a_linked_environment_points_to(commanded, tmp_path_factory):
    """`venv --clear` would."""
    target = tmp_path_factory.mktemp("environment")
    (target / "precious").touch()
    (commanded / ".venv").symlink_to(target)
    done = subprocess.run(
        ["make", ".venv/.installed"], cwd=commanded, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert ".venv is a symbolic link" in done.stderr
    assert (target / "precious").exists()

"""What make is given reaches Snakemake as it is, and no shell."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NASTY = "a`touch PWNED`$(touch PWNED)$$(touch PWNED)'\"; touch PWNED #"


@pytest.fixture(scope="module")
def start():
    spec = importlib.util.spec_from_file_location("start", ROOT / "workflow/scripts/start.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.command


@pytest.mark.parametrize(
    ("target", "given", "config"),
    [
        ("all", {}, []),
        ("all", {"SCALE": "smoke"}, ["scale=smoke"]),
        ("verify", {}, ["scale=published"]),
        ("renew", {}, ["scale=published"]),
        (
            "verify",
            {"SHARE": "0.1", "DRAW": "7"},
            ["scale=published", "share=0.1", "draw=7"],
        ),
        ("number", {"ID": NASTY, "SECONDS": "5"}, ["scale=published", f"id={NASTY}", "seconds=5"]),
        ("all", {"ID": "x"}, []),
        ("all", {"CONFIG": "seed=1 'data={retries: 1}'"}, ["seed=1", "data={retries: 1}"]),
    ],
)
def test_what_is_given_becomes_the_configuration(start, target, given, config):
    arguments = start([target, "--cores", "all"], given)
    assert arguments[:3] == [target, "--cores", "all"]
    assert arguments[3:] == (["--config", *config] if config else [])


def test_further_arguments_come_before_the_configuration(start):
    given = {"SNAKEMAKE": "--keep-going -n", "SCALE": "tiny"}
    assert start(["all"], given) == ["all", "--keep-going", "-n", "--config", "scale=tiny"]


def test_an_open_quote_is_named(start):
    with pytest.raises(SystemExit, match="CONFIG: No closing quotation; given CONFIG=a=O'Brien"):
        start(["all"], {"CONFIG": "a=O'Brien"})


@pytest.mark.parametrize(
    "given",
    [
        {"SNAKEMAKE": "--config seed=1"},
        {"SNAKEMAKE": "--keep-going -C seed=1"},
        {"SNAKEMAKE": "--configfile config/tiny.yaml"},
        {"CONFIG": "scale=tiny"},
    ],
)
def test_a_scale_or_a_configuration_in_another_place_is_refused(start, given):
    with pytest.raises(SystemExit, match="SCALE=<scale> sets the scale") as refusal:
        start(["all"], given)
    assert next(iter(given.values())) in str(refusal.value)


@pytest.mark.parametrize("name", ["ID", "SCALE", "CONFIG", "SECONDS", "SHARE", "DRAW", "SNAKEMAKE"])
def test_no_shell_runs_what_is_given(name, tmp_path):
    """With a stand-in for the environment: it prints what arrives."""
    tools = tmp_path / ".venv/bin"
    tools.mkdir(parents=True)
    (tools / "python").write_text(
        f"#!{sys.executable}\nimport os\nprint(repr(os.environ.get({name!r})))\n"
    )
    (tools / "python").chmod(0o755)
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for stamp in (".installed", ".built"):
        (tmp_path / ".venv" / stamp).touch()
    rules = [f"-o{tmp_path}/.venv/{one}" for one in (".installed", ".built")]
    command = [
        "make",
        *rules,
        "-o",
        ".venv/.built",
        "-o",
        ".venv/.installed",
        "number",
        f"{name}={NASTY}",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=os.environ, timeout=60
    )
    assert not list(tmp_path.rglob("PWNED")), done.stdout + done.stderr
    assert repr(NASTY) in done.stdout, done.stdout + done.stderr

# What must hold before any job starts, and what the rules of several stages share.

import ast
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from csv import DictReader
from dataclasses import asdict
from functools import cache
from glob import glob
from importlib import import_module
from pathlib import Path
from posixpath import normpath

import yaml
from snakemake.utils import update_config

# Jobs compute with the sources of this folder, whatever the environment has installed.
os.environ.update(PYTHONPATH=str(Path("src").resolve()))
sys.path[:0] = ["src", "workflow/scripts"]
# The options of methods are checked against their classes, which import the extensions. In a new clone there are none.
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
if not all(path.with_suffix(SUFFIX).exists() for path in Path("src").rglob("*.pyx")):
    print("Building the Cython extensions first", file=sys.stderr)
    subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
# Snakemake starts scripts with this path as it is; without a quote, none would start in a folder with a space.
sys.executable = shlex.quote(sys.executable)

import locks

#: Each has a package in src/studies, a folder in data/published, and a file of rules beside this one. The paper is about
#: the first one; names of the others have the study in front.
STUDIES = sorted(
    path.stem
    for path in Path("workflow/rules").glob("*.smk")
    if Path("src/studies", path.stem, "jobs.py").exists()
)
#: Raised whenever a result file is renamed, or a column renamed or given another meaning.
RESULTS_SCHEMA = 2
RESULTS, FIGURES = f"results/{config['scale']}", f"figures/{config['scale']}"
STAMP = Path(RESULTS, "schema.json")
#: Keys of single targets, which are no part of the configuration: `verify_kept` has `share` and `sample_seed`.
OPTIONS = {key: config.pop(key) for key in ("share", "sample_seed") if key in config}
#: Whose versions a run records.
PACKAGES = [
    *("gpcmc", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "cython", "snakemake"),
    *("threadpoolctl", "pooch", "pandera", "pydantic", "arviz-stats", "mpmath", "jinja2", "pyyaml"),
]


def typed(value):
    """A value within a block that was given on the command line: Snakemake leaves its numbers as texts."""
    if isinstance(value, dict):
        return {key: typed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [typed(one) for one in value]
    return yaml.safe_load(value) if isinstance(value, str) else value


def checked_configuration():
    """The configuration as the studies read it; refused with all that is wrong in it."""
    checked = dict(config)
    for study in STUDIES:
        try:
            checked = import_module(f"studies.{study}.config").check(checked)
        except ValueError as error:
            raise WorkflowError(str(error)) from None
    return checked


def check_schema():
    """Refuse results that were written under another schema."""
    if STAMP.exists():
        found = json.loads(STAMP.read_text(encoding="utf-8"))["version"]
    elif set(STAMP.parent.glob("*")) - {STAMP.with_suffix(".partial")}:
        found = "none"
    else:
        return
    if found != RESULTS_SCHEMA:
        raise WorkflowError(
            f"{RESULTS} was written under another schema of results: {STAMP} says version {found}, this tree reads "
            f"and writes version {RESULTS_SCHEMA}. Move the folder away, or delete it and {FIGURES}: nothing in it "
            "can be used."
        )


@cache
def code(*modules):
    """A digest of modules, and of all in recheck and studies that they import, without comments and docstrings.

    For the stages after the runs; of the runs' own code it is `studies.common.code.digest`.
    """
    found, waiting = {}, list(modules)
    while waiting:
        name = waiting.pop()
        stem = Path("src", *name.split("."))
        path = next(
            (p for p in (stem.with_suffix(".py"), stem / "__init__.py") if p.exists()), None
        )
        if path is None or name in found or not name.startswith(("recheck", "studies")):
            continue
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            if isinstance(getattr(node, "body", None), list):
                node.body = [line for line in node.body if not is_text(line)]
        found[name] = ast.dump(tree)
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]


def is_text(line):
    """Whether a statement is nothing but a text, such as a docstring."""
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def shown(path, category, title):
    """An output that Snakemake's report shows."""
    labels = {"title": title, "format": path.rpartition(".")[2].upper()}
    return report(path, caption="../report/caption.rst", category=category, labels=labels)


for key, value in workflow.config_settings.config.items():
    if isinstance(value, (dict, list)):
        update_config(config, {key: typed(value)})
CONFIG = checked_configuration()
check_schema()


wildcard_constraints:
    part="[a-z0-9]+",
    study="|".join(STUDIES),


onstart:
    try:
        locks.hold_folder()
    except locks.InUseError as error:
        raise WorkflowError(str(error)) from None
    if not STAMP.exists():
        STAMP.parent.mkdir(parents=True, exist_ok=True)
        partial = STAMP.with_suffix(".partial")
        partial.write_text(json.dumps({"version": RESULTS_SCHEMA}) + "\n", encoding="utf-8")
        partial.replace(STAMP)


onsuccess:
    # Nothing was interrupted: jobs that run again compute anew, unless `resume` puts their pieces back.
    for done in sorted(Path("build/pieces").glob(f"{config['scale']}/**/done")):
        aside = done.parent.with_name(f"{done.parent.name}.finished")
        shutil.rmtree(aside, ignore_errors=True)
        done.unlink()
        done.parent.rename(aside)

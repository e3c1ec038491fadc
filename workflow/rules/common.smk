# What must hold before any job starts, and what the rules of several stages share.

import hashlib
import os
import re
import shlex
import shutil
import sys
from csv import DictReader
from functools import cache
from glob import glob
from importlib import import_module
from pathlib import Path

import yaml
from snakemake.io import strip_wildcard_constraints

# Jobs compute with the sources of this folder, whatever the environment has installed.
os.environ.update(PYTHONPATH=str(Path("src").resolve()))
sys.path.insert(0, "src")
# Snakemake starts scripts with this path as it is; without a quote, none would start in a folder with a space.
sys.executable = shlex.quote(sys.executable)

from recheck.record.files import read_json, write_json
from recheck.paper.pandoc import find_pandoc
from studies.common import locks
from studies.common.code import digest, digest_of_rows
from studies.common.configuration import read_config
from studies.common.rows import records

#: The experiments of each study. A study has a package in src/studies, a folder in data/published, and a file of rules
#: beside this one. The paper is about the first one; names of the others have the study in front.
EXPERIMENTS = {}
for path in sorted(Path("src/studies").glob("*/experiments/[a-z]*.py")):
    EXPERIMENTS.setdefault(path.parts[2], []).append(path.stem)
STUDIES = list(EXPERIMENTS)

# The file of the scale goes over the default, what --configfile names goes over both, and --config over all.
given = workflow.config_settings
try:
    complete = read_config(config["scale"], files=given.configfiles, given=given.config)
    # Keys of single targets, which are no part of the configuration: `verify` has `share` and `draw`, `number` has `id`
    # and `seconds`.
    OPTIONS = {"share": 0.03, "draw": complete.get("seed"), "id": "", "seconds": 60}
    OPTIONS |= {key: complete.pop(key) for key in OPTIONS if key in complete}
    CHECKED = {s: import_module(f"studies.{s}.config").check(complete) for s in STUDIES}
except ValueError as error:
    raise WorkflowError(str(error)) from None
config.clear()
config.update(complete)
#: What all studies share: seed, data, and so on.
GENERAL = CHECKED[STUDIES[0]]

RESULTS, FIGURES = f"results/{config['scale']}", f"figures/{config['scale']}"
#: Raised whenever a result file is renamed, or a column renamed or given another meaning.
RESULTS_SCHEMA = 3
STAMP = Path(RESULTS, "schema.json")
found = read_json(STAMP)["version"] if STAMP.exists() else "none"
if found != RESULTS_SCHEMA and any(path.suffix != ".partial" for path in STAMP.parent.glob("*")):
    raise WorkflowError(
        f"{RESULTS} was written under another schema of results: {STAMP} says version {found}, this tree reads and "
        f"writes version {RESULTS_SCHEMA}. Move the folder away, or delete it and {FIGURES}: nothing in it can be used."
    )

#: What the files of the studies fill: of each study, the parts of its measures with the experiments that each reads;
#: targets with the files that each makes; names of data sets that the registry has under another one.
MEASURED, TARGETS, REGISTERED = {}, {}, {}
#: Experiments that `all` does not run and that are not kept as others are.
APART = ["reference_cells", "reference_truths"]
KEPT = {study: [name for name in EXPERIMENTS[study] if name not in APART] for study in STUDIES}
#: Studies of which a run is kept.
KEPT_STUDIES = [s for s in STUDIES if Path(f"data/reference/{s}/provenance.json").exists()]
#: Whose versions a run records.
PACKAGES = [
    *("gpcmc", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "cython", "snakemake"),
    *("threadpoolctl", "pooch", "pydantic", "arviz-stats", "mpmath", "jinja2", "pyyaml"),
    *("pypandoc-binary", "pypandoc"),
]


# ----- Rows


@cache
def plan(study, experiment):
    """All rows of an experiment under this configuration."""
    return records(import_module(f"studies.{study}.experiments.{experiment}").plan(CHECKED[study]))


def plans(study):
    """The plans of all experiments whose rows are kept."""
    return {experiment: plan(study, experiment) for experiment in KEPT[study]}


def table(stem):
    """The files that rows are written to."""
    return multiext(stem, rows=".csv", timing="_timing.csv", arrays=".npz")


def place(path):
    """The study and the experiment that a file below the results belongs to."""
    study, experiment = Path(path).parts[2:4]
    return study, experiment.partition(".")[0]


@cache
def rule_of(study, experiment):
    """The rule that runs the rows of an experiment."""
    own = [one for one in workflow.rules if "block" in one.wildcard_names]
    return next(one for one in own if place(one.output.rows) == (study, experiment))


@cache
def blocks(study, experiment):
    """The jobs of an experiment: its rows by the file that its rule writes them to."""
    pattern = strip_wildcard_constraints(str(rule_of(study, experiment).output.rows))
    found = {}
    for row in plan(study, experiment):
        found.setdefault(pattern.format_map(row), []).append(row)
    return found


# Snakemake runs a job again if a parameter changes, but not for one whose function has an argument `output`. The function
# of such a parameter takes its output from `given`.
def planned(wildcards, **given):
    """The rows of a job, with their settings and seeds."""
    path = given["output"].rows
    jobs = blocks(*place(path))
    if path not in jobs:
        raise WorkflowError(f"{path}: no row of the plan is written there under this configuration")
    return jobs[path]


def sources(wildcards, **given):
    """A digest of the code that a job's rows rest on."""
    return digest_of_rows(*place(given["output"].rows), planned(wildcards, **given))


def tables(study, *experiments):
    """The tables of some experiments."""
    return [f"{RESULTS}/{study}/{experiment}.csv" for experiment in experiments]


def rows_read(wildcards):
    """The rows that a part of the measures reads, or other files of the study's results."""
    for name in MEASURED[wildcards.study][wildcards.part]:
        ends = [""] if name.endswith(".npz") else [".csv", "_timing.csv", ".npz"]
        yield from (f"{RESULTS}/{wildcards.study}/{name}{end}" for end in ends)


# ----- Raw data

with open("data/registry.csv", newline="", encoding="utf-8") as registry:
    RAW_FILES = {row["file"]: row for row in DictReader(registry)}
RAW_STATUS = [f"{RESULTS}/data/{file}.json" for file in RAW_FILES]


def raw_status(wildcards):
    """What became of the raw files of a data set; none if it is simulated."""
    name = REGISTERED.get(wildcards.data, wildcards.data)
    return [f"{RESULTS}/data/{file}.json" for file, row in RAW_FILES.items() if row["name"] == name]


def fetch_again(wildcards):
    """Changes, so that a raw file is looked for again, while it is missing or not the registered one."""
    raw, status = Path("data/raw", wildcards.file), Path(RESULTS, "data", f"{wildcards.file}.json")
    if status.exists() and not read_json(status)["available"]:
        return ["missing", status.stat().st_mtime_ns]
    found = hashlib.sha256(raw.read_bytes()).hexdigest() if raw.exists() else None
    return None if found in (None, RAW_FILES[wildcards.file]["sha256"]) else ["damaged", found]


# ----- What readers see

LAYOUTS = {s: yaml.safe_load(Path(f"src/studies/{s}/layout.yaml").read_text()) for s in STUDIES}
#: The modules that draw the figures of each study.
DRAWING = {study: [] for study in STUDIES}
for path in sorted(Path("src/studies").glob("*/figures/*.py")):
    DRAWING[path.parts[2]].append(".".join(path.with_suffix("").parts[1:]))
PAPER = sorted(glob("paper/*.tex"))
HAVE_LATEX = all(shutil.which(program) for program in ("pdflatex", "latexmk"))
HAVE_PANDOC = find_pandoc() is not None


def shown(path, category, title):
    """An output that Snakemake's report shows."""
    labels = {"title": title, "format": path.rpartition(".")[2].upper()}
    return report(path, caption="../report/caption.rst", category=category, labels=labels)


def drawn(study, kind, *endings):
    """The files of all tables or all figures of a study."""
    folder = {"tables": f"{RESULTS}/{study}/tables", "figures": f"{FIGURES}/{study}"}[kind]
    return [
        shown(f"{folder}/{name}.{ending}", kind.capitalize(), item["title"])
        for name, item in LAYOUTS[study][kind].items()
        for ending in endings
    ]


def on_paper(*endings):
    """The tables, figures and lists of all studies as the paper shows them, by study; other studies have a folder."""
    found = {}
    for study in STUDIES:
        layout, below = LAYOUTS[study], "" if study == STUDIES[0] else f"{study}/"
        names = [f"{name}.{ending}" for name in layout["tables"] for ending in ("csv", "tex")]
        names += [f"{name}.{ending}" for name in layout["figures"] for ending in ("pdf", "png")]
        names += ["verdicts.tex", "protocol.tex", "controls.tex"]
        found[study] = [
            f"{RESULTS}/paper/{below}{name}" for name in names if name.endswith(endings)
        ]
    return found


def whole(study):
    """What a study ends with."""
    return drawn(study, "tables", "csv") + drawn(study, "figures", "png")


def published(wildcards):
    return sorted(glob(f"data/published/{wildcards.study}/*"))


def kept(study, names="*"):
    """The kept results of a study, which a run is set beside; of all rows, if nothing else is said."""
    return sorted(glob(f"data/reference/{study}/{names}.csv*"))


def book(study, parts=None):
    """What a book of some parts is read from; of all parts, with the verdicts."""
    names = ["measures", "estimates", "verdicts", "outcomes"]
    found = [f"data/published/{study}/cells.csv", f"src/studies/{study}/layout.yaml"]
    found += [path for name in names for path in kept(study, name)]
    if parts is not None:
        names = [f"{name}/{part}" for name in names[:2] for part in parts]
    return found + tables(study, *names)


def parts_of(study, item):
    """The parts that an item reads; None if it prints verdicts, which need all of them."""
    lines = {line for block in item.get("blocks", ()) for line in block.get("show", ())}
    judged = "verdict" in lines or set(item["reads"]) - set(MEASURED[study])
    return None if judged else item["reads"]


# ----- Kept rows


@cache
def jobs(study):
    """The jobs whose rows are kept: what each writes and reads, and its rows."""
    found = []
    for experiment in KEPT[study]:
        reads = dict(rule_of(study, experiment).input.items())
        del reads["compiled"]
        for path, rows in blocks(study, experiment).items():
            inputs = {name: str(file).format_map(rows[0]) for name, file in reads.items()}
            job = {"study": study, "experiment": experiment, "file": path, "rows": rows}
            found.append(job | {"inputs": inputs})
    return found


def inputs_of(jobs):
    return sorted({path for job in jobs for path in job["inputs"].values()})


def patterns_read():
    """What the jobs read that is no experiment's: patterns."""
    every = [job for study in KEPT_STUDIES for job in jobs(study)]
    made = {job["file"].removesuffix(".csv") for job in every}
    made |= {f"{RESULTS}/{study}/{name}" for study in KEPT_STUDIES for name in KEPT[study]}
    return [path for path in inputs_of(every) if path.removesuffix(".npz") not in made]


def chosen(names):
    """The jobs of some rows, whose names are given by study and experiment, with these rows alone."""
    found = []
    for study, experiments in names.items():
        for job in jobs(study):
            own = experiments.get(job["experiment"], ())
            if rows := [row for row in job["rows"] if row["row"] in own]:
                found.append(job | {"rows": rows})
    return found


@cache
def drawn_rows():
    """Rows that `verify` runs again."""
    from studies.common.kept import Kept, drawn

    share, seed = float(OPTIONS["share"]), int(OPTIONS["draw"])
    return chosen(
        {s: drawn(Kept(f"data/reference/{s}"), plans(s), share, seed) for s in KEPT_STUDIES}
    )


@cache
def asked_rows():
    """The number that `number` asks for, and the rows behind it, as many as fit into its seconds."""
    from studies.common.number import asked

    if not OPTIONS["id"]:
        raise WorkflowError("id: needed is one, as in `make number ID=table4/P7/new/mae-med`")
    try:
        found = asked(str(OPTIONS["id"]), STUDIES, float(OPTIONS["seconds"]))
    except (KeyError, FileNotFoundError) as error:
        raise WorkflowError(error.args[0]) from None
    there = {name: [row["row"] for row in plan(found.study, name)] for name in found.rows}
    return found, chosen({found.study: found.again(there)})


wildcard_constraints:
    block="[0-9]+",
    experiment="|".join(sorted({name for names in EXPERIMENTS.values() for name in names})),
    part="[a-z0-9]+",
    study="|".join(STUDIES),


onstart:
    try:
        locks.hold_folder()
    except locks.InUseError as error:
        raise WorkflowError(str(error)) from None
    # Under a limit of jobs a second, each pass of Snakemake's scheduler (9.27) starts a timer for another pass. The timers
    # never end: after a hundred jobs there are a hundred passes a second, which take a core.
    workflow.scheduler.job_rate_limiter = None
    if not STAMP.exists():
        write_json(STAMP, {"version": RESULTS_SCHEMA})

# What must hold before any job starts, and what the rules of several stages share. What is run, and what each row, part of
# the measures and target reads, is a `Plan` (src/studies/common/plan.py); src/studies/<study>/study.py says it of a study.

import atexit
import os
import re
import shlex
import shutil
import sys
from functools import cache
from glob import glob
from pathlib import Path

# The folder of this repository: all paths start there, wherever Snakemake was started.
ROOT = Path(workflow.current_basedir).parents[1].resolve()
if workflow.overwrite_workdir and Path(workflow.overwrite_workdir).resolve() != ROOT:
    raise WorkflowError(
        f"--directory: results lie beside the sources; leave it out, or copy {ROOT} and run the copy"
    )
# Where Snakemake was started with a configuration of its own, that one counts.
SETTINGS = next(
    (one.resolve() for one in (Path("config"), ROOT / "config") if (one / "default.yaml").exists()),
    ROOT / "config",
)


workdir: ROOT


# Jobs compute with the sources of this folder, whatever the environment has installed.
os.environ.update(PYTHONPATH=str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "src"))
# Snakemake starts scripts with this path as it is; without a quote, none would start in a folder with a space.
sys.executable = shlex.quote(sys.executable)

from recheck.judge.declared import read_yaml
from recheck.record.files import read_json, write_json
from recheck.paper.pandoc import find_pandoc
from studies.common import locks
from studies.common.blocks import forget
from studies.common.code import digest, note_digests, read_digests
from studies.common.configuration import read_config
from studies.common.plan import Plan, code_of, declared
from studies.common.start import (
    OPTIONS,
    SCHEMA,
    asked_of_raw,
    checked_options,
    content,
    refuse_other_schema,
)

#: What a look at all sources has found, which jobs read: see studies.common.code.
DIGESTS = "build/digests.json"
read_digests(DIGESTS)
# Rows are asked for theirs while jobs are planned: noted before any job starts, and after a dry run.
atexit.register(note_digests, ROOT / DIGESTS)

# The file of the scale goes over the default, what --configfile names goes over both, and --config over all.
given = workflow.config_settings
try:
    complete = read_config(
        config.get("scale"), SETTINGS, files=given.configfiles, given=given.config
    )
    # keys of single targets, which are no part of the configuration
    ASKED = checked_options(
        {key: complete.pop(key) for key in OPTIONS if key in complete}, complete
    )
    PLAN = Plan(complete)
    refuse_other_schema(PLAN.results)
except ValueError as error:
    raise WorkflowError(str(error)) from None
config.clear()
config.update(complete)
GENERAL, STUDIES = PLAN.general, PLAN.studies
RESULTS, FIGURES = PLAN.results, f"figures/{config['scale']}"
#: Studies of which a run is kept.
KEPT_STUDIES = [s for s in STUDIES if Path(f"data/reference/{s}/provenance.json").exists()]
#: Whose versions a run records.
PACKAGES = [
    *("gpcmc", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "cython", "snakemake"),
    *("threadpoolctl", "pooch", "pydantic", "arviz-stats", "mpmath", "jinja2", "pyyaml"),
    *("pypandoc-binary", "pypandoc"),
]


#: The modules that judge measures, whatever the study.
JUDGES = [
    "recheck.judge.measures",
    "recheck.judge.verdicts",
    "recheck.judge.controls",
    "recheck.record.remeasured",
]
#: What draws tables, figures and lists, whatever the study.
DRAWS = [
    "recheck.report.book",
    "recheck.report.style",
    "recheck.report.tables",
    "recheck.report.audit",
    "recheck.report.documents",
]


def block(wildcards):
    """The block of a job."""
    known = PLAN.blocks(wildcards.study)
    if wildcards.block not in known:
        raise WorkflowError(
            f"{wildcards.study}, {wildcards.block}: no row of the plan is written there under this configuration"
        )
    return known[wildcards.block]


def refuse_target(name):
    """Say of a target that there is not which there are."""
    known = sorted(rule.name for rule in workflow.rules)
    # Snakemake would put a traceback to any other error of a function of inputs
    raise SystemExit(f"{name}: there is no such target; there are {known}")


def table(stem):
    """The files of a table of rows."""
    return [f"{stem}.csv", f"{stem}_timing.csv", f"{stem}.npz"]


# ----- What readers see

LAYOUTS = {s: read_yaml(f"src/studies/{s}/layout.yaml") for s in STUDIES}
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


def below(study):
    """The folder of what the paper shows of a study, within that of a kind; its own study has none."""
    return "" if study == STUDIES[0] else study


def on_paper(study, *endings):
    """The tables, figures and lists of a study as the paper shows them."""
    layout = LAYOUTS[study]
    names = [f"{name}.{ending}" for name in layout["tables"] for ending in ("csv", "tex")]
    names += [f"{name}.{ending}" for name in layout["figures"] for ending in ("pdf", "png")]
    names += ["verdicts.tex", "protocol.tex", "controls.tex"]
    folder = Path(RESULTS, "paper", below(study))
    return [f"{folder}/{name}" for name in names if name.endswith(endings or ("",))]


def figures_of(study):
    """The modules that draw the figures of a study."""
    paths = sorted(Path("src/studies", study, "figures").glob("*.py"))
    return [".".join(path.with_suffix("").parts[1:]) for path in paths]


def whole(study):
    """What a study ends with."""
    return drawn(study, "tables", "csv") + drawn(study, "figures", "png")


def published(study):
    return sorted(glob(f"data/published/{study}/*"))


def kept(study, names="*"):
    """The kept results of a study, which a run is set beside; of all rows, if nothing else is said."""
    return sorted(glob(f"data/reference/{study}/{names}.csv*"))


def read_for(study, parts=None):
    """What parts of the measures are measured and drawn from; all of them, if none are named."""
    return [
        *PLAN.measured(study, parts),
        *published(study),
        *sorted(glob(f"data/reference/{study}/certified/*")),
        f"src/studies/{study}/layout.yaml",
    ]


#: What is made of the measures of a study, beside the tables of its rows.
JUDGED = ["measures", "estimates", "verdicts", "readings", "outcomes", "controls", "remeasured"]


def book(study):
    """What tables, figures and look-ups of a study are read from."""
    names = ["measures", "estimates", "verdicts", "outcomes"]
    found = [f"data/published/{study}/cells.csv", f"src/studies/{study}/layout.yaml"]
    found += [path for name in names for path in kept(study, name)]
    return found + [f"{RESULTS}/{study}/{name}.csv" for name in names]


wildcard_constraints:
    block="[a-z0-9_]+-[0-9]+",
    study="|".join(STUDIES),


onstart:
    try:
        locks.hold_folder()
    except locks.InUseError as error:
        raise WorkflowError(str(error)) from None
    # Under a limit of jobs a second, each pass of Snakemake's scheduler (9.27) starts a timer for another pass. The timers
    # never end: after a hundred jobs there are a hundred passes a second, which take a core.
    workflow.scheduler.job_rate_limiter = None
    note_digests(DIGESTS)
    stamp = Path(RESULTS, "schema.json")
    if not stamp.exists():
        write_json(stamp, {"version": SCHEMA})


onsuccess:
    for study in STUDIES:
        forget(f"{RESULTS}/{study}/rows")


def raw_status(names):
    """What became of the raw files of data sets; none if they are simulated."""
    return [
        f"{RESULTS}/data/{file}.json" for file, row in RAW_FILES.items() if row["name"] in names
    ]


@cache
def drawn_rows():
    """Rows that `verify` runs again, with what each reads."""
    from studies.common.kept import Kept, drawn

    share, seed = ASKED["share"], int(ASKED["draw"])
    names = {
        study: drawn(Kept(f"data/reference/{study}"), PLAN.plans(study), share, seed)
        for study in KEPT_STUDIES
    }
    return PLAN.chosen(names)


@cache
def asked_rows():
    """The number that `number` asks for, and the rows behind it, as many as fit into its seconds."""
    from studies.common.number import asked

    try:
        found = asked(str(ASKED["id"]), STUDIES, ASKED["seconds"])
    except (KeyError, ValueError, FileNotFoundError) as error:
        raise WorkflowError(error.args[0] if isinstance(error, KeyError) else str(error)) from None
    there = {name: [row["row"] for row in PLAN.rows(found.study, name)] for name in found.rows}
    return found, PLAN.chosen({found.study: found.again(there)})


def files_of(rows):
    """What rows read."""
    return sorted({path for row in rows for one in row["inputs"].values() for path in one.files})

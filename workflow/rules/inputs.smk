# What jobs read, and lists of what there is: for the rules of all stages.

from studies.common.code import digest

with open("data/registry.csv", newline="", encoding="utf-8") as registry:
    RAW_FILES = {row["file"]: row for row in DictReader(registry)}
RAW_STATUS = [f"{RESULTS}/data/{file}.json" for file in RAW_FILES]


def fetch_again(wildcards):
    """Changes, so that a raw file is looked for again, while it is missing or not the registered one."""
    raw, status = Path("data/raw", wildcards.file), Path(RESULTS, "data", f"{wildcards.file}.json")
    if status.exists() and not json.loads(status.read_text())["available"]:
        return ["missing", status.stat().st_mtime_ns]
    found = hashlib.sha256(raw.read_bytes()).hexdigest() if raw.exists() else None
    return None if found in (None, RAW_FILES[wildcards.file]["sha256"]) else ["damaged", found]


#: The kept results of the published scale are those that the paper prints.
STORE = "kept" if config["scale"] == "published" else f"kept-{config['scale']}"
STORES = {study: f"data/reference/{study}/{STORE}" for study in STUDIES}
#: Slices of the jobs that are long by their kept timings, by study and job (`studies.common.slices`).
PLANS = {
    study: json.loads(plan.read_text())
    for study, store in STORES.items()
    if (plan := Path(store, "slices.json")).exists()
}

#: Each job by study and the first file that it makes, without the ending: atiya2021/experiment1/N50.
JOBS = {
    f"{study}/{next(iter(job.outputs.values())).rpartition('.')[0]}": job
    for study in STUDIES
    for job in import_module(f"studies.{study}.jobs").jobs(CONFIG).values()
}


#: A constraint that nothing meets.
NONE = "(?!)"
#: Where slices leave what they have done.
SLICED = f"build/slices/{config['scale']}"
#: What each slice of a job computes.
SLICES = {
    run: slices
    for run, job in JOBS.items()
    if (slices := PLANS.get(run.partition("/")[0], {}).get(job.name))
}


def that_write(*outputs):
    """A constraint: the jobs that write just these."""
    return "|".join(re.escape(run) for run, job in JOBS.items() if tuple(job.outputs) == outputs)


def made_by(study, *kinds):
    """What the jobs of some kinds make first."""
    jobs = [job for run, job in JOBS.items() if job.kind in kinds and run.startswith(f"{study}/")]
    return [f"{RESULTS}/{study}/{next(iter(job.outputs.values()))}" for job in jobs]


def read_by(wildcards):
    """What a job reads: results of others, and files of the repository."""
    study, job = wildcards.run.partition("/")[0], JOBS[wildcards.run]
    return [normpath(f"{RESULTS}/{study}/{path}") for path in job.inputs.values()] + [*job.files]


def read_in(study):
    """What the jobs of a study read that others make: patterns, and what pilots found."""
    jobs = [job for run, job in JOBS.items() if run.startswith(f"{study}/")]
    made = {path for job in jobs for path in job.outputs.values()}
    read = {path for job in jobs for path in job.inputs.values()}
    return [f"{RESULTS}/{study}/{path}" for path in sorted(read & made)]


def read_by_whole(wildcards):
    """What a job reads, and its slices, if it has any."""
    slices = range(len(SLICES.get(wildcards.run, ())))
    return read_by(wildcards) + [f"{SLICED}/done/{wildcards.run}/{k}" for k in slices]


PARTS = {study: list(import_module(f"studies.{study}.measures").PARTS) for study in STUDIES}


def raw_files(wildcards):
    """The raw files that a part reads."""
    inputs = import_module(f"studies.{wildcards.study}.measures").inputs
    return [f"{RESULTS}/{wildcards.study}/{file}" for file in inputs(wildcards.part, CONFIG)]


def reference_files(wildcards):
    return sorted(p for p in glob(f"data/reference/{wildcards.study}/*") if Path(p).is_file())


def published(wildcards):
    return sorted(glob(f"data/published/{wildcards.study}/*"))


#: (study, "tables" or "figures", name): what the layout says of it.
ITEMS = {
    (study, kind, name): item
    for study in STUDIES
    for kind, items in yaml.safe_load(Path(f"src/studies/{study}/layout.yaml").read_text()).items()
    if kind in ("tables", "figures")
    for name, item in items.items()
}
PAPER = sorted(glob("paper/*.tex"))
HAVE_LATEX = all(shutil.which(program) for program in ("pdflatex", "latexmk"))


def drawn(study, kind, *endings):
    """The files of all tables or all figures of a study."""
    folder = {"tables": f"{RESULTS}/{study}/tables", "figures": f"{FIGURES}/{study}"}[kind]
    for (where, what, name), item in ITEMS.items():
        for ending in endings if (where, what) == (study, kind) else ():
            yield shown(f"{folder}/{name}.{ending}", kind.capitalize(), item["title"])


def book(study, parts=None):
    """What a book of some parts is read from; of all parts, with the verdicts."""
    names = ["measures", "estimates", "verdicts", "outcomes"]
    if parts is not None:
        names = [f"{name}/{part}" for name in names[:2] for part in parts]
    found = [f"{RESULTS}/{study}/{name}.csv" for name in names]
    kept = sorted(glob(f"data/reference/{study}/kept/*.csv*"))
    return [*found, f"data/published/{study}/cells.csv", f"src/studies/{study}/layout.yaml", *kept]


def parts_of(study, item):
    """The parts that an item reads; None if it prints verdicts, which need all of them."""
    lines = {line for block in item.get("blocks", ()) for line in block.get("show", ())}
    judged = "verdict" in lines or set(item["reads"]) - set(PARTS[study])
    return None if judged else item["reads"]


def stored(wildcards):
    """What is kept; or before any job a word on what would keep it."""
    folders = [f"{store}/pieces" for store in STORES.values()]
    if found := [path for folder in folders for path in sorted(Path(folder).rglob("*.zip"))]:
        return found
    command = f"make keep SCALE={config['scale']}"
    raise WorkflowError(f"Nothing is kept in {', '.join(folders)}: `{command}` stores a run there.")

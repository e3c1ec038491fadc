# What must hold before any job starts: a configuration in which every key is known and every value allowed, results of
# this schema and no other, and one run at a time in a folder.

import fcntl
import json
import os
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator

# Raised whenever a result file is renamed, or a column renamed or given another meaning.
RESULTS_SCHEMA = 1


def wrong(schema, given, key=""):
    """What is wrong with a part of the configuration, a line each: key, value, what is allowed."""
    found = []
    for error in Draft202012Validator(schema).iter_errors(given):
        path = ".".join([key, *map(str, error.absolute_path)]).strip(".")
        if error.validator == "additionalProperties":
            known = sorted(error.schema["properties"])
            found += [
                f"{path}.{name}: unknown key (given {value}); known are {known}".lstrip(".")
                for name, value in error.instance.items()
                if name not in known
            ]
        elif error.validator == "required":
            found.append(f"{path}: {error.message}; given {error.instance}")
        else:
            allowed = error.schema.get("description") or yaml.safe_dump(
                error.schema, default_flow_style=True, width=1000, sort_keys=False
            )
            found.append(f"{path}: given {error.instance!r}; allowed is {allowed.strip()}")
    return found


def on_problem(given, problem):
    """Options on a problem: a list in the configuration has one value a problem."""
    return {
        key: value[problem - 1] if isinstance(value, list) else value
        for key, value in given.items()
    }


def short_lists():
    """Lists that have no value for the last problem, a line each."""
    four, posterior = config["experiment4"], config["experiment5"]["posterior"]
    parts = [
        ("experiment4", four["problems"], {"data_sets": four["data_sets"]}),
        ("experiment5.posterior.settings", posterior["problems"], posterior["settings"]),
    ]
    for key, part in {"experiment4": four, "experiment5.posterior": posterior}.items():
        parts += [
            (f"{key}.methods.{k}", part["problems"], row) for k, row in part["methods"].items()
        ]
    return [
        f"{key}.{name}: given {value}; allowed is one value, or one a problem: {max(problems)} or more"
        for key, problems, given in parts
        for name, value in given.items()
        if isinstance(value, list) and len(value) < max(problems)
    ]


def method_rows():
    """Every method that the configuration names, with its options, and where it does."""
    for name, row in config["experiment4"]["methods"].items():
        options = {k: v for k, v in row.items() if k not in ("method", "replicates", "data_sets")}
        for problem in config["experiment4"]["problems"]:
            yield f"experiment4.methods.{name}", row["method"], on_problem(options, problem)
    for name, row in config["experiment3"]["methods"].items():
        options = {k: v for k, v in row.items() if k not in ("method", "grid")}
        for cell in row.get("grid", [{}]):
            yield f"experiment3.methods.{name}", row["method"], options | cell
    tuning = config["experiment5"]["tuning"]
    for name, row in [("judge", tuning["judge"]), *tuning["methods"].items()]:
        options = row.get("options", {})
        for final in ({}, row.get("final", {})):
            yield f"experiment5.tuning.{name}", row["method"], options | final


def wrong_options(schema):
    """Methods that there are not, and options that theirs do not have, a line each."""
    found = []
    methods = schema["$defs"]["options"]
    for key, method, options in method_rows():
        if method not in methods:
            found.append(f"{key}.method: given {method!r}; allowed is one of {sorted(methods)}")
        else:
            named = {"$ref": f"#/$defs/options/{method}", "$defs": schema["$defs"]}
            found += wrong(named, options, key)
    return found


def refuse(found):
    """Stop before any job starts, with all that is wrong."""
    if found:
        lines = "\n  ".join(dict.fromkeys(found))
        raise WorkflowError(f"The configuration is refused:\n  {lines}")


def check_configuration(path):
    """Refuse a configuration that the schema does not allow; each check needs what those before it allow."""
    schema = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    refuse(wrong(schema, config) or short_lists() or wrong_options(schema))


def in_order(part):
    """The same with the keys of every mapping in alphabetical order."""
    if isinstance(part, dict):
        return {key: in_order(part[key]) for key in sorted(part)}
    return [in_order(item) for item in part] if isinstance(part, list) else part


check_configuration("workflow/schemas/config.schema.yaml")
# Options are columns of result files: their order must not depend on which file or argument set a key first.
config.update(in_order({key: config.pop(key) for key in sorted(config)}))

STAMP = Path("results", config["scale"], "schema.json")


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
            f"{STAMP.parent} was written under another schema of results: {STAMP} says version {found}, this "
            f"tree reads and writes version {RESULTS_SCHEMA}. Move the folder away, or delete it and "
            f"figures/{config['scale']}: nothing in it can be used."
        )


check_schema()

LOCK = Path(".snakemake", "run.lock")


def lock_folder():
    """Refuse to run where another run is at work.

    Snakemake's own lock (switched off in profiles/default) is a file, which a killed run leaves behind. This one
    belongs to the open file, so it ends with the last process that has it open: the run, or the last of its jobs,
    which inherit it and may outlive a run that was killed alone.
    """
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT)  # stays open until this process ends
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 100).decode().strip() or "unknown"
        raise WorkflowError(
            f"Another run is at work in this folder (process {holder}, or jobs that it left behind): wait until it "
            "has ended, or end it."
        ) from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    shell._process_args["pass_fds"] = (lock,)


onstart:
    lock_folder()
    if not STAMP.exists():
        STAMP.parent.mkdir(parents=True, exist_ok=True)
        partial = STAMP.with_suffix(".partial")
        partial.write_text(json.dumps({"version": RESULTS_SCHEMA}) + "\n", encoding="utf-8")
        partial.replace(STAMP)

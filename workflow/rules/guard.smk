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


def method_rows():
    """Every method that the configuration names, with its options, and where it does."""
    for name, row in config["experiment4"]["methods"].items():
        options = {k: v for k, v in row.items() if k not in ("method", "replicates", "data_sets")}
        for problem in config["experiment4"]["problems"]:
            # a list that is too short stays a list, which no option may be
            here = {
                k: v[problem - 1] if isinstance(v, list) and len(v) >= problem else v
                for k, v in options.items()
            }
            yield f"experiment4.methods.{name}", row["method"], here
    for name, row in config["experiment3"]["methods"].items():
        options = {k: v for k, v in row.items() if k not in ("method", "grid")}
        for cell in row.get("grid", [{}]):
            yield f"experiment3.methods.{name}", row["method"], options | cell
    tuning = config["experiment5"]["tuning"]
    for name, row in [("judge", tuning["judge"]), *tuning["methods"].items()]:
        options = row.get("options", {})
        for final in ({}, row.get("final", {})):
            yield f"experiment5.tuning.{name}", row["method"], options | final


def check_configuration(path):
    """Refuse the configuration, with all that is wrong in it, before any job starts."""
    schema = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    found = wrong(schema, config)
    if not found:
        methods = schema["$defs"]["options"]
        for key, method, options in method_rows():
            if method not in methods:
                found.append(f"{key}.method: given {method!r}; allowed is one of {sorted(methods)}")
            else:
                named = {"$ref": f"#/$defs/options/{method}", "$defs": schema["$defs"]}
                found += wrong(named, options, key)
    if found:
        lines = "\n  ".join(dict.fromkeys(found))
        raise WorkflowError(f"The configuration is refused:\n  {lines}")


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

"""Measures and estimates of one part of a study, or of all its parts together."""

import tempfile
from importlib import import_module
from pathlib import Path

from begin import begin

results = begin(snakemake)

import pandas as pd

from recheck.files import digest_path, read_csv, write_csv
from recheck.measures import estimate
from recheck.published import read_published

given, made = snakemake.input, snakemake.output


def view(files, root, folder):
    """A folder with links to these files of another and to their digests: what else is there may be of an older run."""
    for file in map(Path, files):
        for path in (file, digest_path(file)):
            if path.is_relative_to(root) and path.exists():
                place = folder / path.relative_to(root)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(path.resolve())
    return folder


if snakemake.rule == "measure":
    study, part = snakemake.wildcards.study, snakemake.wildcards.part
    measured = import_module(f"studies.{study}.measures").PARTS[part]
    with tempfile.TemporaryDirectory() as folder:
        seen = view(given, results / study, Path(folder))
        found = measured(seen, Path("data/published", study), Path("data/reference", study))
    write_csv(made.measures, found)
    regions = read_published(Path("data/published", study)).regions
    write_csv(made.estimates, estimate(found, regions))
else:
    for name in ("measures", "estimates"):
        parts = [read_csv(path, dtype=str, keep_default_na=False) for path in given[name]]
        write_csv(made[name], pd.concat(parts))

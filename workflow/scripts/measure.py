"""Measures and estimates of one part of a study, or of all its parts together."""

from importlib import import_module
from pathlib import Path

from begin import begin

results = begin(snakemake)

import pandas as pd

from recheck.files import read_csv, write_csv
from recheck.measures import estimate

given, made = snakemake.input, snakemake.output
if snakemake.rule == "measure":
    study, part = snakemake.wildcards.study, snakemake.wildcards.part
    found = import_module(f"studies.{study}.measures").PARTS[part](
        results / study, Path("data/published", study), Path("data/reference", study)
    )
    write_csv(made.measures, found)
    write_csv(made.estimates, estimate(found))
else:
    for name in ("measures", "estimates"):
        parts = [read_csv(path, dtype=str, keep_default_na=False) for path in given[name]]
        write_csv(made[name], pd.concat(parts))

"""Measures and estimates of one part of a study, or of all its parts together."""

from importlib import import_module
from pathlib import Path

import pandas as pd

from begin import begin
from recheck.judge.measures import estimate
from recheck.judge.published import read_published
from recheck.record.files import read_csv, write_csv
from studies.common.measuring import Rows, measured
from studies.common.rows import TEXT

results = begin(snakemake)
given, made = snakemake.input, snakemake.output
if snakemake.rule == "measure":
    study, part = snakemake.wildcards.study, snakemake.wildcards.part
    published = Path("data/published", study)
    experiments = snakemake.params.experiments
    rows = Rows(results / study, published, Path("data/reference", study), experiments)
    found = measured(import_module(f"studies.{study}.measures.{part}"), rows)
    write_csv(made.measures, found)
    write_csv(made.estimates, estimate(found, read_published(published).regions))
else:
    for name in ("measures", "estimates"):
        parts = [read_csv(path, **TEXT) for path in given[name]]
        write_csv(made[name], pd.concat(parts))

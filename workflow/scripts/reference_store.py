"""Put a complete reference in the place of the one that is kept with the repository."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from gpcmc.experiments.reference import EVIDENCE, TRUTHS, save_reference
from gpcmc.report import provenance, write_provenance

given, folder = snakemake.params, Path(snakemake.params.folder)
evidence = pd.concat([pd.read_csv(path) for path in snakemake.input.rows], ignore_index=True)
arrays = {}
for path in snakemake.input.probabilities:
    with np.load(path) as stored:
        arrays |= dict(stored)
if (folder / EVIDENCE).exists():
    key = ["problem", "set"]
    known = pd.MultiIndex.from_frame(pd.read_csv(folder / EVIDENCE)[key])
    lost = known.difference(pd.MultiIndex.from_frame(evidence[key])).tolist()
    if lost:
        raise SystemExit(
            f"{folder} has cells (problem, set) that this scale does not configure, and would lose "
            f"them: {lost}; use another scale"
        )
save_reference(folder, evidence, arrays)
shutil.copyfile(snakemake.input.truths, folder / TRUTHS)
record = provenance(
    ".", given.config, snakemake.input.registry, "data/raw", snakemake.input.package
)
write_provenance(record, folder / "provenance.json")
shutil.copyfile(folder / "provenance.json", snakemake.output[0])

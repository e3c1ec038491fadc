"""What each defect of the toolbox's Monte Carlo inference does, on one problem with one sampler."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import pandas as pd

from gpcmc.experiments.defects import defects
from gpcmc.experiments.pieces import Pieces

given = snakemake.params
pieces = Pieces(given.pieces, ["gpcmc.experiments.defects"], [given.root, given.settings])
rows, timing, _ = defects(
    snakemake.wildcards.case,
    snakemake.wildcards.sampler,
    root=given.root,
    pieces=pieces,
    **given.settings,
)
pd.DataFrame(rows).to_csv(snakemake.output.rows, index=False)
pd.DataFrame(timing).to_csv(snakemake.output.timing, index=False)
pieces.finish()

"""One problem of Experiment 2."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import numpy as np
import pandas as pd

from gpcmc.experiments.orthant_accuracy import experiment2
from gpcmc.experiments.pieces import Pieces

given = snakemake.params
pieces = Pieces(
    given.pieces,
    ["gpcmc.experiments.orthant_accuracy"],
    [given.root, given.grid, given.options],
)
rows, timing, arrays = experiment2(
    int(snakemake.wildcards.problem),
    root=given.root,
    grid=given.grid,
    pieces=pieces,
    **given.options,
)
pd.DataFrame(rows).to_csv(snakemake.output.rows, index=False)
pd.DataFrame(timing).to_csv(snakemake.output.timing, index=False)
np.savez(snakemake.output.truth, **arrays)
pieces.finish()

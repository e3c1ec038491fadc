"""One method of Experiment 3."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import pandas as pd

from gpcmc.experiments.pieces import Pieces
from gpcmc.experiments.tradeoff import tradeoff
from gpcmc.inference import METHODS

given = snakemake.params
pieces = Pieces(
    given.pieces,
    ["gpcmc.experiments.tradeoff", METHODS[given.method["method"]].__module__],
    [given.root, given.method],
)
rows, timing, _ = tradeoff(
    snakemake.wildcards.method, root=given.root, pieces=pieces, **given.method
)
pd.DataFrame(rows).to_csv(snakemake.output.rows, index=False)
pd.DataFrame(timing).to_csv(snakemake.output.timing, index=False)
pieces.finish()

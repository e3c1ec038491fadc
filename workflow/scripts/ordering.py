"""The sampler on patterns in three orders, with both counts."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import pandas as pd

from gpcmc.experiments.ordering import ordering
from gpcmc.experiments.pieces import Pieces

given = snakemake.params
pieces = Pieces(given.pieces, snakemake.input, [given.root, given.settings])
rows, _, _ = ordering(root=given.root, pieces=pieces, **given.settings)
pd.DataFrame(rows).to_csv(snakemake.output[0], index=False)
pieces.discard()

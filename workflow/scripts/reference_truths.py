"""The closed forms of Experiments 1 to 3 against a sampler."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import pandas as pd

from gpcmc.experiments.pieces import Pieces
from gpcmc.experiments.reference import certify_truths

given = snakemake.params
pieces = Pieces(given.pieces, ["gpcmc.experiments.reference"], given.root)
rows = certify_truths(root=given.root, pieces=pieces)
pd.DataFrame(rows).to_csv(snakemake.output[0], index=False)
pieces.finish()

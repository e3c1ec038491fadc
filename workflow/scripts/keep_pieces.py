"""Store the finished pieces of a run with the repository."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.report.kept import keep_pieces, summary_of_pieces

print(summary_of_pieces(keep_pieces(snakemake.params.pieces, snakemake.params.store), "kept"))

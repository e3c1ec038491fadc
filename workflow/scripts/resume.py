"""Put stored pieces back where the jobs look for them."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.report.kept import resume, summary_of_pieces

print(summary_of_pieces(resume(snakemake.params.store, snakemake.params.pieces), "put back"))

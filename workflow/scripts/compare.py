"""Set a run beside the one that is kept with the repository."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.report.kept import compare, summary_of_comparison

frame = compare(Path(snakemake.input.summary).parent, snakemake.params.store)
frame.to_csv(snakemake.output[0], index=False)
print(summary_of_comparison(frame))

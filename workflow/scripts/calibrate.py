"""Find the counts that give the rows of Experiment 4 equal CPU seconds."""

from begin import begin
from recheck.record.files import read_arrays, write_text
from studies.atiya2021.calibration import calibrate_all
from studies.atiya2021.config import check
from studies.atiya2021.problems import Problem

begin(snakemake)
config = check(snakemake.config)
patterns = {k: read_arrays(path) for k, path in enumerate(snakemake.input.problems, start=1)}
problems = {k: Problem(**arrays) if arrays else None for k, arrays in patterns.items()}
methods = config.atiya2021.experiment4.methods
text = calibrate_all(problems, methods, root=config.seed, alpha=5.0, beta=1.0)
write_text(snakemake.output.counts, text)

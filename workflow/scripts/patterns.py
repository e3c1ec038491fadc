"""Make the patterns of an experiment; none where raw data could not be had."""

from importlib import import_module

from begin import begin
from recheck.record.files import read_json, write_arrays

begin(snakemake)
given, path = snakemake.params, snakemake.output[0]
available = all(read_json(status)["available"] for status in snakemake.input.raw)
module = import_module(f"studies.{given.study}.patterns")
found = {}
if available:
    found = module.patterns(
        snakemake.wildcards.data, seed=given.seed, standardise=given.standardise
    )
write_arrays(path, found)

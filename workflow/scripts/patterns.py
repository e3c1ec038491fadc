"""Make patterns of a study; none where raw data could not be had."""

from importlib import import_module

from begin import begin
from recheck.record.files import read_json, write_arrays

begin(snakemake)
given = snakemake.params
module = import_module(f"studies.{given.study}.patterns")
for name, path in zip(given.names, snakemake.output, strict=True):
    available = all(read_json(status)["available"] for status in given.needs[name])
    found = {}
    if available:
        short = name.rpartition("/")[2]
        found = module.patterns(short, seed=given.seed, standardise=given.standardise)
    write_arrays(path, found)

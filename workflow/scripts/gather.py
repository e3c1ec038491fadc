"""Put the blocks of an experiment together, in the order of its plan."""

from begin import begin
from studies.common.rows import gather, read_table, write_table

begin(snakemake)
tables = [read_table(path.removesuffix(".csv")) for path in snakemake.input]
write_table(snakemake.output.rows.removesuffix(".csv"), gather(tables, snakemake.params.order))

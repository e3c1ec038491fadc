"""Write the rows of some experiments as tables, where they are not there yet."""

from begin import begin
from studies.common.measuring import write_tables

results = begin(snakemake)
given = snakemake.params
write_tables(results / given.study, given.files, given.order)

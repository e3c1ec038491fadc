"""The paper as a web page."""

from pathlib import Path

from begin import begin
from recheck.paper.unfold import Sources
from recheck.paper.webpage import write_webpage
from recheck.record.files import read_json

results = begin(snakemake)
given = snakemake.input
files = (given.main, given.captions, given.origins, results / "paper")
write_webpage(
    Sources(*map(Path, files)),
    read_json(given.numbers),
    Path(given.bibliography),
    snakemake.output.page,
    beside=snakemake.params.beside,
)

"""The look-ups of the text: what each prints, where each comes from, and the captions that the layouts give."""

import shlex
from pathlib import Path

from begin import begin, kept_results
from recheck.paper.lookups import Facts, collect, uses, write_origins, write_values
from recheck.paper.records import origins, records
from recheck.paper.text import captions, facts_of, study_of
from recheck.record.files import read_json, write_csv, write_json, write_text

#: What names of files begin with that are under version control, and from the root.
TRACKED = ("config/", "data/published/", "data/reference/", "paper/", "src/", "workflow/")
ROOTS = ("data/", "src/", "results/")


def command(key):
    """What prints a number with its rows, and runs these again."""
    return f"make number ID={shlex.quote(key)}"


results = begin(snakemake)
given, made = snakemake.params, snakemake.output
studies = {
    name: study_of(
        results / name,
        Path("data/published", name),
        kept_results(name),
        Path("src/studies", name),
        ROOTS,
    )
    for name in given.studies
}
write_text(made.captions, captions({name: one.layout for name, one in studies.items()}))
record = read_json(snakemake.input.provenance) | {"tracked": TRACKED}
facts = {"run": Facts(record, snakemake.input.provenance), **facts_of(studies, given.numbers)}
found = collect(uses([*snakemake.input.text, made.captions]), studies, facts, given.numbers)
write_values(found, made.values)
write_origins(found, studies, record, results, made.origins)
write_csv(made.table, origins(found, command))
write_json(
    made.numbers, records(found, studies, record, results.as_posix(), given.numbers, command)
)

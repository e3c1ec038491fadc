"""The look-ups of the text: what each prints, where each comes from, and the captions that the layouts give."""

from pathlib import Path

from begin import begin, kept_results
from recheck.files import read_json, write_csv, write_json, write_text
from recheck.lookups import Facts, collect, uses, write_origins, write_values
from recheck.numbers import origins, records
from recheck.text import captions, facts_of, study_of

results = begin(snakemake)
given, made = snakemake.params, snakemake.output
studies = {
    name: study_of(name, results, kept_results(name), Path("src/studies", name))
    for name in given.studies
}
write_text(made.captions, captions({name: one.layout for name, one in studies.items()}))
record = read_json(snakemake.input.provenance)
facts = {"run": Facts(record, snakemake.input.provenance), **facts_of(studies, given.numbers)}
found = collect(uses([*snakemake.input.text, made.captions]), studies, facts, given.numbers)
write_values(found, made.values)
write_origins(found, studies, record, results, made.origins)
write_csv(made.table, origins(found))
write_json(made.numbers, records(found, studies, record, results.as_posix(), given.numbers))

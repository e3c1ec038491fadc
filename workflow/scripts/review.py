"""The reviewer's page, the CODECHECK manifest and the RO-Crate."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import json
from pathlib import Path

from gpcmc.audit import ResultFiles, read_audit
from gpcmc.report import claim_items, items, write_codecheck, write_crate, write_review

given, out = snakemake.input, snakemake.output
record = json.loads(Path(given.provenance).read_text())
scale, files = snakemake.wildcards.scale, ResultFiles.of(dict(given.items()))
found = items(scale, files, snakemake.params.tables, snakemake.params.figures)
found += claim_items(scale, files, read_audit(given.claims))
write_review(found, read_audit(given.audit), record, given.template, out.page)
write_codecheck(found, next(iter(given.get("pdf", [])), None), record, out.codecheck)
inside = [file for file in given.files if file.startswith("results/")]
write_crate(found, [*inside, out.page, out.codecheck], record, out.crate)

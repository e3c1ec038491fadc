"""One row for every published cell, one for every column, and how well all of them agree."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.audit import (
    ResultFiles,
    agreement,
    audit,
    explain,
    read_claims,
    read_explanations,
    read_registry,
    write_audit,
    write_rows,
)
from gpcmc.audit.compare import column_of

given, made = snakemake.input, snakemake.output
registry = read_registry(Path(given.published[0]).parent)
columns = registry.apply(column_of, axis=1)
claims = [claim.id for claim in read_claims(given.claims)]
explanations = read_explanations(given.explanations, {*registry["id"], *columns, *claims})
found = audit(registry, ResultFiles.of(dict(given.items())))
write_audit(explain(found.cells, explanations), registry, made.cells)
write_rows(explain(found.columns, explanations), made.columns)
write_rows(agreement(found.compared), made.agreement)

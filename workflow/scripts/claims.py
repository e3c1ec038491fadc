"""One row for every statement of the paper."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.audit import (
    ResultFiles,
    explain,
    judge_claims,
    read_claims,
    read_explanations,
    read_registry,
    write_rows,
)
from gpcmc.audit.compare import column_of

given = snakemake.input
registry = read_registry(Path(given.published[0]).parent)
claims = read_claims(given.claims)
known = {*registry["id"], *registry.apply(column_of, axis=1), *(claim.id for claim in claims)}
judged = judge_claims(claims, registry, ResultFiles.of(dict(given.items())))
write_rows(explain(judged, read_explanations(given.explanations, known)), snakemake.output[0])

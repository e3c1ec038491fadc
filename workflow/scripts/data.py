"""Bring raw files to data/raw, or say why they cannot be had; then assert the facts of all of them."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from begin import begin
from recheck.record.files import write_csv, write_json, write_text
from studies.common import data
from studies.common.start import content_of

begin(snakemake)
given, made = snakemake.params, snakemake.output
raw, registry = Path("data/raw"), data.read_registry(snakemake.input.registry)


def brought(entry):
    """What became of a file, and why it cannot be had."""
    try:
        data.fetch(entry, raw, root=Path.cwd(), **given.data)
    except data.DataUnavailableError as error:
        return error
    return None


with ThreadPoolExecutor(4) as pool:
    errors = list(pool.map(brought, registry))
for error in filter(None, errors):
    print(error, file=sys.stderr)
if given.missing_data == "fail" and any(errors):
    raise next(filter(None, errors))
for entry, error, path in zip(registry, errors, made.status, strict=True):
    instructions = f"{os.path.relpath(error.target)} (sha256 {entry.sha256})" if error else ""
    status = {"file": entry.file, "sha256": entry.sha256, "available": error is None}
    status |= {"instructions": instructions, "found": content_of(raw / entry.file)}
    write_json(path, status | {"asked": given.asked.get(entry.file)})
table = data.check(raw, registry)
write_csv(made.table, table)
write_text(made.page, data.to_html(table))
data.require(table)

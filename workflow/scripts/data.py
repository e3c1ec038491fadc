"""Bring one raw file to data/raw, or say why it cannot be had; or assert the facts of all of them."""

import os
import sys
from pathlib import Path

from begin import begin
from recheck.record.files import write_csv, write_json, write_text
from studies.common import data

begin(snakemake)
given, made = snakemake.params, snakemake.output
raw, registry = Path("data/raw"), data.read_registry(snakemake.input.registry)
if snakemake.rule == "fetch":
    entry = next(entry for entry in registry if entry.file == snakemake.wildcards.file)
    instructions = ""
    try:
        data.fetch(entry, raw, root=Path.cwd(), **given.data)
    except data.DataUnavailableError as error:
        print(error, file=sys.stderr)
        if given.missing_data == "fail":
            raise
        instructions = f"{os.path.relpath(error.target)} (sha256 {entry.sha256})"
    status = {"file": entry.file, "sha256": entry.sha256}
    status |= {"available": not instructions, "instructions": instructions}
    write_json(made.status, status)
else:
    table = data.check(raw, registry)
    write_csv(made.table, table)
    write_text(made.page, data.to_html(table))
    data.require(table)

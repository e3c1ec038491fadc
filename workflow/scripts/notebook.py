"""Execute the notebook on the results of this scale."""

import nbformat
from nbclient import NotebookClient

from begin import begin

results = begin(snakemake)
notebook = nbformat.read(snakemake.input.notebook, as_version=4)
scale, replaced = f'scale = "{results.name}"', 0
for cell in notebook.cells:
    if "parameters" in cell.metadata.get("tags", []):
        lines = cell.source.splitlines()
        replaced += sum(line.startswith("scale = ") for line in lines)
        cell.source = "\n".join(scale if line.startswith("scale = ") else line for line in lines)
if replaced != 1:
    raise SystemExit(
        f"{snakemake.input.notebook}: one line of the cells with the tag 'parameters' must set `scale`; {replaced} do"
    )
# no clock is recorded: the same results give the same bytes
NotebookClient(notebook, timeout=600, record_timing=False).execute()
nbformat.write(notebook, snakemake.output[0])

"""Execution of the notebook on the results of a run."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

__all__ = ["execute_notebook"]


def execute_notebook(
    source: str | Path, target: str | Path, *, scale: str, root: str | Path
) -> None:
    """Execute a notebook and write it with its outputs.

    No clock is recorded, so the same results give the same bytes.

    Parameters
    ----------
    source, target : path
        Notebooks. The source has a cell with the tag ``parameters``, in which a line sets `scale`.
    scale : str
        Put in the place of the scale that the notebook names.
    root : path
        Folder in which it is executed.

    Raises
    ------
    ValueError
        If the notebook has no cell for parameters, or none that sets `scale`.
    nbclient.exceptions.CellExecutionError
        If a cell fails, an assertion among them.
    """
    notebook = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    replaced = 0
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", []):
            lines = cell.source.splitlines()
            replaced += sum(line.startswith("scale = ") for line in lines)
            cell.source = "\n".join(
                f'scale = "{scale}"' if line.startswith("scale = ") else line for line in lines
            )
    if replaced != 1:
        raise ValueError(
            f"{source}: one line of the cells with the tag 'parameters' must set `scale`; {replaced} do"
        )
    client = NotebookClient(
        notebook, timeout=600, record_timing=False, resources={"metadata": {"path": str(root)}}
    )
    client.execute()
    nbformat.write(notebook, target)  # type: ignore[no-untyped-call]

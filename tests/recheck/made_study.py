"""Small studies for the tests of the judge: published cells and measures from a few lines."""

import numpy as np

from recheck.judge.measures import as_measures
from recheck.judge.published import CELLS, read_published


def published(folder, cells, **files):
    """A folder of published values, read. `cells`: mappings with an id, printed and what is not the default."""
    default = {
        "table": "1",
        "bracket": "",
        "bracket_kind": "",
        "scale": "log",
        "units": "1",
        "runs": "1",
        "section": "1",
    }
    names = [*CELLS, "rounded"] if any("rounded" in cell for cell in cells) else CELLS
    lines = [",".join(names)]
    for cell in cells:
        row = {**default, "column": cell["id"].rsplit("/", 1)[0], **cell}
        lines.append(",".join(str(row[name]) for name in names))
    folder.mkdir(exist_ok=True)
    (folder / "cells.csv").write_text("\n".join(lines) + "\n")
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return read_published(folder)


def rows(name, values, reading="", **more):
    """Rows of measures: `values` has shape (units, runs)."""
    return [
        {"id": name, "reading": reading, "unit": f"data{u}", "run": r, "value": v, "scale": "log"}
        | {"source": f"raw.csv:{10 * u + r + 2}"}
        | more
        for u, runs in enumerate(np.atleast_2d(values))
        for r, v in enumerate(runs)
    ]


def measures(*parts):
    return as_measures([row for part in parts for row in part])

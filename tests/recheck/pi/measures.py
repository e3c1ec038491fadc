"""Runs and measures of the study: Monte Carlo estimates of pi."""

import numpy as np
import pandas as pd

from recheck.judge.measures import as_measures
from recheck.record.files import read_csv, write_csv

SIDES = {"M100": 10, "M1024": 32, "M10000": 100}


def run(folder):
    """Write raw.csv: two hundred estimates for each number of points and each way to draw them."""
    rows = []
    for size, side in SIDES.items():
        i, j = divmod(np.arange(side**2), side)
        for points in ("independent", "stratified"):
            for series in range(200):
                seed = f"1/{size}/{points}/{series}"
                x, y = np.random.default_rng(list(seed.encode())).random((2, side**2))
                if points == "stratified":
                    x, y = (i + x) / side, (j + y) / side
                rows.append((size, points, series, 4 * np.mean(x**2 + y**2 < 1), seed))
    frame = pd.DataFrame(rows, columns=["size", "points", "series", "estimate", "seed"])
    write_csv(folder / "raw.csv", frame)


def measure(folder):
    """Measures: the error of each estimate, and its sign for the claim."""
    raw = read_csv(folder / "raw.csv")
    common = {"unit": raw["size"] + "/series" + raw["series"].astype(str), "run": 0, "status": "ok"}
    common |= {"source": [f"raw.csv:{line + 2}" for line in raw.index], "seed": raw["seed"]}
    error = raw["estimate"] - np.pi
    reading = np.where(raw["size"] == "M1024", "points=" + raw["points"], "")
    cells = pd.DataFrame({"id": "table1/" + raw["size"], "reading": reading, **common})
    cells = cells.assign(value=error.abs(), scale="log")
    claim = pd.DataFrame({"id": "claim/bias", "value": error, "scale": "linear", **common})
    said = raw["points"] == "independent"  # what the paper says of its other rows
    return as_measures(
        pd.concat([cells[said | (reading != "")], claim[said & (raw["size"] == "M10000")]])
    )

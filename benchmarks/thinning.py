"""What rows of the published scale buy: which could go without moving the power of a verdict by more than a tenth.

Variance components of the kept measures say it. A number is a mean over units (data sets, folds) of means over runs.
Its variance is that between units over their number, and that within units over the number of all runs. Power rests on
the standard error: where it grows by no more than a tenth, so does the difference that a verdict can detect. For each
experiment and method, over all judged numbers that rest on it,

- ``one_run`` is the largest growth if each unit had one run,
- ``fewer_units`` is how many units are at the limit of growth; at most the share 1 - 1/1.21 of them goes.

``seconds_after`` has the better one of the two. No judged number with an error rests on rows with ``ids`` 0, which are
for figures or for claims without a standard error: they are not thinned.

    python benchmarks/thinning.py        # writes benchmarks/thinning.csv
"""

from pathlib import Path

import numpy as np
import pandas as pd

REFERENCE, OUT = Path("data/reference"), Path("benchmarks/thinning.csv")
#: How much a standard error may grow.
LIMIT = 1.1


def components(frame: pd.DataFrame) -> tuple[float, float, int, float]:
    """Variance between and within units, the number of units, and the mean of runs over units as a harmonic one."""
    units = frame.groupby("unit")["value"].agg(["mean", "var", "size"])
    several = units["size"] > 1
    weights = units["size"] - 1
    within = (
        float((units["var"] * weights)[several].sum() / weights.sum()) if several.any() else 0.0
    )
    share = float((1 / units["size"]).mean())
    between = float(units["mean"].var()) - within * share if len(units) > 1 else 0.0
    return max(between, 0.0), within, len(units), share


def growth(frame: pd.DataFrame) -> tuple[float, int]:
    """How much the standard error grows with one run a unit; and the units."""
    between, within, number, share = components(frame)
    now, then = between + within * share, between + within
    return (float(np.sqrt(then / now)) if now > 0 else 1.0), number


def method_of(experiment: str, row: str) -> str:
    """The part of a row's name that says which method runs, where the experiment has several."""
    parts = row.split("/")
    place = {"experiment3": 0, "experiment4": 1, "posterior_chains": 1, "scaling": -1}.get(
        experiment
    )
    return "" if place is None else parts[place]


def lines(source: str) -> list[tuple[str, int]]:
    """The files and lines that a measure rests on."""
    found = []
    for place in source.split("; "):
        name, _, spans = place.partition(".csv:")
        for span in filter(None, spans.split(",")):
            first, _, last = span.partition("-")
            found += [(name, line) for line in range(int(first), int(last or first) + 1)]
    return found


def of_study(folder: Path) -> pd.DataFrame:
    """A line an experiment and method."""
    timing = pd.read_csv(folder / "timing.csv", dtype=str, keep_default_na=False)
    spent = timing.filter(regex="cpu_seconds$").replace("", "0").astype(float).sum(axis=1)
    timing["seconds"] = spent
    timing["method"] = [
        method_of(*pair) for pair in zip(timing["experiment"], timing["row"], strict=True)
    ]
    judged = pd.read_csv(folder / "verdicts.csv")
    judged = judged[judged["detectable"].notna()]["id"]
    measures = pd.read_csv(folder / "measures.csv.gz").fillna({"reading": "", "unit": ""})
    measures = measures[measures["id"].isin(judged) & (measures["status"] == "ok")]
    rows = {
        name: pd.read_csv(path, usecols=["row"], dtype=str)["row"].tolist()
        for path in folder.glob("*.csv")
        if (name := path.stem) in set(timing["experiment"])
    }
    found: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for _, own in measures.groupby(["id", "reading"]):
        if own["value"].nunique() < 2:
            continue
        rests = {
            (name, method_of(name, rows[name][line - 2]))
            for source in own["source"]
            for name, line in lines(str(source))
            if name in rows
        }
        what = growth(own)
        for key in rests:
            found.setdefault(key, []).append(what)
    lines_out = []
    for (experiment, method), own in timing.groupby(["experiment", "method"]):
        here = found.get((experiment, method), [])
        runs = max((one for one, _ in here), default=np.nan)
        units = min((number for _, number in here), default=0)
        fewer = int(np.ceil(units / LIMIT**2)) if units > 1 else units
        share = fewer / units if units else 1.0
        several = own["row"].str.contains(r"/(?:replicate|run)[1-9]\d*$", regex=True)
        extra = own.loc[several, "seconds"].sum() if here and runs <= LIMIT else 0.0
        left = own["seconds"].sum() - extra
        # one of the two, and not both, uses up the tenth
        after = min(left, own["seconds"].sum() * share)
        lines_out.append(
            {
                "study": folder.name,
                "experiment": experiment,
                "method": method,
                "rows": own["row"].nunique(),
                "seconds": round(own["seconds"].sum(), 1),
                "ids": len(here),
                "units": units,
                "one_run": round(runs, 3),
                "fewer_units": fewer,
                "seconds_after": round(after, 1),
            }
        )
    return pd.DataFrame(lines_out)


def main() -> None:
    """Write the table, and print what it comes to."""
    folders = sorted(path.parent for path in REFERENCE.glob("*/timing.csv"))
    table = pd.concat([of_study(folder) for folder in folders])
    table = table.sort_values("seconds", ascending=False, kind="stable")
    table.to_csv(OUT, index=False, lineterminator="\n")
    hours = table[["seconds", "seconds_after"]].sum() / 3600
    print(table.head(30).to_string(index=False))
    print(f"{hours['seconds']:.1f} CPU hours, {hours['seconds_after']:.1f} after thinning")


if __name__ == "__main__":
    main()

"""Estimates beside the authors' replicates (the cells), how much and at what cost they vary, and claims on log P."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, as_measures, join_sources
from recheck.judge.published import read_text
from studies.cao2024.experiments.reference import LIBRARY, RESAMPLED, TWISTED
from studies.cao2024.problems import SCENARIOS
from studies.common.measuring import Row, Rows, exact

#: Cells and claims of this part.
IDS = ("log-p/*", "claim/*")
#: The authors' settings that ours are set beside: neighbours, and draws of an estimate, by method and dimension.
NEIGHBOURS = 30
DRAWS = {
    ("vecchia", 900): 10_000,
    ("vecchia", 6400): 100_000,
    ("minimax-tilting", 900): 10_000,
    ("separation", 900): 90_000,
    ("separation", 6400): 100_000,
}
_REPLICATES = "data/published/cao2024/replicates.csv"
#: Statuses of what does not count.
FEWER = "fewer draws, neighbours or dimensions than the paper's"
TOO_LONG = "five hours for thirty estimates"


def measure(given: Rows) -> pd.DataFrame:
    """All measures: a unit of a cell is an estimate."""
    found: list[Row] = []
    for frame, seconds in _timed(given, "spread"):
        found += _replicates(frame, seconds)
    reference = [*_timed(given, "reference")]
    by = {
        method: [pair for pair in reference if pair[0]["method"].iloc[0] == method]
        for method in (LIBRARY, TWISTED, RESAMPLED)
    }
    found += _library(by[LIBRARY])
    for pair in by[TWISTED]:
        found += _twisted(*pair)
    # the claims are judged by the estimate with the most neighbours
    most = max(frame["neighbours"].iloc[0] for frame, _ in by[RESAMPLED])
    for pair in by[RESAMPLED]:
        found += _resampled(*pair, most)
    for scenario in SCENARIOS:
        name = f"log-p/{scenario}-6400/separation"
        found.append({"id": name, "scale": "linear", "value": math.nan, "status": TOO_LONG})
    return as_measures([*found, *_theirs(given)])


def _timed(given: Rows, experiment: str) -> list[tuple[pd.DataFrame, float]]:
    """Return the lines of each row, and the CPU seconds of one estimate."""
    timing = given.timing(experiment).set_index("row")
    # a row that is one estimate has its own seconds
    seconds = timing.reindex(columns=["one_seconds"])["one_seconds"].fillna(timing["cpu_seconds"])
    rows = given.table(experiment).groupby("row", sort=False)
    return [(frame, float(seconds[row])) for row, frame in rows]


def _problem(first: pd.Series) -> str:
    return f"{first['scenario']}-{first['dimension']}"


def _replicates(own: pd.DataFrame, seconds: float) -> list[Row]:
    first = own.iloc[0]
    method, dimension = str(first["method"]), int(first["dimension"])
    whole = (first["size"], first["draws"]) == (dimension, DRAWS[method, dimension])
    whole &= method != "vecchia" or first["neighbours"] == NEIGHBOURS
    name = f"{_problem(first)}/{method}"
    status = {"scale": "linear", "status": OK if whole else FEWER, "seed": first["seed"], "run": 0}
    rows: list[Row] = [
        {
            "id": f"log-p/{name}",
            "unit": f"estimate{line['estimate']}",
            "value": line["value"],
            "source": line["source"],
            **status,
        }
        for line in own.to_dict("records")
    ]
    return rows + _spread(own["value"], seconds, name, join_sources(own["source"]), first["seed"])


def _spread(values: pd.Series, seconds: float, name: str, source: str, seed: str) -> list[Row]:
    """The deviation of estimates, the seconds of one, and the squared deviation times these."""
    sd, known = float(values.std(ddof=1)), {"seed": seed, "scale": "log"}
    error, df = deviation_error(values.to_numpy()), len(values) - 1.0
    cost = {"se": 2.0 * sd * error * seconds, "df": df}
    return [
        exact(f"sd/{name}/ours", sd, source, se=error, df=df, **known),
        exact(f"seconds/{name}/ours", seconds, source, **known),
        exact(f"cost/{name}/ours", sd**2 * seconds, source, **cost, **known),
    ]


def deviation_error(values: np.ndarray) -> float:
    """Return the standard error of a standard deviation by the jackknife, of values (n,), n > 2."""
    n, rest = len(values), (values - values.mean()) ** 2
    # without one value the sum of squares loses n / (n - 1) of its own
    without = np.sqrt((rest.sum() - n / (n - 1) * rest) / (n - 2))
    return float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))


def _mean_of(values: np.ndarray) -> tuple[float, float]:
    """Return the logarithm of the mean of estimates, given logarithms (n,), and its standard error."""
    shares = np.exp(values - values.max())
    error = shares.std(ddof=1) / shares.mean() / math.sqrt(len(values))
    return float(values.max() + np.log(shares.mean())), float(error)


def _library(pairs: list[tuple[pd.DataFrame, float]]) -> list[Row]:
    """The public function: its value over several calls, and its stated error in the place of a deviation."""
    found: list[Row] = []
    for scenario in SCENARIOS:
        own = [(f.iloc[0], seconds) for f, seconds in pairs if f["scenario"].iloc[0] == scenario]
        lines = pd.DataFrame([line for line, _ in own])
        first, source = lines.iloc[0], join_sources(lines["source"])
        name, seconds = f"{_problem(first)}/{LIBRARY}", float(np.mean([one for _, one in own]))
        stated = float(np.sqrt((lines["se"] ** 2).mean()))
        value, _ = _mean_of(lines["value"].to_numpy())
        known = {"seed": first["seed"].rpartition("/")[0]}
        error = {"se": stated / math.sqrt(len(lines)), "df": 15.0 * len(lines)}
        small = {} if first["size"] == first["dimension"] else {"status": FEWER}
        claims = (f"mean/{name}", f"claim/reference/{scenario}")
        found += [exact(id, value, source, **error, **known, **small) for id in claims]
        known["scale"] = "log"
        found += [
            exact(f"sd/{name}/ours", stated, source, **known),
            exact(f"seconds/{name}/ours", seconds, source, **known),
            exact(f"cost/{name}/ours", stated**2 * seconds, source, **known),
        ]
    return found


def _twisted(own: pd.DataFrame, seconds: float) -> list[Row]:
    first = own.iloc[0]
    name, source = f"{_problem(first)}/{TWISTED}", first["source"]
    known, stated = {"seed": first["seed"]}, float(first["se"])
    told = ("correction", "correction_rest", "k_hat")
    return [
        exact(f"mean/{name}", first["value"], source, se=stated, df=first["groups"] - 1.0, **known),
        exact(f"sd/{name}/ours", stated, source, scale="log", **known),
        exact(f"seconds/{name}/ours", seconds, source, scale="log", **known),
        exact(f"cost/{name}/ours", stated**2 * seconds, source, scale="log", **known),
        *(exact(f"told/{name}/{one}", first[one], source, **known) for one in told),
    ]


def _resampled(own: pd.DataFrame, seconds: float, most: int) -> list[Row]:
    """Tilting with resampling, which the claims on scenario 1 are judged by."""
    first, values = own.iloc[0], own["value"]
    problem, source = _problem(first), join_sources(own["source"])
    method = f"{RESAMPLED}-{first['neighbours']:.0f}"
    value, error = _mean_of(values.to_numpy())
    known = {"seed": first["seed"], "se": error, "df": len(values) - 1.0}
    small = {} if first["size"] == first["dimension"] else {"status": FEWER}
    ids = [f"mean/{problem}/{method}"]
    if first["neighbours"] == most and first["scenario"] == SCENARIOS[0]:
        ids += ["claim/mean", "claim/neighbours"]
    rows = [exact(id, value, source, **known, **small) for id in ids]
    return rows + _spread(values, seconds, f"{problem}/{method}", source, first["seed"])


def _theirs(given: Rows) -> list[Row]:
    """The same of the authors' replicates."""
    frame = read_text(given.published / "replicates.csv")
    frame["line"] = [f"{_REPLICATES}:{k + 2}" for k in range(len(frame))]
    frame = frame[frame["seconds"] != ""]
    found: list[Row] = []
    for (method, dimension), setting in theirs().items():
        own = frame[
            (frame["method"] == method) & (frame["n"] == dimension) & (frame["value"] == setting)
        ]
        for k, scenario in enumerate(SCENARIOS, start=1):
            some = own[own["scenario"] == str(k)].astype({"probability": float, "seconds": float})
            values, seconds = np.log(some["probability"]), float(some["seconds"].mean())
            name, source = f"{scenario}-{dimension}/{method}", join_sources(some["line"])
            sd, known = float(values.std(ddof=1)), {"scale": "log"}
            error, df = deviation_error(values.to_numpy()), len(values) - 1.0
            found += [
                exact(f"sd/{name}/theirs", sd, source, se=error, df=df, **known),
                exact(f"seconds/{name}/theirs", seconds, source, **known),
                exact(
                    f"cost/{name}/theirs",
                    sd**2 * seconds,
                    source,
                    se=2 * sd * error * seconds,
                    df=df,
                    **known,
                ),
            ]
            value, error = _mean_of(values.to_numpy())
            found.append(exact(f"mean/{name}/theirs", value, source, se=error, df=df))
    return found


def theirs() -> dict[tuple[str, str], str]:
    """Return the authors' setting of each cell, as `replicates.csv` has it, by method and dimension."""
    return {
        (method, str(n)): str(NEIGHBOURS if method == "vecchia" else draws)
        for (method, n), draws in DRAWS.items()
    }

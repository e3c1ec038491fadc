"""Estimates beside the authors' replicates (the cells), how much and at what cost they vary, and claims on log P."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, as_measures, join_sources
from recheck.judge.published import read_text
from studies.cao2024.experiments.reference import FINER, LIBRARY, TWISTED
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
#: Their most accurate values: method, dimension and setting.
_TRUTHS = {
    "theirs": ("benchmark (minimax tilting)", 900, 100_000),
    **{f"theirs-{m}": ("vecchia", 6400, m) for m in (30, 50, 70)},
}
_REPLICATES = "data/published/cao2024/replicates.csv"
#: Degrees of freedom of a stated error of the public function.
_GROUPS = 15.0
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
        for method in (LIBRARY, TWISTED, FINER)
    }
    found += _library(by[LIBRARY])
    for pair in by[TWISTED]:
        found += _twisted(*pair)
    # the claims are judged by the estimate with the most neighbours
    most = max(frame["neighbours"].iloc[0] for frame, _ in by[FINER])
    for pair in by[FINER]:
        found += _finer(*pair, most)
    for scenario in SCENARIOS:
        name = f"log-p/{scenario}-6400/separation"
        found.append({"id": name, "scale": "linear", "value": math.nan, "status": TOO_LONG})
    found += _theirs(given)
    return as_measures([*found, *_apart(found, by[LIBRARY])])


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
    known = {"seed": first["seed"], "status": status["status"]}
    return rows + _spread(own["value"], seconds, name, join_sources(own["source"]), **known)


def _spread(
    values: pd.Series, seconds: float, name: str, source: str, whose: str = "ours", **known: str
) -> list[Row]:
    """The deviation of estimates, the seconds of one, and the squared deviation times these."""
    sd, error, df = float(values.std(ddof=1)), deviation_error(values.to_numpy()), len(values) - 1.0
    return [
        exact(f"sd/{name}/{whose}", sd, source, scale="log", se=error, df=df, **known),
        *_seconds(sd, error, df, seconds, name, source, whose, **known),
    ]


def _seconds(
    sd: float,
    error: float,
    df: float,
    seconds: float,
    name: str,
    source: str,
    whose: str = "ours",
    **known: str,
) -> list[Row]:
    """The seconds of an estimate, and its squared deviation times these."""
    of_cost = {"se": 2.0 * sd * error * seconds, "df": df}
    return [
        exact(f"seconds/{name}/{whose}", seconds, source, scale="log", **known),
        exact(f"cost/{name}/{whose}", sd**2 * seconds, source, scale="log", **of_cost, **known),
    ]


def _stated(sd: float, seconds: float, name: str, source: str, **known: str) -> list[Row]:
    """The same of a method that states its own error."""
    own = exact(f"sd/{name}/ours", sd, source, scale="log", **known)
    return [own, *_seconds(sd, 0.0, math.nan, seconds, name, source, **known)]


def _size(first: pd.Series) -> dict[str, str]:
    """The seed of a row, and whether it is in the paper's dimension."""
    whole = first["size"] == first["dimension"]
    return {"seed": first["seed"], "status": OK if whole else FEWER}


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
        known = _size(first) | {"seed": first["seed"].rpartition("/")[0]}
        error = {"se": stated / math.sqrt(len(lines)), "df": _GROUPS * len(lines)}
        claims = (f"mean/{name}", f"claim/reference/{scenario}")
        found += [exact(id, value, source, **error, **known) for id in claims]
        found += _stated(stated, seconds, name, source, **known)
    return found


def _twisted(own: pd.DataFrame, seconds: float) -> list[Row]:
    first = own.iloc[0]
    name, source, known = f"{_problem(first)}/{TWISTED}", first["source"], _size(first)
    error = {"se": float(first["se"]), "df": first["groups"] - 1.0}
    told = ("correction", "correction_rest", "k_hat")
    return [
        exact(f"mean/{name}", first["value"], source, **error, **known),
        *_stated(error["se"], seconds, name, source, **known),
        *(exact(f"told/{name}/{one}", first[one], source, **known) for one in told),
    ]


def _finer(own: pd.DataFrame, seconds: float, most: int) -> list[Row]:
    """The authors' method with more neighbours, which the claims on scenario 1 are judged by."""
    first, values = own.iloc[0], own["value"]
    problem, source, known = _problem(first), join_sources(own["source"]), _size(first)
    method = f"{FINER}-{first['neighbours']:.0f}"
    value, error = _mean_of(values.to_numpy())
    ids = [f"mean/{problem}/{method}"]
    if first["neighbours"] == most and first["scenario"] == SCENARIOS[0]:
        ids += ["claim/mean", "claim/neighbours"]
    df = len(values) - 1.0
    rows = [exact(id, value, source, se=error, df=df, **known) for id in ids]
    return rows + _spread(values, seconds, f"{problem}/{method}", source, **known)


def _apart(found: list[Row], pairs: list[tuple[pd.DataFrame, float]]) -> list[Row]:
    """The public function's value less the authors' reference, in joint standard errors (``z``), too.

    ``largest-z`` is that of the call that is furthest from the reference: one of several may be all of the difference.
    """
    by_id, apart = {row["id"]: row for row in found}, []
    for scenario in SCENARIOS:
        problem = f"{scenario}-{_TRUTHS['theirs'][1]}"
        ours, theirs = by_id[f"mean/{problem}/{LIBRARY}"], by_id[f"mean/{problem}/theirs"]
        value, se = ours["value"] - theirs["value"], math.hypot(ours["se"], theirs["se"])
        own = [frame for frame, _ in pairs if frame["scenario"].iloc[0] == scenario]
        calls = pd.concat(own, ignore_index=True)
        z = (calls["value"] - theirs["value"]) / np.hypot(calls["se"], theirs["se"])
        source = join_sources([ours["source"], theirs["source"]])
        known = {"seed": ours["seed"], "status": ours["status"]}
        name = f"apart/{problem}/{LIBRARY}"
        apart += [
            exact(name, value, source, se=se, df=math.inf, **known),
            exact(f"{name}/z", value / se, source, **known),
            exact(f"{name}/largest-z", z.loc[z.abs().idxmax()], source, **known),
        ]
    return apart


def _theirs(given: Rows) -> list[Row]:
    """The same of the authors' replicates, and their most accurate values."""
    frame = read_text(given.published / "replicates.csv")
    frame["source"] = [f"{_REPLICATES}:{k + 2}" for k in range(len(frame))]
    frame["log_p"] = np.log(frame["probability"].astype(float))
    found: list[Row] = []

    def some(method: str, dimension: int, setting: int, scenario: str) -> pd.DataFrame:
        key = (method, str(dimension), str(setting), str(SCENARIOS.index(scenario) + 1))
        names = ["method", "n", "value", "scenario"]
        return frame[(frame[names] == list(key)).all(axis=1)]

    for scenario in SCENARIOS:
        for (method, dimension), draws in DRAWS.items():
            setting = NEIGHBOURS if method == "vecchia" else draws
            own = some(method, dimension, setting, scenario)
            name, source = f"{scenario}-{dimension}/{method}", join_sources(own["source"])
            seconds = float(own["seconds"].astype(float).mean())
            found += _spread(own["log_p"], seconds, name, source, whose="theirs")
        for name, key in _TRUTHS.items():
            own = some(*key, scenario)
            value, error = _mean_of(own["log_p"].to_numpy())
            id, known = f"mean/{scenario}-{key[1]}/{name}", {"se": error, "df": len(own) - 1.0}
            found.append(exact(id, value, own["source"], **known))
    return found

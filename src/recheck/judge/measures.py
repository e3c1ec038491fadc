"""Measures: the tidy table that a study hands to the engine, and the estimates that the engine derives from it.

A study writes one row a unit and run; section 2 of ``STUDY.md`` beside this file has the rules.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["id", "reading", "unit", "run", "value", "scale", "status", "source", "seed", "se", "df"]
ESTIMATES = [
    *["id", "reading", "value", "se", "df", "units", "runs", "scale", "status", "source", "seed"]
]
OK = "ok"
#: Statuses of rows whose value is a bound, and of all rows that count.
BOUNDS = ("at least", "at most")
COUNTED = (OK, *BOUNDS)
#: Statuses that are verdicts where no row of an id counts.
UNSEEN = ("not run", "data not available", "not comparable")

_TEXT = ["id", "reading", "unit", "run", "scale", "status", "source", "seed"]
_KEYS = ["id", "reading"]


def as_measures(rows: pd.DataFrame | Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows with some of `COLUMNS` as a measures table, checked: text as ``str``, numbers as ``float``.

    Text that is absent becomes empty (``status`` becomes ``ok``), a number NaN.
    """
    import pandas as pd

    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows), columns=None)
    if strange := sorted(set(frame.columns) - set(COLUMNS)):
        raise ValueError(f"rows: columns {strange} are unknown; known are {COLUMNS}")
    frame = frame.reindex(columns=COLUMNS).reset_index(drop=True)
    for name in COLUMNS:
        if name not in _TEXT:
            frame[name] = frame[name].astype(float)
            continue
        given, blank = frame[name].astype(object), OK if name == "status" else ""
        # a run that was read as 3.0 is run 3
        frame[name] = given.where(given.notna(), blank).map(
            lambda one: f"{one:.0f}" if isinstance(one, float) and one.is_integer() else str(one)
        )
    check(frame)
    return frame


def check(measures: pd.DataFrame) -> None:
    """Refuse measures that cannot be judged; the message names the id and what is wrong."""
    if missing := [name for name in COLUMNS if name not in measures.columns]:
        raise ValueError(f"measures: columns {missing} are missing; needed are {COLUMNS}")
    if not len(measures):
        return
    counted, own = measures["status"].isin(COUNTED), measures["se"].notna()
    value, logs = measures["value"].astype(float), measures["scale"] == "log"
    kinds = measures[counted].assign(own=own).groupby(_KEYS)["own"].transform("nunique")
    several = own & measures.duplicated(_KEYS, keep=False)
    claims = measures["id"].str.startswith("claim/")
    repeated = measures.duplicated([*_KEYS, "unit", "run"], keep=False)
    wrong = {
        "has the status ok and no finite value": counted & ~np.isfinite(value),
        "has a scale other than log or linear": ~measures["scale"].isin(["log", "linear"]),
        "is compared as a ratio and negative": counted & logs & (value < 0),
        "has a negative standard error": own & (measures["se"] < 0),
        "comes twice with one unit and run": repeated,
        "has rows with and without own standard errors": kinds.reindex(measures.index) > 1,
        "has several own standard errors and is no claim": counted & several & ~claims,
    }
    for what, mask in wrong.items():
        if mask.any():
            row = measures[mask].iloc[0]
            raise ValueError(
                f"measures: {row['id']} (reading {row['reading']!r}, unit {row['unit']!r}, run {row['run']!r}, "
                f"value {row['value']}, scale {row['scale']!r}) {what}; {int(mask.sum())} rows do"
            )


def estimate(
    measures: pd.DataFrame, regions: Mapping[str, tuple[float, float]] | None = None
) -> pd.DataFrame:
    """Summarise measures as `ESTIMATES`, a row an (id, reading): the only place where an estimate is computed.

    The value is the mean over units of the mean over a unit's runs. Its standard error is the deviation between units
    over the root of their number. With one unit it is the deviation between runs over the root of their number, and
    says nothing about other units. Rows with their own standard error pass through. Of several, which only a claim has,
    the estimate is the one furthest outside the claim's region (`recheck.judge.published.Published.regions`, by id), or
    the largest where it has none. If no row counts, the value is NaN and the status that of most rows.
    """
    import pandas as pd

    check(measures)
    counted = measures["status"].isin(COUNTED)
    empty = ~counted.groupby([measures[key] for key in _KEYS]).transform("any")
    shown = measures[counted | empty]  # rows that an id rests on, or that say why there are none
    frame = _texts(shown)
    order = pd.MultiIndex.from_frame(measures[_KEYS].drop_duplicates())
    frame = (
        frame.join(_numbers(measures[counted], regions or {}))
        .reindex(order)
        .reset_index()[ESTIMATES]
    )
    return frame.fillna({"units": 0, "runs": 0}).astype({"units": int, "runs": int})


def _texts(shown: pd.DataFrame) -> pd.DataFrame:
    """Scale, status, sources and seed by id and reading; text by text, for there are thousands of small groups."""
    import pandas as pd

    groups: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    names = ["scale", "status", "source", "seed"]
    for *key, scale, status, source, seed in zip(
        *(shown[n] for n in (*_KEYS, *names)), strict=True
    ):
        groups.setdefault((key[0], key[1]), []).append((scale, status, source, seed))
    found = []
    for own in groups.values():
        scales, statuses, sources, seeds = zip(*own, strict=True)
        (status, _), *_ = Counter(statuses).most_common(1)
        # the path that all seeds begin with
        found.append((scales[0], status, join_sources(sources), posixpath.commonpath(set(seeds))))
    index = (
        pd.MultiIndex.from_tuples(groups, names=_KEYS) if groups else shown.set_index(_KEYS).index
    )
    return pd.DataFrame(found, index, names, dtype=str)


def _numbers(good: pd.DataFrame, regions: Mapping[str, tuple[float, float]]) -> pd.DataFrame:
    """Value, standard error and degrees of freedom by id and reading, from rows that count."""
    import pandas as pd

    runs = good.groupby(_KEYS, sort=False)["value"]
    means = good.groupby([*_KEYS, "unit"], sort=False)["value"].mean()
    units = means.groupby(level=[0, 1])
    several = units.size() > 1
    size = units.size().where(several, runs.size())
    errors = units.std().where(several, runs.std()) / np.sqrt(size)
    frame = pd.DataFrame({"value": units.mean(), "se": errors, "df": size - 1.0})
    frame = frame.assign(units=units.size(), runs=runs.size())
    own = good[good["se"].notna()]
    ends = [regions.get(name, (np.nan, np.nan)) for name in own["id"]]
    low, high = np.array(ends, dtype=float).reshape(-1, 2).T
    values, logs = own["value"].to_numpy(dtype=float), (own["scale"] == "log").to_numpy()
    distance = np.where(np.isnan(low), values, outside(values, low, high, logs))
    own = own.assign(outside=distance).sort_values("outside", ascending=False, kind="stable")
    own = own.drop_duplicates(_KEYS).set_index(_KEYS)[["value", "se", "df"]]
    frame.loc[own.index, ["value", "se", "df"]] = own
    return frame


def outside(values: np.ndarray, low: Any, high: Any, logs: Any) -> np.ndarray:
    """How far values lie outside a region, negative inside: a difference, or one of logarithms where `logs` says so."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values, low, high = (
            np.where(logs, np.log(np.maximum(one, 0.0)), one) for one in (values, low, high)
        )
        return np.maximum(low - values, values - high)


def join_sources(sources: Iterable[str]) -> str:
    """Join sources as ``file:17-22,30; other:5``: files in order of appearance, lines sorted and merged.

    A source is ``file``, ``file:line``, ``file:first-last``, or several of these joined by ``"; "``.
    """
    lines: dict[str, list[tuple[int, int]]] = {}
    for part in (part for source in sources for part in source.split("; ") if part):
        found = re.fullmatch(r"(.+):(\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*)", part)
        kept = lines.setdefault(found[1] if found else part, [])
        for piece in found[2].split(",") if found else []:
            first, _, last = piece.partition("-")
            kept.append((int(first), int(last or first)))
    texts = []
    for file, kept in lines.items():
        spans: list[list[int]] = []
        for first, last in sorted(one for one in kept if one[0] <= one[1]):
            if spans and first <= spans[-1][1] + 1:
                spans[-1][1] = max(spans[-1][1], last)
            else:
                spans.append([first, last])
        shown = [f"{a}-{b}" if b > a else f"{a}" for a, b in spans]
        texts.append(f"{file}:{','.join(shown)}" if shown else file)
    return "; ".join(texts)


def levels_of(reading: str) -> dict[str, str]:
    """Levels by choice of a reading such as ``instances=fresh;variance=once``; empty of the empty text.

    Of another text ValueError says what is needed.
    """
    parts = [part.partition("=") for part in reading.split(";") if part]
    if not all(equals for _, equals, _ in parts):
        raise ValueError(f"reading: needed is <choice>=<level>, given was {reading!r}")
    return {choice: level for choice, _, level in parts}


def reading_text(levels: Mapping[str, str]) -> str:
    """The reading with these levels: choices in alphabetical order."""
    return ";".join(f"{choice}={levels[choice]}" for choice in sorted(levels))


def fitting(by_reading: Mapping[str, Any], levels: Mapping[str, str]) -> Any:
    """The entry by reading whose levels are all asked for, with the most of them; None without one."""
    owned = {reading: levels_of(reading) for reading in by_reading}
    fits = [(len(own), reading) for reading, own in owned.items() if own.items() <= levels.items()]
    return by_reading[max(fits)[1]] if fits else None


def pattern(template: str) -> re.Pattern[str]:
    """The regular expression of a template of ids, with fields in braces: ``table1/{N}/{M}``.

    A field is one component or part of a component, and comes once. A component has three at most, with a character
    between them: more would be tried on an id in more ways than there is time for.
    """
    pieces = re.split(r"\{([A-Za-z_]\w*)\}", template)
    names, rest = pieces[1::2], "".join(pieces[::2])
    if len(set(names)) < len(names) or "{" in rest or "}" in rest:
        needed = "needed are fields in braces, each once"
        raise ValueError(f"template: {needed}; given was {template!r}")
    if "}{" in template or any(part.count("{") > 3 for part in template.split("/")):
        needed = (
            "needed are at most three fields between two slashes, with a character between them"
        )
        raise ValueError(f"template: {needed}; given was {template!r}")
    pieces[::2] = map(re.escape, pieces[::2])
    pieces[1::2] = [f"(?P<{name}>[^/]+)" for name in names]
    return re.compile("".join(pieces))


def with_fields(frame: pd.DataFrame, template: str) -> pd.DataFrame:
    """Rows whose ``id`` fits a template (see `pattern`), with one column a field in front."""
    import pandas as pd

    expression = pattern(template)
    matches = {name: expression.fullmatch(name) for name in frame["id"].unique()}
    found = {name: match.groupdict() for name, match in matches.items() if match}
    rows = frame[frame["id"].isin(list(found))]
    values = [found[name] for name in rows["id"]]
    fields = pd.DataFrame(values, index=rows.index, columns=list(expression.groupindex))
    return pd.concat([fields, rows], axis=1)

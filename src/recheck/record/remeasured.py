"""What a run measured beside the kept results: which kept estimates it measured again, and which of them differ.

Both are compared on the runs that they share: same id, reading, unit, run and seed or, without a seed, same line of the
rows. Where a row was made with other settings, an error or a count is another number, so only means over seeded runs
are compared, if they have standard errors in both, and if their expectation does not depend on the numbers of samples.
An estimate is *identical* if its value and standard error are equal to the last digit. It *differs* if its difference
(of logarithms, where numbers are compared as a ratio) is beyond four joint standard errors and, by Welch's t with
Šidák's correction for the number of estimates, beyond chance at the family's error rate; without any standard error, if
it is beyond rounding. Else it *agrees*. Runs that share data or seeds vary less than both standard errors say, so the
test is conservative. What rests on CPU seconds is left out.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import translate

import numpy as np
import pandas as pd
from scipy.special import stdtr

from recheck.judge.measures import COUNTED, estimate

#: What becomes of a kept estimate.
OUTCOMES = ("identical", "agrees", "differs", "not run")
_ROW = ["id", "reading", "unit", "run", "origin"]
_KEYS = _ROW[:2]
_LEAST = 4.0  # joint standard errors
_ROUNDING, _TINY = 1e-6, 1e-12  # relative and absolute: another processor rounds otherwise


def remeasured(
    measures: pd.DataFrame,
    kept: pd.DataFrame,
    timing: Iterable[str] = (),
    error: float = 0.05,
    changed: Mapping[str, Collection[int]] | None = None,
    regions: Mapping[str, tuple[float, float]] | None = None,
    sized: Iterable[str] = (),
) -> pd.DataFrame:
    """One row a kept estimate: its value on the runs that are shared with `measures`, that of this run, the outcome.

    `timing` are globs of ids that rest on CPU seconds, `error` is the probability that one or more of the estimates
    differ by chance, `changed` are lines of the kept rows, by file, whose settings are others in this run, `regions`
    are those of `recheck.judge.measures.estimate`, `sized` are globs of ids whose expectation depends on the numbers of
    samples, such as a reported standard error: they do not count where any row of their files has other settings. The
    columns are ``id``, ``reading``, ``kept``, ``kept_se``, ``value``, ``se``, ``ratio`` (difference over joint standard
    error), ``p_adjusted`` and ``outcome`` (`OUTCOMES`).
    """
    measures, kept = (
        frame.assign(origin=frame["seed"].where(frame["seed"] != "", frame["source"]))
        for frame in (measures, kept)
    )
    kept = kept[kept["status"].isin(COUNTED) & ~_among(kept, timing)]
    whole, lines = _among(kept, sized), changed or {}
    other = _rests_on(kept, lines) | (whole & _rests_on(kept, lines, whole=True))
    seeded = (kept["seed"] != "") & kept["se"].isna() & ~whole
    counted = kept[~other | seeded]
    shared = counted[_ROW].merge(measures.loc[measures["status"].isin(COUNTED), _ROW])
    ours, theirs = (
        estimate(frame.merge(shared), regions).set_index(_KEYS)[["value", "se", "df", "scale"]]
        for frame in (measures, counted)
    )
    every = kept.assign(other=other).groupby(_KEYS, sort=False, as_index=False)["other"].any()
    both = every.join(theirs.add_prefix("kept_"), on=_KEYS).join(ours, on=_KEYS)
    both = both.rename(columns={"kept_value": "kept"})
    values = both[["kept", "value"]].to_numpy(float)
    errors = both[["kept_se", "se"]].fillna(0.0).to_numpy(float)
    degrees = both[["kept_df", "df"]].fillna(np.inf).replace(0.0, np.inf).to_numpy(float)
    bare = both["other"].to_numpy() & ~errors.all(axis=1) & (values[:, 0] != values[:, 1])
    there = np.isfinite(values).all(axis=1) & ~bare
    logs = (both["scale"] == "log").to_numpy() & (values > 0).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors[logs] /= values[logs]
        difference = np.abs(np.diff(np.where(logs[:, None], np.log(values), values))[:, 0])
        joint = np.hypot(*errors.T)
        ratio = np.where(joint > 0, difference / joint, np.where(difference > 0, np.inf, 0.0))
        welch = joint**4 / (errors**4 / degrees).sum(axis=1)
        p = 2 * stdtr(np.where(np.isfinite(welch), welch, 1e9), -ratio)
        adjusted = -np.expm1(there.sum() * np.log1p(-p))
    close = np.isclose(values[:, 0], values[:, 1], rtol=_ROUNDING, atol=_TINY)
    same = (values[:, 0] == values[:, 1]) & (errors[:, 0] == errors[:, 1])
    differs = (ratio > _LEAST) & (adjusted < error) & ~close
    outcome = np.select([~there, same, differs], ["not run", "identical", "differs"], "agrees")
    frame = both.assign(ratio=ratio, p_adjusted=adjusted, outcome=outcome)
    columns = ["kept", "kept_se", "value", "se", "ratio", "p_adjusted", "outcome"]
    return frame[[*_KEYS, *columns]].reset_index(drop=True)


def _among(rows: pd.DataFrame, globs: Iterable[str]) -> pd.Series:
    """Which rows have an id that fits one of these globs."""
    return rows["id"].str.match("|".join(map(translate, globs)) or "$.")


def _rests_on(
    rows: pd.DataFrame, lines: Mapping[str, Collection[int]], whole: bool = False
) -> pd.Series:
    """Which rows have one of these lines among their sources, or, of `whole` files, a file with one of them."""
    ordered = {file: sorted(there) for file, there in lines.items()}
    named = {source: _named(source, ordered, whole) for source in rows["source"].unique()}
    return rows["source"].map(named).astype(bool)


def _named(source: str, lines: Mapping[str, Sequence[int]], whole: bool) -> bool:
    """Whether a source has one of these lines, which are in order."""
    for part in source.split("; "):
        file, _, places = part.partition(":")
        if whole and file.endswith(".npz"):  # arrays belong to the rows of the table beside them
            file = file.removesuffix(".npz") + ".csv"
        there = lines.get(file)
        if not there:
            continue
        if whole or not places:
            return True
        for span in places.split(","):
            first, _, last = span.partition("-")
            place = bisect_left(there, int(first))
            if place < len(there) and there[place] <= int(last or first):
                return True
    return False


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Numbers for the text: kept estimates, those re-measured, and of these by outcome."""
    numbers = frame["outcome"].value_counts().reindex(OUTCOMES, fill_value=0)
    names = {"identical": "identical", "agrees": "agree", "differs": "differ"}
    found = {f"remeasured/{name}": int(numbers[outcome]) for outcome, name in names.items()}
    return {"kept": len(frame), "remeasured": sum(found.values()), **found}

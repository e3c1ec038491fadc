"""The judge: one verdict for each cell, contrast, column and claim.

A printed number is drawn from the same design as ours (`recheck.judge.compare`), or a quantity lies inside its region
(`recheck.judge.claims`). Each of these hypotheses has a p-value under every reading of what the paper leaves unsaid or
misprints, and counts with the largest of them. "Differs" is controlled by Holm's test over a family, "agrees" by
Benjamini and Hochberg's correction of two one-sided tests; section 3 of ``STUDY.md`` beside this file says what each
verdict means.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import UNSEEN, levels_of, reading_text
from recheck.judge.outcomes import QUANTILES, outcomes, proved
from recheck.judge.published import Published
from recheck.judge.replay import Predictive

_EVIDENCE = ["choice", "level", "kind", "compared", "agrees", "differs", "log_likelihood"]
#: The choice under which the evidence on readings has their combinations.
COMBINATION = "combination"
VERDICTS = ("agrees", "undecided", "differs", "depends on a reading", *UNSEEN)
COLUMNS = [
    *["id", "kind", "table", "family", "published", "printed", "ours", "ours_se", "units", "runs"],
    *["scale", "effect", "sd", "df", "low", "high", "p", "p_adjusted", "p_agree", "factor"],
    *["detectable", "informative", "heterogeneity_p", "readings", "verdict", "note", "source"],
    *QUANTILES,
]
OUTCOMES = [
    *["id", "kind", "reading", "published", "ours", "scale", "effect", "low", "high", "p"],
    *["agrees", "differs", "verdict"],
]


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on a study.

    `frame` has `COLUMNS` and a row for each cell, contrast, column and claim. ``effect`` is log(ours/published), less
    what it is expected to be, or ours minus published on the scale ``linear``; of a claim, and of a cell that is judged
    by its rounding, the distance from the nearest end of the region, positive inside. ``published`` and ``ours`` of a
    column are geometric means. Of a claim on every run, ``ours``, ``effect`` and the interval are those of the run
    furthest outside, p-values those of the run that is tested, which ``note`` names if it is another.

    `readings` has numbers of hypotheses by choice, level and kind, at the best levels of other choices, and
    ``log_likelihood``, the sum of the log densities of the printed numbers. A cell that is judged by its rounding
    has no density: it counts, and the sum is over the others, NaN without any. The choice `COMBINATION` has a row for
    each combination of levels that were run, over contrasts, and cells that are in none, that were compared under every
    one.

    `outcomes` has `OUTCOMES` and a row for each hypothesis and reading; ``verdict`` says why it was not compared.
    """

    frame: pd.DataFrame
    readings: pd.DataFrame
    outcomes: pd.DataFrame


def judge(
    measures: pd.DataFrame, estimates: pd.DataFrame, published: Published, seed: int
) -> Verdicts:
    """Judge a study, of which `estimates` are those of its measures; `seed` is that of the draws of variances.

    ValueError if a reading of the measures of a cell is not in ``readings.yaml`` for this cell.
    """
    pairs, cases = _tested(outcomes(measures, estimates, published, seed), published)
    rate, cells = published.protocol.family_error, published.cells
    by_id = dict(list(pairs.groupby("id", sort=False)))
    verdicts = {name: _verdict(cases.loc[name], own, rate) for name, own in by_id.items()}
    differing = {name for name, verdict in verdicts.items() if verdict == "differs"}
    rows = []
    for name, own in by_id.items():
        verdict, note, lost = verdicts[name], "", own[~own["seen"]]
        if len(lost) and own["seen"].any():
            note = f"{lost['verdict'].iloc[0]} under {_where(own)}"
        wrong = sorted(differing & set(cells.index[cells["column"] == name]))
        if verdict == "agrees" and wrong:
            verdict, note = "undecided", f"{', '.join(wrong)} of its cells differ"
        rows.append(_row(cases.loc[name], own, verdict, note))
    frame = pd.DataFrame(rows, columns=COLUMNS)
    check(frame, published)
    evidence = pd.concat([_evidence(pairs, published), _combinations(pairs, published)])
    every = pd.DataFrame([*pairs["row"]]).join(pairs.drop(columns="row").reset_index(drop=True))
    return Verdicts(frame, evidence.reset_index(drop=True), every.reindex(columns=OUTCOMES))


def check(frame: pd.DataFrame, published: Published) -> None:
    """Refuse verdicts if a registered cell or claim is absent, comes twice or is not registered, or one is unknown."""
    claims = [f"claim/{claim.id}" for claim in published.claims]
    for kind, wanted in {"cell": list(published.cells.index), "claim": claims}.items():
        ids = frame.loc[frame["kind"] == kind, "id"]
        absent, strange = sorted(set(wanted) - set(ids)), sorted(set(ids) - set(wanted))
        twice = sorted(set(ids[ids.duplicated()]))
        if absent or strange or twice:
            raise ValueError(
                f"verdicts: of {len(wanted)} {kind}s absent are {absent}, not registered {strange}, twice {twice}"
            )
    if unknown := sorted(set(frame["verdict"]) - set(VERDICTS)):
        raise ValueError(f"verdicts: {unknown} are unknown; known are {list(VERDICTS)}")


def _tested(pairs: pd.DataFrame, published: Published) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs of a hypothesis and a reading, and the hypotheses, both with p-values corrected over their families."""
    protocol = published.protocol
    family = {kind: name for name, kinds in protocol.families.items() for kind in kinds}
    pairs = pairs.assign(family=pairs["kind"].map(family), seen=pairs["verdict"] == "")
    # claims, and cells that are judged by their rounding, have regions and are no draws
    pairs["drawn"] = [isinstance(one, Predictive) for one in pairs["found"]]
    pairs["number"] = pairs["seen"] & (pairs["kind"] != "claim")
    defaults = {name: choice.default for name, choice in published.readings.items()}
    pairs["departs"] = [
        sum(defaults[name] != level for name, level in levels_of(reading).items())
        for reading in pairs["reading"]
    ]
    pairs["chance"] = [one is not None and not one.exact for one in pairs["found"]]
    pairs["chance"] = pairs["seen"] & pairs.groupby("id")["chance"].transform("any")
    rules = {"family": "first", "p": "max", "p_agree": "max"}
    rules |= dict.fromkeys(["seen", "scatters", "chance"], "any")
    cases = pairs.groupby("id", sort=False).agg(rules)
    for table in (pairs, cases):
        families = table[table["chance"]].groupby("family")
        table["p_adjusted"] = families["p"].transform(holm)
        table["q_agree"] = families["p_agree"].transform(false_discovery)
        table.fillna({"p_adjusted": table["p"], "q_agree": table["p_agree"]}, inplace=True)
    rate = protocol.family_error
    pairs["differs"] = pairs["p_adjusted"] <= rate
    pairs["agrees"] = (pairs["q_agree"] <= rate) & ~pairs["scatters"] & ~pairs["differs"]
    sizes = cases[cases["chance"]].groupby("family").size()
    level = rate / cases["family"].map(sizes).fillna(1)
    pairs["detectable"] = [
        math.nan if one is None else one.detectable(level[name], protocol.power)
        for name, one in zip(pairs["id"], pairs["found"], strict=True)
    ]
    return pairs, cases


def _verdict(case: pd.Series, own: pd.DataFrame, rate: float) -> str:
    """The verdict on one hypothesis."""
    if not case["seen"]:
        order = ("data not available", "not comparable", "not run")
        return min(own["verdict"], key=order.index)
    if case["p_adjusted"] <= rate and own["seen"].all():
        return "differs"
    if case["q_agree"] <= rate and not case["scatters"]:
        return "agrees"
    return "depends on a reading" if own["agrees"].any() and own["differs"].any() else "undecided"


def _where(own: pd.DataFrame) -> str:
    """The readings under which a hypothesis was not compared: as the levels that never were, if these say it all."""
    levels = pd.DataFrame([*own["reading"].map(levels_of)], index=own.index)
    never = {
        f"{choice}={level}": levels[choice] == level
        for choice in levels
        for level in levels[choice].dropna().unique()
        if not own["seen"][levels[choice] == level].any()
    }
    said = pd.DataFrame(never, index=own.index).any(axis=1)
    return ", ".join(never if said[~own["seen"]].all() else own["reading"][~own["seen"]])


def _row(case: pd.Series, own: pd.DataFrame, verdict: str, note: str) -> dict[str, Any]:
    """The row of the table: under the reading that fits best, of several that fit alike the one nearest the default."""
    compared = own[own["seen"]] if case["seen"] else own
    order = ["p", "departs", "p_agree"]
    best = compared.sort_values(order, ascending=[False, True, False], kind="stable").iloc[0]
    entries, detectable = best["row"], max(compared["detectable"])
    low, high = (entries.get(name, math.nan) for name in ("low", "high"))
    logs = entries.get("scale") == "log"
    shown, factor = proved(verdict, best["found"], (low, high), detectable, logs)
    several = f"shown under {best['reading']}" if len(own) > 1 and best["reading"] else ""
    return {
        **entries,
        **best[["id", "kind", "family"]],
        **case[["p", "p_adjusted"]],
        "p_agree": case["q_agree"],
        "factor": factor,
        "detectable": shown,
        # with a reading that was not compared nothing could have shown
        "informative": bool(own["seen"].all() and detectable <= best["informative"]),
        "readings": "; ".join(reading for reading in own["reading"][own["agrees"]] if reading),
        "verdict": verdict,
        "note": "; ".join(filter(None, [entries["note"], several, note])),
    }


def _evidence(pairs: pd.DataFrame, published: Published) -> pd.DataFrame:
    """What the printed numbers say about each level of each choice, over cases that were compared under every level."""
    tables, numbers = [], pairs[pairs["number"]]
    # ours may round to a printed number under several readings: then the one where it most surely does fits best
    order = np.lexsort((numbers["p_agree"].where(~numbers["drawn"], 0.0), -numbers["p"]))
    numbers = numbers.assign(place=np.argsort(order))
    for choice in published.readings.values():
        levels = numbers["reading"].map(lambda text, name=choice.name: levels_of(text).get(name))
        some = numbers.assign(level=levels)[levels.notna()]
        complete = some.groupby("id")["level"].transform("nunique") == len(choice.levels)
        best = some.loc[some[complete].groupby(["id", "level"], sort=False)["place"].idxmin()]
        if best.empty:
            continue
        best = best.assign(choice=choice.name, compared=1)
        best["log_likelihood"] = [
            one.log_density if drawn else math.nan
            for one, drawn in zip(best["found"], best["drawn"], strict=True)
        ]
        sums = best.groupby(["kind", "level", "choice"], sort=False)[_EVIDENCE[3:]].sum(min_count=1)
        tables.append(sums.astype(dict.fromkeys(_EVIDENCE[3:6], int)))
    found = pd.concat(tables).reset_index() if tables else pd.DataFrame(columns=_EVIDENCE)
    return found[_EVIDENCE]


def _combinations(pairs: pd.DataFrame, published: Published) -> pd.DataFrame:
    """What the printed numbers say together about each combination of levels that were run."""
    choices = {name for name, choice in published.readings.items() if choice.kind == "runs"}
    within = {cell for _, first, second, _ in published.pairs() for cell in (first, second)}
    pairs = pairs.assign(levels=[levels_of(reading) for reading in pairs["reading"]])
    some = np.array([not choices.isdisjoint(levels) for levels in pairs["levels"]])
    cases = pairs["kind"].isin(["cell", "contrast"]) & ~pairs["id"].isin(within)
    numbers = pairs.groupby("id")["drawn"].transform("any") & cases & some
    used = pairs[numbers & pairs.groupby("id")["seen"].transform("all").astype(bool)]
    names = sorted(choices & set().union(*used["levels"]))
    several = [list(published.readings[name].levels) for name in names]
    rows = []
    for chosen in itertools.product(*several) if len(names) > 1 else ():
        levels = dict(zip(names, chosen, strict=True))
        own = used[[all(levels.get(c, v) == v for c, v in one.items()) for one in used["levels"]]]
        density = float(sum(one.log_density for one in own["found"]))
        counts = [own["id"].nunique(), own["agrees"].sum(), own["differs"].sum()]
        rows.append([COMBINATION, reading_text(levels), "numbers", *counts, density])
    return pd.DataFrame(rows, columns=_EVIDENCE)


def false_discovery(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's adjusted p-values."""
    order = np.argsort(p, kind="stable")[::-1]
    steps = np.minimum.accumulate(np.asarray(p)[order] * len(p) / np.arange(len(p), 0, -1))
    return np.minimum(steps, 1.0)[np.argsort(order)]


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(np.asarray(p)[order] * (len(p) - np.arange(len(p))))
    return np.minimum(steps, 1.0)[np.argsort(order)]

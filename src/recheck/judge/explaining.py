"""One verdict in words: what was printed, what was run, how they were compared, and why the verdict is what it is."""

import math
from collections.abc import Mapping
from typing import Any

from recheck.judge.format import count, effect, is_number, plain, short
from recheck.judge.published import Published

_WHY = {
    "agrees": "the interval lies within the margin, also after the correction for all numbers of the study",
    "differs": "the printed number would hardly be drawn as ours are, also after the correction for all numbers",
    "undecided": "neither is proved; a difference of the detectable size would be found in {power:.0%} of studies",
    "depends on a reading": "it agrees under one reading of what the paper leaves unsaid, and differs under another",
    "not run": "there is no row of this id",
    "data not available": "the data are not there",
    "not comparable": "nothing could be compared",
}


def explained(row: Mapping[str, Any], study: Published) -> str:
    """The text on one row of `recheck.judge.verdicts.Verdicts.frame`."""
    cell = dict(study.cells.loc[row["id"]]) if row["id"] in study.cells.index else {}
    logs, rules = row["scale"] == "log", study.protocol
    why = _WHY[row["verdict"]].format(power=rules.power)
    lines = [f"{row['id']}: {row['verdict']}", f"why: {why}"]
    if row["printed"]:
        error = f" ({cell['bracket']})" if cell and cell["bracket"] else ""
        design = (
            f", {count(cell['units'], 'unit')} with {count(cell['runs'], 'run')}" if cell else ""
        )
        lines.append(f"printed: {row['printed']}{error}{design}")
    if cell and cell.get("rounded"):
        lines.append(
            f"rounded: {cell['rounded']}, so that {cell['low']:.10g} to {cell['high']:.10g} print so"
        )
    if is_number(row["ours"]):
        design = f"{count(row['units'], 'unit')}, {count(row['runs'], 'run')} in all"
        lines.append(f"ours: {plain(row['ours'], row['ours_se'])}, {design}")
    if is_number(row["q05"]):
        nine = f"{short(row['q05'])} to {short(row['q95'])}"
        lines.append(f"replayed: nine of ten numbers of the published design are within {nine}")
    region = row["kind"] == "claim" or row["note"].startswith("judged by its rounding")
    if is_number(row["effect"]):
        what = "ours over printed" if logs else "ours less printed"
        what = "distance from the end of the region, positive inside" if region else what
        what = "factor from the end of the region, above 1 inside" if region and logs else what
        size = short(effect(row))
        ends = f"{short(row['low'])} to {short(row['high'])}"
        lines.append(f"{what}: {size}; interval of {rules.interval:.0%}: {ends}")
    if not math.isnan(row["p"]):
        inside = "it lies inside its region" if region else "it is drawn as ours are"
        corrected = f"{row['p_adjusted']:.2g} corrected for the family"
        lines.append(f"p-value of the hypothesis that {inside}: {row['p']:.2g}, {corrected}")
        what = "a factor of " if logs else ""
        outside = (
            "it lies outside" if region else f"it is off by more than {what}{study.margin(row):g}"
        )
        lines.append(f"p-value of the hypothesis that {outside}, corrected: {row['p_agree']:.2g}")
    if is_number(row["detectable"]):
        what = "a factor of" if logs else "a difference of"
        lines.append(
            f"detectable with a power of {rules.power:.0%}: {what} {short(row['detectable'])}"
        )
    lines += [f"{name}: {row[name]}" for name in ("readings", "note", "source") if row[name]]
    return "\n".join(lines) + "\n"

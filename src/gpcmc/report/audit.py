r"""The audit for its readers: a page to sort, the tables of the paper, the line of the summary, and values of the text.

Every cell, column and statement is a row with an anchor, ``audit:<id>``: in the PDF by ``\hypertarget``, in the page
by its id.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from jinja2 import Environment, StrictUndefined

from gpcmc.audit import VERDICTS, count_verdicts, read_audit, unexplained
from gpcmc.audit.claims import BOUNDS, CHECKS, VARIANT
from gpcmc.audit.compare import ALPHA, CONSISTENT, EQUIVALENT, NOT_COMPARED, POWER, TOO_GOOD
from gpcmc.audit.controls import (
    ALTERATION,
    SURE,
    TOO_FEW,
    dropped,
    false_alarms,
    missed_faults,
    of_known_chance,
    planted,
)
from gpcmc.audit.controls import line as controls_line
from gpcmc.audit.published import CELLS
from gpcmc.audit.tradeoff import CLAIMS, FORMS
from gpcmc.report.latex import (
    concise,
    decimals_for,
    escape,
    in_last_digit,
    number,
    scientific,
    tabular,
)
from gpcmc.report.value import Source, Values, defined

__all__ = ["Audited", "add_values", "appendix", "claims_table", "controls_table", "line", "page"]


class Audited(NamedTuple):
    """All files of the audit.

    Attributes
    ----------
    cells, columns, claims : DataFrame
        ``audit.csv``, ``audit_columns.csv``, ``audit_claims.csv``.
    agreement : DataFrame
        ``audit_agreement.csv``.
    controls : DataFrame
        ``controls.csv``.
    """

    cells: pd.DataFrame
    columns: pd.DataFrame
    claims: pd.DataFrame
    agreement: pd.DataFrame
    controls: pd.DataFrame

    @classmethod
    def read(cls, paths: Mapping[str, str | Path]) -> Audited:
        """From the paths of the files, by the names of the fields."""
        return cls(**{name: read_audit(paths[name]) for name in cls._fields})

    @property
    def statements(self) -> pd.DataFrame:
        """The claims that are the paper's."""
        return self.claims[~self.claims["id"].str.endswith(VARIANT)]

    @property
    def variants(self) -> pd.DataFrame:
        """The same claims about chains done properly: the paper, which timed its toolbox, says nothing of these."""
        return self.claims[self.claims["id"].str.endswith(VARIANT)]

    @property
    def unexplained(self) -> list[str]:
        """Ids of discrepancies without an explanation."""
        return unexplained([self.cells, self.columns, self.claims])

    @property
    def too_good(self) -> bool:
        """Whether published values and ours agree better than chance would let them."""
        return bool(self.agreement["p_low"].iloc[-1] < TOO_GOOD)


_KINDS = {
    "cells": "published cells",
    "columns": "columns",
    "statements": "statements",
    "variants": "variants with the chains done properly",
}


def line(audited: Audited) -> str:
    """The audit in one line."""
    parts = []
    for name, words in _KINDS.items():
        frame = getattr(audited, name)
        counts = ", ".join(f"{n} {verdict}" for verdict, n in count_verdicts(frame).items() if n)
        parts.append(f"{len(frame)} {words}: {counts or 'none compared'}")
    lost = audited.unexplained
    parts.append(f"unexplained discrepancies: {', '.join(lost) or 'none'}")
    if audited.too_good:
        parts.append(f"AGREEMENT TOO GOOD (p = {audited.agreement['p_low'].iloc[-1]:.2g})")
    parts.append(f"controls: {controls_line(audited.controls)}")
    return "; ".join(parts)


# ---------------------------------------------------------------------------------------------------------------------
# Numbers


def _factor(value: float) -> str:
    """A factor with two digits; above a hundred only that."""
    if not math.isfinite(value) or value > 100:
        return r"$>100$" if value > 100 else "--"
    return f"${value:.{0 if value >= 10 else 1 if value >= 2 else 2}f}$"


def _probability(value: float) -> str:
    if math.isnan(value):
        return "--"
    return scientific(value, 1) if value < 1e-3 else f"${value:.{3 if value < 0.1 else 2}f}$"


def _number(value: float, digits: int = 3) -> str:
    """So many significant digits, as a power of ten where a decimal would be long."""
    if not math.isfinite(value):
        return "--"
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        decimals = max(0, digits - 1 - (math.floor(math.log10(abs(value))) if value else 0))
        return number(value, decimals=decimals)
    return scientific(value, digits)


def _with_error(value: float, se: float) -> str:
    """A value, and its standard error with two digits in brackets."""
    if not math.isfinite(value):
        return "--"
    if not se > 1e-4 * abs(value):  # none, or none that would show
        return _number(value)
    if abs(value) < 1e-3:
        return f"{scientific(value, 2)} ({scientific(se, 1)})"
    return number(value, se)


def _printed(cell: pd.Series) -> str:
    """A published value with the digits that were printed, and its standard error in units of the last one."""
    decimals = round(-math.log10(2 * cell["rounding"]))
    return in_last_digit(f"{cell['published']:.{decimals}f}", cell["published_se"])


def _ours(cell: pd.Series) -> str:
    """Our value with two digits of its standard error, in units of the last one."""
    value, se = cell["ours"], cell["ours_se"]
    if not se > 1e-4 * abs(value):  # none, or none that would show
        return _number(value)
    return concise(value, se, decimals=decimals_for(se))


def _verdict(row: pd.Series) -> str:
    text = escape(row["verdict"])
    return rf"\textbf{{{text}}}" if row["verdict"] == "discrepant" else text


def _anchored(name: str) -> str:
    """An id that links point at, and that may break after a stroke."""
    shown = escape(name).replace("/", r"/\allowbreak{}")
    return rf"\hypertarget{{audit:{name}}}{{}}{shown}"


def _longtable(
    columns: str, head: list[str], body: list[str], caption: str, label: str
) -> list[str]:
    heading = [r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    return [
        rf"\begin{{longtable}}{{{columns}}}",
        rf"\caption{{{caption}}}\label{{{label}}}\\",
        *heading,
        r"\endfirsthead",
        *heading,
        r"\endhead",
        r"\bottomrule",
        r"\endlastfoot",
        *body,
        r"\end{longtable}",
    ]


def _reason(row: pd.Series, columns: int) -> list[str]:
    """A further row with the explanation of a discrepancy."""
    if row["verdict"] != "discrepant":
        return []
    said = (
        f"Reason ({escape(row['evidence'])}): {escape(row['explanation'])}"
        if row["explanation"]
        else f"Not explained: {escape(row['unexplained'])}."
    )
    return [
        rf"\multicolumn{{{columns}}}{{p{{0.96\textwidth}}}}{{\emph{{{said}}}}} \\",
        r"\addlinespace[2pt]",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Tables of the paper

_BREAKING = r">{\raggedright\arraybackslash}p"


def appendix(audited: Audited) -> str:
    """One row a cell and column, as longtables."""
    rows = []
    for _, cell in audited.cells.iterrows():
        row = [_anchored(cell["id"]), _printed(cell)]
        row += [_ours(cell), *_compared(cell)]
        rows += [" & ".join(row) + r" \\", *_reason(cell, len(row))]
    head = ["cell", "published", "ours", "ratio", "$z$", "$p$", "seen", "verdict"]
    caption = (
        "Every published cell. Brackets: standard errors in units of the last digit; those of published values are "
        "our estimates (Section~\\ref{sec:compare}), except in Table~1, which prints them. Ratio: 90\\,\\% interval of "
        "ours over published; $p$: corrected for the number of comparisons; seen: the factor that would have been "
        "called discrepant with a probability of 80\\,\\%. \\origin{audit/cells}"
    )
    widths = f"{_BREAKING}{{44mm}}rrr@{{\\hspace{{2mm}}}}r@{{\\hspace{{2mm}}}}r@{{\\hspace{{2mm}}}}r{_BREAKING}{{19mm}}"
    lines = [r"\begingroup\scriptsize\setlength{\tabcolsep}{3pt}"]
    lines += _longtable(widths, head, rows, caption, "tab:auditcells")
    rows = []
    for _, column in audited.columns.iterrows():
        row = [_anchored(column["id"]), str(column["cells"]), _number(column["ratio"])]
        row += _compared(column)
        rows += [" & ".join(row) + r" \\", *_reason(column, len(row))]
    head = ["column", "cells", "mean ratio", "ratio", "$z$", "$p$", "seen", "verdict"]
    caption = "Every column with two compared cells or more; as Table~\\ref{tab:auditcells}. \\origin{audit/columns}"
    rows = rows or [r"\multicolumn{8}{c}{none is compared at this scale} \\"]
    lines += _longtable(widths, head, rows, caption, "tab:auditcolumns")
    return "\n".join([*lines, r"\endgroup", ""])


def _compared(row: pd.Series) -> list[str]:
    low, high = row["ratio_low"], row["ratio_high"]
    there = math.isfinite(row["z"])
    wide = f"{_factor(low) if low >= 0.01 else '$<0.01$'} to {_factor(high)}"
    return [
        wide if there else "--",
        f"${round(row['z'], 1) + 0.0:.1f}$" if there else "--",
        _probability(row["p_family"]),
        _factor(row["detectable"]),
        _verdict(row),
    ]


def claims_table(audited: Audited) -> str:
    """One row a statement, as a longtable."""
    rows = []
    for _, claim in audited.claims.iterrows():
        se = claim["se"] * claim["effect"] if claim["log"] else claim["se"]
        found = claim["note"] if claim["verdict"] in NOT_COMPARED else ""
        cells = [
            _anchored(claim["id"]),
            escape(f"{claim['statement']} ({claim['section']})."),
            escape(claim["quantity"] or "--"),
            _region(claim["low"], claim["high"]),
            _of_kind(_with_error(claim["effect"], se), claim["kind"]),
            _verdict(claim) + (rf": {escape(found)}" if found else ""),
        ]
        rows += [" & ".join(cells) + r" \\\addlinespace[1pt]", *_reason(claim, len(cells))]
    widths = "".join(f"{_BREAKING}{{{width}mm}}" for width in (23, 42, 25, 17, 19, 25))
    head = ["", "statement (section)", "quantity", "region", "ours", "verdict"]
    caption = (
        "The statements of the paper as regions of quantities: the statement is right if the quantity lies inside. "
        "Standard errors in brackets. Those that end in ``proper'' are about chains that the paper did not run. "
        "\\origin{audit/claims}"
    )
    lines = [r"\begingroup\scriptsize\setlength{\tabcolsep}{3pt}"]
    lines += _longtable(widths, head, rows, caption, "tab:auditclaims")
    return "\n".join([*lines, r"\endgroup", ""])


def _of_kind(text: str, kind: str) -> str:
    """A number as what it is: a bound, or extrapolated."""
    if text == "--":
        return text
    return (
        f"{kind} {text}"
        if kind in BOUNDS
        else text + (" (extrapolated)" * (kind == "extrapolated"))
    )


def _region(low: float, high: float) -> str:
    if math.isnan(low):
        return "--"
    if math.isinf(low):
        return f"below {_end(high)}"
    if math.isinf(high):
        return f"above {_end(low)}"
    return f"{_end(low)} to {_end(high)}"


def _end(value: float) -> str:
    """An end of a region with all of its digits: it is tested as it is printed."""
    mantissa, small, exponent = f"{value:g}".partition("e")
    return rf"${mantissa}\cdot10^{{{int(exponent)}}}$" if small else f"${mantissa}$"


def controls_table(audited: Audited) -> str:
    """Kill rates by control and table, and the smallest alteration that each table's comparison finds."""
    frame = audited.controls
    body = []
    names = {
        **{str(table): f"Table~{table}" for table in CELLS},
        "claims": "statements",
        "all": "all",
    }
    for table, said in names.items():
        part = frame[frame["table"].astype(str) == table]
        rows = []
        for position, (_, row) in enumerate(part.iterrows()):
            first = position == 0
            smallest = [row[f"smallest_{name}"] for name in ("cell", "column", "table")]
            runs = row["place"].startswith("runs of")
            rows.append(
                [
                    said if first else "",
                    escape(row["control"]) if table != "all" else "",
                    "runs" if runs else escape(row["place"]),
                    str(row["trials"]),
                    str(row["killed"]),
                    _probability(row["expected"]) if row["trials"] else "--",
                    str(row["required"]),
                    str(row["missed"]),
                    escape(row["verdict"]),
                    *(_factor(value) if first else "" for value in smallest),
                ]
            )
        if rows:
            body.append(rows)
    top = [*[""] * 9, r"\multicolumn{3}{c}{smallest factor found}"]
    head = ["", "control", "in", "trials", "killed", "expected", "required", "missed", ""]
    head += ["cell", "column", "table"]
    return tabular("lll" + "r" * 5 + "l" + "r" * 3, [top, head], body, [r"\cmidrule(lr){10-12}"])


# ---------------------------------------------------------------------------------------------------------------------
# The page


def page(audited: Audited, template: str | Path, scale: str) -> str:
    """A self-contained HTML page with a sortable table of everything."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters["shown"] = _shown
    text = Path(template).read_text(encoding="utf-8")
    return environment.from_string(text).render(
        scale=scale,
        line=line(audited),
        verdicts=VERDICTS,
        tables={
            name: {"columns": list(frame.columns), "rows": frame.to_dict("records")}
            for name, frame in audited._asdict().items()
        },
    )


def _shown(value: object) -> str:
    """A cell of the page: four digits of a number, nothing of what is missing."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------------------------------------------------------------
# Values of the text

#: What a verdict means for a statement, in a sentence "the statement ...".
_WORDS = {
    "consistent": "stands",
    "equivalent": "stands",
    "discrepant": "does not stand",
    "inconclusive": "is not decided",
}


def add_values(out: Values, audited: Audited) -> None:
    """Add what the text says of the audit; the keys do not depend on what was run."""
    _verdict_values(out, audited)
    _unexplained_values(out, audited)
    _agreement_values(out, audited)
    _control_values(out, audited.controls)
    _alteration_values(out, audited.controls)
    _claim_values(out, audited.claims)


def _verdict_values(out: Values, audited: Audited) -> None:
    """What is called how, and how many columns and statements are."""
    compare = "gpcmc.audit.compare"
    where = defined(compare, "ALPHA")
    out.real("audit/alpha", 100 * ALPHA, where, unit=r"\,\%", decimals=0)
    where = defined(compare, "POWER")
    out.real("audit/power", 100 * POWER, where, unit=r"\,\%", decimals=0)
    where = defined(compare, "EQUIVALENT")
    out.real("audit/margin/equivalent", math.exp(EQUIVALENT), where, decimals=2)
    where = defined(compare, "CONSISTENT")
    out.real("audit/margin/consistent", math.exp(CONSISTENT), where, decimals=0)
    for name, frame, file in (
        ("columns", audited.columns, "audit_columns.csv"),
        ("claims", audited.statements, "audit_claims.csv"),
        ("variants", audited.variants, "audit_claims.csv"),
    ):
        out.whole(f"audit/{name}", len(frame), Source(file, {"id": tuple(frame["id"])}))
        for verdict, n in count_verdicts(frame).items():
            source = Source(file, {"id": tuple(frame["id"][frame["verdict"] == verdict])})
            out.whole(f"audit/{name}/{verdict.replace(' ', '-')}", n, source)
    for name, frame in (("claims", audited.statements), ("variants", audited.variants)):
        said = frame["verdict"].map(_WORDS).fillna("not judged")
        for how in (*dict.fromkeys(_WORDS.values()), "not judged"):
            ids = tuple(frame["id"][said == how])
            source = Source("audit_claims.csv", {"id": ids})
            out.whole(f"audit/{name}/{how.replace(' ', '-')}", len(ids), source)
    floor = audited.columns[audited.columns["id"] == "table1/N500"]["verdict"]
    column = str(floor.iloc[0]) if len(floor) else None
    out.words("floor/N500/column", column, "audit_columns.csv", missing="not compared")


def _unexplained_values(out: Values, audited: Audited) -> None:
    lost, file = audited.unexplained, "audit.csv; audit_columns.csv; audit_claims.csv"
    source = Source(file, {"verdict": "discrepant"})
    out.words("audit/unexplained", ", ".join(lost) or None, source, missing="none")
    out.whole("audit/unexplained-count", len(lost), source)
    explained = sum(
        int(((frame["verdict"] == "discrepant") & (frame["explanation"] != "")).sum())
        for frame in (audited.cells, audited.columns, audited.claims)
    )
    out.whole("audit/explained-count", explained, source)


def _agreement_values(out: Values, audited: Audited) -> None:
    last, source = audited.agreement.iloc[-1], Source("audit_agreement.csv", {"unit": "all"})
    there = math.isfinite(last["p_low"])
    every = source._replace(rows={"unit": tuple(audited.agreement["unit"][:-1])})
    out.whole("agreement/problems", len(audited.agreement) - 1 if there else None, every)
    for name in ("p_low", "p_high"):
        value = float(last[name])
        decimals = 4 if value < 0.01 else 2
        out.real(
            f"agreement/{name.replace('_', '-')}",
            value,
            source,
            decimals=decimals if there else None,
        )
    out.words("agreement/too-good", "yes" if audited.too_good else None, source, missing="no")
    where = defined("gpcmc.audit.compare", "TOO_GOOD")
    out.real("agreement/level", 100 * TOO_GOOD, where, unit=r"\,\%", decimals=0)


def _control_values(out: Values, frame: pd.DataFrame) -> None:
    """How many planted faults were found, how many should have been, and false alarms."""
    file = "controls.csv"
    for key, faults in (("controls", planted(frame)), ("controls/dropped", dropped(frame))):
        source = Source(file, {"control": tuple(faults["control"].unique())})
        for name in ("trials", "killed", "required", "missed"):
            total = int(faults[name].sum()) if len(frame) else None
            out.whole(f"{key}/{name}", total, source)
    source = Source(file, {})
    out.words(
        "controls/missed-names", "; ".join(missed_faults(frame)) or None, source, missing="none"
    )
    known = of_known_chance(frame)
    n = int(known["trials"])
    out.whole("controls/known/trials", n or None, source)
    out.whole("controls/known/killed", int(known["killed"]) if n else None, source)
    expected = n * known["expected"]
    out.real("controls/known/expected", expected, source, decimals=1 if n else None)
    out.real("controls/known/p", known["p_few"], source, decimals=2 if n else None)
    few = f"{known['killed']} of {n}" if known["p_few"] < TOO_FEW else None
    out.words("controls/too-few", few, source, missing="no")
    alarms = "; ".join(false_alarms(frame)) or None
    out.words("controls/false-alarms", alarms, source, missing="none")
    where = defined("gpcmc.audit.controls", "SURE")
    out.real("controls/sure", 100 * SURE, where, unit=r"\,\%", decimals=1)


def _alteration_values(out: Values, frame: pd.DataFrame) -> None:
    """The smallest alteration that is found, and what became of single cells of Table 1."""
    where = defined("gpcmc.audit.controls", "ALTERATION")
    out.real("controls/alteration", 100 * (ALTERATION - 1), where, unit=r"\,\%", decimals=0)
    file = "controls.csv"
    for table in CELLS:
        mine, source = frame[frame["table"].astype(str) == str(table)].head(1), Source(file)
        for name in ("cell", "column", "table"):
            value = float(mine[f"smallest_{name}"].iloc[0]) if len(mine) else math.inf
            key = f"controls/table{table}/smallest-{name}"
            finite = math.isfinite(value)
            out.real(key, value, source, missing="none", decimals=(1 if finite else None))
    single = frame[(frame["table"].astype(str) == "1") & (frame["place"] == "one cell")]
    for name in ("raised", "lowered"):
        mine = single[single["control"].str.startswith(name)]
        rows = {"table": 1, "place": "one cell", "control": tuple(mine["control"])}
        source = Source(file, rows)
        trials = int(mine["trials"].sum())
        for which in ("trials", "killed"):
            total = int(mine[which].sum()) if trials else None
            out.whole(f"controls/table1/{name}/{which}", total, source)
        expected = float(mine["expected"].iloc[0]) * trials if trials else math.nan
        key = f"controls/table1/{name}/expected"
        out.real(key, expected, source, decimals=1 if trials else None)


def _claim_values(out: Values, claims: pd.DataFrame) -> None:
    """Effect and verdict of each statement, and how many of those on CPU time stand."""
    for _, claim in claims.iterrows():
        key = f"claim/{claim['id']}"
        source = Source("audit_claims.csv", by=CHECKS[claim["check"]])
        words = _WORDS.get(claim["verdict"])
        out.words(f"{key}/words", words, source, missing=f"cannot be judged ({claim['verdict']})")
        stands = words if words == "stands" else None
        out.words(f"{key}/stands", stands, source, missing="no")
        se = claim["se"] * claim["effect"] if claim["log"] else claim["se"]
        out.real(f"{key}/effect", claim["effect"], source, se=se, missing=claim["verdict"])
        if math.isfinite(claim["effect"]):
            effect = out[f"{key}/effect"]
            out[f"{key}/effect"] = replace(effect, text=_of_kind(effect.text, claim["kind"]))
    for form in FORMS:
        timed = [f"time/{name}/{form}" for name in CLAIMS]
        mine = claims[claims["id"].isin(timed)]
        said = mine["verdict"].map(_WORDS)
        for name in dict.fromkeys(_WORDS.values()):
            key = f"audit/time/{form}/{name.replace(' ', '-')}"
            ids = tuple(mine["id"][said == name])
            out.whole(key, len(ids), Source("audit_claims.csv", {"id": ids}))

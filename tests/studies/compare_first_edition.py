"""Set the estimates of this edition beside those of the first one, number by number.

    python tests/studies/compare_first_edition.py <results/published of the first edition> <results/published/atiya2021>

The first edition rounded most of its files: a number is equal if it agrees within 1e-12, or in all digits that its
file has. What has no new id is listed with the reason. `PAIRS` has a function a part, which yields what the old files
have; a module ``compare_first_edition_*.py`` beside this one adds its own.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

DIGITS = (6, 8)  # of the first edition's CSV files
FORMS = {"shipped": "as-distributed", "proper": "corrected"}
NOT_CONVERGED = "no ratio of what did not converge"


#: Ids that are measured no more, because their table or figure is gone or because the text never quoted them.
DROPPED = re.compile(
    r"(accuracy/.*/(largest|settings|nats-(median|largest-.*))|budget|efficiency|ep/mean|evidence|furthest|mae-med"
    r"|mae-post/(published|ours).*|posterior|seconds|status|hard/(?!runs|judged|replicates|own).*|experiment4/[a-z].*"
    r"|mae-post/data-sets/P1/count|settings/[^/]*/(?!samples).*|control-variables/usps-(?!limit).*|experiment4/P\d/(all|nontrivial)"
    r"|experiment4/P\d/S\d/[^/]*/(?!difference|per-pattern|certified).*|experiment4/P\d/certified/[^/]*/largest-reference"
    r"|experiment[123]/.*/(instances|data-sets|runs.*|converged|bias|largest-over-mean)|experiment3/quoted/ess-over-new"
    r"|finding/floor/.*/fit|slope/table1/furthest|spread/.*/data-sets-below-published|time/\w+/target"
    r"|variance/.*(/M\d+/.*|/own)|defects/.*/(converged|log-mae)|defects/all/.*|reference/.*/uncertified"
    r"|reference/truths/certified|experiment5/.*/cpu-seconds|tuning/P.*/(runs|at-bound)|tuning/(judge-se|at-bound|best/.*)"
    r"|tuning/\w+-final/.*|tuning/\w+/(cpu|log-loss))(/.*)?"
)
GONE = "its table or figure is gone"


class Pair(NamedTuple):
    """An old number and its new id; without one, why it disappeared. The field may be ``log`` or ``log_se``."""

    old: str
    value: float
    id: str = ""
    field: str = "value"
    reading: str = ""
    reason: str = ""


#: File, template of ids, and columns with the last part of their ids ("." is the template itself); a column with
#: "log_" in front is the logarithm of what is kept now. Standard errors follow, where a file has them.
SPECS = """
table1 | {cell} | ours=.
table2 | {cell} | ours=.
table3 | {cell} | ours=.
table1 | {runs} | ours_nats=nats problems=instances
table2 | {runs} | data_sets=data-sets runs_least=runs-least runs_most=runs-most
table3 | {runs} | ours_nats=nats data_sets=data-sets runs_least=runs-least runs_most=runs-most
spread | spread/table{table}/P{problem}/M{samples} | lowest=lowest highest=highest below=data-sets-below-published
spread | table{table}/P{problem}/M{samples} | mean=.
spread | spread/table{table}/P{problem} | factor=factor
variance | variance/experiment{experiment}/{block} | ratio=ratio own_ratio=own-ratio runs=runs
variance | variance/experiment{experiment}/{block} | measured=measured predicted=predicted own=own
brackets | finding/brackets/table{table}/P{problem} | cells=cells runs_low=runs-low runs_high=runs-high runs=runs
brackets | finding/brackets/table{table}/P{problem} | ratio_low=ratio-low ratio_high=ratio-high
floor | finding/floor/N{dimension} | floor=fit
floor | ! one wrong truth is not identified | outlier=. without_outlier=.
tradeoff | experiment3/{method}/size{size}{state} | error={error} cpu_seconds=seconds nats=nats bias=bias
tradeoff | experiment3/{method}/size{size} | runs=runs ok=converged log_ratio={measure}-ratio
targets | time/{measure}/{series} | log_cpu_seconds=seconds log_ratio=ratio
claims | claim/time/{claim}/{form} | log_ratio=.
claims | time/claims/{claim}/{form} | log_error=log-error
defects | defects/{case}/{sampler}/{set}/{chain} | nats=nats mape=mape mae=mae converged=converged
equations | equations/{equation} | printed_error=printed corrected_error=corrected
reference | reference/P{problem} | cells=entries certified=certified trivial=trivial k_hat=largest-k-hat z=largest-z
reference | reference/P{problem} | log_evidence_se=largest-log-evidence-se probability_se=largest-probability-se
reference | reference/P{problem} | certifier_se=largest-certifier-se
"""


def rows_of(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """Rows of a table of the first edition as text, with what the new ids call them."""
    for row in (
        pd.read_csv(folder / "tables" / f"{name}.csv", dtype=str).fillna("").to_dict("records")
    ):
        more = {"cell": row.get("id", "").replace("problem", "P")}
        more["runs"] = re.sub(
            "table[23]", "experiment2", more["cell"].replace("table1", "experiment1")
        )
        blocks = [f"P{row['problem']}" if row.get("problem") else "all"]
        more["block"] = "/".join(blocks + ([f"M{row['samples']}"] if row.get("samples") else []))
        more["state"] = "" if row.get("full") == "True" else "/unconverged"
        more["error"] = "mae" if row.get("measure") == "probability" else "mape"
        more["form"] = FORMS.get(row.get("form", ""), "")
        more["set"] = row.get("switched", "").replace(" ", "-")
        more["chain"] = "longest" if row.get("samples") == "200" else "shorter"
        more["equation"] = re.sub(r"[()]", "", row.get("equation", "")).replace(" ", "-")
        yield row | {f"new_{key}": text for key, text in more.items()}


def tables(folder: Path) -> Iterator[Pair]:
    """Every number of the tables of Experiments 1 to 3, the findings, the defects, the equations and the reference."""
    for line in SPECS.strip().splitlines():
        file, template, columns = line.split(" | ")
        for number, row in enumerate(rows_of(folder, file), start=2):
            words = row | {key[4:]: text for key, text in row.items() if key.startswith("new_")}
            reason = template[2:] if template.startswith("!") else ""
            if row.get("status", "ok") != "ok" and file == "claims":
                reason = NOT_CONVERGED
            for column, name in (one.split("=") for one in columns.split()):
                lost = reason
                if column == "log_ratio" and row["new_state"] and file == "tradeoff":
                    lost = NOT_CONVERGED
                new = f"{template}/{name}".removesuffix("/.").format(**words)
                log = "log" if column in ("log_ratio", "log_cpu_seconds") else "value"
                fields = {column: log, f"{column}_se": "log_se" if log == "log" else "se"}
                fields |= {f"{column}_df": "df"}
                for key, field in fields.items():
                    if not row.get(key) or (key == "ours_se" and file in ("table2", "table3")):
                        continue  # their standard errors were pooled over sample sizes, with run noise twice
                    old = f"{file}.csv:{number}:{key}"
                    place = {"reason": lost} if lost else {"id": new, "field": field}
                    yield Pair(old, float(row[key]), **place)


def claims(folder: Path) -> Iterator[Pair]:
    """Effects of all claims, whichever part measures them."""
    for row in pd.read_csv(folder / "audit_claims.csv").to_dict("records"):
        name = row["id"].replace("/shipped", "/as-distributed").replace("/proper", "/corrected")
        old = f"audit_claims.csv:{row['id']}"
        if not math.isnan(row["effect"]):
            yield Pair(f"{old}:effect", row["effect"], f"claim/{name}")
            if row["kind"] != "share":
                field = "log_se" if row["log"] else "se"
                yield Pair(f"{old}:se", row["se"], f"claim/{name}", field)


STEPS = {"1": "0.2", "2": "0.1", "3": "0.05", "4": "0.02"}
#: Keys of ``values.json``: a pattern, and the new id, or after "!" why there is none. The first that fits counts.
#: "words": a list of words, which the text has now; "derived": the number of one size, which has an id of its own.
VALUES = r"""
brackets/cells -> finding/brackets/tables2-3/all/cells
brackets/problem4/(low|high) -> finding/brackets/tables2-3/P4/runs-\1
brackets/problem4/runs -> finding/brackets/tables2-3/P4/runs
brackets/problems1-3/(low|high) -> finding/brackets/tables2-3/P1-P3/runs-\1
brackets/problems1-3/runs -> finding/brackets/tables2-3/P1-P3/runs
brackets/table1/(low|high)est -> finding/brackets/table1/all/ratio-\1
floor/(N\d+)/fit -> finding/floor/\1/fit
floor/(N\d+)/ours -> table1/\1/M3000000
floor/N\d+/(outlier.*|without-outlier|left|ratio|remains|column) -> ! one wrong truth is not identified
floor/N\d+/(bracket.*|published) -> ! a printed number: \val{published:...}
floor/N\d+/largest.* -> ! derived
floor/grid/(\d)/(N\d+)/mean -> experiment1/\2/step\1/truth-error
floor/grid/(\d)/(N\d+)/largest -> experiment1/\2/step\1/largest-truth-error
floor/grid/(\d)/(N\d+)/share -> experiment1/\2/step\1/largest-over-mean
floor/grid/(N\d+)/first -> experiment1/\1/step1/M10000/error
floor/grid/(N\d+)/last -> experiment1/\1/step1/M3000000/error
floor/grid/.* -> ! derived
slope/table1/furthest -> slope/table1/furthest
slope/(table\d)/problem(\d)/(ours|published) -> slope/\1/P\2/\3
spread/(table\d)/problem(\d)/factor -> spread/\1/P\2/factor
spread/(table\d)/problem(\d)/(lowest|highest) -> spread/\1/P\2/M10000/\3
spread/table\d/problem(\d)/data-sets -> experiment2/P\1/M10000/data-sets
spread/.* -> ! derived
variance/(experiment\d)/problem(\d)/(.*) -> variance/\1/P\2/\3
variance/(experiment\d)/(ratio|own-ratio) -> variance/\1/all/\2
variance/.*/own-short -> ! derived: 1 - own-ratio^(-1/2)
(table[123])/problem(\d)/(M\d+)/ours -> \1/P\2/\3
(table1/N\d+/M\d+)/ours -> \1
table[123]/.*/published -> ! a printed number: \val{published:...}
table[123]/.*/ratio -> ! the verdict's effect
tradeoff/published/(new|ess)/cpu -> experiment3/quoted/\1/seconds
tradeoff/published/(new|ess)/log-mape -> experiment3/quoted/\1/log-mape
tradeoff/published/ratio -> experiment3/quoted/ess-over-new
tradeoff/(\w+)/target -> time/\1/target
tradeoff/(\w+)/(.*)/cpu -> time/\1/\2/seconds
tradeoff/(\w+)/(.*)/phrase -> time/\1/\2/ratio
tradeoff/(\w+)/(.*)/match -> time/\1/\2/sampler-seconds
tradeoff/\w+/(ep|laplace)/seconds -> experiment3/\1/size0/seconds
tradeoff/probability/(ep|laplace)/error -> experiment3/\1/size0/mae
tradeoff/evidence/(ep|laplace)/error -> experiment3/\1/size0/mape
tradeoff/runs -> experiment3/orthant/size0/runs
tradeoff/.* -> ! words
claims/(.*)/shipped/phrase -> claim/time/\1/as-distributed
claims/(.*)/proper/phrase -> claim/time/\1/corrected
claims/.* -> ! no ratio of what did not converge
defects/(samples|replicates|runs|converged) -> defects/all/longest/\1
defects/(\w+)/(ess|hmc)/([\w-]+)/(repaired|alone)/(nats|mae) -> defects/effect/\1/\2/\3/\4/longest/\5
defects/(\w+)/(ess|hmc)/([\w-]+)/(nats|mape|mae|log-mae) -> defects/\1/\2/\3/longest/\4
defects/.* -> ! words
reference/(certified|uncertified|trivial) -> reference/all/\1
reference/cells -> reference/all/entries
reference/(log-evidence-se|certifier-se) -> reference/all/largest-\1
reference/max-probability-se -> reference/all/largest-probability-se
reference/truths -> reference/truths/entries
reference/truths-certified -> reference/truths/certified
reference/check-(drawn|agree) -> reference-check/all/\1
reference/check-cells -> reference-check/all/done
(reference|experiment[12])/.* -> ! words
"""
RULES = [tuple(line.split(" -> ")) for line in VALUES.strip().splitlines()]


def values(folder: Path) -> Iterator[Pair]:
    """Values of the text that are numbers; effects of defects were scaled by a thousand."""
    for key, entry in json.loads((folder / "values.json").read_text()).items():
        found = next(((m, new) for rule, new in RULES if (m := re.fullmatch(rule, key))), None)
        value = entry["value"]
        if found is None or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        match, new = found
        scale = 1e-3 if re.search(r"/(repaired|alone)/mae$", key) else 1.0
        if new.startswith("!"):
            yield Pair(f"values.json:{key}", value, reason=new[2:])
            continue
        name = re.sub(r"/step(\d)/", lambda m: f"/step{STEPS[m[1]]}/", match.expand(new))
        yield Pair(f"values.json:{key}", scale * value, name)
        if entry["se"] is not None and not key.startswith(("table2", "table3")):
            yield Pair(f"values.json:{key} se", scale * entry["se"], name, "se")


#: What the first edition had, by part. Each takes the folder of its published-scale results.
PAIRS: dict[str, Callable[[Path], Iterator[Pair]]] = {
    "tables": tables,
    "claims": claims,
    "values of the text": values,
}


def same(old: float, new: float) -> bool:
    """Whether two numbers agree within 1e-12, or in the digits of a rounded file; NaN agrees with NaN."""
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) and math.isnan(new)
    if math.isclose(old, new, rel_tol=1e-12, abs_tol=1e-300):
        return True
    return any(float(f"{old:.{n}g}") == old == float(f"{new:.{n}g}") for n in DIGITS)


def placed(pair: Pair) -> Pair:
    """The pair as it is called now: claims on CPU time have a reading, and some ids are gone."""
    if found := re.fullmatch(r"((?:claim/time|time/claims)/[^/]+)/([a-z-]+)(/.*)?", pair.id):
        return pair._replace(id=found[1] + (found[3] or ""), reading=f"chain={found[2]}")
    return pair._replace(reason=GONE) if DROPPED.fullmatch(pair.id) else pair


def compare(folder: Path, estimates: pd.DataFrame) -> pd.DataFrame:
    """Every old number with its new one: ``part``, ``old``, ``id``, ``before``, ``now``, ``verdict``, ``reason``."""
    known = estimates.set_index(["id", "reading"])
    rows, parts = [], dict(PAIRS)
    for path in sorted(Path(__file__).parent.glob("compare_first_edition_*.py")):
        parts |= import_module(path.stem).PAIRS
    for part, pairs in parts.items():
        for pair in map(placed, pairs(folder)):
            row: dict[str, Any] = {
                "part": part,
                "old": pair.old,
                "id": pair.id,
                "before": pair.value,
            }
            if pair.reason:
                verdict, new = "disappeared", math.nan
            elif (pair.id, pair.reading) not in known.index:
                verdict, new = ("equal" if math.isnan(pair.value) else "absent"), math.nan
            else:
                entry = known.loc[(pair.id, pair.reading)]
                new = {
                    "log": math.log(entry["value"]) if entry["value"] > 0 else math.nan,
                    "log_se": entry["se"] / entry["value"] if entry["value"] else math.nan,
                }.get(pair.field, entry.get(pair.field))
                verdict = "equal" if same(float(pair.value), float(new)) else "differs"
            rows.append(row | {"now": new, "verdict": verdict, "reason": pair.reason})
    return pd.DataFrame(rows)


def main(old: str, new: str) -> int:
    """Print the comparison: what differs or is absent in full, then counts."""
    estimates = pd.read_csv(Path(new) / "estimates.csv", dtype={"reading": str})
    found = compare(Path(old), estimates.fillna({"reading": ""}))
    pd.set_option("display.width", 220, "display.max_rows", 500, "display.max_colwidth", 70)
    print(found[found["verdict"].isin(["differs", "absent"])].to_string(index=False))
    print(found[found["verdict"] == "disappeared"].groupby(["part", "reason"]).size().to_string())
    print(found.groupby(["part", "verdict"]).size().to_string())
    counts = Counter(found["verdict"])
    return int(counts["differs"] + counts["absent"] > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

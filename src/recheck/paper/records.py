"""The look-ups of a text as records: what each number prints, what was printed, its origin, and how to run it again.

``values.tex`` and ``origins.tex`` have the texts for LaTeX; these records are for whatever else shows the numbers, and
the table of origins for whoever opens it beside the PDF.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from recheck.judge.format import full
from recheck.paper.lookups import MOST, Found, Study, address, cut, study_and_key


def records(
    found: Iterable[Found],
    studies: Mapping[str, Study],
    record: Mapping[str, object],
    folder: str,
    numbers: str,
    command: Callable[[str], str],
) -> list[dict[str, Any]]:
    """One mapping a look-up; the arguments are those of `recheck.paper.lookups.collect` and `write_origins`.

    `command` says how to run the number of a key again. `places` are files with their lines and where a link from
    `folder` finds them; `more` is how many are not listed.
    """
    answers = []
    for one in found:
        use = one.use
        places = [place for place in one.source.split("; ") if place]
        named = {"key": use.key, "options": use.options, "tex": one.text, "known": one.known}
        origin = {
            "places": [(cut(one, 40), address(one, record, folder)) for one in places[:MOST]],
            "more": max(len(places) - MOST, 0),
            "seed": one.seed,
            "rests_on": one.count,
            "command": command(use.key),
        }
        answers.append(named | _judged(one, studies, numbers) | origin)
    return answers


def origins(found: Iterable[Found], command: Callable[[str], str]) -> pd.DataFrame:
    """The origin of every key in full: number, units and runs, verdict, files with all lines, seed and the command."""
    lines = [
        {
            "key": one.use.key,
            "number": one.digits,
            "rests_on": one.count,
            "verdict": one.verdict,
            "source": one.source,
            "seed": one.seed,
            "command": command(one.use.key),
        }
        for one in found
    ]
    return pd.DataFrame(lines).drop_duplicates("key", ignore_index=True)


def _judged(one: Found, studies: Mapping[str, Study], numbers: str) -> dict[str, str]:
    """What was printed, what is ours, and the verdict, as plain text; empty where there is none."""
    _, study, key = study_and_key(one.use.key, studies)
    kind = re.match(r"verdict:|published:", key)
    id = key.removeprefix(kind[0] if kind else "").partition("@")[0]
    cells, old = study.book.cells, study.book.kept
    verdicts = (old if old and numbers == "kept" else study.book).verdicts
    printed, ours, verdict = "", "" if kind else one.digits, one.verdict
    if id in cells.index:
        bracket = cells.loc[id, "bracket"]
        printed = str(cells.loc[id, "printed"]) + (f" ({bracket})" if bracket else "")
    if id in verdicts.index:
        row = verdicts.loc[id]
        printed, verdict = printed or str(row["printed"]), str(row["verdict"])
        ours = ours or full(float(row["ours"]), float(row["ours_se"]))
    return {"printed": printed, "ours": "" if ours == "nan" else ours, "verdict": verdict}

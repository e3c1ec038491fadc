"""The gallery of the judge: ``judge_gallery.yaml`` is judged when the pages are built, and by a test."""

from pathlib import Path

import numpy as np
import pandas as pd

from recheck.judge.declared import read_yaml
from recheck.judge.measures import estimate
from recheck.judge.output import line, summary
from recheck.judge.published import Protocol, Published, as_cells
from recheck.judge.starting import Said, completed, read_ours, with_rules
from recheck.judge.verdicts import judge

PATH = Path(__file__).with_name("judge_gallery.yaml")


def tables():
    """The tables of the gallery."""
    return read_yaml(PATH, list)


def judged(entry, folder):
    """The study of a table and its verdicts; `folder` is for the file of ours."""
    options = dict(entry["options"])
    rules = {"agree": options.pop("margin", None), "difference": options.pop("difference", None)}
    exact = options.pop("exact", False)
    said = Said(rounded=options.pop("rounding", ""), **options)
    rows = [{"id": id, "printed": text} for id, text in entry["printed"].items()]
    for row in rows:
        row["units"] = str(entry["items"][row["id"]]) if "items" in entry else ""
    frame = completed(pd.DataFrame(rows), entry["title"], said)
    study = Published(as_cells(frame, entry["title"]), protocol=Protocol(spreads=True))
    study = with_rules(study, rules)
    path = Path(folder, "ours.csv")
    path.write_text(ours(entry), encoding="utf-8")
    measures, study, _ = read_ours(path, study)
    if exact:
        measures["se"], measures["df"] = 0.0, np.inf
        measures["scale"] = study.cells["scale"] = "linear"
    return study, judge(measures, estimate(measures), study, 1).frame


def ours(entry):
    """Our side as the table that the command reads."""
    lines = ["id,value,sd,n"]
    for id, given in entry["ours"].items():
        if isinstance(given, list):
            lines += [f"{id},{value},," for value in given]
        elif "counts" in given:
            right, items = given["counts"], entry["items"][id]
            lines += [f"{id},{int(place < right)},," for place in range(items)]
        else:
            lines.append(f"{id},{given['mean']},{given['sd']},{given['n']}")
    return "\n".join([*lines, ""])


def calibration(root):
    """The kept table of rates as reStructuredText."""
    table = pd.read_csv(root / "data" / "published" / "calibration.csv")
    names = {
        "shape": "design, ours beside theirs",
        "kind": "compared",
        "studies": "studies",
        "false_alarms": "false alarms, %",
        "rare_alarms": "rare alarms, %",
        "false_agreement": "false agreements, %",
        "coverage": "covered, %",
        "power": "found, %",
        "detectable": "detectable",
    }
    parts = [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    parts += [f"   {'* -' if n == 0 else '  -'} {name}" for n, name in enumerate(names.values())]
    for row in table.to_dict("records"):
        texts = []
        for name, head in names.items():
            value = row[name]
            if isinstance(value, float) and not np.isfinite(value):
                texts.append("\\ ")
            elif head.endswith("%"):
                texts.append(f"{100 * value:.3g}")
            else:
                texts.append(f"{value:.3g}" if isinstance(value, float) else str(value))
        parts += [f"   {'* -' if n == 0 else '  -'} {text}" for n, text in enumerate(texts)]
    return "\n".join([*parts, ""])


def page(folder):
    """The gallery as reStructuredText: each table with its verdicts, and what a reader should conclude."""
    parts = []
    for entry in tables():
        study, frame = judged(entry, folder)
        shown = [line(row, study) for row in frame.to_dict("records")]
        names = ["id", "printed", "ours", "ours is", "verdict"]
        parts += [entry["title"], "-" * len(entry["title"]), "", f"*{entry['source']}*", ""]
        parts += [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
        for row in [dict(zip(names, names, strict=True)), *shown]:
            texts = [row[name] or "\\ " for name in names]
            parts += [
                f"   {'* -' if place == 0 else '  -'} {text}" for place, text in enumerate(texts)
            ]
        parts += ["", f"{summary(frame, study)}.", "", entry["conclude"], ""]
    return "\n".join(parts)

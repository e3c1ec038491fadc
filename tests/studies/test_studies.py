"""What the studies promise alike: plans, rows that do not depend on how they are run, and the way to verdicts."""

import csv
import json
import random
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
import small
import yaml
from small import SMALL, modules, plan

from recheck.judge.measures import as_measures, estimate
from recheck.judge.published import read_published
from recheck.judge.verdicts import judge
from recheck.record.files import read_arrays, read_csv, write_arrays, write_csv
from recheck.report.book import Book, read
from recheck.report.layout import read_layout
from recheck.report.tables import write_tables
from studies.common.kept import Kept
from studies.common.plan import declared
from studies.common.rows import TEXT, run_row, table_of, write_table
from studies.neal1997 import chains, exact
from studies.neal1997.runs import CLASSES, OUTLIERS

KEPT = small.ROOT / "data/reference"
#: Studies beside the paper's own, which has tests of its own.
OTHERS = [name for name in SMALL if name != "atiya2021"]

# --- Configuration and plans

#: Study, place in the configuration, value there, and what is said of it.
with Path(__file__).with_name("refused.csv").open(encoding="utf-8") as file:
    REFUSED = list(csv.reader(file))[1:]


def refusals(config, study):
    with pytest.raises(ValueError, match="The configuration is refused:") as refusal:
        small.check(study, config)
    return [line.strip() for line in str(refusal.value).splitlines()[1:]]


@pytest.mark.parametrize(("study", "path", "value", "said"), REFUSED)
def test_what_is_wrong_is_refused_by_name(study, path, value, said):
    config = small.load("tiny")
    small.put(config, path, small.MISSING if value == "(missing)" else yaml.safe_load(value))
    lines = refusals(config, study)
    assert any(said in line for line in lines), lines
    named = [part for part in path.split("/") if not part.isdigit()][:2]
    assert all(part in lines[0] for part in named), lines
    assert max(map(len, lines)) < 400, "a missing block must not print the configuration"


@pytest.mark.parametrize("scale", small.SCALES)
@pytest.mark.parametrize("study", SMALL)
def test_every_scale_has_plans(study, scale):
    for name in modules(study, "experiments"):
        rows = plan(study, name, scale=scale)
        assert rows and json.loads(json.dumps(rows)) == rows, name


FEW, MORE = ({"samples": m} for m in (100, 300))
#: Study, experiments, and changes of the small configuration that give each of these more rows.
LONGER = [
    ("atiya2021", "experiment1 quadrature", {"experiment1__grid": [one | {"instances": 5} for one in (FEW, MORE)]}),
    ("atiya2021", "inexact", {"experiment1__inexact": 4}),
    ("atiya2021", "experiment1", {
        "experiment1__grid": [{"samples": m, "instances": 3} for m in (100, 300, 900)]}),
    ("atiya2021", "experiment2", {"experiment2__grid": [
        FEW | {"datasets": 4, "runs": 2}, MORE | {"datasets": 4, "runs": 1}]}),
    ("atiya2021", "experiment3", {"experiment3__methods__adapted__data_sets": 4}),
    ("atiya2021", "ordering", {"ordering__data_sets": 5}),
    ("atiya2021", "scaling", {"scaling__sizes": [
        {"patterns": 12, "data_sets": 5}, {"patterns": 16, "data_sets": 1}, {"patterns": 20, "data_sets": 2}]}),
    ("atiya2021", "scaling", {"scaling__methods__further": {"method": "ep"}}),
    ("atiya2021", "advice", {"advice__rule__replicates": 3}),
    ("atiya2021", "whofits", {"whofits__splits": 2}),
    ("atiya2021", "variances", {"variances__betas": [1.0, 10.0, 1e6]}),
    ("atiya2021", "variances", {"variances__sizes": [{"patterns": 10, "data_sets": 3}]}),
    ("atiya2021", "defects", {"defects__grid": [{"samples": 8, "replicates": 6}]}),
    ("atiya2021", "experiment4", {"experiment4__data_sets": [4] * 9}),
    ("atiya2021", "experiment4 reference_check", {"experiment4__problems": [1, 2]}),
    ("atiya2021", "experiment4", {"experiment4__methods__adapted__replicates": 5}),
    ("atiya2021", "benchmark", {"benchmark__replicates": 5}),
    ("atiya2021", "benchmark", {"benchmark__parts": [2, 4]}),
    ("atiya2021", "spread", {"experiment4__spread_data_sets": 7}),
    ("atiya2021", "tuning", {"experiment5__tuning__methods__orthant-500__replicates": 5}),
    ("atiya2021", "tuning_gradient", {"experiment5__tuning__problems": [1, 7]}),
    ("cao2024", "spread", {"spread__large__methods__minimax-tilting": {"draws": 40, "estimates": 4}}),
    ("cao2024", "reference", {"reference__calls": 5}),
    ("cao2024", "reference", {"reference__finer__neighbours": [10, 20, 40]}),
    ("filippone2014", "conditionals", {"conditionals__sets": 3}),
    ("filippone2014", "spread weights", {"spread__sets": 3}),
    ("filippone2014", "pilot chains", {"chains__problems__0__sets": 2}),
    ("filippone2014", "pilot real", {"real__0__data": ["pima", "sonar"]}),
    ("filippone2014", "prediction quadrature", {
        "prediction__data": ["pima", "sonar"], "prediction__splits": 2}),
    ("neal1997", "classes", {"classes__runs": dict.fromkeys(CLASSES, 5)}),
    ("neal1997", "outliers", {"outliers__runs": dict.fromkeys(OUTLIERS, 7)}),
    ("neal1997", "laplace", {"laplace__training": [100, 400]}),
    ("rasmussen2006", "machines", {"comparators__searches": 5}),
    ("rasmussen2006", "toy pictures", {"toy__draws": 6}),
    ("rasmussen2006", "exact", {"exact__points": [*small.RASMUSSEN2006["exact"]["points"], [0.7, 1.0]]}),
    ("rasmussen2006", "tenclass", {"ten_classes__points": [[0.5, 1.0], [0.3, 1.0]]}),
    ("rasmussen2006", "crossvalidation", {
        "crossvalidation__prepared__svm": {"crabs": 3}, "crossvalidation__unprepared__laplace__crabs": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("study", "experiments", "changes"), LONGER)
def test_more_of_something_leaves_the_other_rows_as_they_are(study, experiments, changes):
    for experiment in experiments.split():
        before, after = (
            {row["row"]: row for row in small.rows_of(study, experiment, **more)}
            for more in ({}, changes)
        )
        assert len(after) > len(before)
        assert {name: after[name] for name in before} == before


# --- Rows

#: Of the paper's own study; of the others all experiments.
CHEAP = [
    *("experiment1", "quadrature", "inexact", "experiment2", "experiment3", "experiment4"),
    *("benchmark", "spread", "posterior_chains", "tuning", "tuning_gradient", "ordering"),
    *("scaling", "advice", "whofits", "variances", "equations"),
]
EXPERIMENTS = [("atiya2021", name) for name in CHEAP]
EXPERIMENTS += [(study, name) for study in OTHERS for name in modules(study, "experiments")]


@pytest.mark.parametrize(("study", "experiment"), EXPERIMENTS)
def test_rows_are_the_same_however_they_are_run(study, experiment, tmp_path, monkeypatch):
    """In one job, and shuffled in a job each; that any job will do is asked in test_rows.py."""
    monkeypatch.setattr(chains, "SCANS", 2)
    monkeypatch.setattr(exact, "STEP", 0.5)
    rows = small.rows_of(study, experiment)
    rows = rows if study == "atiya2021" else rows[:4]
    for way, jobs in {
        "together": [rows],
        "alone": [[row] for row in random.Random(0).sample(rows, len(rows))],
    }.items():
        small.write(study, experiment, jobs, tmp_path / way)
    for end in (".csv", ".npz"):
        one, two = (
            (tmp_path / way / f"{experiment}{end}").read_bytes() for way in ("together", "alone")
        )
        assert one == two


# --- Kept rows, measures and verdicts


def published(study):
    return read_published(small.ROOT / "data/published" / study)


@cache
def kept(study, name):
    return read(KEPT / study / name)


def judged(study, frame):
    return judge(frame, estimate(frame), published(study), 1).frame.set_index("id")


@pytest.mark.parametrize("study", OTHERS)
def test_measures_of_kept_rows_are_the_kept_measures(study, tmp_path):
    """But for rounding. That those rows are what a run gives is asked by `make verify`."""
    path, store = tmp_path / "measures.csv", Kept(KEPT / study)
    for experiment in store.experiments:
        write_table(tmp_path / experiment, store.table(experiment))
    write_csv(path, small.measures(study, tmp_path))
    expected = kept(study, "measures.csv.gz")
    pd.testing.assert_frame_equal(read(path), expected, rtol=1e-9, atol=1e-12)


#: Ids of measures that have to be those of cells or claims, by study.
JUDGED = {
    "cao2024": "log-p/|claim/",
    "filippone2014": "claim/",
    "neal1997": "claim/|section6|documentation|software2022",
    "rasmussen2006": "claim/|section|figure3.[67]",
}


@pytest.mark.parametrize("study", JUDGED)
def test_every_cell_and_claim_has_a_kept_measure_and_no_other_looks_like_one(study):
    verdicts, known = kept(study, "verdicts.csv").set_index("id"), published(study)
    claims = [f"claim/{claim.id}" for claim in known.claims]
    assert {*known.cells.index, *claims} <= {*verdicts.index}
    assert "not run" not in set(verdicts["verdict"])
    ids = {id for id in kept(study, "measures.csv.gz")["id"] if re.match(JUDGED[study], id)}
    assert not ids - {*known.cells.index, *claims}


def test_fewer_iterations_than_the_papers_do_not_count(tmp_path):
    """Kept chains without their first iteration."""
    folder = KEPT / "neal1997"
    for name in ("classes", "outliers"):
        rows = read_csv(folder / f"{name}.csv", **TEXT)
        write_csv(tmp_path / f"{name}.csv", rows[rows["iteration"] != "1"])
    write_arrays(tmp_path / "outliers.npz", read_arrays(folder / "outliers.npz"))
    write_csv(tmp_path / "exact.csv", read_csv(folder / "exact.csv", **TEXT))
    frame = small.measures("neal1997", tmp_path, ["classes", "outliers"])
    found = judged("neal1997", frame)
    for id in ("section6/1997-400/error-percent", "claim/outliers"):
        assert found.loc[id, "verdict"] == "not comparable"
    assert not frame["id"].str.endswith("astray").any()


#: Cells and claims that rest on simulated data alone, by studies that have raw data.
SIMULATED = {
    "filippone2014": "claim/(?!prediction)",
    "neal1997": "$^",
    "rasmussen2006": ".*(toy|lone|figure3.6)",
}


@pytest.mark.parametrize("study", SIMULATED)
def test_without_raw_data_every_verdict_says_so(study, tmp_path):
    """Kept rows of simulated data, beside what all others say without data."""
    known = declared(study)
    for name in {name for names in known.measures.values() for name in names}:
        run = modules(study, "experiments")[name].run
        if known.experiments[name] and name != "chains":
            rows = table_of(run_row(run, row, {"data": {}}) for row in plan(study, name)).rows
        else:
            rows = read_csv(KEPT / study / f"{name}.csv", **TEXT)
        write_csv(tmp_path / f"{name}.csv", rows)
    found = judged(study, small.measures(study, tmp_path))
    cells = found[found["kind"].isin(["cell", "claim"])]
    rests = ~cells.index.str.match(SIMULATED[study])
    assert set(cells.loc[rests, "verdict"]) == {"data not available"} and rests.sum() >= 5


# --- Tables and figures


def drawn(figure):
    """What each panel of a figure shows: title, axes, how many points and contours or bands, and legends."""
    for axes in figure.axes:
        legends = [*figure.legends, *filter(None, [axes.get_legend()])]
        names = [text.get_text() for legend in legends for text in legend.get_texts()]
        points = sum(len(line.get_xdata()) for line in axes.lines)
        labels = [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
        yield [*labels, str(points), str(len(axes.collections)), "; ".join(names)]


#: Study, figure, and what a panel of it shows of the kept results (`drawn`).
with Path(__file__).with_name("drawn.csv").open(encoding="utf-8") as file:
    DRAWN = list(csv.reader(file))[1:]


@pytest.mark.parametrize("study", OTHERS)
def test_tables_and_figures_show_the_kept_results(study, tmp_path):
    folder = small.ROOT / "data/published" / study
    book = Book.read(KEPT / study, folder)
    figures = import_module(f"studies.{study}.figures").FIGURES
    layout = read_layout(small.ROOT / "src/studies" / study / "layout.yaml")
    assert set(layout.figures) == set(figures)
    reads = {part for entry in layout.figures.values() for part in entry.reads}
    assert reads <= set(modules(study, "measures"))
    write_tables(layout, book, None, tmp_path)
    for name in layout.tables:
        assert "not run at this scale" not in (tmp_path / f"{name}.tex").read_text(), name
    found = [[study, name, *panel] for name, draw in figures.items() for panel in drawn(draw(book))]
    assert found == [line for line in DRAWN if line[0] == study]


def test_figures_of_a_run_that_did_nothing_say_so():
    known, figures = published("neal1997"), import_module("studies.neal1997.figures").FIGURES
    nothing = as_measures([{"id": "a/b", "value": 1.0, "scale": "linear"}])
    defaults = {choice.name: choice.default for choice in known.readings.values()}
    book = Book(estimate(nothing), nothing, known.cells, None, defaults=defaults)
    for draw in figures.values():
        assert "not run" in draw(book).axes[0].texts[0].get_text()

"""What the studies promise alike: plans, rows that do not depend on how they are run, and the way to verdicts."""

import csv
import json
import random
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
import small
import yaml
from small import SMALL, modules, plan

from recheck.judge.measures import as_measures, estimate
from recheck.judge.published import read_published
from recheck.judge.verdicts import judge
from recheck.report.book import Book
from recheck.report.layout import read_layout
from recheck.report.tables import write_tables
from studies.neal1997 import chains, exact
from studies.neal1997.measures import classes as neal_classes
from studies.neal1997.measures import outliers as neal_outliers
from studies.neal1997.runs import CLASSES, OUTLIERS

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
        blocks = sorted({row["block"] for row in rows})
        assert blocks == list(range(len(blocks))), name


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
    ("atiya2021", "packaged", {"packaged__rule__replicates": 3}),
    ("atiya2021", "defects", {"defects__grid": [{"samples": 8, "replicates": 6}]}),
    ("atiya2021", "experiment4", {"experiment4__data_sets": [4] * 9}),
    ("atiya2021", "experiment4 reference_check", {"experiment4__problems": [1, 2]}),
    ("atiya2021", "experiment4", {"experiment4__methods__adapted__replicates": 5}),
    ("atiya2021", "benchmark", {"benchmark__replicates": 5}),
    ("atiya2021", "benchmark", {"benchmark__parts": [2, 4]}),
    ("atiya2021", "spread", {"experiment4__spread_data_sets": 7}),
    ("atiya2021", "tuning", {"experiment5__tuning__methods__orthant-500__replicates": 5}),
    ("atiya2021", "tuning_gradient", {"experiment5__tuning__problems": [1, 7]}),
    ("cao2024", "spread", {"spread__units": {"minimax-tilting": 3, "separation": 2, "twisted-ep": 3}}),
    ("cao2024", "spread", {"spread__between__units": 4}),
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

CHEAP = {
    "atiya2021": ["experiment1", "quadrature", "inexact", "experiment2", "experiment3", "experiment4", "benchmark",
                  "spread", "posterior_chains", "tuning", "tuning_gradient", "ordering", "scaling", "packaged",
                  "equations"],
    "cao2024": ["spread", "reference"],
    "filippone2014": ["conditionals", "spread", "weights", "real", "prediction"],
    "neal1997": ["classes", "outliers", "exact", "bayes", "laplace", "priors"],
    "rasmussen2006": ["surface", "comparators", "toy", "crossvalidation"],
}  # fmt: skip


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(chains, "SCANS", 2)
    monkeypatch.setattr(exact, "STEP", 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "experiment"), [(study, name) for study, names in CHEAP.items() for name in names]
)
def test_rows_are_the_same_however_they_are_run(study, experiment, tmp_path, quick):
    rows = small.rows_of(study, experiment)
    rows = rows[:6] if study == "rasmussen2006" else rows
    shuffled, half = random.Random(0).sample(rows, len(rows)), len(rows) // 2
    ways = {
        "together": [rows],
        "alone": [[row] for row in shuffled],
        "in two": [rows[half:], rows[:half]],
    }
    if (
        study != "atiya2021"
    ):  # its rows differ in their columns, which a job writes in the order of its rows
        ways["in two"] = [shuffled[::2], shuffled[1::2]]
    for way, blocks in ways.items():
        small.write(study, experiment, list(filter(None, blocks)), tmp_path / way)
    for end in (".csv", ".npz"):
        assert len({(tmp_path / way / f"{experiment}{end}").read_bytes() for way in ways}) == 1


# --- Measures and verdicts


class Source(NamedTuple):
    """What the small configuration of a study makes, by ids that begin as patterns say."""

    judged: str  # measures that have to be cells or claims
    absent: str  # cells and claims that it does not run
    simulated: str  # those that rest on no raw data
    tables: list[str]  # in which nothing is said not to have been run
    printed: str = ""  # a number of the table of what was printed


SOURCES = {
    "cao2024": Source("sd/(?!.*twisted)|claim/", "$^", ".*", [], ".340"),
    "filippone2014": Source(
        "claim/",
        "$^",
        "claim/(?!prediction)",
        ["conditionals", "spread", "single", "repeated", "real", "prediction"],
    ),
    "neal1997": Source(
        "claim/|section6|documentation|software2022",
        ".*2022-(400|100|gaussian)",
        "$^",
        [],
        "0.1333",
    ),
    "rasmussen2006": Source(
        "claim/|section|figure3.[67]",
        "figure3.11/laplace|section3.7.4/(linear|svm)|claim/ten|kuss",
        ".*(toy|lone|figure3.6)",
        ["printed"],
        "-99",
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a study's tables, of made data, once it is asked for."""

    @cache
    def folder_of(study):
        folder = tmp_path_factory.mktemp(study)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chains, "SCANS", 3)
            small.write_all(study, folder)
        return folder

    return folder_of


@pytest.fixture
def few_iterations(monkeypatch):
    """Those of Neal's small chains, as if they were those of the paper."""
    monkeypatch.setattr(neal_classes, "CLASSES_ITERATIONS", 8)
    monkeypatch.setattr(neal_outliers, "OUTLIERS_ITERATIONS", 6)


def published(study):
    return read_published(small.ROOT / "data/published" / study)


def judged(study, frame):
    return judge(frame, estimate(frame), published(study), 1).frame.set_index("id")


@pytest.mark.slow
@pytest.mark.parametrize("study", SOURCES)
def test_every_cell_and_claim_has_a_measure(study, made, few_iterations):
    frame = small.measures(study, made(study))
    found, known = judged(study, frame), published(study)
    not_run = found.index[(found["verdict"] == "not run") & (found["kind"] != "column")]
    assert all(re.match(SOURCES[study].absent, id) for id in not_run), list(not_run)
    ids = {id for id in frame["id"] if re.match(SOURCES[study].judged, id)}
    ids -= {*known.cells.index, *(f"claim/{claim.id}" for claim in known.claims)}
    assert not ids, sorted(ids)
    if study == "rasmussen2006":
        note = found.loc["figure3.7/laplace/errors", "note"]
        assert note.startswith("judged by its rounding")
    if study == "filippone2014":
        assert (frame["seed"] != "").all() and (frame["source"] != "").all()


def test_fewer_iterations_than_the_papers_do_not_count(made):
    frame = small.measures("neal1997", made("neal1997"))
    found = judged("neal1997", frame)
    for id in ("section6/1997-400/error-percent", "claim/outliers"):
        assert found.loc[id, "verdict"] == "not comparable"
    assert not frame["id"].str.endswith("astray").any()


@pytest.mark.slow
@pytest.mark.parametrize("study", [name for name in SOURCES if SOURCES[name].simulated != ".*"])
def test_without_raw_data_every_verdict_says_so(study, tmp_path):
    small.write_all(study, tmp_path, available=False)
    found = judged(study, small.measures(study, tmp_path))
    cells = found[found["kind"].isin(["cell", "claim"])]
    rests = ~cells.index.str.match(SOURCES[study].simulated)
    assert set(cells.loc[rests, "verdict"]) == {"data not available"} and rests.sum() >= 5


@pytest.mark.slow
@pytest.mark.parametrize("study", SOURCES)
def test_tables_and_figures_are_drawn(study, made, few_iterations, tmp_path):
    frame, known = small.measures(study, made(study)), published(study)
    figures = import_module(f"studies.{study}.figures").FIGURES
    defaults = {choice.name: choice.default for choice in known.readings.values()}
    verdicts = judge(frame, estimate(frame), known, 1).frame
    book = Book(estimate(frame), frame, known.cells, verdicts, defaults=defaults)
    layout = read_layout(small.ROOT / "src/studies" / study / "layout.yaml")
    assert set(layout.figures) == set(figures)
    reads = {part for entry in layout.figures.values() for part in entry.reads}
    assert reads <= set(modules(study, "measures"))
    write_tables(layout, book, None, tmp_path)
    source = SOURCES[study]
    for name in source.tables:
        assert "not run at this scale" not in (tmp_path / f"{name}.tex").read_text(), name
    if source.printed:
        assert source.printed in (tmp_path / "printed.tex").read_text().replace("$-$", "-")
    for draw in figures.values():
        assert any(axes.has_data() for axes in draw(book).axes)


def test_figures_of_a_run_that_did_nothing_say_so():
    known, figures = published("neal1997"), import_module("studies.neal1997.figures").FIGURES
    nothing = as_measures([{"id": "a/b", "value": 1.0, "scale": "linear"}])
    defaults = {choice.name: choice.default for choice in known.readings.values()}
    book = Book(estimate(nothing), nothing, known.cells, None, defaults=defaults)
    for draw in figures.values():
        assert "not run" in draw(book).axes[0].texts[0].get_text()

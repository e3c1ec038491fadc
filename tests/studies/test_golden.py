"""What is made of golden rows: measures as they were, and tables and figures that can be read."""

import golden
import matplotlib.text
import numpy as np
import pandas as pd
import pytest

from recheck.judge.measures import estimate
from recheck.judge.published import read_published
from recheck.judge.verdicts import judge
from recheck.record.files import DamagedFileError, read_csv, write_arrays
from recheck.report import style
from recheck.report.book import Book
from recheck.report.layout import read_layout
from recheck.report.tables import write_tables
from studies.atiya2021.figures import FIGURES
from studies.atiya2021.patterns import patterns

STUDY = "atiya2021"
PUBLISHED = golden.ROOT / "data/published" / STUDY
#: Widest figure, inches; and smallest print, points.
WIDTH, SMALLEST = 166 / 25.4, 8.0
#: The reading of a median: the defaults of what the paper leaves unsaid.
DEFAULTS = "count=equal-seconds;ess=equal-seconds;hmc=equal-seconds;variance=once"


@pytest.fixture(scope="module", params=golden.CHOSEN)
def made(request, tmp_path_factory):
    """Study, measures of its golden rows, and their estimates."""
    frame = golden.measures(
        request.param, golden.tables(request.param, tmp_path_factory.mktemp("made"))
    )
    return request.param, frame, golden.estimates(request.param, frame)


def test_estimates_of_golden_rows_are_what_they_were(made):
    study, _, found = made
    texts = ["id", "reading", "scale", "status", "source"]
    options = {"dtype": dict.fromkeys(texts, str), "keep_default_na": False, "na_values": [""]}
    kept = read_csv(golden.GOLDEN / study / "estimates.csv", **options)
    named = [one[["id", "reading"]].fillna("").to_records(index=False) for one in (found, kept)]
    assert [*named[0]] == [*named[1]]
    for column in kept:
        if kept[column].dtype.kind == "f":
            one, two = (frame[column].astype(float).to_numpy() for frame in (found, kept))
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-14, err_msg=column)
        else:
            other = found[column].fillna("").astype(str) != kept[column].fillna("").astype(str)
            assert not other.any(), found[other].iloc[0].to_dict()


def book_of(study, frame, estimates, **more):
    known = read_published(golden.ROOT / "data/published" / study)
    defaults = {name: choice.default for name, choice in known.readings.items()}
    return Book(estimates, frame, known.cells, defaults=defaults, **more)


@pytest.fixture(scope="module")
def books(made):
    """A book of golden rows, and one of what rests on no row: numbers that were printed."""
    study, frame, _ = made
    printed = frame[~frame["source"].str.contains(".csv:", regex=False)].reset_index(drop=True)
    rows = {"golden": frame, "nothing": printed}
    return {name: book_of(study, own, estimate(own)) for name, own in rows.items()}


def test_tables_have_numbers(made, books, tmp_path):
    study = made[0]
    layout = read_layout(golden.ROOT / f"src/studies/{study}/layout.yaml")
    names = [name for name, entry in layout.tables.items() if "verdicts" not in entry.reads]
    write_tables(layout, books["golden"], names, tmp_path)
    for name in names:
        table = pd.read_csv(tmp_path / f"{name}.csv")
        assert np.isfinite(table["value"]).any(), name
    write_tables(layout, books["nothing"], names, tmp_path)


def draw(name, book):
    with style.style():
        figure = FIGURES[name](book)
        figure.draw_without_rendering()
    return figure


def texts_of(figure):
    every = figure.findobj(matplotlib.text.Text)
    return [one for one in every if one.get_text() and one.get_visible()]


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("which", ["golden", "nothing"])
def test_every_figure_can_be_read(books, name, which):
    figure = draw(name, books[which])
    smallest = min(text.get_fontsize() for text in texts_of(figure))
    assert smallest >= SMALLEST
    assert figure.get_size_inches()[0] <= WIDTH
    width, height = figure.canvas.get_width_height()
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height
    judged = name in ("replay", "table4")
    assert any(axes.has_data() for axes in figure.axes) or judged or which == "nothing"
    caption = read_layout(golden.ROOT / f"src/studies/{STUDY}/layout.yaml").figures[name].caption
    assert caption.endswith(".")


@pytest.mark.parametrize("name", ["figure1", "scaling"])
def test_a_figure_without_runs_says_so(books, name):
    assert any("not run" in text.get_text() for text in texts_of(draw(name, books["nothing"])))


def test_published_points_are_all_there(books):
    for axes in draw("floor", books["nothing"]).axes:
        assert [len(line.get_xdata()) for line in axes.lines if line.get_marker() == "s"] == [6]


def hollow(figure):
    lines = [line for axes in figure.axes for line in axes.lines if len(line.get_xdata())]
    return [line for line in lines if line.get_markerfacecolor() == "white"]


@pytest.mark.parametrize(
    ("name", "mean", "status"),
    [
        ("accuracy", "experiment4/P1/certified/orthant/mae-reference", "5 of 6"),
        ("scaling", "scaling/rough/N50/ep/flagged", ""),
    ],
)
def test_what_did_not_converge_is_hollow(books, name, mean, status):
    """Runs or settings that did not; a cell of the study of scaling half of whose runs warn."""
    rows, book = books["golden"].measures, books["golden"]
    own = rows["id"] == mean
    assert own.any(), mean
    if status:
        rows = rows.assign(status=rows["status"].mask(own, status))
    else:
        rows = rows.assign(value=rows["value"].mask(own, 1.0))
    assert hollow(draw("figure1", book)), "sizes of which too few runs did"
    before = len(hollow(draw(name, book)))
    after = hollow(draw(name, book_of(STUDY, rows, estimate(rows))))
    assert len(after) > before


def test_table_4_is_drawn_under_its_readings(books):
    cell = {"id": "table4/P2/new/mae-med", "kind": "cell", "scale": "log", "published": 1.0}
    cell |= {"low": 0.4, "high": 0.6, "effect": np.log(0.5)}
    rows = [cell | {"reading": f"count={count};hmc=20;variance=once"} for count in ("a", "b")]
    rows += [cell | {"reading": "count=a;hmc=200;variance=twice", "effect": np.nan}]
    rows += [cell | {"reading": "count=a;hmc=200;variance=twice", "effect": np.log(3.0)}]
    pair = {"id": "contrast/table4/P2/ess-new/mae-post", "kind": "contrast", "scale": "linear"}
    pair |= {"published": 0.001, "ours": 0.003, "effect": 0.002, "low": -0.004, "high": 0.004}
    rows += [pair | {"reading": "variance=once"}]
    nothing = books["nothing"]
    tables = nothing.estimates, nothing.measures, nothing.cells
    defaults = {"count": "a", "hmc": "200", "variance": "once"}
    drawn = draw("table4", Book(*tables, defaults=defaults, outcomes=pd.DataFrame(rows)))
    ratios = [line.get_xdata() for line in drawn.axes[0].lines if line.get_marker() != "None"]
    assert [float(x[0]) for x in ratios] == pytest.approx([3.0, 0.5]), "HMC of 20 once, no default"
    lines = [tuple(np.round(line.get_xdata(), 3)) for line in drawn.axes[4].lines]
    assert lines == [(-0.3, 0.5), (0.3,), (0.1,)], "the interval, ours, the printed one"


def test_two_cells_are_replayed(books):
    quantiles = {"q05": 0.002, "q25": 0.003, "q50": 0.004, "q75": 0.005, "q95": 0.006}
    rows = [
        {"id": f"{table}/P2/M10000", "published": 0.004, "detectable": 2.0} | quantiles
        for table in ("table2", "table3")
    ]
    nothing = books["nothing"]
    tables = nothing.estimates, nothing.measures, nothing.cells
    axes = draw("replay", Book(*tables, pd.DataFrame(rows))).axes[0]
    shifts = sorted(line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--")
    assert shifts == pytest.approx([0.002, 0.008])
    assert axes.get_xlim() == pytest.approx((0.0005, 0.032))


#: A part of the measures, changes of golden rows (experiment, query, values), and the status that an estimate then has.
#: At the paper's budget of control variables every run counts in Table 4; below it those that converged.
NOT_CONVERGED = {"status": "not converged"}
CHAIN_FAILS = ("experiment4", "method == 'ess-gpml' and `set` == 2 and dataset == 0", NOT_CONVERGED)
BELOW_BUDGET = ("experiment4", "method == 'control-variables'", {"iterations": 100})
OF_ONE_SIZE = "method == 'importance-ep' and size == 1 and run == {}"
STATUSES = {
    "another scheme": (
        "experiment1",
        [("experiment1", "dimension > 0", {"scheme": "adapted"})],
        {"table1/N50/M10000": "not comparable"},
    ),
    "half of the runs of a size": (
        "experiment3",
        [
            ("experiment3", OF_ONE_SIZE.format(0), {"status": "ok"}),
            ("experiment3", OF_ONE_SIZE.format(1), NOT_CONVERGED),
        ],
        {"experiment3/importance-ep/size1/mape": "1 of 2"},
    ),
    "another count": (
        "experiment4",
        [("experiment4", "method == 'orthant'", {"count": "hard"})],
        {"table4/P1/new/mae-post count=equal-seconds": "not comparable"},
    ),
    "a chain at the paper's budget": (
        "experiment4",
        [CHAIN_FAILS],
        {f"table4/P1/ess/mae-med {DEFAULTS}": "ok"},
    ),
    "a chain below it": (
        "experiment4",
        [CHAIN_FAILS, BELOW_BUDGET],
        {
            "experiment4/P1/certified/ess-gpml/mae-reference": "5 of 6",
            f"table4/P1/ess/mae-med {DEFAULTS}": "not converged",
        },
    ),
    "few settings": (
        "experiment4",
        [("experiment4", "`set` > 4", {})],
        {
            "table4/P1/new/mae-post count=equal-seconds": "not comparable",
            f"table4/P1/new/mae-med {DEFAULTS}": "not comparable",
        },
    ),
    "few eves": (
        "experiment4",
        [("experiment4", "method == 'orthant' and `set` == 6", {"log_evidence_se": 1.0})],
        {
            "table4/P1/new/mae-post count=equal-seconds": "ok",
            "experiment4/P1/certified/orthant/nats": "5 of 6",
            "experiment4/P1/every-run/orthant/nats": "ok",
        },
    ),
    "no long run": (
        "scaling",
        [("scaling", "method.str.startswith('reference')", {})],
        {"scaling/rough/N50/ep/error": "no reference"},
    ),
}


def altered(part, changes, folder):
    """Measures of golden rows that were changed."""
    golden.tables(STUDY, folder, part)
    for experiment, query, values in changes:
        golden.alter(folder, experiment, query, **values)
    return golden.measures(STUDY, folder, [part])


@pytest.mark.parametrize("case", STATUSES)
def test_what_may_not_be_compared_says_so(case, tmp_path):
    part, changes, expected = STATUSES[case]
    found = estimate(altered(part, changes, tmp_path)).set_index(["id", "reading"])["status"]
    keys = {name: (*name.split(" "), "")[:2] for name in expected}
    assert {name: found.loc[key] for name, key in keys.items()} == expected


def test_a_run_that_is_off_is_judged_by_the_reference_and_not_by_itself(tmp_path):
    """Runs that are nats off and say so: their own errors would excuse each of them, the reference's does not."""
    off = {"log_evidence": -33.641 - 5.0, "log_evidence_se": 3.0}
    changes = [("experiment4", "method == 'orthant' and `set` == 6", off)]
    rows = altered("experiment4", changes, tmp_path)
    rows = rows[rows["id"].str.startswith("claim/works/")]
    known = read_published(PUBLISHED)
    verdict = judge(rows, estimate(rows), known, 1).frame.set_index("id").loc["claim/works/right"]
    assert verdict["ours"] == pytest.approx(5.0, abs=0.01)
    assert verdict["verdict"] == "differs"
    # the old rule: what a run says of itself, here with many degrees of freedom
    right = rows["id"] == "claim/works/right"
    own = rows.assign(se=rows["se"].where(~right, 3.0), df=rows["df"].where(~right, 30.0))
    blind = judge(own, estimate(own), known, 1).frame
    assert blind.set_index("id").loc["claim/works/right", "verdict"] == "undecided"


def test_runs_that_are_off_are_counted_by_what_they_report(tmp_path):
    """Two of twelve runs of the sampler are off and warn, two others say nothing of it."""
    place = "method == 'orthant' and dataset == 0 and `set` == {}"
    far = {"log_evidence": -40.0}
    changes = [
        ("experiment4", place.format(6), far | {"log_evidence_se": 1.0}),
        ("experiment4", place.format(5), far | {"log_evidence_se": 0.05}),
    ]
    found = altered("experiment4", changes, tmp_path).set_index("id")["value"]
    names = ("runs", "off", "off-warned", "off-confident", "off-refused", "refused")
    counts = [found[f"calibration/orthant/{name}"] for name in names]
    assert counts == [12, 4, 2, 2, 2, 2]


def test_a_reading_takes_its_own_runs(made):
    """A count that the paper may have meant has runs of its own, and a median moves with the other methods' runs."""
    _, _, found = made
    value = found.set_index(["id", "reading"])["value"].astype(float)
    rows = golden.rows_of(STUDY, "experiment4")
    own = rows[rows["method"] == "orthant-million-hard"].groupby(["dataset", "replicate"])
    means = own["mae_post"].mean().groupby("dataset").mean()
    hard = value[("table4/P1/new/mae-post", "count=million-hard")]
    assert hard == pytest.approx(means.mean())
    changes = [{}, {"hmc": "20"}, {"count": "million-hard"}, {"ess": "400"}]
    changes.append({"hmc": "20", "count": "million-hard"})
    readings = [with_levels(**change) for change in changes]
    assert len({value[("table4/P1/ess/mae-med", one)] for one in readings}) == len(readings)


def with_levels(**given):
    """The reading of a median, with some levels that are not the defaults."""
    return ";".join(
        f"{name}={given.get(name, level)}"
        for name, _, level in (one.partition("=") for one in DEFAULTS.split(";"))
    )


def test_a_setting_with_one_run_has_the_mean_variance_of_the_others(tmp_path):
    query = "method == 'orthant' and dataset == 0 and `set` == 2 and replicate == 1"
    measures = altered("experiment4", [("experiment4", query, NOT_CONVERGED)], tmp_path)
    rows = golden.rows_of(STUDY, "experiment4").query("method == 'orthant' and dataset == 0")
    rows = rows[~rows.eval(query)]
    truth = certified(rows)
    variances = (rows["log_evidence"] - truth).abs().groupby(rows["set"]).var() / 2
    expected = np.sqrt(variances.fillna(variances.mean()).sum()) / 6
    found = estimate(measures).set_index("id")["se"]
    assert found["experiment4/P1/certified/orthant/nats"] == pytest.approx(expected)


def certified(rows):
    """The kept reference's log evidence at the settings of rows of Problem 1."""
    kept = read_csv(golden.ROOT / "data/reference/atiya2021/certified/evidence.csv")
    kept = kept[kept["problem"].astype(str) == "1"].set_index("set")["log_evidence"]
    return rows["set"].astype(int).map(kept.astype(float))


def test_a_claim_on_table_4_is_read_under_each_count_of_the_variance(tmp_path):
    changes = [
        ("experiment4", "method in ('orthant', 'control-variables')", {"mae_post": 0.2}),
        ("experiment4", "method == 'hmc-gpml'", {"mae_post_twice": 0.2, "mae_post_once": 0.2}),
        ("experiment4", "method == 'ess-gpml'", {"mae_post_twice": 0.2, "mae_post_once": 0.4}),
    ]
    found = estimate(altered("experiment4", changes, tmp_path)).set_index(["id", "reading"])
    levels = [("claim/mae-post/alike", f"variance={level}") for level in ("twice", "once")]
    assert [found["value"][level] for level in levels] == [1, 0]


def test_a_pair_of_wrong_truths_has_the_printed_mean_and_the_effective_number(made):
    found, printed = made[2].set_index("id")["value"], read_published(PUBLISHED).cells["value"]
    cell, name = "table1/N500/M3000000", "finding/floor/N500/M3000000"
    larger, smaller = (found[f"{name}/pair-{which}"] for which in ("larger", "smaller"))
    number = (larger + smaller) ** 2 / (larger**2 + smaller**2)
    assert number == pytest.approx(found[f"{name}/effective-wrong-truths"])
    assert larger + smaller == pytest.approx(50 * printed[cell] - 49 * found[cell])


def test_slopes_of_means_are_the_published_statistic(made):
    """Of our column, and of it with two wrong truths in place of two of its fifty errors."""
    found = made[2].set_index("id")["value"]
    column = found[found.index.str.fullmatch(r"table1/N500/M\d+")].astype(float).dropna()
    x = np.log(column.index.str.partition("/M").get_level_values(2).astype(float))
    wrong = sum(
        found[f"finding/floor/N500/M3000000/pair-{which}"] for which in ("larger", "smaller")
    )
    planted = (48 * column + wrong) / 50
    for name, level in (("of-means", column), ("with-pair", planted)):
        line = np.polyfit(x, np.log(level.to_numpy()), 1)[0]
        assert found[f"slope/table1/P3/{name}"] == pytest.approx(line)


def test_rows_that_are_wrong_are_refused_by_name(tmp_path):
    golden.tables(STUDY, tmp_path, "experiment4")
    place = "method == 'orthant' and `set` == 2"
    golden.alter(tmp_path, "experiment4", place, mae_post=np.nan)
    with pytest.raises(ValueError, match=r"experiment4.csv: line \d+: mae_post is nan"):
        golden.measures(STUDY, tmp_path, ["experiment4"])
    path = tmp_path / "experiment4.csv"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(DamagedFileError, match="experiment4"):
        golden.measures(STUDY, tmp_path, ["experiment4"])


def test_a_reference_of_other_data_is_refused(tmp_path):
    golden.tables(STUDY, tmp_path, "experiment4")
    arrays = patterns("problem1", seed=1, standardise={})
    write_arrays(tmp_path / "experiment4/problem1.npz", arrays)
    with pytest.raises(ValueError, match="problem 1, set 1 was computed on other data"):
        golden.measures(STUDY, tmp_path, ["experiment4"])


def test_without_data_there_is_no_average(tmp_path):
    golden.tables(STUDY, tmp_path, "experiment4")
    numbers = ("mae_post", "error_rate", "log_evidence", "log_evidence_se")
    nothing = dict.fromkeys(numbers, np.nan) | {"status": "data not available"}
    golden.alter(tmp_path, "experiment4", "problem == 1", **nothing)
    write_arrays(tmp_path / "experiment4.npz", {})
    write_arrays(tmp_path / "experiment4/problem1.npz", {})
    found = estimate(golden.measures(STUDY, tmp_path, ["experiment4"])).set_index("id")["status"]
    for name in ("table4/P1/new/mae-post", "experiment4/P1/certified/orthant/nats"):
        assert {*found.loc[[name]]} == {"data not available"}


def test_printed_numbers_alone_have_findings(tmp_path):
    """No runs are needed for what the brackets say; nor are there measures of runs then."""
    golden.tables(STUDY, tmp_path, "experiment1")
    for experiment in ("experiment1", "quadrature", "inexact"):
        golden.alter(tmp_path, experiment, "row == row")
    found = estimate(golden.measures(STUDY, tmp_path, ["experiment1"])).set_index("id")["value"]
    assert found["finding/brackets/tables2-3/P1-P3/runs"] == 20
    assert found["finding/brackets/tables2-3/P4/runs"] == 15
    assert np.isnan(found["finding/brackets/table1/P3/runs"])
    assert not any(name.startswith(("table1", "claim")) for name in found.index)

"""How each method scales: runs where the truth is known, orders of patterns, measures of a made table, the figure."""

import math
from pathlib import Path

import matplotlib.text
import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from gpcmc.gp import prior, rbf
from gpcmc.inference import METHODS as LIBRARY
from recheck.judge.measures import COLUMNS, ESTIMATES, estimate
from recheck.judge.published import read_cells
from recheck.record.files import write_arrays, write_csv
from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.evidence_alone import UNDERFLOW, Annealed, GenzBretz
from studies.atiya2021.figures import FIGURES
from studies.atiya2021.measures import scaling as measures
from studies.atiya2021.measures.common import by_eves
from studies.atiya2021.methods import METHODS
from studies.atiya2021.ordered import OrderedSampler, farthest_first
from studies.atiya2021.runs import EXTINCT
from studies.atiya2021.scaling import columns, patterns, run_once
from studies.common.measuring import Rows

#: Every method of the study, with options that take a moment.
QUICK = {
    "sampler": ("orthant", {"count": "hard", "samples": 4000}),
    "sampler-soft": ("orthant", {"count": "soft", "samples": 4000}),
    "sampler-min-max": ("ordered", {"order": "min-max", "samples": 4000}),
    "sampler-pivoting": ("ordered", {"order": "pivoting", "samples": 4000}),
    "adapted": ("orthant", {"scheme": "adapted", "samples": 4000}),
    "minimax-tilting": ("minimax-tilting", {"points": 64, "randomizations": 8}),
    "twisted-ep": ("twisted-ep", {"points": 64, "randomizations": 8}),
    "importance-ep": ("importance", {"samples": 4000}),
    "ess-annealed": ("annealed", {"sampler": "ess", "temperatures": 200}),
    "hmc-annealed": ("annealed", {"sampler": "hmc", "temperatures": 50}),
    "genz-bretz": ("genz-bretz", {"points": 500}),
    "laplace": ("laplace", {}),
    "ep": ("ep", {}),
}
#: Nats by which an approximation may miss: that of Laplace's method is poor where few patterns say little.
APPROXIMATE = {"laplace": 0.15, "ep": 0.02}


def quick(name):
    method, options = QUICK[name]
    return METHODS[method](**options)


def check_estimate(name, data, alpha, beta, truth):
    made = run_once(data, alpha, beta, quick(name), "1/run")
    line = columns(made)
    allowed = APPROXIMATE.get(name, 0.0) * len(data[1])
    error = abs(line["log_evidence"] - truth)
    assert error <= allowed + 5 * line["log_evidence_se"] + 1e-9, (name, error)


def arcsine(data, alpha, beta):
    """The evidence of up to three patterns, by the orthant probabilities of Sheppard and of David."""
    X, y = data
    R = np.eye(len(y)) + y[:, None] * rbf(alpha, beta)(X) * y
    angles = np.arcsin((R / (1.0 + beta))[np.triu_indices(len(y), 1)]).sum()
    return math.log(
        {1: 0.5, 2: 0.25 + angles / (2 * np.pi), 3: 0.125 + angles / (4 * np.pi)}[len(y)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_methods_are_right_where_the_truth_is_known(name):
    for n in (1, 2, 3):
        data = patterns(2, n, f"1/three/N{n}")
        check_estimate(name, data, 1.0, 2.0, arcsine(data, 1.0, 2.0))
    # patterns that are alone
    check_estimate(name, patterns(8, 9, "1/alone"), 1e-4, 3.0, -9 * math.log(2.0))
    # the same pattern n times: n + 1 variables, each as likely to be the least
    same = np.zeros((10, 2)), np.ones(10)
    check_estimate(name, same, 1.0, 1.0, -math.log(11.0))


def test_patterns_are_balanced_and_keyed_by_their_seed():
    X, y = patterns(8, 21, "1/a")
    assert X.shape == (21, 8) and sorted(y) == [-1.0] * 10 + [1.0] * 11
    assert len(set(np.flatnonzero(np.diff(y)))) > 4, "shuffled"
    again, other = patterns(8, 21, "1/a")[0], patterns(8, 21, "1/b")[0]
    assert np.array_equal(X, again) and not np.array_equal(X, other)
    many, labels = patterns(8, 20_000, "1/many")
    np.testing.assert_allclose(many[labels > 0].mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(many[labels < 0].mean(axis=0), 1.0, atol=0.05)
    np.testing.assert_allclose(many[labels < 0].var(axis=0), 0.5, atol=0.05)


def test_the_farthest_pattern_comes_next():
    X, _ = patterns(2, 40, "1/far")
    X[7] = X[3]  # a pattern that comes twice
    order = farthest_first(X)
    assert sorted(order) == list(range(40))
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    assert order[0] == np.argmin(np.linalg.norm(X - X.mean(axis=0), axis=1))
    for k in range(1, 40):
        nearest = distance[:, order[:k]].min(axis=1)
        assert nearest[order[k]] == pytest.approx(nearest.max())
    assert {order[-1], order[-2]} & {3, 7}
    assert list(farthest_first(np.zeros((3, 1)))) == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["min-max", "pivoting"])
def test_an_order_leaves_the_estimate_unbiased(order):
    data = patterns(2, 3, "1/three/N3")
    method, truth = OrderedSampler(order=order, samples=60), math.exp(arcsine(data, 1.0, 2.0))
    gp = prior(rbf(1.0, 2.0), data[0])
    rng = np.random.default_rng(1)
    found = np.exp([method.fit(gp, data[1], rng=rng).log_evidence for _ in range(200)])
    assert abs(found.mean() - truth) < 4 * found.std() / np.sqrt(200)


@pytest.mark.parametrize("order", ["min-max", "pivoting"])
def test_predictions_do_not_depend_on_the_order(order):
    X, y = patterns(2, 30, "1/predict")
    gp = prior(rbf(1.0, 2.0), X[:24], X[24:])
    expected = LIBRARY["ep"]().fit(gp, y[:24]).prediction.probability
    method = OrderedSampler(order=order, samples=40_000)
    found = method.fit(gp, y[:24], rng=np.random.default_rng(1)).prediction.probability
    np.testing.assert_allclose(found, expected, atol=0.05)
    alone = prior(rbf(1.0, 2.0), X[:24])
    later = method.fit(alone, y[:24], rng=np.random.default_rng(1))
    found = later.predict(gp.K_star, gp.k_star_star).probability
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_the_sampler_keeps_its_own_status():
    data = patterns(2, 60, "1/warn")
    line = columns(run_once(data, 0.5, 3.0, METHODS["orthant"](samples=500, count="hard"), "1/x"))
    assert line["status"] == "not converged" and line["effective_eves"] < 100
    assert line["log_evidence"] < 0 and line["log_evidence_se"] > 0


def test_a_run_that_failed_has_a_status_and_no_numbers(monkeypatch):
    data = patterns(2, 60, "1/warn")
    assert columns(run_once(data, 0.5, 3.0, OrderedSampler(samples=3), "1/x")) == {
        "status": EXTINCT
    }

    def cdf(limits, **options):
        return np.full(len(limits), 1e-310)

    monkeypatch.setattr(multivariate_normal, "cdf", cdf)
    assert columns(run_once(data, 0.5, 3.0, GenzBretz(), "1/x")) == {"status": UNDERFLOW}


@pytest.mark.parametrize("method", [Annealed(), GenzBretz()])
def test_methods_without_predictions_say_so(method):
    X, y = patterns(2, 6, "1/few")
    with pytest.raises(ValueError, match="prior must have no test inputs.* got 2"):
        method.fit(prior(rbf(1.0, 1.0), X, X[:2]), y, rng=np.random.default_rng(1))
    found = method.fit(prior(rbf(1.0, 1.0), X), y, rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="predict by another"):
        found.predict(np.ones((6, 1)), np.full(1, 2.0))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Annealed(sampler="nuts"), "sampler must be"),
        (lambda: Annealed(temperatures=0), "temperatures must be"),
        (lambda: Annealed(runs=1), "runs must be at least 2"),
        (lambda: GenzBretz(points=99), "points must be at least 100"),
        (lambda: GenzBretz(randomizations=1), "randomizations must be at least 2"),
        (lambda: OrderedSampler(order="maxmin"), "order must be"),
        (lambda: OrderedSampler(samples=0), "samples must be"),
    ],
)
def test_options_that_are_wrong_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


# --- measures


def made(folder, lines, kernels=("rough",)):
    """Rows of made runs of each kernel: (N, data set, method, log evidence or None, standard error, status)."""
    names = {"twisted-ep": "twisted-ep", "minimax-tilting": "minimax-tilting"}
    rows = [
        {
            "row": f"{kernel}/N{n}/dataset{dataset}/{method}",
            **{"kernel": kernel, "N": n, "dataset": dataset, "method": method, "inputs": 2},
            "alpha": {"rough": 0.5, "smooth": 3.0}.get(kernel, 1.0),
            "inference": names.get(method, "orthant"),
            "data": f"1/inputs2/N{n}/dataset{dataset}",
            **{
                "status": status,
                "seed": f"1/{method}",
                "log_evidence": value,
                "log_evidence_se": se,
            },
        }
        for kernel in kernels
        for n, dataset, method, value, se, status in lines
    ]
    write_csv(folder / "scaling.csv", pd.DataFrame(rows))
    timing = [{"row": row["row"], "cpu_seconds": 2.0} for row in rows]
    write_csv(folder / "scaling_timing.csv", pd.DataFrame(timing))
    write_arrays(folder / "scaling.npz", {})
    return Rows(folder, Path("data/published/atiya2021"), folder, ["scaling"])


TWISTED, MINIMAX = "reference-twisted-ep", "reference-minimax-tilting"
#: The truth of data set 0 is -10.02 (0.0894). On data set 1 the long runs differ: the truth is -20 (1.5).
RUNS = [
    (50, 0, TWISTED, -10.0, 0.1, "ok"), (50, 0, MINIMAX, -10.1, 0.2, "ok"),
    (50, 1, TWISTED, -20.0, 0.1, "ok"), (50, 1, MINIMAX, -21.5, 0.1, "ok"),
    (50, 0, "sampler", -14.02, 0.5, "not converged"), (50, 1, "sampler", -18.0, 1.0, "ok"),
    (50, 0, "twisted-ep", -12.1, 1.0, "ok"), (50, 1, "twisted-ep", -20.0, 0.1, "ok"),
    (50, 0, "minimax-tilting", -10.0, 0.1, "ok"), (50, 1, "minimax-tilting", -20.0, 0.1, "ok"),
    (50, 0, "adapted", None, None, "extinct"), (50, 1, "adapted", -30.0, 1.0, "ok"),
    (50, 0, "good", -10.22, 0.1, "ok"), (50, 1, "good", -20.0, 0.1, "ok"),
]  # fmt: skip


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    found = measures.measure(made(tmp_path_factory.mktemp("made"), RUNS))
    return Book(estimate(found), found, read_cells("data/published/atiya2021/cells.csv"))


def value(book, name, dataset=None):
    if dataset is None:
        return book.get(f"scaling/{name}")["value"]
    rows = book.rows(f"scaling/rough/N50/{name}")
    (row,) = rows[rows["unit"] == f"scaling/rough/N50/dataset{dataset}"].to_dict("records")
    return row["status"], row["value"]


def test_errors_are_against_what_stands_for_the_truth(book):
    assert value(book, "sampler/error", 0) == ("not converged", pytest.approx(4.0))
    # the long runs differ by 10 standard errors: twisted EP's, and a bound
    assert value(book, "sampler/error", 1) == ("at most", pytest.approx(2.0 + 2 * 1.5))
    # scored against minimax tilting alone, and the other way round
    assert value(book, "twisted-ep/error", 0) == ("ok", pytest.approx(2.0))
    assert value(book, "twisted-ep/truth-se", 0) == ("ok", pytest.approx(0.2))
    assert value(book, "minimax-tilting/error", 0) == ("at most", pytest.approx(0.0 + 2 * 0.1))
    assert value(book, "good/truth-se", 0) == (
        "ok",
        pytest.approx(0.1 * 0.2 / math.hypot(0.1, 0.2)),
    )
    assert value(book, "adapted/error", 0)[0] == "extinct"
    row = book.rows("scaling/rough/N50/twisted-ep/error").iloc[0]
    assert row["source"] == "scaling.csv:3,8", "its own line, and that of the long run"


def test_runs_are_counted_by_cell(book):
    cell = "rough/N50"
    assert value(book, f"{cell}/sampler/median") == pytest.approx((4.0 + 5.0) / 2)
    assert value(book, f"{cell}/sampler/largest") == pytest.approx(5.0)
    assert book.get(f"scaling/{cell}/sampler/largest")["status"] == "at most"
    assert [value(book, f"{cell}/adapted/{name}") for name in ("runs", "failed-runs")] == [2, 1]
    assert value(book, f"{cell}/adapted/failed") == 0.5
    assert value(book, f"{cell}/sampler/flagged") == 0.5
    assert value(book, f"{cell}/sampler/se") == 1.0, "of the run that passed its diagnostics"
    assert value(book, f"{cell}/sampler/seconds") == 2.0
    assert book.get(f"scaling/{cell}/adapted/seconds")["runs"] == 1


def test_a_method_that_knows_of_its_errors_flags_them(book):
    base = "calibration/sampler"
    # of data set 1 the truth does not tell
    assert [value(book, f"{base}/{name}") for name in ("wrong", "wrong-flagged", "right")] == [
        1,
        1,
        0,
    ]
    assert book.get(f"scaling/{base}/right-flagged")["status"] == "none"
    assert value(book, "calibration/adapted/failed") == 1
    assert value(book, "calibration/twisted-ep/wrong-flagged") == 0.0, "2 nats off, and ok"
    # against an unsound truth nothing is calibrated
    assert value(book, "calibration/good/ok") == 1
    se = math.hypot(0.1, 0.1 * 0.2 / math.hypot(0.1, 0.2))
    assert value(book, "calibration/good/rms") == pytest.approx(0.2 / se)


def test_who_is_closer_is_counted_by_size(tmp_path):
    """Against the sampler, errors 4 and 1, HMC has 1 and 2; a failed run is compared with nobody."""
    lines = []
    for dataset, errors in enumerate([(4.0, 1.0), (1.0, -2.0), (3.0, None)]):
        lines += [
            (50, dataset, TWISTED, -10.0, 0.1, "ok"),
            (50, dataset, MINIMAX, -10.0, 0.1, "ok"),
        ]
        for method, error in zip(("sampler", "hmc-annealed"), errors, strict=True):
            status = "failed" if error is None else "ok"
            own = None if error is None else -10.0 + error
            lines.append((50, dataset, method, own, None if error is None else 0.1, status))
    found = measures.measure(made(tmp_path, lines)).set_index("id")["value"]
    path = "scaling/closer/hmc-annealed/sampler/N50"
    assert [found[f"{path}/{name}"] for name in ("data-sets", "closer", "seconds")] == [2, 1, 1.0]
    assert found[f"{path}/rough/closer"] == 1
    assert not any(name.startswith("scaling/closer/ep") for name in found.index)


def test_seconds_at_another_error_leave_what_comes_before_the_points_as_it_is():
    """Two seconds, and a hundredth for each point: for half of the error four times the points, for twice a quarter.

    What the short run says of its error does not matter.
    """
    short = pd.DataFrame({"points": [50], "randomizations": [2], "cpu_seconds": [3.0]})
    short["log_evidence_se"] = 0.01
    long = short.assign(points=400, cpu_seconds=10.0, log_evidence_se=0.1 / 8**0.5)
    for error, seconds in ((0.1, 3.0), (0.05, 6.0), (0.2, 2.25), (1e9, 2.0)):
        found = measures.seconds_at(pd.Series([error]), short, long)
        assert found.item() == pytest.approx(seconds)


def test_a_method_is_dearer_by_its_seconds_at_its_own_error(tmp_path):
    lines = [(50, 0, TWISTED, -9.0, 0.1 / 8**0.5, "ok"), (50, 0, MINIMAX, -9.0, 0.1, "ok")]
    lines += [(50, 0, "twisted-ep", -9.0, 0.3, "ok"), (50, 0, "minimax-tilting", -9.0, 0.2, "ok")]
    given = made(tmp_path, lines)
    table = pd.read_csv(tmp_path / "scaling.csv").assign(points=50, randomizations=2)
    table.loc[table["method"] == TWISTED, "points"] = 400
    write_csv(tmp_path / "scaling.csv", table)
    timing = pd.read_csv(tmp_path / "scaling_timing.csv")
    timing["cpu_seconds"] = [10.0, 99.0, 3.0, 4.5]
    write_csv(tmp_path / "scaling_timing.csv", timing)
    found = measures.measure(given).set_index("id")["value"]
    # to twice its error twisted EP takes 2.25 s
    for path in ("N50", "N50/rough", "N50/least", "N50/most"):
        assert found[f"scaling/dearer/minimax-tilting/{path}"] == pytest.approx(2.0)
        assert found["scaling/dearer/minimax-tilting/N50/cheaper"] == 0
        assert found["scaling/dearer/minimax-tilting/N50/pairs"] == 1
        # to the error of minimax tilting's long run it takes 3 s
        assert found[f"scaling/dearer/minimax-tilting-long/{path}"] == pytest.approx(33.0)


def test_runs_are_counted_by_their_eves():
    """Of five runs two are off, with 3 and 15 eves, and one of these falls short."""
    eves = [3.0, np.nan, 8.0, 60.0, 500.0]
    runs = pd.DataFrame({"effective_eves": eves, "source": "a.csv:2"})
    # for a run that does not tell its eves, one over the squared standard error
    runs["log_evidence_se"] = 15.0**-0.5
    off = pd.Series([True, True, False, False, False])
    kinds = {"off": off, "right": ~off, "short": off & (runs.index == 0)}
    found = {row["id"]: row["value"] for row in by_eves("x/", runs, kinds)}
    below = {name: [found[f"x/{name}/below-{few}"] for few in (10, 20, 100)] for name in kinds}
    assert below == {"off": [1, 2, 2], "right": [1, 1, 2], "short": [1, 1, 1]}
    assert (found["x/off/all"], found["x/off/largest"], found["x/right/largest"]) == (
        2,
        pytest.approx(15),
        500,
    )


def test_how_far_the_long_runs_are_apart(book):
    assert value(book, "reference/z", 0) == ("ok", pytest.approx(0.1 / math.hypot(0.1, 0.2)))
    assert value(book, "reference/agree", 1) == ("ok", 0.0)
    assert [value(book, f"reference/{name}") for name in ("data-sets", "sound", "agree")] == [
        2,
        2,
        1,
    ]
    assert value(book, "reference/largest-z") == pytest.approx(1.5 / math.hypot(0.1, 0.1))


def test_without_a_long_run_there_is_no_error(tmp_path):
    lines = [(50, 0, "sampler", -1.0, 0.1, "ok"), (50, 0, "adapted", None, None, "extinct")]
    found = measures.measure(made(tmp_path, lines)).set_index("id")
    assert found.loc["scaling/rough/N50/sampler/error", "status"] == "no reference"
    assert found.loc["scaling/rough/N50/adapted/error", "status"] == "extinct"
    assert found.loc["scaling/rough/N50/sampler/seconds", "value"] == 2.0


def test_a_long_run_that_is_not_trusted_confirms_within_its_own_error(tmp_path):
    lines = [(50, 0, "sampler", -3.0, 0.1, "ok"), (50, 0, "twisted-ep", -5.0, 0.1, "ok")]
    lines += [
        (50, 0, TWISTED, -1.0, 0.01, "ok"),
        (50, 0, MINIMAX, -1.5, 0.5, "weights not trusted"),
    ]
    found = measures.measure(made(tmp_path, lines)).set_index("id")
    row = found.loc["scaling/rough/N50/sampler/error"]
    assert (row["status"], row["value"]) == ("ok", pytest.approx(2.0, abs=1e-3))
    row = found.loc["scaling/rough/N50/twisted-ep/error"]
    assert (row["status"], row["value"]) == ("at most", pytest.approx(3.5 + 2 * 0.5))
    assert found.loc["scaling/reference/agree", "value"] == 1
    assert found.loc["scaling/reference/sound", "value"] == 0
    assert found.loc["scaling/calibration/twisted-ep/wrong", "value"] == 0, "nobody knows"
    assert found.loc["scaling/calibration/sampler/wrong", "value"] == 1


def test_the_claim_on_2000_dimensions_is_judged_with_the_samples_that_the_paper_states(tmp_path):
    long = [(2000, 0, TWISTED, -9.0, 0.1, "ok"), (2000, 0, MINIMAX, -9.0, 0.1, "ok")]
    few = (2000, 0, "sampler", -19.0, 1.0, "not converged")
    found = measures.measure(made(tmp_path, [*long, few])).set_index("id")
    assert found.loc["claim/works/dimension", "status"] == "not comparable"
    runs = [*long, few, (2000, 0, "million", -12.0, 1.0, "not converged")]
    # a kernel that is no reading is left out
    given = made(tmp_path, runs, ["rough", "smooth", "other"])
    rows = measures.measure(given).set_index("id").loc["claim/works/dimension"]
    assert [*rows["reading"]] == ["kernel=rough", "kernel=smooth"]
    assert [*rows["value"]] == pytest.approx([3.0, 3.0])
    assert [*rows["se"]] == pytest.approx([0.1 / math.sqrt(2)] * 2)


def test_who_finds_the_kernel_that_suits_the_data(tmp_path):
    """The truths of two kernels are -1 and -31; the sampler is two nats off on the worse one, and puts it first."""
    given = made(
        tmp_path,
        [(50, 0, method, -1.0, 0.01, "ok") for method in (TWISTED, MINIMAX, "sampler", "ep")],
        ["rough", "smooth"],
    )
    table = pd.read_csv(tmp_path / "scaling.csv")
    worse = table["kernel"] == "smooth"
    table.loc[worse, "log_evidence"] = -31.0
    table.loc[worse & (table["method"] == "sampler"), "log_evidence"] = 3.0
    write_csv(tmp_path / "scaling.csv", table)
    found = measures.measure(given).set_index("id")["value"]
    path = "scaling/suited"
    assert found["scaling/data-sets"] == 1
    assert (found[f"{path}/off"], found[f"{path}/off-unsuited"]) == (1, 1)
    assert (found[f"{path}/best/inputs2/off"], found[f"{path}/best/inputs2/runs"]) == (0, 1)
    assert (found[f"{path}/pairs"], found[f"{path}/unsuited"], found[f"{path}/smoothest"]) == (
        2,
        1,
        0,
    )
    assert found[f"{path}/large/pairs"] == 0
    assert (found[f"{path}/sampler/first"], found[f"{path}/ep/first"]) == (0, 1)
    # nothing but what the truth does not resolve
    assert found[f"{path}/best/ep/largest"] == pytest.approx(2 * 0.01 / math.sqrt(2))


def test_errors_over_reported_ones_are_given_by_kernel_on_many_patterns(tmp_path):
    long = [(500, 0, TWISTED, -9.0, 0.0, "ok"), (500, 0, MINIMAX, -9.0, 0.0, "ok")]
    runs = [(500, 0, "importance-ep", -9.3, 0.1, "ok"), (500, 0, "ep", -9.5, 0.0, "ok")]
    few = [(50, 0, method, -1.0, 0.1, "ok") for method in (TWISTED, MINIMAX, "importance-ep")]
    found = measures.measure(made(tmp_path, long + runs + few)).set_index("id")["value"]
    path = "scaling/calibration/importance-ep/large/rough"
    known = [found[f"{path}/{name}"] for name in ("rms", "mean-z", "ok")]
    assert known == pytest.approx([3.0, -3.0, 1])
    assert not any(name.startswith("scaling/calibration/ep/large") for name in found.index)


def test_exact_long_runs_agree_up_to_rounding(tmp_path):
    lines = [(50, 0, TWISTED, -1.0, 0.0, "ok"), (50, 0, MINIMAX, -1.0 - 1e-12, 0.0, "ok")]
    known = measures.truths(made(tmp_path, lines).lines("scaling"))
    assert known["agree"].all() and known["z"].item() == 0.0
    assert known["se_combined"].item() == 0.0


# --- the figure


def drawn(book):
    with style.style():
        figure = FIGURES["scaling"](book)
        figure.draw_without_rendering()
    return figure


def test_the_figure_shows_who_warned_and_who_failed(book):
    figure = drawn(book)
    lines = [line for axes in figure.axes for line in axes.lines if len(line.get_xdata())]
    hollow = [line for line in lines if line.get_markerfacecolor() == "white"]
    assert {line.get_color() for line in hollow} == {style.BLUE}, (
        "the sampler, half of whose runs warn"
    )
    assert [line.get_xdata()[0] for line in lines if line.get_marker() == "x"] == [50]
    texts = [one for one in figure.findobj(matplotlib.text.Text) if one.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 8
    assert {"sampler", "twisted EP", "rough", "50"} <= {text.get_text() for text in texts}
    assert figure.get_size_inches()[0] <= 166 / 25.4


def test_the_figure_of_no_runs_says_so():
    empty = pd.DataFrame(columns=ESTIMATES), pd.DataFrame(columns=COLUMNS)
    figure = drawn(Book(*empty, read_cells("data/published/atiya2021/cells.csv")))
    assert any("not run" in text.get_text() for text in figure.findobj(matplotlib.text.Text))

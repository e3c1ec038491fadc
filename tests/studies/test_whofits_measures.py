"""What is measured of real data sets that are fitted: each statistic on fits whose answer is known."""

import math

import matplotlib.text
import numpy as np
import pandas as pd
import pytest

from recheck.judge.measures import estimate
from recheck.record.files import write_csv
from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.experiments.whofits import KERNELS
from studies.atiya2021.figures.whofits import whofits as draw
from studies.atiya2021.measures import whofits
from studies.common.measuring import Rows

POINTS = ("ep", "laplace", "twisted-ep")
SCORES = {"log_loss": 0.3, "error_rate": 0.1, "binned_error": 0.02, "slope": 1.0, "intercept": 0.0}


def lines_of(data="a", split=0, kernel="isotropic", **changes):
    """Three lines of a fit; of changes, the names are a point and a column."""
    found = []
    for point in POINTS:
        line = {"row": f"{data}/split{split}/{kernel}", "data": data, "split": split}
        line |= {
            "kernel": kernel,
            "point": point,
            "status": "ok",
            "N": 500,
            "inputs": 4,
            "test": 90,
        }
        line |= {"log_evidence": -100.0, "log_evidence_se": 0.01, "above_ep": 0.0}
        line |= {"above_ep_se": 0.0 if point == "ep" else 0.002, "variance_at_bound": False}
        line |= {"scales_at_bound": 0, "log_variance": 2.0} | {
            f"judge_{name}": value for name, value in SCORES.items()
        }
        line |= {"evaluations": 2 if point == "twisted-ep" else 30}
        if point != "twisted-ep":
            line |= {"own": -100.5, **SCORES, "distance": 0.01, "other_class": 1}
        own = point.replace("-", "_")
        found.append(line | changes.get(own, {}))
    return found


def measured(lines, folder, seconds=1.0):
    """Measures of lines, by id; CPU seconds of each line's search."""
    frame = pd.DataFrame(lines)
    write_csv(folder / "whofits.csv", frame)
    write_csv(folder / "whofits_timing.csv", frame[["row"]].assign(cpu_seconds=seconds))
    rows = Rows(folder, folder, folder, ["whofits"])
    return whofits.measure(rows).set_index("id")


def fits(*lines):
    frame = pd.DataFrame([line for own in lines for line in own])
    return whofits.fits_of(
        frame.assign(source="whofits.csv:2").reindex(
            columns=dict.fromkeys([*whofits._COLUMNS, "source"])
        )
    )


def test_what_an_optimum_loses_is_against_the_best_of_three_places():
    found = fits(
        lines_of(laplace={"above_ep": -0.3}, twisted_ep={"above_ep": 0.2}),
        lines_of(split=1, laplace={"above_ep": 0.5}, twisted_ep={"above_ep": 0.2}),
        lines_of(split=2, laplace={"above_ep": -0.1}),
    )
    assert found["lost_ep"].tolist() == [0.2, 0.5, 0.0]
    assert found["lost_laplace"].tolist() == [0.5, 0.0, 0.1]
    assert found["lost_twisted-ep"].tolist() == pytest.approx([0.0, 0.3, 0.0])
    # EP's own place has no error of its own
    assert found["lost_ep_se"].tolist() == [0.002, 0.002, 0.0]
    assert found["lost_laplace_se"].tolist() == pytest.approx([0.002 * math.sqrt(2), 0.0, 0.002])


def test_how_far_probabilities_are_from_the_judges(tmp_path):
    """Over data sets, each the mean of its splits; a fit whose judge has not converged says nothing of them."""
    lines = [
        *lines_of("a", ep={"distance": 0.002, "other_class": 3}),
        *lines_of("a", 1, ep={"distance": 0.004, "other_class": 0}),
        *lines_of("b", ep={"distance": 0.001, "other_class": 2}),
        *lines_of("c", ep={"distance": 0.9, "status": "weights not trusted"}),
    ]
    found = measured(lines, tmp_path)["value"]
    assert found["whofits/all/both/ep/distance"] == pytest.approx(0.002)
    assert found["whofits/all/both/ep/distance-largest"] == pytest.approx(0.003)
    assert found["whofits/a/isotropic/distance-ep"] == pytest.approx(0.003)
    assert found["whofits/all/both/ep/other-class"] == 5
    assert found["whofits/all/both/tests"] == 270
    apart = [
        found[f"whofits/all/both/ep/apart/{name}"] for name in ("distance", "other-class", "tests")
    ]
    assert apart == pytest.approx([0.9, 1, 90])
    assert found["whofits/all/both/laplace/other-class"] == 3


def test_climbs_that_end_at_their_limit_are_counted(tmp_path):
    once = {"evaluations": 1}
    lines = [*lines_of(), *lines_of("b"), *lines_of("c", twisted_ep=once)]
    assert measured(lines, tmp_path)["value"]["whofits/all/both/climbs-spent"] == 2


def test_seconds_are_of_each_search(tmp_path):
    lines = [*lines_of(), *lines_of(split=1)]
    found = measured(lines, tmp_path, [1.0, 0.1, 9.0, 3.0, 0.3, 9.0])["value"]
    assert found["whofits/all/both/ep/seconds"] == pytest.approx(2.0)
    assert found["whofits/all/both/laplace/seconds"] == pytest.approx(0.2)


def test_errors_of_the_evidence_are_at_each_methods_optimum():
    found = fits(lines_of(ep={"own": -101.5}, laplace={"own": -103.0, "log_evidence": -100.2}))
    assert found["off_ep"].tolist() == [-1.5]
    assert found["off_laplace"].tolist() == pytest.approx([-2.8])


@pytest.mark.parametrize(
    ("point", "change"),
    [
        ("ep", {"status": "weights not trusted"}),
        ("twisted_ep", {"status": "not converged"}),
        ("laplace", {"log_evidence_se": 0.2}),
        ("ep", {"log_evidence": np.nan, "log_evidence_se": np.nan, "above_ep": np.nan}),
    ],
)
def test_a_fit_whose_judge_is_not_converged_does_not_count(point, change, tmp_path):
    lines = [*lines_of(**{point: change}), *lines_of(split=1)]
    found = measured(lines, tmp_path)["value"]
    assert [found[f"whofits/all/both/{name}"] for name in ("fits", "counted")] == [2, 1]
    assert found["whofits/all/both/ep/off-largest"] == pytest.approx(0.5)
    assert found["whofits/a/isotropic/counted"] == 1
    assert found["whofits/all/both/laplace/lost-any/over-a-nat"] == 0
    assert found["whofits/all/both/apart/fits"] == 1


def test_scores_are_of_fits_that_count(tmp_path):
    bad = {"status": "weights not trusted", "judge_log_loss": 0.9, "log_loss": 0.8, "slope": 9.0}
    lines = [*lines_of(ep=bad, twisted_ep=bad), *lines_of(split=1, laplace={"judge_log_loss": 0.5})]
    lines += lines_of("b")
    found = measured(lines, tmp_path)["value"]
    for method in ("ep", "laplace", "twisted-ep"):
        assert found[f"whofits/a/isotropic/log-loss-{method}"] == pytest.approx(0.3)
        assert found[f"whofits/all/both/{method}/slope"] == pytest.approx(1.0)
    assert found["whofits/all/both/laplace/slope-more"] == pytest.approx(0.0)
    assert found["whofits/all/both/twisted-ep/log-loss-more"] == pytest.approx(0.0)
    assert found["whofits/all/both/ep/log-loss-approximate"] == pytest.approx(0.0)
    assert found["whofits/all/both/laplace/log-loss-moved"] == pytest.approx(0.1)


def test_a_local_maximum_is_counted_though_the_judge_fails_there(tmp_path):
    far = {"ep": {"status": "weights not trusted"}, "laplace": {"above_ep": 40.0}}
    found = measured([*lines_of(**far), *lines_of(split=1)], tmp_path)["value"]
    assert found["whofits/all/both/ep/lost-largest"] == 0.0
    assert found["whofits/all/both/ep/lost-any/largest"] == 40.0
    assert found["whofits/all/both/ep/lost-any/over-a-nat"] == 1


def test_without_a_fit_that_counts_nothing_is_said(tmp_path):
    found = measured(lines_of(ep={"status": "not converged"}), tmp_path)
    assert found.loc["whofits/all/both/ep/off-median", "status"] == "not defined"
    assert found.loc["whofits/a/isotropic/off-ep", "status"] == "not defined"
    assert found.loc["whofits/all/both/ep/off-below", "value"] == 0


def test_the_choice_between_kernels():
    """The judge prefers the kernel with a length scale for each input by two nats, in the last split by nothing."""
    iso, ard = KERNELS
    pairs = [
        # both methods agree; EP does not; a tie of Laplace's method is no choice
        ({"own": -102.0}, {"own": -101.0}, {"own": -102.0}, {"own": -101.0}),
        ({"own": -101.0}, {"own": -102.0}, {"own": -102.0}, {"own": -101.0}),
        ({"own": -102.0}, {"own": -101.0}, {"own": -101.0}, {"own": -101.0}),
    ]
    lines = []
    for split, (ep1, ep2, laplace1, laplace2) in enumerate(pairs):
        up = {"log_evidence": -98.0}
        lines += [
            lines_of(split=split, kernel=iso, ep=ep1, laplace=laplace1),
            lines_of(split=split, kernel=ard, ep=up | ep2, laplace=up | laplace2, twisted_ep=up),
        ]
    lines += [lines_of(split=3, kernel=one) for one in KERNELS]
    lines += [lines_of(split=4, kernel=iso)]
    found = whofits.choices(fits(*lines))
    assert found["split"].tolist() == [0, 1, 2, 3], "with one kernel there is no choice"
    assert found["judge"].tolist() == [2.0, 2.0, 2.0, 0.0]
    assert found["told"].tolist() == [True, True, True, False]
    assert found["agrees_ep"].tolist() == [True, False, True, False]
    assert found["agrees_laplace"].tolist() == [True, True, False, False]


def test_counts_of_choices(tmp_path):
    iso, ard = KERNELS
    up = {"log_evidence": -98.0}
    lines = [
        *lines_of(kernel=iso, ep={"own": -101.0}),
        *lines_of(kernel=ard, ep=up | {"own": -102.0}, laplace=up | {"own": -99.0}, twisted_ep=up),
        *lines_of("b", kernel=iso), *lines_of("b", kernel=ard),
    ]  # fmt: skip
    found = measured(lines, tmp_path)["value"]
    assert [found[f"whofits/choice/{name}"] for name in ("counted", "told", "ard")] == [2, 1, 1]
    assert [found[f"whofits/choice/{name}/same"] for name in ("ep", "laplace")] == [0, 1]
    assert [found[f"whofits/choice/{name}/largest"] for name in ("ep", "laplace")] == [2.0, 0.0]
    assert found["whofits/choice/predicts"] == 0, "equal losses"
    assert [found[f"whofits/choice/{name}"] for name in ("smallest", "close")] == [2.0, 1]
    assert found["whofits/a/choice/judge"] == 2.0 and found["whofits/a/choice/ep"] == -1.0


@pytest.mark.parametrize(("loss", "predicts"), [(0.2, 1), (0.4, 0), (np.nan, 0)])
def test_whether_the_likelier_kernel_predicts_better(loss, predicts, tmp_path):
    iso, ard = KERNELS
    up = {"log_evidence": -98.0}
    ep = up | {"log_loss": loss}
    lines = [*lines_of(kernel=iso), *lines_of(kernel=ard, ep=ep, laplace=up, twisted_ep=up)]
    found = measured(lines, tmp_path)
    assert found.loc["whofits/choice/predicts", "value"] == predicts
    if np.isfinite(loss):
        assert found.loc["whofits/a/choice/log-loss", "value"] == pytest.approx(loss - 0.3)


def test_differences_are_paired_over_splits_and_over_data_sets(tmp_path):
    losses = {("a", 0): (0.30, 0.31), ("a", 1): (0.40, 0.43), ("b", 0): (0.1, 0.09)}
    losses |= {("b", 1): (0.2, 0.2)}
    lines = []
    for (data, split), (ep, laplace) in losses.items():
        change = {"ep": {"log_loss": ep}, "laplace": {"log_loss": laplace}}
        lines += lines_of(data, split, **change)
    found = measured(lines, tmp_path)
    own = found.loc["whofits/a/isotropic/log-loss-more-laplace"]
    assert own["value"] == pytest.approx(0.02) and own["se"] == pytest.approx(0.01)
    assert own["df"] == 1
    every = found.loc["whofits/all/both/laplace/log-loss-more"]
    assert every["value"] == pytest.approx((0.02 - 0.005) / 2)
    assert every["se"] == pytest.approx(0.025 / 2) and every["df"] == 1
    assert found.loc["whofits/all/both/laplace/log-loss-lower", "value"] == 1


def test_slopes_that_do_not_exist_are_left_out(tmp_path):
    lines = [
        *lines_of("a", ep={"slope": np.nan}),
        *lines_of("b", ep={"slope": 1.5}),
        *lines_of("c", ep={"slope": 0.7}),
    ]
    found = measured(lines, tmp_path)
    assert found.loc["whofits/all/both/ep/slope", "value"] == pytest.approx(1.1)
    assert found.loc["whofits/all/both/ep/slope-away", "value"] == pytest.approx(0.4)
    assert found.loc["whofits/a/isotropic/slope-ep", "status"] == "not defined"
    assert np.isnan(found.loc["whofits/b/isotropic/slope-ep", "se"]), "one split has no spread"


# --- the figure


def drawn(lines, folder):
    """The figure of lines, and the places of what it draws of each method: error and loss, by panel."""
    frame = measured(lines, folder).reset_index() if lines else pd.DataFrame({"id": []}, dtype=str)
    if not lines:
        frame = frame.reindex(columns=["id", "reading", "value"])
    found = estimate(frame) if lines else frame
    book = Book(found, frame, pd.DataFrame({"id": []}, dtype=str))
    with style.style():
        figure = draw(book)
        figure.draw_without_rendering()
    clouds = [
        [line.get_xydata().tolist() for line in axes.lines if line.get_marker() in ("D", "p")]
        for axes in figure.axes
    ]
    return figure, clouds


def test_the_figure_shows_what_is_lost_by_what_is_erred(tmp_path):
    iso, ard = KERNELS
    lines = [
        *lines_of("a", kernel=iso, laplace={"above_ep": -0.3, "own": -102.0}),
        *lines_of("a", kernel=ard, twisted_ep={"above_ep": 0.02}),
        *lines_of("b", kernel=ard, ep={"status": "not converged"}),
    ]
    figure, clouds = drawn(lines, tmp_path)
    # what loses nothing stands in the strip below, and the fit that does not count is nowhere
    assert clouds[0] == [[pytest.approx([0.5, 2.5e-5])], [pytest.approx([2.0, 0.3])]]
    assert clouds[1] == [[pytest.approx([0.5, 0.02])], [pytest.approx([0.5, 0.02])]]
    assert "found on a data set: 0.02 nats by EP, 0.3 nats by Laplace" in figure.get_suptitle()
    # the strip is within the frame, and says what it is
    assert figure.axes[0].get_ylim()[0] <= 1.25e-5
    assert figure.axes[0].get_yticklabels()[0].get_text() == "less"
    texts = [one for one in figure.findobj(matplotlib.text.Text) if one.get_text()]
    assert min(one.get_fontsize() for one in texts) >= 8.0
    assert [axes.get_title("left") for axes in figure.axes] == [
        "one length scale",
        "a length scale for each input",
    ]


def test_a_figure_of_nothing_says_so(tmp_path):
    figure, _ = drawn([], tmp_path)
    assert any("not run" in one.get_text() for one in figure.findobj(matplotlib.text.Text))


def test_variances_without_end_are_counted(tmp_path):
    far = {"ep": {"log_variance": 14.0}}
    end = {"ep": {"log_variance": 18.42, "variance_at_bound": True}}
    lines = [*lines_of(**far), *lines_of(split=1, **end), *lines_of(split=2)]
    bad = {"status": "weights not trusted"}
    lines += lines_of("b", ep={"log_variance": 14.0, "distance": 0.9} | bad)
    lines += lines_of("c", ep={"log_variance": 5.0, "distance": 0.04})
    found = measured(lines, tmp_path)["value"]
    own = "whofits/all/both/ep/{}/{}".format
    assert [found[own(name, "fits")] for name in ("large", "limit")] == [3, 2]
    distances = [found[own(name, "distance")] for name in ("large", "limit")]
    assert distances == pytest.approx([0.02, 0.01])
    assert [found[f"whofits/all/both/apart/{name}"] for name in ("fits", "at-limit")] == [1, 1]
    assert [found[f"whofits/all/both/at-{what}"] for what in ("limit", "bound")] == [3, 1]
    assert found["whofits/a/isotropic/at-limit"] == 2


def test_simulated_errors_are_found(tmp_path):
    """Of 200 data sets drawn with known errors: means within four standard errors, one draw in 16,000."""
    rng, lines = np.random.default_rng(5), []
    for k in range(200):
        off, lost, more = -rng.gamma(4.0, 0.25), rng.gamma(2.0, 0.01), rng.normal(0.01, 0.02)
        lines += lines_of(
            f"d{k}",
            ep={"own": -100.0 + off},
            laplace={"above_ep": -lost, "log_loss": 0.3 + more},
            twisted_ep={"above_ep": lost},
        )
    found = measured(lines, tmp_path)["value"]
    # medians of a gamma law of shape 4 and of shape 2, whose sum is twice the first
    assert found["whofits/all/both/ep/off-median"] == pytest.approx(0.918, abs=0.14)
    assert found["whofits/all/both/ep/lost-median"] == pytest.approx(0.0168, abs=0.004)
    assert found["whofits/all/both/laplace/lost-median"] == pytest.approx(0.0336, abs=0.008)
    assert found["whofits/all/both/ep/off-below"] == 200
    assert found["whofits/all/both/laplace/log-loss-more"] == pytest.approx(0.01, abs=0.0057)

"""Measures of Atiya, Fayed and Abdel-Gawad's study where what they should be is known; `test_golden` has the others."""

import math
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from small import ROOT, SMALL, modules, plan

from recheck.judge.measures import as_measures, estimate
from recheck.record.files import DamagedFileError, write_arrays, write_csv
from studies.atiya2021.experiments.scaling import CURVE
from studies.atiya2021.measures import other
from studies.atiya2021.measures import scaling as of_scaling
from studies.atiya2021.measures.benchmark import _equal
from studies.atiya2021.measures.common import by_eves, combine, named, needed, statuses
from studies.atiya2021.measures.convergence import common_slope, jackknife_ratio, slope_of_means
from studies.atiya2021.measures.crossings import Crossing, Curve
from studies.atiya2021.measures.experiment1 import effective_number
from studies.atiya2021.measures.experiment4 import _pairs, _ratios, contrasts
from studies.atiya2021.measures.experiment4_claims import _only_chains
from studies.atiya2021.measures.experiment4_errors import scatter
from studies.atiya2021.measures.experiment4_runs import from_median
from studies.common.measuring import Rows, measured
from studies.common.plan import declared
from studies.common.rows import Table, run_row, table_of, write_table

STUDY = "atiya2021"


def measure(part, folder):
    """Measures of a part, of tables in a folder."""
    given = Rows(folder, ROOT / "data/published" / STUDY, folder, declared(STUDY).measures[part])
    return measured(import_module(f"studies.{STUDY}.measures.{part}"), given)


def write(folder, experiment, lines, seconds):
    """A table of made lines, each with its CPU seconds."""
    names = [f"row{k}" for k in range(len(lines))]
    rows, timing = pd.DataFrame(lines), pd.DataFrame({"cpu_seconds": seconds})
    write_table(folder / experiment, Table(rows.assign(row=names), timing.assign(row=names), {}))


# --- Experiments 1 to 3

#: Data sets, and runs on each at six M; the last data sets of the first design have none at the two largest.
DESIGNS = {
    "kept": (20, [20, 20, 4, 2, 2, 2], 10),
    "one-run": (50, [1] * 6, 50),
    "two": (2, [40, 40, 8, 4, 2, 2], 2),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_of_slopes_cover_as_they_say(design):
    """Of 300 studies whose slope is known, 5 % leave it outside; 5 to 28 do but for one test in a thousand."""
    clusters, runs, long = DESIGNS[design]
    where = [
        (cluster, level)
        for cluster in range(clusters)
        for level, count in enumerate(runs)
        if level < 4 or cluster < long
        for _ in range(count)
    ]
    cluster, level = np.array(where).T
    x, rng, outside = np.log(1e4 * 10 ** (0.5 * level)), np.random.default_rng(11), 0
    for study in range(300):
        # errors of log L are |N(0, 1)|, of probabilities lognormal; in half of the studies the spread rises with M
        noise = np.log(np.abs(rng.standard_normal(len(x)))) + 0.635
        noise = noise if study % 2 else 0.2 * rng.standard_normal(len(x))
        noise *= 1 + 0.1 * level * (study % 4 < 2)
        y = -0.5 * x + 0.5 * rng.standard_normal(clusters)[cluster] + noise
        found = common_slope(pd.Series(x), pd.Series(y), pd.Series(cluster))
        outside += abs(found.value + 0.5) > t.ppf(0.975, found.df) * found.se
    assert 5 <= outside <= 28


def test_slopes_of_mean_errors_have_instances_as_units():
    """Of 400 studies whose slope is known, 5 % leave it outside: 8 to 34 but for one test in a thousand.

    Instances differ by a factor of two, and errors of one instance resemble one another at neighbouring M.
    """
    samples, rng, outside, found = 1e4 * 10 ** (0.5 * np.arange(6)), np.random.default_rng(3), 0, []
    for _ in range(400):
        level = np.exp(0.7 * rng.standard_normal((50, 1)))
        steps = rng.standard_normal((50, 6))
        steps[:, 1:] += steps[:, :-1]
        errors = pd.DataFrame(level * np.abs(steps) * samples**-0.5, columns=samples)
        scale = np.r_[1.0, np.full(5, math.sqrt(2.0))]  # of the sum of two steps
        found.append(slope_of_means(errors / scale))
        outside += abs(found[-1].value + 0.5) > t.ppf(0.975, found[-1].df) * found[-1].se
    assert 8 <= outside <= 34
    se = np.mean([one.se for one in found])
    assert se == pytest.approx(np.std([one.value for one in found]), rel=0.15)


def test_the_slope_of_mean_errors_by_hand():
    """Two instances whose errors fall as 1/M and as the root of M: means 2, 0.155 and 0.01505."""
    errors = pd.DataFrame({1.0: [1.0, 3.0], 100.0: [0.01, 0.3], 1e4: [1e-4, 0.03]})
    found = slope_of_means(errors)
    assert found.value == pytest.approx(math.log(0.01505 / 2.0) / math.log(1e4))
    # without either instance the slopes are -1/2 and -1
    assert (found.se, found.df) == pytest.approx((0.25, 1.0))
    assert slope_of_means(errors[:1]).status == "one instance or data set only"
    errors.loc[1, 1e4] = math.nan  # without the first instance nothing is left at the largest M
    assert slope_of_means(errors).status == "one instance or data set only"


def test_orders_are_compared_by_data_sets_and_pooled(tmp_path):
    """Mean squares 1, 1 and 4 of three data sets; with the soft count a quarter of them, but on the last the same."""
    lines = [
        {
            **{"problem": 2, "dataset": dataset, "order": "shuffled", "run": 0, "count": count},
            **{"seed": "1/x", "log_evidence_error": error, "probability_mae": 0.01},
            **{"smallest_stage": 0.1, "variance_eq44": 1e-3},
        }
        for count, errors in {"hard": (1.0, -1.0, 2.0), "soft": (0.5, -0.5, -2.0)}.items()
        for dataset, error in enumerate(errors)
    ]
    write(tmp_path, "ordering", lines, [1.0] * len(lines))
    given = Rows(tmp_path, ROOT / "data/published" / STUDY, tmp_path, ["ordering"])
    found = {row["id"]: row for row in combine(other._ordering(given)).to_dict("records")}
    name = "soft-count/evidence"
    assert found[f"claim/{name}"]["value"] == pytest.approx(16 ** (-1 / 3))
    assert found[f"ordering/pooled/{name}"]["value"] == pytest.approx(4.5 / 6)
    left = np.array([4.25 / 5, 4.25 / 5, 0.5 / 2])
    assert found[f"ordering/pooled/{name}"]["se"] == pytest.approx(
        math.sqrt(2 / 3 * ((left - left.mean()) ** 2).sum())
    )
    assert found[f"ordering/hardest/{name}"]["value"] == pytest.approx(1.0)
    assert found[f"ordering/hardest/{name}/share"]["value"] == pytest.approx(4 / 6)


def printed_floor(wrong, own, seed):
    """Mean, standard error and our own error of 50 problems of which some truths are wrong."""
    rng = np.random.default_rng(seed)
    noise = own * np.abs(rng.standard_normal(50)) / math.sqrt(2 / math.pi)
    errors = noise.copy()
    errors[: len(wrong)] = np.abs(
        np.array(wrong) + noise[: len(wrong)] * rng.choice([-1, 1], len(wrong))
    )
    theirs = (errors.mean(), errors.std(ddof=1) / math.sqrt(50))
    mine = own * np.abs(rng.standard_normal(50)) / math.sqrt(2 / math.pi)
    return (round(theirs[0], 3), 5e-4), (round(theirs[1], 4), 5e-5), (mine.mean(), mine.std(ddof=1))


def first_rule(value, bracket):
    """The first rule: if a bracket is a wrong truth's, it is one; its error is sqrt(n (n - 1)) brackets."""
    return 1, math.sqrt(50 * 49) * bracket[0]


def test_two_wrong_truths_are_not_taken_for_one():
    wrong = [1.44, 0.50]
    misled, found = 0, []
    for seed in range(40):
        value, bracket, own = printed_floor(wrong, 0.006, seed)
        number, size = first_rule(value, bracket)
        misled += number == 1 and 1.4 < size < 1.7
        found.append(effective_number(value, bracket, 50, own))
    assert misled > 30  # the first rule states one truth, wrong by 1.5 to 1.7 percent
    true = sum(wrong) ** 2 / sum(w**2 for w in wrong)
    assert np.median([number for number, _, _ in found]) == pytest.approx(true, rel=0.05)
    assert all(1 < low <= 2 for _, low, _ in found)  # two or more, and two may be enough
    assert np.mean([low <= true <= high for _, low, high in found]) > 0.7


def test_one_wrong_truth_does_not_rule_out_two():
    for seed in range(40):
        value, bracket, own = printed_floor([1.5], 0.006, seed)
        found, low, _ = effective_number(value, bracket, 50, own)
        assert found == pytest.approx(1.0, abs=0.15)
        assert low < 1.1


def test_monte_carlo_error_alone_has_no_wrong_truths():
    value, bracket, own = printed_floor([], 0.05, 3)
    found, _, high = effective_number(value, bracket, 50, own)
    assert math.isnan(found) or high > 5
    with pytest.raises(ValueError, match="three units"):
        effective_number(value, bracket, 2, own)


def on_data_sets(name, factors, levels, read):
    """Lines and seconds of a method whose error by data set is level/sqrt(s/factor) after s seconds.

    There are two runs on the first data set, and one on others. `read` has factors of the error of class
    probabilities, by ways to read a chain of the toolbox.
    """
    for dataset, (factor, level) in enumerate(zip(factors, levels, strict=True)):
        for size, seconds in enumerate((1.0, 10.0, 100.0)):
            for run in range(2 if dataset == 0 else 1):
                row = {"method": name, "dataset": dataset, "size": size, "run": run}
                error = level * (seconds / factor) ** -0.5
                row |= dict.fromkeys(
                    ("ape_percent", "probability_mae", "log_evidence_error"), error
                )
                row |= {f"probability_mae_{way}": error * by for way, by in read.items()}
                yield row | {"status": "ok", "seed": f"1/{name}/dataset{dataset}/run{run}"}, seconds


def claims_on_data_sets(root, factors, levels, read=None):
    """Claims on slice sampling where it takes `factors` times as long by data set, at errors of `levels`/sqrt(s)."""
    rows = [*on_data_sets("orthant", np.ones(len(levels)), levels, {})]
    rows += on_data_sets("ess-gpml", factors, levels, read or {})
    write(root, "experiment3", *zip(*rows, strict=True))
    found = estimate(measure("experiment3", root)).set_index(["id", "reading"])
    return found[found.index.get_level_values("id").str.contains("^claim/time/|first-data-set")]


def test_claims_about_seconds_are_paired_over_data_sets(tmp_path):
    factors, levels = np.array([4.0, 9.0, 16.0, 25.0]), np.array([1.0, 1.0, 1.0, 1.0])
    found = claims_on_data_sets(tmp_path / "a", factors, levels)
    row = found.loc["claim/time/evidence-ess"].iloc[0]
    mean = lambda chosen: 2 * np.log(np.sqrt(chosen).mean())  # noqa: E731
    left = [mean(np.delete(factors, k)) for k in range(4)]
    assert row["value"] == pytest.approx(3.5**2)
    assert row["se"] / row["value"] == pytest.approx(math.sqrt(3 / 4 * np.var(left) * 4))
    assert (row["status"], row["df"]) == ("ok", 3)
    first = found.loc["time/claims/evidence-ess/first-data-set"].iloc[0]
    assert first["value"] == pytest.approx(4.0)
    # data sets differ by a factor of 20 in both methods, and the ratio is known none the less
    levels = np.array([1.0, 2.0, 20.0, 5.0])
    rows = claims_on_data_sets(tmp_path / "b", np.full(4, 10.0), levels)
    for claim in ("evidence-ess", "probability-ess"):
        row = rows.loc[f"claim/time/{claim}"].iloc[0]
        assert row["value"] == pytest.approx(10.0)
        assert row["se"] == pytest.approx(0.0, abs=1e-9)


def test_claims_on_probabilities_read_the_toolboxs_chain_in_three_ways(tmp_path):
    read = {"twice": 0.3, "moments": 0.1, "once": 0.2}
    found = claims_on_data_sets(tmp_path, np.full(3, 10.0), np.array([1.0, 2.0, 3.0]), read=read)
    for name, share in read.items():
        reading = f"chain=as-distributed;variance={name}"
        for claim in ("probability-ess", "probability-tie"):
            # an error that is so much smaller takes the sampler so much longer
            assert found.loc[(f"claim/time/{claim}", reading), "value"] == pytest.approx(
                10 * share**2
            )
    assert found.loc[("claim/time/evidence-ess", "chain=as-distributed"), "value"] == pytest.approx(
        10
    )
    assert len(found.loc["claim/time/probability-ess"]) == 3


def line(errors, seconds=(1.0, 10.0, 100.0), se=0.1):
    """Sizes of a method, each with ten runs."""
    of = {"seconds": [*seconds], "log_error": [*errors], "log_error_se": se, "df": 9.0}
    return pd.DataFrame(of | {"exact": False})


FALLS = line([-1.0, -2.5, -4.0])


def test_a_curve_that_falls_fast_enough_goes_through_its_sizes():
    found = Curve(FALLS).crossing(-1.75)
    assert math.exp(found.log) == pytest.approx(math.sqrt(10))
    assert found.status == "ok"
    # of each end half a standard error, times log 10 in 1.5 units of log error
    assert found.se == pytest.approx(math.log(10) / 1.5 * 0.1 * math.sqrt(0.5))
    assert Curve(FALLS).crossing(-1.75, 0.1, 5.0).se > found.se
    assert Curve(FALLS).error(1) == pytest.approx((-2.5, 0.1, 9.0))


def test_sizes_that_break_the_rule_share_their_mean():
    """By hand: with errors times the root of seconds of 0, 1 and 0.5 in logs, all three share 0.5."""
    root = -0.5 * np.log([1.0, 10.0, 100.0])
    curve = Curve(line(root + np.array([0.0, 1.0, 0.5])))
    np.testing.assert_allclose(curve.log_error, root + 0.5)
    assert curve.error(0) == pytest.approx((0.5, 0.1 / math.sqrt(3), 27.0))
    found = curve.crossing(-1.0)
    assert (found.log, found.se) == pytest.approx((3.0, 2 * 0.1 / math.sqrt(3)))
    # a biased method need not fall so fast: its last two sizes alone are out of order
    flat = Curve(line([-1.0, -3.0, -2.0]), converges=False)
    np.testing.assert_allclose(flat.log_error, [-1.0, -2.5, -2.5])
    found = flat.crossing(-1.75)
    assert found.log == pytest.approx(math.log(10) / 2)
    assert found.se == pytest.approx(math.log(10) / 1.5 * 0.1 * math.hypot(0.5, 0.5 / math.sqrt(2)))


def test_crossing_says_what_is_a_bound_or_extrapolated():
    curve = Curve(FALLS)
    assert curve.crossing(0.0).status == "at most"
    assert curve.crossing(-0.5).doubt < 1e-3 and curve.crossing(-0.99).doubt > 0.4
    further = curve.crossing(-5.0)
    assert further.log == pytest.approx(math.log(100) + 2) and further.beyond == pytest.approx(2)
    assert curve.crossing(-9.0).status == "at least"
    assert Curve(FALLS, converges=False).crossing(-5.0).status == "at least"
    assert Curve(FALLS.assign(exact=True)).crossing(-5.0).status == "not reached"
    assert Curve(FALLS[:0]).crossing(-1.0).status == "not run"


def between_sizes(sizes, target):
    """The first rule: through the points themselves, between the last size with a larger error and the next."""
    x, e = np.log(sizes["seconds"].to_numpy()), sizes["log_error"].to_numpy()
    i = max(np.flatnonzero(e > target), default=0)
    if i == len(e) - 1:
        return x[i] + 2 * (e[i] - target)
    return x[i] + (x[i + 1] - x[i]) * (e[i] - target) / (e[i] - e[i + 1])


#: Mean errors after so many seconds: of a sampler, and of chains with and without a start of a fifth of a second.
SAMPLER = np.array([0.33, 1.25, 3.95, 13.6, 39.9]), lambda s: 0.022 / np.sqrt(s)
CHAINS = {"no start": lambda s: 0.012 / np.sqrt(s), "start": lambda s: 0.0095 / np.sqrt(s - 0.2)}


@pytest.mark.parametrize("chain", CHAINS)
def test_seconds_for_an_error_are_known_better_from_a_fitted_curve(chain):
    """Of 400 studies of a known ratio of seconds at a chain's last size, ten runs a size.

    The first rule is off by .6 in root mean square, as its readings of both curves rest on few runs.
    """
    law, sizes, rng = CHAINS[chain], (0.26, 0.4, 1.27, 4.77), np.random.default_rng(7)

    def drawn(seconds, law):
        errors = law(np.asarray(seconds))[:, None] * np.abs(rng.standard_normal((len(seconds), 10)))
        mean = errors.mean(axis=1)
        return line(np.log(mean), seconds, errors.std(axis=1, ddof=1) / mean / math.sqrt(10))

    truth = 2 * math.log(law(np.array(sizes[-1])) * math.sqrt(sizes[-1]) / 0.022)
    old, new, outside = [], [], 0
    for _ in range(400):
        own, sampler = drawn(sizes, law), drawn(*SAMPLER)
        last, start = own["log_error"].iloc[-1], math.log(sizes[-1])
        old.append(start - between_sizes(sampler, last) - truth)
        found = Crossing(start).over(Curve(sampler).crossing(*Curve(own).error(-1)))
        new.append(found.log - truth)
        outside += abs(new[-1]) > t.ppf(0.975, found.df) * found.se
    size = lambda errors: math.sqrt(np.mean(np.square(errors)))  # noqa: E731
    assert size(new) < 0.8 * size(old)  # .70 and .73 in many studies, known to .03
    assert abs(np.mean(new)) < 0.2  # at most .12 in many studies, known to .025
    assert 8 <= outside <= 40  # a share of .035 and .065 in many studies


@pytest.mark.parametrize(
    ("above", "below", "status"),
    [
        ("ok", "ok", "ok"),
        ("at least", "ok", "at least"),
        ("ok", "at least", "at most"),
        ("at least", "at most", "at least"),
        ("at most", "at most", "not comparable"),
        ("not reached", "ok", "not reached"),
    ],
)
def test_ratios_of_bounds(above, below, status):
    ratio = Crossing(1.0, 0.3, 9.0, above).over(Crossing(0.5, 0.4, 9.0, below))
    assert ratio.status == status
    if status in ("ok", "at least", "at most"):
        assert (ratio.log, ratio.se) == pytest.approx((0.5, 0.5))


def test_a_claim_rests_on_no_doubtful_bound():
    doubtful = Crossing(1.0, 0.0, 9.0, "at least", doubt=0.1)
    assert doubtful.row("claim/time/x", "")["status"] == "not comparable"
    assert doubtful.row("time/x", "")["status"] == "at least"


# --- Experiments 4 and 5


def test_methods_are_compared_at_equal_seconds():
    """Errors of power laws, whose ratio at any time is known; a curve that begins after the other ends is left out."""
    laws = {"orthant": (1.0, -0.5), "hmc": (3.0, -0.75), "ess": (0.2, -0.5), "late": (1.0, -0.5)}
    spans = {"orthant": (1.0, 64.0), "hmc": (0.5, 16.0), "ess": (2.0, 300.0), "late": (65.0, 90.0)}
    runs = pd.DataFrame(
        {"problem": problem, "set": 4, "method": method, "part": part, "source": "benchmark.csv:2"}
        | {"cpu_seconds": seconds, "nats": problem * laws[method][0] * seconds ** laws[method][1]}
        for problem in (1, 2)
        for method, span in spans.items()
        for part, seconds in zip("81", span, strict=True)
    )
    found = {row["id"]: row["value"] for row in _equal(runs, "nats")}
    ratios = {"hmc": 3.0 * 16.0**-0.25, "ess": 0.2}
    for method, ratio in ratios.items():
        path = f"equal/{method}/nats"
        assert found[f"{path}/common"] == 2 and found[f"{path}/closer"] == 2 * (ratio < 1)
        assert found[f"{path}/ratio"] == pytest.approx(ratio)
    assert not any("late" in name for name in found)


def test_deviations_pair_runs_in_order():
    found = from_median({"a": [[0.1], [0.2], [0.9]], "b": [[0.3], [0.2]]})
    np.testing.assert_allclose(found["a"], [0.1, 0.0])


def test_contrasts_are_between_cells_on_the_same_images():
    rows = [
        {"id": f"table4/P9/{paper}/mae-post", "reading": f"images={images}", "value": number}
        | {"unit": "experiment4/P9/dataset0", "run": 0, "scale": "log"}
        for paper, images, number in (
            ("new", "raw", 0.1),
            ("new", "smoothed", 0.2),
            ("ess", "raw", 0.4),
        )
    ]
    (row,) = contrasts(as_measures(rows)).to_dict("records")
    assert (row["id"], row["reading"]) == ("contrast/table4/P9/ess-new/mae-post", "images=raw")
    assert row["value"] == pytest.approx(0.3)


def test_one_rule_of_status_for_all_methods():
    """Rows that tell no eves are judged by their standard error, and a row's own status is never improved."""
    rows = pd.DataFrame(
        [
            ("bootstrap", "ok", np.nan, 0.05, "ok"),
            ("bootstrap", "ok", np.nan, 0.2, "not converged"),
            ("bootstrap", "ok", 150.0, 0.2, "ok"),
            ("bootstrap", "ok", 50.0, 0.05, "not converged"),
            ("bootstrap", "extinct", np.nan, np.nan, "extinct"),
            ("adapted", "ok", 150.0, 0.2, "ok"),
            (np.nan, "ok", np.nan, 5.0, "ok"),
        ],
        columns=["scheme", "status", "effective_eves", "log_evidence_se", "expected"],
    )
    assert statuses(rows).tolist() == rows["expected"].tolist()


def test_the_claim_on_chains_takes_the_better_chain_of_each_setting():
    errors = {"ep": [2e-4, 4e-4, 1e-3], "ess": [1e-4, 8e-4, 1e-3], "hmc": [4e-4, 2e-4, np.nan]}
    rows = pd.DataFrame({"problem": [1, 1, 2], "set": [1, 2, 1], "certified": True, "source": "x"})
    strict = pd.concat([rows.assign(method=m, mae_reference=e) for m, e in errors.items()])
    found = _only_chains(
        strict
    )  # twice the better error in both settings of Problem 1, once in Problem 2
    np.testing.assert_allclose(found["value"], np.sqrt(2))


def test_only_problems_with_all_settings_count_the_sampler_as_closer():
    nats = {"orthant": [0.1, 0.3, 0.2, 0.5], "ep": [0.4, 0.1, 0.1, 0.6], "ess": [1, 1, 1, np.nan]}
    rows = pd.DataFrame({"problem": [1, 1, 2, 3], "set": [1, 2, 1, 1], "source": "x"})
    several = [rows.assign(method=m, nats=e, mae_reference=np.nan) for m, e in nats.items()]
    found = pd.DataFrame(_pairs(pd.concat(several), "")).set_index("id")["value"]
    assert found.to_dict() == {
        # by setting; and below by problem
        "ep/common/nats/orthant": 4,
        "ep/closer/nats/orthant": 2,
        "ep/common/nats/ess": 3,
        "ep/closer/nats/ess": 3,
        "sampler/common/nats/ep": 3,
        "sampler/closer/nats/ep": 2,
        "sampler/common/nats/ess": 2,
        "sampler/closer/nats/ess": 2,
    }
    small = [one.assign(nats=one["nats"].where(one["problem"] > 1, 1e-9)) for one in several]
    found = pd.DataFrame(_pairs(pd.concat(small), "")).set_index("id")["value"]
    assert found["ep/common/nats/orthant"] == 4 and found["ep/common/nats/orthant/resolved"] == 2
    assert found["ep/closer/nats/orthant/resolved"] == 1


def test_ratios_of_errors_have_problems_as_units():
    """Logarithms of ratios by problem: 1 and 3 (the mean of its settings), so that the mean is 2 and the error 1."""
    errors = {"ep": np.exp([1.0, 2.0, 4.0]), "orthant": np.ones(3), "best": [1.0, 0.0, np.nan]}
    rows = pd.DataFrame({"problem": [1, 2, 2], "set": [1, 1, 2], "source": "x"})
    several = [rows.assign(method=m, mae_reference=e, nats=e) for m, e in errors.items()]
    found = pd.DataFrame(_ratios(pd.concat(several))).set_index("id")["value"]
    # Student's t with one degree of freedom; one problem of twisted EP has no spread
    logs = {"middle": 2.0, "low": 2.0 - 12.7062047, "high": 2.0 + 12.7062047}
    # of mean errors the larger of Problem 2 tells most
    second = np.log((np.exp(2.0) + np.exp(4.0)) / 2)
    middle, half = (1.0 + second) / 2, 12.7062047 * (second - 1.0) / 2
    logs |= {"means/middle": middle, "means/low": middle - half, "means/high": middle + half}
    path = "ratio/ep-every-run/orthant/"
    below = found.pop(f"{path}means/below")
    assert np.log(found).to_dict() == pytest.approx(
        {path + name: log for name, log in logs.items()}
    )
    assert below == 0


def test_problems_on_which_a_mean_error_is_below_anothers():
    """Both are closer in one setting of Problem 1, where the mean decides; EP is closer on the others."""
    errors = {"ep": [1.0, 5.0, 1.0, 1.0], "hmc": [2.0, 2.0, 3.0, 9.0]}
    rows = pd.DataFrame({"problem": [1, 1, 2, 3], "set": [1, 2, 1, 1], "source": "x"})
    several = [rows.assign(method=m, mae_reference=e, nats=e) for m, e in errors.items()]
    found = pd.DataFrame(_ratios(pd.concat(several))).set_index("id")["value"]
    assert found["ratio/ep-every-run/hmc/means/below"] == 2
    expected = (3.0 / 2.0 / 3.0 / 9.0) ** (1 / 3)
    assert found["ratio/ep-every-run/hmc/means/middle"] == pytest.approx(expected)


#: Log L of three replicates, the error that each reports, its status, and whether the prior is trivial, by setting.
REPLICATES = {
    1: ([0.0, 1.0, 2.0], 0.5, "ok", False),
    2: ([4.0, 5.0, 6.0], 1.0, "ok", False),
    # none of these count
    3: ([0.0, 9.0, 0.0], 0.1, "weights not trusted", False),
    4: ([0.0, 9.0, 0.0], 0.1, "ok", True),
    5: ([-70.0, -70.0, -70.0], 1e-15, "ok", False),
}


def replicated(cases, method="best", draws=100.0):
    """Runs of a method with the replicates of each setting of one problem."""
    return pd.DataFrame(
        {"problem": 1, "set": number, "method": method, "seed": "1/a", "log_evidence": value}
        | {"log_evidence_se": se, "status": status, "trivial": trivial, "work_samples": draws}
        | {"source": "experiment4.csv:2"}
        for number, (values, se, status, trivial) in cases.items()
        for value in values
    )


def test_replicates_judge_what_they_report_without_a_reference():
    """Shares of 4 and 1 of the reported variance: the mean is 2.5, and its standard error 1.5."""
    known = pd.DataFrame({"problem": 1, "set": [1, 2, 3], "source": "evidence.csv:2"})
    known = known.assign(log_evidence_se=[1.0, 0.5, 1.0], samples=[50, 200, 50])
    runs = SimpleNamespace(
        first=replicated(REPLICATES), reference=known.set_index(["problem", "set"])
    )
    path = "calibration/best/scatter/"
    found = {row["id"].removeprefix(path): row["value"] for row in scatter(runs)}
    high = math.sqrt(2.5 + 12.7062047 * 1.5)
    expected = {"cases": 2, "ratio": math.sqrt(2.5), "low": 0.0, "high": high}
    # the reference is noisier in settings 1 and 3, and has more draws in setting 2
    expected |= {"reference-cases": 3, "reference-larger": 2, "reference-longer": 1}
    assert found == pytest.approx(expected)


def test_the_interval_of_the_scatter_covers_as_it_says():
    """Of 200 studies whose reported errors are right 6.5 % leave one outside, as shares of three replicates are skew.

    3 to 25 do but for one test in a thousand.
    """
    rng, outside = np.random.default_rng(5), 0
    frame = replicated(
        dict.fromkeys(range(50), ([0.0, 0.0, 0.0], 1.0, "ok", False)), "minimax-tilting"
    )
    for _ in range(200):
        se = np.repeat(np.exp(rng.normal(size=50)), 3)
        values = -50.0 + se * rng.standard_normal(150)
        first = frame.assign(log_evidence=values, log_evidence_se=se)
        rows = scatter(SimpleNamespace(first=first, reference=None))
        found = {row["id"].rpartition("/")[2]: row["value"] for row in rows}
        outside += not found["low"] <= 1.0 <= found["high"]
    assert 3 <= outside <= 25


def test_without_data_experiment_5_says_so(tmp_path):
    for experiment in declared(STUDY).measures["experiment5"]:
        rows = plan(STUDY, experiment, SMALL[STUDY].block)
        run = modules(STUDY, "experiments")[experiment].run
        write_table(
            tmp_path / experiment, table_of([run_row(run, row, {"problem": {}}) for row in rows])
        )
    found = measure("experiment5", tmp_path)
    assert set(found["status"]) == {"data not available"}
    assert not found["id"].str.contains("nan").any()


# --- The study of scaling


def made(folder, lines, kernels=("rough",)):
    """Rows of made runs of each kernel: (N, data set, method, log evidence or None, standard error, status)."""
    names = {"twisted-ep": "twisted-ep", "minimax-tilting": "minimax-tilting"}
    rows = [
        {
            "row": f"{kernel}/N{n}/dataset{dataset}/{method}",
            **{"kernel": kernel, "N": n, "dataset": dataset, "method": method, "law": "model"},
            "inference": names.get(method.partition(CURVE)[0], "orthant"),
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
    return Rows(folder, ROOT / "data/published" / STUDY, folder, ["scaling"])


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


#: Status and error of runs on the two data sets.
SCORED = {
    # the long runs differ by 10 standard errors on the second: twisted EP's, and a bound
    "sampler": [("not converged", 4.0), ("at most", 2.0 + 2 * 1.5)],
    # scored against minimax tilting alone, and the other way round
    "twisted-ep": [("ok", 2.0), ("ok", 1.5)],
    "minimax-tilting": [("at most", 2 * 0.1), ("at most", 2 * 0.1)],
    "adapted": [("extinct", None), ("at most", 10.0 + 2 * 1.5)],
    "good": [("ok", 0.2), ("at most", 2 * 1.5)],
}


def test_errors_are_against_what_stands_for_the_truth(tmp_path):
    found = of_scaling.measure(made(tmp_path, RUNS))
    for method, expected in SCORED.items():
        rows = found[found["id"] == f"scaling/rough/N50/{method}/error"].sort_values("unit")
        assert [*rows["status"]] == [status for status, _ in expected], method
        values = [np.nan if value is None else value for _, value in expected]
        np.testing.assert_allclose(rows["value"], values, atol=1e-9, err_msg=method)
    found = found.set_index("id")
    twisted = found.loc["scaling/rough/N50/twisted-ep/error", "source"]
    assert twisted.iloc[0] == "scaling.csv:3,8", "its own line, and that of the long run"
    path = "scaling/calibration"
    # of the second data set the truth does not tell
    flagged = [found.loc[f"{path}/sampler/{name}", "value"] for name in ("wrong", "wrong-flagged")]
    assert flagged == [1, 1]
    assert found.loc[f"{path}/sampler/right-flagged", "status"] == "none"
    assert found.loc[f"{path}/twisted-ep/wrong-flagged", "value"] == 0.0, "2 nats off, and ok"
    # against an unsound truth nothing is calibrated
    assert found.loc[f"{path}/good/ok", "value"] == 1
    se = math.hypot(0.1, 0.1 * 0.2 / math.hypot(0.1, 0.2))
    assert found.loc[f"{path}/good/rms", "value"] == pytest.approx(0.2 / se)


def test_a_long_run_that_is_not_trusted_confirms_within_its_own_error(tmp_path):
    lines = [(50, 0, "sampler", -3.0, 0.1, "ok"), (50, 0, "twisted-ep", -5.0, 0.1, "ok")]
    lines += [
        (50, 0, TWISTED, -1.0, 0.01, "ok"),
        (50, 0, MINIMAX, -1.5, 0.5, "weights not trusted"),
    ]
    found = of_scaling.measure(made(tmp_path, lines)).set_index("id")
    row = found.loc["scaling/rough/N50/sampler/error"]
    assert (row["status"], row["value"]) == ("ok", pytest.approx(2.0, abs=1e-3))
    row = found.loc["scaling/rough/N50/twisted-ep/error"]
    assert (row["status"], row["value"]) == ("at most", pytest.approx(3.5 + 2 * 0.5))
    assert found.loc["scaling/reference/agree", "value"] == 1
    assert found.loc["scaling/reference/sound", "value"] == 0
    assert found.loc["scaling/calibration/twisted-ep/wrong", "value"] == 0, "nobody knows"
    assert found.loc["scaling/calibration/sampler/wrong", "value"] == 1


def test_further_counts_make_a_curve_and_count_nowhere_else(tmp_path):
    lines = [(50, 0, TWISTED, -1.0, 0.01, "ok"), (50, 0, MINIMAX, -1.1, 0.1, "ok")]
    lines += [(50, 0, "twisted-ep", -1.02, 0.02, "ok"), (50, 0, "sampler", -3.0, 0.5, "ok")]
    more = [
        (50, 0, f"twisted-ep{CURVE}16", -1.3, 0.2, "ok"),
        (50, 0, f"sampler{CURVE}9", -5.0, 0.9, "ok"),
    ]
    folders = [tmp_path / name for name in ("without", "with")]
    for folder in folders:
        folder.mkdir()
    without = of_scaling.measure(made(folders[0], lines))
    found = of_scaling.measure(made(folders[1], [*lines, *more]))
    curve = found["id"].str.startswith("scaling/curve/")
    assert [*found.loc[~curve, "id"]] == [*without["id"]]
    value = found.set_index("id")["value"]
    assert value["scaling/rough/N50/twisted-ep/apart"] == pytest.approx(0.02)
    assert value["scaling/curve/rough/N50/twisted-ep/16/apart"] == pytest.approx(0.3)
    truth = -1.0 - 0.1 * 0.01**2 / (0.01**2 + 0.1**2)
    assert value["scaling/curve/rough/N50/sampler/9/median"] == pytest.approx(5.0 + truth)
    assert value["scaling/curve/rough/N50/sampler/9/seconds"] == 2.0


def test_where_one_long_run_fails_the_other_stands_alone_beside_importance_sampling(tmp_path):
    """The first data set has two sound long runs, and counts in none."""
    lines = [(50, 0, TWISTED, -1.0, 0.01, "ok"), (50, 0, MINIMAX, -1.5, 0.1, "ok")]
    lines += [
        (50, 1, TWISTED, -2.0, 0.03, "ok"),
        (50, 1, MINIMAX, -2.2, 0.04, "weights not trusted"),
    ]
    lines += [
        (50, 2, TWISTED, -3.0, 0.03, "ok"),
        (50, 2, MINIMAX, -2.9, 0.04, "weights not trusted"),
    ]
    lines += [(50, 0, "importance-ep", -9.0, 0.1, "ok"), (50, 1, "importance-ep", -2.1, 0.1, "ok")]
    lines += [(50, 2, "importance-ep", -3.4, 0.1, "weights not trusted")]
    lines += [(50, 0, "ep", -1.1, 0.0, "ok"), (50, 1, "ep", -2.5, 0.0, "ok")]
    lines += [(50, 2, "ep", -2.0, 0.0, "ok"), (50, 2, "sampler", -7.0, 1.0, "not converged")]
    # the witness is half a joint standard error from twisted EP on one of the two, and does not know the other
    lines += [(50, 0, "latent", -9.0, 0.04, "ok"), (50, 1, "latent", -2.025, 0.04, "ok")]
    value = of_scaling.measure(made(tmp_path, lines)).set_index("id")["value"]
    expected = {"pairs": 2, "apart": 0.2, "largest-z": 4.0, "rms-z": math.sqrt(10.0)}
    # EP is nearer to minimax tilting on the first of the two, the sampler to twisted EP
    expected |= {"ep/least": 0.3, "sampler/least": 4.0}
    expected |= {"z/rough/N50/dataset1": -4.0, "z/rough/N50/dataset2": 2.0}
    expected |= {"importance-ep/passed": 1, "importance-ep/apart": 0.4}
    expected |= {"witness/pairs": 1, "witness/passed": 1, "witness/apart": 0.025}
    expected |= {"witness/largest-z": 0.5, "witness/rms-z": 0.5}
    found = {key: value[f"scaling/reference/alone/{key}"] for key in expected}
    assert found == pytest.approx(expected)


def test_how_much_of_the_truth_is_twisted_eps(tmp_path):
    """Weights are of inverse variances; of pairs with more than fifty patterns it lies above in one of two."""
    lines = [(50, 0, TWISTED, -1.0, 0.01, "ok"), (50, 0, MINIMAX, -1.1, 0.1, "ok")]
    lines += [(500, 0, TWISTED, -2.0, 0.1, "ok"), (500, 0, MINIMAX, -2.3, 0.3, "ok")]
    lines += [(500, 1, TWISTED, -3.0, 0.1, "ok"), (500, 1, MINIMAX, -2.9, 0.3, "ok")]
    value = of_scaling.measure(made(tmp_path, lines)).set_index("id")["value"]
    expected = {"compared": 2, "above": 1, "gap": 0.1, "weight": 0.9}
    found = {key: value[f"scaling/reference/{key}"] for key in expected}
    assert found == pytest.approx(expected)


def test_twisted_ep_is_set_beside_its_own_long_run(tmp_path):
    """Distances of 3 and 1 joint standard errors; a run that fails its diagnostics is left out."""
    lines = [(50, k, TWISTED, -1.0, 0.3, "ok") for k in range(3)]
    lines += [(50, k, MINIMAX, -1.1, 0.1, "ok") for k in range(3)]
    lines += [(50, k, "sampler", -9.0, 0.1, "ok") for k in range(3)]
    lines += [(50, 0, "twisted-ep", -2.5, 0.4, "ok"), (50, 1, "twisted-ep", -0.5, 0.4, "ok")]
    lines += [(50, 2, "twisted-ep", -9.0, 0.4, "weights not trusted")]
    found = of_scaling.measure(made(tmp_path, lines)).set_index("id")
    row = found.loc["scaling/calibration/twisted-ep/apart-rms"]
    assert row["value"] == pytest.approx(math.sqrt(5.0))
    assert row["source"] == "scaling.csv:2-3,11-12", "its runs and its own long runs"
    assert found.loc["scaling/calibration/twisted-ep/apart", "value"] == 2
    assert "scaling/calibration/sampler/apart" not in found.index


def test_exact_long_runs_agree_up_to_rounding(tmp_path):
    lines = [(50, 0, TWISTED, -1.0, 0.0, "ok"), (50, 0, MINIMAX, -1.0 - 1e-12, 0.0, "ok")]
    known = of_scaling.truths(made(tmp_path, lines).lines("scaling"))
    assert known["agree"].all() and known["z"].item() == 0.0
    assert known["se_combined"].item() == 0.0


def test_the_claim_on_2000_dimensions_is_judged_with_the_samples_that_the_paper_states(tmp_path):
    long = [(2000, 0, TWISTED, -9.0, 0.1, "ok"), (2000, 0, MINIMAX, -9.0, 0.1, "ok")]
    few = (2000, 0, "sampler", -19.0, 1.0, "not converged")
    found = of_scaling.measure(made(tmp_path, [*long, few])).set_index("id")
    assert found.loc["claim/works/dimension", "status"] == "not comparable"
    runs = [*long, few, (2000, 0, "million", -12.0, 1.0, "not converged")]
    # a kernel that is no reading is left out
    given = made(tmp_path, runs, ["rough", "smooth", "other"])
    rows = of_scaling.measure(given).set_index("id").loc["claim/works/dimension"]
    assert [*rows["reading"]] == ["kernel=rough", "kernel=smooth"]
    assert [*rows["value"]] == pytest.approx([3.0, 3.0])
    assert [*rows["se"]] == pytest.approx([0.1 / math.sqrt(2)] * 2)
    more = [(2000, 1, name, -9.0, 0.1, "ok") for name in (TWISTED, MINIMAX)]
    more += [(2000, 1, "million", -9.5, 1.0, "ok")]
    value = of_scaling.measure(made(tmp_path, [*runs, *more])).set_index("id")["value"]
    ends = [value[f"scaling/rough/N2000/million/{end}"] for end in ("least", "largest")]
    assert ends == pytest.approx([0.5, 3.0])


def test_seconds_at_another_error_leave_what_comes_before_the_points_as_it_is():
    """Two seconds, and a hundredth for each point: for half of the error four times the points, for twice a quarter.

    What the short run says of its error does not matter.
    """
    short = pd.DataFrame({"points": [50], "randomizations": [2], "cpu_seconds": [3.0]})
    short["log_evidence_se"] = 0.01
    long = short.assign(points=400, cpu_seconds=10.0, log_evidence_se=0.1 / 8**0.5)
    for error, seconds in ((0.1, 3.0), (0.05, 6.0), (0.2, 2.25), (1e9, 2.0)):
        found = of_scaling.seconds_at(pd.Series([error]), short, long)
        assert found.item() == pytest.approx(seconds)


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


# --- Reading


def test_lines_are_checked(tmp_path):
    lines = pd.DataFrame({"a": [1.0, np.nan], "source": ["x.csv:2", "x.csv:3"]})
    with pytest.raises(ValueError, match=r"x.csv: columns \['b'\] are missing"):
        needed(lines, ["b"])
    with pytest.raises(ValueError, match=r"x.csv: line 3: a is nan"):
        needed(lines, ["a"], finite=["a"])
    assert needed(lines[:0], ["b"], optional=["c"]).columns.tolist() == ["a", "source", "b", "c"]
    write(tmp_path, "experiment2", [{"problem": 1}], [1.0])
    (tmp_path / "experiment2.csv").write_text("row\nx\n")
    with pytest.raises(DamagedFileError, match="experiment2.csv"):
        measure("experiment2", tmp_path)


def test_named_fills_a_template():
    frame = pd.DataFrame({"N": [50, 200], "M": [1, 2]})
    assert named(frame, "t/N{N}/M{M}").tolist() == ["t/N50/M1", "t/N200/M2"]


def test_jackknife_of_a_mean_is_its_standard_error():
    x = np.array([1.0, 2.0, 4.0, 9.0])
    found = jackknife_ratio(x, np.ones(4), pd.Series(range(4)))
    assert found.value == 4.0
    assert found.se == pytest.approx(x.std(ddof=1) / 2)
    assert math.isnan(jackknife_ratio(x, np.ones(4), pd.Series([0] * 4)).se)

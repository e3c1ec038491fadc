import math

import pytest
from made_study import measures, published, rows
from scipy import stats

from recheck.judge.claims import Quantity
from recheck.judge.measures import estimate
from recheck.judge.verdicts import judge


def own(value, se, df=10.0, name="claim/c", **more):
    return [
        {"id": name, "value": value, "se": se, "df": df, "scale": "linear", "status": "ok", **more}
    ]


def verdict(tmp_path, region, *parts, **files):
    claims = f"- {{id: c, section: 1, statement: s, {region}}}"
    study = published(tmp_path, [], claims=claims, **files)
    frame = measures(*parts)
    return judge(frame, estimate(frame), study, 1).frame.set_index("id").loc["claim/c"]


def test_both_hypotheses_are_student_t():
    found = Quantity(0.3, 0.1, 8.0, "linear", 0.0, 1.0)
    assert found.p == 1.0 and found.p_agree() == pytest.approx(stats.t.sf(3.0, 8))
    found = Quantity(1.2, 0.1, 8.0, "linear", 0.0, 1.0)
    assert found.p == pytest.approx(stats.t.sf(2.0, 8)) and found.p_agree() > 0.5


@pytest.mark.parametrize(
    ("region", "value", "se", "expected"),
    [("between: [0, 1]", 0.5, 0.1, "agrees"), ("between: [0, 1]", 1.5, 0.1, "differs"),
     ("between: [0, 1]", 0.9, 0.1, "undecided"), ("above: 1", 5.0, 0.1, "agrees"),
     ("below: 1", 5.0, 0.1, "differs"), ("below: 1", 0.5, 0.0, "agrees"),
     ("below: 1", 1.5, 0.0, "differs")],
)  # fmt: skip
def test_verdicts(tmp_path, region, value, se, expected):
    assert verdict(tmp_path, region, own(value, se))["verdict"] == expected


def test_a_ratio_is_compared_as_a_logarithm(tmp_path):
    found = verdict(tmp_path, "between: [0.5, 2]", own(1.0, 0.2, df=1000.0, scale="log"))
    assert found["p_agree"] == pytest.approx(stats.norm.sf(math.log(2) / 0.2), rel=0.1)
    assert found["low"] == pytest.approx(math.exp(-1.645 * 0.2), rel=0.01)


def test_units_make_the_error(tmp_path):
    found = verdict(tmp_path, "above: 0", rows("claim/c", [[1.0], [2.0], [3.0]], scale="linear"))
    assert found["p_agree"] == pytest.approx(stats.t.sf(2 / (1 / math.sqrt(3)), 2))
    assert found["units"] == 3


def test_a_share_is_binomial(tmp_path):
    flags = rows("claim/c", [[0.0]] * 9 + [[1.0]], scale="linear")
    found = verdict(tmp_path, "above: 0.5", flags)
    assert found["p"] == pytest.approx(stats.binom.cdf(1, 10, 0.5)) and found["note"] == "1 of 10"
    assert found["verdict"] == "differs"


def test_every_run_is_judged_by_the_furthest(tmp_path):
    runs = [one | {"run": n} for n, value in enumerate([0.1, 0.2, 3.0]) for one in own(value, 0.5)]
    found = verdict(tmp_path, "below: 1", runs)
    assert found["ours"] == 3.0
    assert found["p"] == pytest.approx(3 * stats.t.sf(4.0, 10))


def points(*given, **more):
    """Rows of a claim on every run: a value and its standard error each."""
    return [row | {"unit": f"point{n}"} for n, one in enumerate(given) for row in own(*one, **more)]


@pytest.mark.parametrize(
    ("region", "given", "shown", "tested"),
    [("below: 1", [(0.9, 0.001), (0.8, 0.1), (0.1, 0.1)], 0, 1),  # inside: the point that is least sure
     ("below: 1", [(1.5, 0.1), (3.0, 2.0)], 1, 0),  # outside: the point that most surely is
     ("above: 1", [(1.2, 0.01), (1.3, 0.1), (9.0, 0.1)], 0, 1),
     ("between: [-2, 2]", [(1.0, 0.1), (-1.9, 0.01), (1.8, 0.1)], 1, 2)],
)  # fmt: skip
def test_of_every_run_the_worst_is_shown_and_the_most_significant_tested(
    tmp_path, region, given, shown, tested
):
    found = verdict(tmp_path, region, points(*given))
    assert (found["ours"], found["ours_se"]) == given[shown]
    # what is shown belongs together
    half = stats.t.ppf(0.95, 10) * given[shown][1]
    assert [found["low"], found["high"]] == pytest.approx(
        [found["ours"] - half, found["ours"] + half]
    )
    value, se = given[tested]
    ends = {"below: 1": [1.0], "above: 1": [1.0], "between: [-2, 2]": [-2.0, 2.0]}[region]
    beyond = -min(abs(value - end) for end in ends) if found["effect"] > 0 else 0.5
    inside = min(1.0, len(given) * stats.t.sf(beyond / se, 10)) if beyond > 0 else 1.0
    assert found["p"] == pytest.approx(inside)
    assert found["p_agree"] == pytest.approx(stats.t.sf(-beyond / se, 10))
    assert (
        f"furthest outside of {len(given)}; tested is point{tested}, {value:.2f}" in found["note"]
    )
    # and it is the estimate, which tables and look-ups print
    text = f"- {{id: c, section: 1, statement: s, {region}}}"
    regions = published(tmp_path, [], claims=text).regions
    (row,) = estimate(measures(points(*given)), regions).to_dict("records")
    assert (row["value"], row["se"]) == (found["ours"], found["ours_se"])


def test_the_furthest_ratio_is_that_of_the_logarithm(tmp_path):
    given = points((0.05, 0.01), (4.5, 0.4), scale="log")  # outside by a factor of 2 and of 1.1
    found = verdict(tmp_path, "between: [0.1, 4]", given)
    assert (found["ours"], found["ours_se"]) == pytest.approx((0.05, 0.01))
    assert "tested" not in found["note"]
    (row,) = estimate(measures(given), {"claim/c": (0.1, 4.0)}).to_dict("records")
    assert row["value"] == 0.05


def test_a_bound_that_is_furthest_is_said_to_be_one(tmp_path):
    given = points((5.0, 0.1), (0.2, 0.1))
    given[0]["status"] = "at most"
    found = verdict(tmp_path, "below: 1", given)
    assert found["ours"] == 5.0 and found["note"].startswith("at most this; furthest outside of 2")


@pytest.mark.parametrize(("status", "expected"), [("at least", "undecided"), ("at most", "agrees")])
def test_a_bound_proves_one_side_only(tmp_path, status, expected):
    assert verdict(tmp_path, "below: 1", own(0.5, 0.01, status=status))["verdict"] == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [([], "not run"), ([{"id": "claim/c", "scale": "linear", "status": "data not available"}], "data not available"),
     ([{"id": "claim/c", "scale": "linear", "status": "not converged"}], "not comparable"),
     (rows("claim/c", [[1.0]], scale="log"), "not comparable")],
)  # fmt: skip
def test_what_is_not_judged(tmp_path, parts, expected):
    assert verdict(tmp_path, "below: 1", parts)["verdict"] == expected


def test_without_a_region_it_is_shown_and_not_judged(tmp_path):
    found = verdict(tmp_path, "unit: s", own(2.0, 0.1))
    assert found["verdict"] == "not comparable" and found["ours"] == 2.0


def test_claims_are_corrected_over_their_family_and_exact_ones_are_not(tmp_path):
    text = "".join(f"- {{id: c{n}, section: 1, statement: s, below: 1}}\n" for n in range(4))
    study = published(tmp_path, [], claims=text)
    parts = [own(1.24, 0.1, name=f"claim/c{n}", df=1000.0) for n in range(3)] + [
        own(2.0, 0.0, name="claim/c3")
    ]
    frame = measures(*parts)
    found = judge(frame, estimate(frame), study, 1).frame.set_index("id")
    assert found.loc["claim/c0", "p"] < 0.05 and found.loc["claim/c0", "verdict"] == "differs"
    assert found.loc["claim/c0", "p_adjusted"] == pytest.approx(3 * found.loc["claim/c0", "p"])
    assert (
        found.loc["claim/c3", "verdict"] == "differs" and found.loc["claim/c3", "detectable"] == 0
    )


def test_a_claim_has_readings(tmp_path):
    choice = "v: {statement: s, levels: {a: x, b: y}, kind: runs, applies: [claim/c]}"
    both = own(0.5, 0.01, reading="v=a") + own(5.0, 0.01, reading="v=b")
    found = verdict(tmp_path, "below: 1", both, readings=choice)
    assert found["verdict"] == "depends on a reading" and found["readings"] == "v=a"
    # it differs only if every reading was run
    found = verdict(tmp_path, "below: 1", both[1:], readings=choice)
    assert found["verdict"] == "undecided" and "not run under v=a" in found["note"]
    with pytest.raises(ValueError, match="none of readings.yaml for this cell or claim"):
        verdict(tmp_path, "below: 1", own(0.5, 0.01, reading="v=c"), readings=choice)

import math
from pathlib import Path

import pytest
from made_study import published

from recheck.judge.printed import half_unit
from recheck.judge.published import Claim, number, read_published

STUDY = Path(__file__).parents[2] / "data" / "published" / "atiya2021"


@pytest.mark.parametrize(
    ("text", "value", "half"),
    [("0.0299", 0.0299, 5e-5), ("1.4e-3", 1.4e-3, 5e-5), ("1.4e^-3", 1.4e-3, 5e-5), ("1.7 x 10^-2", 0.017, 5e-4),
     ("12", 12, 0.5)],
)  # fmt: skip
def test_printed_numbers(text, value, half):
    assert number(text) == pytest.approx(value) and half_unit(text) == pytest.approx(half)


def test_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match="12a"):
        number("12a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"printed": "0"}, "positive"),
        ({"units": "0"}, "units"),
        ({"scale": "ratio"}, "scale"),
        ({"bracket_kind": "sd"}, "bracket_kind"),
        ({"bracket_kind": "standard error"}, "bracket"),
        ({"id": "t/b"}, "more than once"),
    ],
)
def test_wrong_cells_are_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        published(
            tmp_path, [{"id": "t/b", "printed": "1"}, {"id": "t/a", "printed": "1.0"} | change]
        )


CLAIM = "- {id: c, section: '1', statement: s, %s}"


def test_claims_have_regions(tmp_path):
    found = published(tmp_path, [], claims=CLAIM % "between: [0.5, 2], unit: s")
    claim = Claim(id="c", section="1", statement="s", between=(0.5, 2.0), unit="s")
    assert found.claims == (claim,) and claim.region == (0.5, 2.0)
    assert math.isnan(
        published(tmp_path, [], claims="- {id: c, section: 1, statement: s}").claims[0].region[0]
    )
    assert published(tmp_path, [], claims=CLAIM % "above: 1").claims[0].region[1] == math.inf


@pytest.mark.parametrize("wrong", ["between: [2, 1]", "above: x", "above: 1, below: 2", "abvoe: 1"])
def test_wrong_claims_are_refused(tmp_path, wrong):
    with pytest.raises(ValueError, match="entry 1"):
        published(tmp_path, [], claims=CLAIM % wrong)


READING = "v: {statement: s, levels: {a: x, b: y}, kind: %s, applies: ['t/*'], default: %s}"


def test_combinations_of_levels(tmp_path):
    cells = [{"id": "t/a", "printed": "1"}, {"id": "u/a", "printed": "1"}]
    found = published(tmp_path, cells, readings=READING % ("runs", "a"))
    assert found.combinations(["t/a"], "runs") == [{"v": "a"}, {"v": "b"}]
    assert found.combinations(["u/a"], "runs") == [{}]
    assert found.combinations(["t/a"], "design") == [{}]


def test_combinations_have_a_limit(tmp_path):
    """Each is compared: thirty choices would have a thousand million of them."""
    text = "".join((READING % ("runs", "a")).replace("v:", f"v{k}:") + "\n" for k in range(30))
    found = published(tmp_path, [{"id": "t/a", "printed": "1"}], readings=text)
    with pytest.raises(
        ValueError, match=r"readings.yaml: .* combinations of levels apply to t/a.*fewer ids"
    ):
        found.combinations(["t/a"])


@pytest.mark.parametrize(("kind", "default"), [("run", "a"), ("runs", "c")])
def test_wrong_readings_are_refused(tmp_path, kind, default):
    with pytest.raises(ValueError, match="readings.yaml: v"):
        published(tmp_path, [], readings=READING % (kind, default))


@pytest.mark.parametrize(
    "wrong",
    ["margins: {agree: 0.5}", "power: 2.0", "families: {a: [cell]}", "history: [{date: x}]",
     "contrasts: [{id: 'c/{q}', first: 't/{p}', second: 't/a', scale: log, margin: 2}]",
     "contrasts: [{id: c, first: 't/{p}', second: t/a, scale: log, margin: 1}]",
     "contrasts: [{id: 'c\\input{p}', first: 't/{p}', second: t/a, scale: log, margin: 2}]",
     "contrasts: [{id: c, first: 't/{0}', second: t/a, scale: log, margin: 2}]"],
)  # fmt: skip
def test_wrong_protocols_are_refused(tmp_path, wrong):
    with pytest.raises(ValueError, match="protocol.yaml"):
        published(tmp_path, [], protocol=wrong)


def test_contrasts_find_their_cells(tmp_path):
    cells = [{"id": f"t/P{p}/{m}", "printed": "1"} for p in (1, 2) for m in ("new", "old")]
    rule = "contrasts: [{id: 'c/{p}/{m}', first: 't/{p}/{m}', second: 't/{p}/new', scale: linear, margin: 1}]"
    pairs = published(tmp_path, cells, protocol=rule).pairs()
    assert [pair[:3] for pair in pairs] == [
        ("c/P1/old", "t/P1/old", "t/P1/new"),
        ("c/P2/old", "t/P2/old", "t/P2/new"),
    ]


def test_the_study_is_complete():
    study = read_published(STUDY)
    assert study.cells.groupby("table").size().to_dict() == {"1": 18, "2": 24, "3": 24, "4": 59}
    assert set(study.readings) == {
        *("variance", "count", "ess", "hmc", "images", "instances", "chain", "kernel")
    }
    assert len(study.pairs()) == 18 + 8 + 3
    assert study.protocol.margins.agree == 2.0 and all(
        one["after_results"] for one in study.protocol.history
    )

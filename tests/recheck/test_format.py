"""Numbers as text."""

import math

import pytest

from recheck.judge.declared import checked
from recheck.judge.format import Format, full, plain, short
from recheck.report import latex as tex
from recheck.report.latex import escape, latex, missing, printed


@pytest.mark.parametrize(
    ("value", "se", "options", "text"),
    [
        (0.24671, 0.0209, {}, "0.247 (0.021)"),
        (0.24671, 0.0996, {}, "0.25 (0.10)"),
        (0.24671, 0.0209, {"significant": 1}, "0.25 (0.02)"),
        (0.24671, 0.0209, {"se": False}, "0.247"),
        (0.24671, 0.0209, {"compact": True}, "0.247(21)"),
        (0.0012, 0.00021, {"factor": 1000, "compact": True}, "1.20(21)"),
        (1234567.0, math.nan, {}, "1.23 × 10⁶"),
        (123456.0, math.nan, {}, "123 456"),
        (1234.0, 0.0, {}, "1234"),
        (812.4, 31.7, {}, "812 (32)"),
        (0.00012346, 0.0000093, {}, "1.235 (0.093) × 10⁻⁴"),
        (0.0, 0.0, {}, "0"),
        (0.0, 0.013, {}, "0.000 (0.013)"),
        (-0.0004, 0.5, {}, "0.00 (0.50)"),
        (-1.5, math.nan, {"unit": "nats"}, "−1.50 nats"),
        (0.052, 0.0031, {"factor": 100, "unit": "%"}, "5.20 (0.31)%"),
        (19.6, 0.3, {"integer": True, "se": False}, "20"),
    ],
)
def test_plain(value, se, options, text):
    assert plain(value, se, Format(**options)) == text


def test_latex():
    assert latex(0.24671, 0.0209) == "$0.247$ ($0.021$)"
    assert latex(0.24671, 0.0209, Format(compact=True)) == "$0.247(21)$"
    assert latex(123456, math.nan, Format(unit="%")) == r"$123\,456$\,\%"
    assert latex(1.2346e-4, 9.3e-6) == r"$1.235\,(0.093)\times10^{-4}$"
    assert latex(1.2346e-4, 9.3e-6, Format(compact=True)) == r"$1.235(93)\times10^{-4}$"
    assert latex(9.996e-4, 4e-7) == r"$9.9960\,(0.0040)\times10^{-4}$"
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="finite"):
            latex(value)


def test_printed_keeps_the_digits_of_the_paper():
    assert printed("0.0020", "0.0100") == "$0.0020$ ($0.0100$)"
    assert printed("1.4e-3", "", Format(factor=1000)) == "$1.4$"
    assert printed("1.1e-2", "3e-3", Format(factor=1000)) == "$11$ ($3$)"
    assert printed("0.1177", "0.0239", Format(compact=True)) == "$0.1177(239)$"
    assert printed("2.0e-7") == r"$2.0\times10^{-7}$"
    assert printed("n/a") == "n/a"


def test_words_and_full_numbers():
    assert missing("not run") == "--"
    assert missing("data not available") == r"\textit{no data}"
    assert escape("a_b & 5% <c>") == r"a\_b \& 5\% \textless{}c\textgreater{}"
    assert full(1 / 3, 0.01234) == "0.3333333333 +- 0.0123"
    assert full(1 / 3, 0.0) == "0.3333333333"
    assert full("agrees") == "agrees"


def test_numbers_in_lists_of_verdicts():
    values = (0.12345, math.inf, -math.inf, math.nan)
    assert [short(value) for value in values] == ["0.123", "∞", "−∞", ""]
    texts = [tex.short(value, 2) for value in values]
    assert texts == ["$0.12$", r"$\infty$", r"$-\infty$", "--"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"digits": 3}, r"here: \['digits'\] are unknown; known are"),
        ({"significant": "2"}, "here: significant: .*integer; given was '2'"),
        ({"se": 1}, "here: se: .*boolean"),
        ({"significant": 0}, "here: significant: .*greater than 0"),
    ],
)
def test_options_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        checked(Format, options, "here")

"""The reader of printed numbers: every way in which tables write them, and refusals that say what to do."""

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recheck.judge.printed import decimal, read


@pytest.mark.parametrize(
    ("text", "digits", "bracket", "relation"),
    [
        ("0.92±0.03", "0.92", "0.03", ""),
        ("0.92 (0.03)", "0.92", "0.03", ""),
        ("0.247(21)", "0.247", "0.021", ""),
        ("2866.7 (707.9)", "2866.7", "707.9", ""),
        ("5,194.2 (12)", "5194.2", "12", ""),
        (r"\textbf{82.2} $\pm$ 0.3", "82.2", "0.3", ""),
        ("**75.1** ± 0.3", "75.1", "0.3", ""),
        (r"{\bf 12.3}", "12.3", "", ""),
        (r"$\mathbf{82.2}$", "82.2", "", ""),
        ("82.2***", "82.2", "", ""),
        ("0.32$^{**}$", "0.32", "", ""),
        ("0.12^†", "0.12", "", ""),
        ("−1.4 × 10⁻³", "-0.0014", "", ""),
        (r"$1.2\times10^{-4}$", "0.00012", "", ""),
        ("(1.4 ± 0.3) × 10^{-3}", "0.0014", "0.0003", ""),
        ("10⁻⁵", "0.00001", "", ""),
        ("<.001", "0.001", "", "<"),
        ("≤ .05", "0.05", "", "<="),
        ("~0", "0", "", "~"),
        ("85 %", "0.85", "", ""),
        ("85.1% ± 0.3%", "0.851", "0.003", ""),
        ("[0.1, 0.3]", "0.2", "0.1", ""),
        ("0.2 (0.1–0.3)", "0.2", "0.1", ""),
        ("−0.35 [−0.61, −0.09]", "-0.35", "0.26", ""),
        ("1,234", "1234", "", ""),
        ("12 345", "12345", "", ""),
        ("1.", "1", "", ""),
        ("1.32e+03", "1.32e3", "", ""),
        (".034", "0.034", "", ""),
        (r"$82.2_{\pm 0.7}$", "82.2", "0.7", ""),
        (r"\textbf{99.5}$_{\pm .1}$", "99.5", "0.1", ""),
        (r"$75.1_{(0.2)}$", "75.1", "0.2", ""),
        ("75.1<sub>±0.2</sub>", "75.1", "0.2", ""),
        (r"82.2\textsuperscript{a}", "82.2", "", ""),
        ("82.2<sup>*</sup>", "82.2", "", ""),
        ("1.4 × 10<sup>-3</sup>", "0.0014", "", ""),
        (r"\SI{82.2}{\percent}", "0.822", "", ""),
        ("1.32 (95% CI 1.10–1.58)", "1.32", "0.24", ""),
        ("1.32, 95% CI: [1.10, 1.58]", "1.32", "0.24", ""),
    ],
)
def test_numbers_as_tables_write_them(text, digits, bracket, relation):
    found = read(text)
    assert (found.digits, found.bracket, found.relation) == (digits, bracket, relation)
    assert read(str(found)).digits == digits  # what it prints it reads


@pytest.mark.parametrize("text", ["", "-", "—", "n/a", "N/A", "nan", "...", "$-$", "--"])
def test_a_cell_may_say_that_there_is_no_number(text):
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("0,92", "--comma"),
        ("(0,03)", "--comma"),
        ("0.92 (0,03)", "--comma"),
        ("12 ms", "without words or units"),
        ("p<.001", "needed is a number such as"),
        ("1e400", "at most 25 digits"),
        ("9" * 41, "at most 25 digits"),
        ("0.5 [0.6, 0.7]", "within its interval"),
        ("[0.3, 0.1]", "not negative"),
        ("1.2.3", "needed is a number such as"),
        ("x" * 300, "300 characters"),
        # the 1 of a footnote is no digit
        ("82.2<sup>1</sup>", "needed is a number such as"),
        ("82.2¹", "needed is a number such as"),
        (r"82.2\textsuperscript{1}", "needed is a number such as"),
    ],
)
def test_what_is_no_number_is_refused_with_a_remedy(text, remedy):
    with pytest.raises(ValueError, match="given was|given were") as error:
        read(text)
    assert remedy in str(error.value)


def test_a_comma_before_decimals_is_asked_for():
    found = read("1.234,5 (0,25)", comma=True)
    assert (found.digits, found.bracket) == ("1234.5", "0.25")
    assert read("12.345", comma=True).digits == "12345"


@pytest.mark.parametrize("text", ["0.845", "93.0", "1.2345", "1.5 (0,2)"])
def test_a_point_before_decimals_is_refused_where_a_comma_stands(text):
    """It was once taken away: 0.845 was 845."""
    with pytest.raises(ValueError, match="needed is a comma before decimals"):
        read(text, comma=True)


@settings(deadline=None)
@given(
    some.decimals(
        allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9
    )
)
def test_every_decimal_is_read_as_it_is(number):
    for text in (
        f"{number:f}",
        f"{number:e}",
        f"${number:f}$".replace("-", "−"),
        f"\\textbf{{{number:f}}}",
    ):
        found = read(text)
        assert Decimal(found.digits) == number
    assert decimal(read(f"{number:f}").digits).as_tuple().exponent == number.as_tuple().exponent


@settings(max_examples=300, deadline=None)
@given(some.text(alphabet="0123456789.,;+-−±()[]{}%<>≤~eE×x*^$\\ pmtobfd⁻¹²³ \t", max_size=30))
def test_nonsense_is_read_or_refused_in_one_way(text):
    """A number that is read prints as something that reads as the same number."""
    for comma in (False, True):
        try:
            found = read(text, comma)
        except ValueError:
            continue
        if found is not None:
            again = read(str(found))
            assert (again.digits, again.bracket, again.relation) == (
                found.digits,
                found.bracket,
                found.relation,
            )
            assert math.isfinite(float(found.digits))

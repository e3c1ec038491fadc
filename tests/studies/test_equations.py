import numpy as np
import pandas as pd
import pytest

from studies.atiya2021.equations import check_equations


@pytest.mark.parametrize("seed", range(20))
def test_the_misprints_are_misprints_on_any_problem(seed):
    table = pd.DataFrame(check_equations(np.random.default_rng(seed))).set_index("equation")
    limits = ["section 3.3 (small)", "section 3.3 (large)"]
    right = ["31", "48-51", *limits]
    assert list(table.index) == ["30", "31", "48-51", "52", "66", "75", *limits]
    misprints = table.drop(index=right)
    assert (misprints["corrected_error"] < 1e-9).all()
    assert misprints["verdict"].str.startswith("misprint").all()
    assert (misprints["correction"] != "").all()
    assert (table.loc[right, "verdict"] == "correct as printed").all()
    assert table.loc["48-51", "printed_error"] < 1e-10
    assert np.isnan(table.loc["30", "printed_error"])
    assert "do not conform" in table.loc["30", "verdict"]
    # the denominator of (66) is too large by sqrt(2 pi): 0.919 nats
    assert table.loc["66", "printed_error"] == pytest.approx(0.5 * np.log(2 * np.pi), abs=1e-9)
    assert table.loc["75", "printed_error"] >= 2.0


def test_the_same_seed_gives_the_same_table():
    first, second = (pd.DataFrame(check_equations(np.random.default_rng(7))) for _ in range(2))
    assert first.equals(second)
    with pytest.raises(ValueError, match="rng must be a numpy.random.Generator"):
        check_equations("7")

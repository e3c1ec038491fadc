"""Cao and Katzfuss's problems: our estimates beside the thirty replicates that they published of each of theirs.

All numbers are those of the kept study (src/studies/cao2024, data/reference/cao2024), which has the problems and how
estimates are made. ``deviation`` is the standard deviation of log P over estimates, or the standard error that a method
states of itself; ``seconds`` are those of one estimate, theirs on their machine; ``cost`` is squared deviation times
seconds, in nats^2 s. ``log_probability`` is the mean of log P over these estimates; of the public function, of twisted
EP and with more neighbours it is the logarithm of the mean probability.

``python benchmarks/vecchia.py`` writes docs/vecchia.csv.
"""

from pathlib import Path

import pandas as pd

from recheck.report.book import Book

ROOT = Path(__file__).resolve().parents[1]
LIMITS = {"orthant": "orthant", "shifted": "shifted limits", "box": "box"}
METHODS = {
    "library": "rectangle_probability",
    "vecchia": "Vecchia tilting, m = 30",
    "vecchia-70": "Vecchia tilting, m = 70",
    "vecchia-140": "Vecchia tilting, m = 140",
    "twisted-ep": "twisted-ep, sparse, m = 30",
    "minimax-tilting": "minimax tilting",
    "separation": "separation of variables",
}
DIGITS = {"log_probability": ".5g", "deviation": ".2g", "seconds": ".3g", "cost": ".2g"}


def main():
    """Write the table."""
    book = Book.read(ROOT / "data/reference/cao2024", ROOT / "data/published/cao2024", None)
    found = book.select("{quantity}/{limits}-{n}/{method}/{whose}")
    found = found[found["quantity"].isin(["sd", "seconds", "cost"])]
    keys = ["n", "limits", "method", "whose"]
    table = found.pivot(index=keys, columns="quantity", values="value").reset_index()
    table["log_probability"] = [mean(book, *row) for row in table[keys].to_numpy()]
    order = {"n": ["900", "6400"], "limits": [*LIMITS], "method": [*METHODS]}
    for name, values in order.items():
        table[name] = pd.Categorical(table[name], values)
    table = table.sort_values(keys)
    table = table.assign(limits=table["limits"].map(LIMITS), method=table["method"].map(METHODS))
    table = table.rename(columns={"sd": "deviation"})[[*keys, *DIGITS]]
    for name, digits in DIGITS.items():
        table[name] = [format(value, digits) if pd.notna(value) else "" for value in table[name]]
    table.to_csv(ROOT / "docs/vecchia.csv", index=False)


def mean(book, n, limits, method, whose):
    """Log P of a method: over its estimates, as the judge compares it, or by the mean of the probabilities."""
    cell, own = f"log-p/{limits}-{n}/{method}", f"mean/{limits}-{n}/{method}"
    if whose == "theirs":
        return float(book.cells.loc[cell, "value"])
    return float(book.get(cell if cell in book.cells.index else own)["value"])


if __name__ == "__main__":
    main()

"""Rasmussen and Williams (2006), chapter 3, mostly on USPS digits; and Table 1 of Kuss and Rasmussen (2005).

Settings are in the block ``rasmussen2006`` of ``config/default.yaml``.
"""

from __future__ import annotations

from studies.common.plan import Study

#: Threes and fives; and all ten digits.
PAIR, DIGITS = {"digits": "data/pair"}, {"digits": "data/usps"}

STUDY = Study(
    experiments={
        # Section 3.7.3, Figures 3.7 to 3.9: evidence, information and errors of threes against fives.
        "surface": PAIR,
        # Section 3.7.3 and Eq. 3.76: numbers of cases, and what their frequencies leave unknown.
        "counts": PAIR,
        # Wrong data and wrong formulas on purpose.
        "faults": {"book": "data/pair", "raw": "data/pair_raw", "zip_split": "data/pair_zip"},
        # Figure 3.10: other classifiers of threes against fives, over rejected shares.
        "comparators": PAIR,
        # Section 3.7.3: the search for C and l of the support vector machine.
        "machines": PAIR,
        # Figure 3.12: the exact evidence at some points and on the grid.
        "exact": PAIR,
        # Section 3.7.4: other classifiers of all ten digits.
        "others": DIGITS,
        # Section 3.7.4, Figure 3.11: Laplace's method for all ten digits.
        "tenclass": DIGITS,
        # Section 3.7.2, Figure 3.6: the one-dimensional example on many draws of its data.
        "toy": {},
        # Figures 3.4 to 3.6 as they are drawn, and the lone points of Figure 3.5 over draws.
        "pictures": {},
        # Table 1 of Kuss and Rasmussen (2005): ten-fold cross-validation.
        "crossvalidation": {"data": "data/{patterns}"},
    },
    measures={
        "binary": ["surface", "counts", "faults"],
        "comparators": ["comparators", "machines", "surface"],
        "exact": ["exact"],
        "tenclass": ["tenclass", "others"],
        "toy": ["toy"],
        "pictures": ["pictures"],
        "crossvalidation": ["crossvalidation"],
    },
    targets={
        "digits_two": ["surface", "counts", "faults", "comparators", "machines", "exact"],
        "digits_ten": ["tenclass", "others"],
        "crossvalidation": ["crossvalidation"],
    },
    whole="chapter3",
    # digits are smoothed; these as scanned, and smoothed ones with the partition of the files
    raw=dict.fromkeys(("pair", "pair_raw", "pair_zip"), "usps") | {"wisconsin": "breast_cancer"},
)

# Rasmussen and Williams (2006), chapter 3: classification, mostly of USPS digits; and Table 1 of Kuss and Rasmussen (2005).
# Settings: the block `rasmussen2006` of config/default.yaml.

#: What each part of the measures reads.
MEASURED["rasmussen2006"] = {
    "binary": ["surface", "counts", "faults"],
    "comparators": ["comparators", "machines", "surface"],
    "exact": ["exact"],
    "tenclass": ["tenclass", "others"],
    "toy": ["toy"],
    "pictures": ["pictures"],
    "crossvalidation": ["crossvalidation"],
}
#: Names of targets, and what each makes.
TARGETS |= {
    "chapter3": whole("rasmussen2006"),
    "digits_two": tables(
        *("rasmussen2006", "surface", "counts", "faults", "comparators", "machines", "exact"),
    ),
    "digits_ten": tables("rasmussen2006", "tenclass", "others"),
    "crossvalidation": tables("rasmussen2006", "crossvalidation"),
}
#: Threes and fives are smoothed digits, these as scanned, and smoothed ones with the partition of the files.
REGISTERED |= {"pair": "usps", "pair_raw": "usps", "pair_zip": "usps", "wisconsin": "breast_cancer"}


# Digits in the book's order, and the data sets of Kuss and Rasmussen.
use rule patterns as rasmussen2006_patterns with:
    pathvars:
        patterns="rasmussen2006/data/{data}",


# Section 3.7.3, Figures 3.7 to 3.9: evidence, information and errors of threes against fives. What is based on this rule
# reads the same digits.
use rule run as rasmussen2006_surface with:
    input:
        compiled=ancient("build/compiled.json"),
        digits="<results>/rasmussen2006/data/pair.npz",
    pathvars:
        rows="rasmussen2006/surface/{method}/{block}",


# Section 3.7.3 and Eq. 3.76: numbers of cases, and what their frequencies leave unknown.
use rule rasmussen2006_surface as rasmussen2006_counts with:
    pathvars:
        rows="rasmussen2006/counts/{block}",


# Wrong data and wrong formulas on purpose.
use rule run as rasmussen2006_faults with:
    input:
        compiled=ancient("build/compiled.json"),
        book="<results>/rasmussen2006/data/pair.npz",
        raw="<results>/rasmussen2006/data/pair_raw.npz",
        zip_split="<results>/rasmussen2006/data/pair_zip.npz",
    pathvars:
        rows="rasmussen2006/faults/{block}",


# Figure 3.10: other classifiers of threes against fives, over rejected shares.
use rule rasmussen2006_surface as rasmussen2006_comparators with:
    pathvars:
        rows="rasmussen2006/comparators/{block}",


# Section 3.7.3: the search for C and l of the support vector machine.
use rule rasmussen2006_surface as rasmussen2006_machines with:
    pathvars:
        rows="rasmussen2006/machines/{block}",


# Figure 3.12: the exact evidence at some points and on the grid.
use rule rasmussen2006_surface as rasmussen2006_exact with:
    pathvars:
        rows="rasmussen2006/exact/{method}/{block}",


# Section 3.7.4: other classifiers of all ten digits.
use rule run as rasmussen2006_others with:
    input:
        compiled=ancient("build/compiled.json"),
        digits="<results>/rasmussen2006/data/usps.npz",
    pathvars:
        rows="rasmussen2006/others/{block}",


# Section 3.7.4, Figure 3.11: Laplace's method for all ten digits.
use rule rasmussen2006_others as rasmussen2006_tenclass with:
    pathvars:
        rows="rasmussen2006/tenclass/{block}",
    resources:
        # a matrix for each class, and as much again for the others and for the blocks of test cases
        mem_mb=1000
        + int(20 * 8 * CHECKED["rasmussen2006"].rasmussen2006.ten_classes.training**2 / 1e6),
        runtime=10,


# Section 3.7.2, Figure 3.6: the one-dimensional example on many draws of its data.
use rule run as rasmussen2006_toy with:
    pathvars:
        rows="rasmussen2006/toy/{block}",


# Figures 3.4 to 3.6 as they are drawn, and the lone points of Figure 3.5 over draws.
use rule run as rasmussen2006_pictures with:
    pathvars:
        rows="rasmussen2006/pictures/{block}",


# Table 1 of Kuss and Rasmussen (2005): ten-fold cross-validation.
use rule run as rasmussen2006_crossvalidation with:
    input:
        compiled=ancient("build/compiled.json"),
        data="<results>/rasmussen2006/data/{patterns}.npz",
    pathvars:
        rows="rasmussen2006/crossvalidation/{patterns}/{method}/{block}",

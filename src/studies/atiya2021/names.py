"""Names and places that the plans, the workflow and the measures share."""

from studies.common.seeds import seed

#: All problems of Experiment 4, of the reference and of the calibration.
PROBLEMS = tuple(range(1, 10))
#: Training patterns of the problems of Experiment 2.
PATTERNS = {1: 100, 2: 200, 3: 400, 4: 800}

#: Training patterns of the problems of Experiment 4.
TRAINING = {1: 50, 2: 200, 3: 50, 4: 50, 5: 50, 6: 1000, 7: 100, 8: 200, 9: 750}
#: Problem 9 once more, with the images as scanned.
SCANNED = "9_raw"
#: Problems and samplers of the study of the toolbox's defects.
CASES, SAMPLERS = ("linear", "rough", "smooth"), ("ess", "hmc")
#: Ways of counting (Eqs 57 and 62), which share their random numbers, and orders of the patterns.
COUNTS, ORDERS = ("hard", "soft"), ("sorted", "shuffled", "interleaved")

#: Real data sets by problem; the other problems are synthetic.
REAL = {7: "crabs", 8: "breast_cancer", 9: "usps"}

#: Where the certified reference, the register of raw files and the raw files are, from the root of the repository.
REFERENCE = "data/reference/atiya2021/certified"
REGISTRY, RAW = "data/registry.csv", "data/raw"


def data_set_seed(number: int, dataset: int, root: int) -> str:
    """Return the seed of a data set of Experiment 4; the workflow makes the first one's patterns."""
    further = [f"dataset{dataset}"] if dataset else []
    return seed(root, "experiment4", f"problem{number}", *further)

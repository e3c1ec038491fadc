"""Names and places that the jobs and the problems share."""

#: Real data sets by problem; the other problems are synthetic.
REAL = {7: "crabs", 8: "breast_cancer", 9: "usps"}

#: Where the certified reference, the register of raw files and the raw files are, from the root of the repository.
REFERENCE, REGISTRY, RAW = "data/reference/atiya2021", "data/registry.csv", "data/raw"

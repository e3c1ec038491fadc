"""The published values, our values beside them, and a verdict for every cell."""

from gpcmc.audit.compare import (
    VERDICTS,
    Z_LIMIT,
    audit,
    check_complete,
    compare,
    count_verdicts,
    read_audit,
    write_audit,
)
from gpcmc.audit.estimates import Estimate, Estimator, Term, data_set_spread, median_errors
from gpcmc.audit.findings import (
    brackets,
    coarse_grid_errors,
    data_sets,
    floor,
    overall_variance,
    slopes,
    variance,
)
from gpcmc.audit.published import CELLS, METHODS, PUBLISHED_RUNS, half_width, read_registry
from gpcmc.audit.results import (
    SETS,
    Predictions,
    Problem,
    ResultFiles,
    read_long,
    read_probabilities,
    read_problem,
)

__all__ = [
    "CELLS",
    "METHODS",
    "PUBLISHED_RUNS",
    "SETS",
    "VERDICTS",
    "Z_LIMIT",
    "Estimate",
    "Estimator",
    "Predictions",
    "Problem",
    "ResultFiles",
    "Term",
    "audit",
    "brackets",
    "check_complete",
    "coarse_grid_errors",
    "compare",
    "count_verdicts",
    "data_set_spread",
    "data_sets",
    "floor",
    "half_width",
    "median_errors",
    "overall_variance",
    "read_audit",
    "read_long",
    "read_probabilities",
    "read_problem",
    "read_registry",
    "slopes",
    "variance",
    "write_audit",
]

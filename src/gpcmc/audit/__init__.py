"""The published values, our values beside them, and a verdict for every cell."""

from gpcmc.audit.claims import judge_claims, read_claims
from gpcmc.audit.compare import (
    VERDICTS,
    Comparisons,
    Power,
    agreement,
    audit,
    check_complete,
    compare,
    count_verdicts,
    read_audit,
    side_by_side,
    write_audit,
    write_rows,
)
from gpcmc.audit.controls import check_controls, controls
from gpcmc.audit.estimates import Estimate, Estimator, Term, data_set_spread, median_errors
from gpcmc.audit.explanations import check_explained, explain, read_explanations, unexplained
from gpcmc.audit.findings import (
    bias,
    brackets,
    data_sets,
    floor,
    overall_variance,
    slopes,
    variance,
)
from gpcmc.audit.published import CELLS, METHODS, half_width, read_registry
from gpcmc.audit.results import (
    Predictions,
    ResultFiles,
    read_long,
    read_probabilities,
)

__all__ = [
    "CELLS",
    "METHODS",
    "VERDICTS",
    "Comparisons",
    "Estimate",
    "Estimator",
    "Power",
    "Predictions",
    "ResultFiles",
    "Term",
    "agreement",
    "audit",
    "bias",
    "brackets",
    "check_complete",
    "check_controls",
    "check_explained",
    "compare",
    "controls",
    "count_verdicts",
    "data_set_spread",
    "data_sets",
    "explain",
    "floor",
    "half_width",
    "judge_claims",
    "median_errors",
    "overall_variance",
    "read_audit",
    "read_claims",
    "read_explanations",
    "read_long",
    "read_probabilities",
    "read_registry",
    "side_by_side",
    "slopes",
    "unexplained",
    "variance",
    "write_audit",
    "write_rows",
]

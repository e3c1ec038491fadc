"""Tables, figures, values for the text, and the paper: everything that is made from result files."""

from gpcmc.report.paper import build_paper, summary
from gpcmc.report.provenance import provenance, write_provenance
from gpcmc.report.registry import FIGURES, TABLES, write_figure, write_table
from gpcmc.report.values import PUBLISHED_SCALE, Value, collect, write_values

__all__ = [
    "FIGURES",
    "PUBLISHED_SCALE",
    "TABLES",
    "Value",
    "build_paper",
    "collect",
    "provenance",
    "summary",
    "write_figure",
    "write_provenance",
    "write_table",
    "write_values",
]

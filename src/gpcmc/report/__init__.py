"""Tables, figures, values for the text, and the paper: everything that is made from result files."""

from gpcmc.report.origins import trace, web_link, write_origins
from gpcmc.report.paper import build_paper, summary
from gpcmc.report.provenance import provenance, run_timing, write_manifest, write_provenance
from gpcmc.report.registry import FIGURES, TABLES, write_figure, write_table
from gpcmc.report.review import (
    Item,
    claim_items,
    items,
    write_codecheck,
    write_crate,
    write_review,
)
from gpcmc.report.value import Value
from gpcmc.report.values import collect, write_values

__all__ = [
    "FIGURES",
    "TABLES",
    "Item",
    "Value",
    "build_paper",
    "claim_items",
    "collect",
    "items",
    "provenance",
    "run_timing",
    "summary",
    "trace",
    "web_link",
    "write_codecheck",
    "write_crate",
    "write_figure",
    "write_manifest",
    "write_origins",
    "write_provenance",
    "write_review",
    "write_table",
    "write_values",
]

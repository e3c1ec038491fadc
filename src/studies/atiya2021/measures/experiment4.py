"""Measures of Experiment 4: the cells of Table 4, every problem, setting and method, and the claims of section 6.4."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from recheck.measures import OK, as_measures
from studies.atiya2021.measures.experiment4_cells import (
    between_data_sets,
    consensus,
    contrasts,
    table4,
)
from studies.atiya2021.measures.experiment4_claims import claims, hard_settings
from studies.atiya2021.measures.experiment4_posterior import posterior_rows
from studies.atiya2021.measures.experiment4_runs import read_runs
from studies.atiya2021.measures.experiment4_settings import (
    all_deviations,
    averages,
    by_setting,
    deviation_rows,
    reference_rows,
    summarise,
)
from studies.atiya2021.measures.experiment4_summaries import summaries

__all__ = ["measure_experiment4"]


def measure_experiment4(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """Measures of Experiment 4.

    Parameters
    ----------
    root : Path
        Results of the study, ``results/<scale>/atiya2021``.
    published : Path
        ``data/published/atiya2021``.
    reference : Path
        ``data/reference/atiya2021``.

    Returns
    -------
    DataFrame
        `recheck.measures.COLUMNS`; without rows where nothing was run.

    Raises
    ------
    DamagedFileError
        A file is not what was written.
    ValueError
        See `read_runs`.
    """
    runs = read_runs(root, reference)
    if runs.rows.empty:
        return as_measures(between_data_sets(runs))
    deviations = all_deviations(runs, consensus(published))
    strict = summarise(runs, runs.first["status"] == OK, deviations)
    loose = summarise(runs, runs.first["counts"], deviations)
    cells = as_measures(table4(runs, published))
    rows = [
        *contrasts(cells),
        *between_data_sets(runs),
        *by_setting(runs, strict),
        *deviation_rows(deviations),
        *averages(strict),
        *reference_rows(runs, strict),
        *summaries(runs, strict),
        *posterior_rows(runs, strict, loose, cells, published),
        *hard_settings(runs, strict),
        *claims(runs, loose, published),
    ]
    return as_measures(pd.concat([cells, pd.DataFrame(rows)], ignore_index=True))

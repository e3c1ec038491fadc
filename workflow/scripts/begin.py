"""What every script does first, and where kept results are."""

import logging
import sys
from pathlib import Path

from studies.common import locks


def begin(snakemake) -> Path:
    """Say that this job is at work, send what it says to its log, and return the folder of the results."""
    locks.hold_job()
    Path(snakemake.log[0]).parent.mkdir(parents=True, exist_ok=True)
    sys.stderr = open(snakemake.log[0], "w", buffering=1, encoding="utf-8")
    logging.basicConfig(stream=sys.stderr)
    logging.getLogger("studies").setLevel(logging.INFO)
    return Path("results", snakemake.config["scale"])


def kept_results(study) -> Path | None:
    """The folder of a study's kept results; None where there are none."""
    folder = Path("data/reference", study)
    return folder if (folder / "measures.csv.gz").exists() else None

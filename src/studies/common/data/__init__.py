"""The real data sets, all on one path from registry to arrays.

`read_registry` says what each file is, where it may be had, and what is known about it. `fetch` verifies it on arrival.
`load` verifies it again, parses it, and compares its facts. `check` does so for every data set. Nothing here depends on
the rest of the package.
"""

from studies.common.data.checking import require, to_html
from studies.common.data.download import fetch
from studies.common.data.parse import DATASETS, RawData, check, load, registered
from studies.common.data.registry import (
    DamagedFileError,
    DataUnavailableError,
    Entry,
    files_of,
    read_registry,
)
from studies.common.data.splitting import PAPER_SIZES, split

__all__ = [
    "DATASETS",
    "PAPER_SIZES",
    "DamagedFileError",
    "DataUnavailableError",
    "Entry",
    "RawData",
    "check",
    "fetch",
    "files_of",
    "load",
    "read_registry",
    "registered",
    "require",
    "split",
    "to_html",
]

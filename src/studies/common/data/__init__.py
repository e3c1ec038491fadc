"""The real data sets of section 6.4 (Problems 7 to 9), from registry to split.

The chain, in the order in which a raw file passes through it::

    entries = read_registry("data/registry.csv")    # what each file is, and where it may be had
    fetch(entry, "data/raw", mirrors, root=root)    # verified on arrival
    raw = load("crabs", "data/raw", entries)        # verified again, then parsed; no network
    parts = split(raw, *PAPER_SIZES["crabs"], standardise=True, rng=rng)
    table = check("data/raw", entries)              # the asserted facts of every data set

Nothing here depends on the rest of the package.
"""

from studies.common.data.checking import check, require, to_html
from studies.common.data.download import fetch
from studies.common.data.parse import (
    DATASETS,
    RawData,
    load,
    load_breast_cancer,
    load_crabs,
    load_usps,
    smooth,
)
from studies.common.data.registry import (
    DamagedFileError,
    DataUnavailableError,
    Entry,
    files_of,
    read_registry,
    verify,
)
from studies.common.data.splitting import PAPER_SIZES, Split, split

__all__ = [
    "DATASETS",
    "PAPER_SIZES",
    "DamagedFileError",
    "DataUnavailableError",
    "Entry",
    "RawData",
    "Split",
    "check",
    "fetch",
    "files_of",
    "load",
    "load_breast_cancer",
    "load_crabs",
    "load_usps",
    "read_registry",
    "require",
    "smooth",
    "split",
    "to_html",
    "verify",
]

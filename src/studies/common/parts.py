"""Parts of a study's measures: how each is measured, and which raw files it reads.

The workflow imports this module before any job starts, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from studies.common.running import Job


def parts(package: str, names: Iterable[str]) -> dict[str, Callable[..., pd.DataFrame]]:
    """Return each part, from the folders of results, published numbers and reference to the rows of its measures.

    A part is the module of its name in `package`, imported at the first call. Its ``measure`` takes the folder of
    results. If that raises `NoDataError`, the rows say of all that fits the module's ``IDS`` that data are missing.
    """
    return {name: partial(_measure, f"{package}.{name}") for name in names}


def _measure(name: str, root: Path, published: Path, reference: Path) -> pd.DataFrame:
    from studies.common.raw import NoDataError, unavailable

    module = import_module(name)
    try:
        found: pd.DataFrame = module.measure(root)
    except NoDataError as error:
        return unavailable(published, module.IDS, str(error))
    return found


def files_below(
    part: str, jobs: Mapping[str, Job], folders: Mapping[str, Collection[str]]
) -> list[str]:
    """Return the files that jobs write below the folders of a part.

    ValueError if `folders` has no such part.
    """
    if part not in folders:
        raise ValueError(f"part: needed is one of {list(folders)}, given was {part!r}")
    files = [file for job in jobs.values() for file in job.outputs.values()]
    return sorted(file for file in files if file.partition("/")[0] in folders[part])

"""Result files that say when they were damaged.

Each CSV or npz file has a JSON file beside it, ``<file>.digest``, with its SHA-256 checksum and its number of rows
(of an npz file: of arrays). A folder that is kept has one file ``digests.json`` in place of them. A file that was
altered, cut off or never finished is refused by name. Files are written under another name first and renamed when they
are complete. Equal content gives equal bytes.
"""

import gzip
import hashlib
import io
import json
import os
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

#: The digests of all files of a folder that is kept, by name.
DIGESTS = "digests.json"
#: The date of every entry of a zip archive: the earliest that the format can hold.
_DATE = (1980, 1, 1, 0, 0, 0)
#: Bytes of all arrays of a file, and what libraries raise of files that they cannot read.
_LARGEST = 4 * 2**30
_UNREADABLE = (
    *(
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OSError,
        EOFError,
        RuntimeError,
        MemoryError,
    ),
    *(NotImplementedError, SyntaxError, zipfile.BadZipFile, zlib.error),
)


class DamagedFileError(ValueError):
    """A file differs from what was written, or nothing says what was written."""


def _damaged(path: str | Path, what: str) -> DamagedFileError:
    return DamagedFileError(f"{path}: {what}; delete it and make it again")


def digest_path(path: str | Path) -> Path:
    """Where the digest of a file is."""
    return Path(f"{path}.digest")


def sha256(path: str | Path) -> str:
    """SHA-256 checksum of a file, in hexadecimal digits."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_csv(path: str | Path, frame: pd.DataFrame, **about: Any) -> None:
    """Write a table without its index, floats in full precision, and its digest, which holds `about` too.

    A name that ends in ``.gz`` is compressed.
    """
    content = frame.to_csv(index=False, lineterminator="\n").encode("utf-8")
    if Path(path).suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    _write_with_digest(path, content, len(frame), about)


def read_csv(path: str | Path, **kwargs: Any) -> pd.DataFrame:
    """Read what `write_csv` wrote, every float as it was written; the options are those of `pandas.read_csv`.

    DamagedFileError if there is no digest, or if the file's bytes or rows are not those that were written: it names
    the file and says what to do. Rows are not counted where ``nrows`` or ``skiprows`` leave some out.
    """
    content, rows = _checked(path)
    if Path(path).suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(path, f"not compressed as its name says ({error})") from error
    with warnings.catch_warnings():
        # pandas before 3.1 has to be asked for exact floats; later ones always return them, and warn
        warnings.filterwarnings("ignore", message="The 'float_precision' argument")
        try:
            frame = pd.read_csv(io.BytesIO(content), **({"float_precision": "round_trip"} | kwargs))
        except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise _damaged(path, f"not a table ({str(error).strip()})") from error
    if not {"nrows", "skiprows"} & kwargs.keys() and len(frame) != rows:
        raise _damaged(path, f"{len(frame)} rows, its digest says {rows}")
    return frame


def write_arrays(
    path: str | Path, arrays: Mapping[str, Any], *, packed: bool = False, **about: Any
) -> None:
    """Write named arrays as an npz file, compressed if `packed`, and its digest, which holds `about` too.

    Arrays of Python objects are a ValueError: reading them would need pickle.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(arrays):
            array = np.asanyarray(arrays[name])
            if array.dtype.hasobject:
                raise ValueError(
                    f"arrays[{name!r}]: dtype {array.dtype} holds Python objects, "
                    "needed are numbers, booleans or strings of fixed width"
                )
            entry = io.BytesIO()
            np.lib.format.write_array(entry, array, allow_pickle=False)
            about_entry = zipfile.ZipInfo(f"{name}.npy", date_time=_DATE)
            kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
            archive.writestr(about_entry, entry.getvalue(), compress_type=kind)
    _write_with_digest(path, buffer.getvalue(), len(arrays), about)


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote, arrays by name; it refuses as `read_csv` does."""
    content, count = _checked(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > _LARGEST:
            raise ValueError(f"{size} bytes when it is unpacked")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = dict(stored)
    except _UNREADABLE as error:
        raise _damaged(path, f"not an npz file ({error})") from error
    if len(arrays) != count:
        raise _damaged(path, f"{len(arrays)} arrays, its digest says {count}")
    return arrays


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as UTF-8 with line feeds; it has no digest."""
    _write(Path(path), text.encode("utf-8"))


def write_json(path: str | Path, content: object) -> None:
    """Write what JSON can hold, keys in order; it has no digest."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file; DamagedFileError names one that is not JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"not a JSON file ({error})") from error


def _write_with_digest(path: str | Path, content: bytes, rows: int, about: dict[str, Any]) -> None:
    digest = {"about": about, "rows": rows, "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps(digest, indent=1, sort_keys=True) + "\n"  # fails before anything is written
    # An old digest beside a new file would accuse the file; a missing one says the same, more clearly.
    digest_path(path).unlink(missing_ok=True)
    _write(Path(path), content)
    write_text(digest_path(path), text)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)


def gather_digests(folder: str | Path) -> None:
    """Put the digests of all files of a folder into one file, ``digests.json``; those of files that are gone go."""
    folder = Path(folder)
    path = folder / DIGESTS
    known = read_json(path) if path.exists() else {}
    for place in sorted(folder.glob("*.digest")):
        known[place.name.removesuffix(".digest")] = read_json(place)
    write_json(path, {name: one for name, one in known.items() if (folder / name).exists()})
    for place in folder.glob("*.digest"):
        place.unlink()


def _checked(path: str | Path) -> tuple[bytes, int]:
    """Bytes of a file that are those of its digest, and the number of rows in it."""
    content, place = Path(path).read_bytes(), digest_path(path)
    stored = read_json(place) if place.exists() else _gathered(Path(path))
    if stored is None:
        raise _damaged(path, f"it has no digest ({place.name}) beside it")
    found = hashlib.sha256(content).hexdigest()
    rows = stored.get("rows") if isinstance(stored, dict) else None
    if not isinstance(stored, dict) or "sha256" not in stored or not isinstance(rows, int):
        raise _damaged(path, f"{place.name} is not a digest")
    if found != stored["sha256"]:
        digests = f"SHA-256 {found[:12]}, its digest says {str(stored['sha256'])[:12]}"
        raise _damaged(path, f"its bytes were changed after it was written ({digests})")
    return content, rows


def _gathered(path: Path) -> Any:
    """The digest of a file in that of its folder; None where there is none."""
    place = path.with_name(DIGESTS)
    if not place.exists():
        return None
    digests = read_json(place)
    if not isinstance(digests, dict):
        raise _damaged(place, "not digests by name")
    return digests.get(path.name)

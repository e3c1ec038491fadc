"""Finished pieces of a long job, kept so that no finished work is done twice.

A piece is a few runs of a hyperparameter set, a data set or an instance: whatever a job does one after the other.
Its file carries a key, the digest of a record that says what the piece was made from, and which stands beside it:

- the parameters: the root of the random streams, the grid, the options, and where a job starts from patterns,
  their digest (`gpcmc.experiments.classification.patterns_digest`);
- the code: every module of this package that the named ones import, directly or not, by the digest of its text
  without comments and docstrings (`code_digests`);
- the libraries whose code makes or moves numbers (`LIBRARIES`), by version.

A job takes a piece only where its own key is the same. So an edit of one method's module leaves the pieces of the
others valid, and an edit of `gpcmc.orthant.sampler` spoils all that sample with it.

What is trusted, beyond the file itself: that the named modules do not reach others than through import statements
(`STOPS` lists where the search ends, and why); that the compiled extension was built from the sources beside it (the
workflow builds both from one copy); and that processor, compiler, BLAS and the minor version of Python change
results by rounding at most. Chains make large differences of small ones, so on another processor a piece may differ
from what would be computed there, as any result may.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import io
import json
import os
import tokenize
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
#: Rows of the results table, rows of the timing table, arrays by name.
Piece = tuple[list[Row], list[Row], dict[str, np.ndarray]]
#: What a piece was made from: `modules` (as named), `code`, `libraries`, `parameters`.
Record = dict[str, Any]

#: Random streams (NumPy), special functions and linear algebra, kernels, effective sample sizes.
LIBRARIES = ("arviz-stats", "numpy", "scikit-learn", "scipy")

#: Modules whose code is not part of a key.
STOPS = (
    "gpcmc.inference",  # the table of all methods: a job names those that it runs
    "gpcmc.datasets",  # makes the patterns, whose digest is a parameter
    "gpcmc.experiments.pieces",  # this module carries numbers and makes none
)

#: So with every module of these packages.
WITHIN = ("gpcmc.datasets.",)

#: In a job's folder: all its pieces are there, and its results have been written.
DONE = "done"
#: Behind the folder's name, once the run has ended well: the workflow sets the pieces aside
#: (workflow/rules/experiments.smk), so that a job that runs again computes anew. Not before, for a run that is killed
#: while it takes note of the job starts that job again.
ASIDE = ".finished"

_PACKAGE = Path(__file__).resolve().parents[1]


class Pieces:
    """A folder of finished pieces that belong to one job.

    Parameters
    ----------
    folder : path
        Where the pieces wait until the job is complete.
    modules : iterable of str
        Modules of this package that the results come from; what they import is found.
    parameters : object
        What else the results depend on; anything that JSON can hold.
    """

    def __init__(self, folder: str | Path, modules: Iterable[str], parameters: object) -> None:
        self._folder = Path(folder)
        self._record = json.dumps(record(modules, parameters), indent=1, sort_keys=True) + "\n"
        self._key = hashlib.sha256(self._record.encode()).hexdigest()[:16]
        (self._folder / DONE).unlink(missing_ok=True)

    def get(self, name: str, compute: Callable[[], Piece]) -> Piece:
        """Return the piece of that name, from disk where it is finished, else by `compute()`."""
        path = self._folder / f"{name}-{self._key}.npz"
        if path.exists():
            with np.load(path) as stored:
                rows, timing = json.loads(str(stored["rows"]))
                return rows, timing, {k: stored[k] for k in stored.files if k != "rows"}
        rows, timing, arrays = compute()
        buffer = io.BytesIO()
        named: Any = {"rows": np.array(json.dumps([rows, timing])), **arrays}
        np.savez(buffer, **named)
        self._folder.mkdir(parents=True, exist_ok=True)
        _write(self._folder / f"{self._key}.json", self._record.encode())
        _write(path, buffer.getvalue())
        return rows, timing, arrays

    def finish(self) -> None:
        """Say that the job's results have been written, and drop what belongs to other inputs."""
        if self._folder.exists():
            for path in self._folder.iterdir():
                if self._key not in path.name:
                    path.unlink()
            (self._folder / DONE).touch()


def _write(path: Path, content: bytes) -> None:
    """Write a file that never has its final name while it is half-written."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)


def join(pieces: Iterable[Piece]) -> Piece:
    """Put pieces one after the other, and so the parts of an array that more than one has."""
    rows: list[Row] = []
    timing: list[Row] = []
    arrays: dict[str, np.ndarray] = {}
    for more_rows, more_timing, more_arrays in pieces:
        rows += more_rows
        timing += more_timing
        for name, part in more_arrays.items():
            arrays[name] = np.concatenate([arrays[name], part]) if name in arrays else part
    return rows, timing, arrays


def record(modules: Iterable[str], parameters: object) -> Record:
    """Return what pieces of these modules with these parameters are made from, now and here."""
    named = sorted(set(modules))
    return {
        "modules": named,
        "code": code_digests(named),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "parameters": parameters,
    }


def outdated(made_from: Record) -> list[str]:
    """Return which modules and libraries are no longer those of a record; none where it fits.

    Parameters
    ----------
    made_from : dict
        As `record` returned it. Its parameters are not looked at: only the job knows them.
    """
    try:
        here = record(made_from["modules"], None)
    except ValueError:  # a module has gone
        return sorted(made_from["modules"])
    return sorted(
        name
        for part in ("code", "libraries")
        for name in made_from[part].keys() | here[part].keys()
        if made_from[part].get(name) != here[part].get(name)
    )


def code_digests(modules: Iterable[str]) -> dict[str, str]:
    """Return the digests of modules of this package and of all of it that they import.

    Parameters
    ----------
    modules : iterable of str
        Full names, as in ``"gpcmc.inference.ep"``.

    Returns
    -------
    dict
        Module to 16 hexadecimal digits. Comments, docstrings and blank lines of Python files do not count; those
        of Cython files do.

    Raises
    ------
    ValueError
        If a name is not that of a module of this package.
    """
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found and module not in STOPS and not module.startswith(WITHIN):
            found[module], imported = _module(module)
            waiting += imported
    return dict(sorted(found.items()))


@cache
def _module(module: str) -> tuple[str, list[str]]:
    """Digest of one module, and what it imports of this package."""
    path = _source(module)
    if path is None:
        raise ValueError(f"modules must name modules of {_PACKAGE.name}; got {module!r}")
    if path.suffix == ".pyx":
        # with what it includes; Python's tokeniser does not read Cython, so every byte counts
        files = [path, *sorted(_PACKAGE.rglob("*.h"))]
        return _digest(b"".join(file.read_bytes() for file in files)), []
    text = path.read_text(encoding="utf-8")
    return _digest(_bare(text).encode()), list(_imports(ast.parse(text)))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _source(module: str) -> Path | None:
    """The source of a module or package of this package; None where there is none."""
    first, *rest = module.split(".")
    stem = _PACKAGE.joinpath(*rest)
    candidates = [stem.with_suffix(".py"), stem.with_suffix(".pyx"), stem / "__init__.py"]
    if first != _PACKAGE.name or not rest:
        return None
    return next((path for path in candidates if path.exists()), None)


def _imports(tree: ast.Module) -> Iterator[str]:
    """Modules of this package that a module imports; a name that a package hands on counts for its origin."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (n.name for n in node.names if n.name.split(".")[0] == _PACKAGE.name)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError("imports must be absolute; got a relative one")
            package = node.module or ""
            if package.split(".")[0] != _PACKAGE.name:
                continue
            for alias in node.names:
                submodule = f"{package}.{alias.name}"
                yield submodule if _source(submodule) else _origin(package, alias.name)


def _origin(module: str, name: str) -> str:
    """The module that a name imported from `module` comes from: its own, or that which a package hands on."""
    path = _source(module)
    if path is not None and path.name == "__init__.py":
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if name == (alias.asname or alias.name):
                        return _origin(node.module, alias.name)
    return module


def _bare(text: str) -> str:
    """Python source without comments, blank lines, and strings that stand alone, such as docstrings.

    Cut out of the text rather than made of tokens or of the syntax tree, which differ between versions of Python.
    """
    lines = text.split("\n")
    cuts = []
    between = True  # statements
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token, following in pairwise(tokens):
        alone = between and following.type == tokenize.NEWLINE
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and alone):
            cuts.append((token.start, token.end))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            between = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    for (first, start), (last, end) in reversed(cuts):
        lines[first - 1 : last] = [lines[first - 1][:start] + lines[last - 1][end:]]
    return "\n".join(line.rstrip() for line in lines if line.strip())

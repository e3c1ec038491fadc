"""Digests of the code that results are made from.

A digest covers the bare code of the named modules, and of every module of `PACKAGES` that they import, directly or
not. Comments, docstrings and blank lines of Python files do not count, so an edit of a comment runs nothing again.
An edit of one method's module runs the rows of that method.

The digest trusts that the named modules reach others through import statements alone. `STOPS` lists where the search
ends, and why. This module imports nothing heavy, because the workflow imports it before any job starts.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

#: Packages whose code makes numbers.
PACKAGES = ("gpcmc", "recheck", "studies")

#: Patterns of modules that a digest covers only if they are named themselves.
STOPS = (
    "gpcmc.inference",  # the table of all methods: a job names those that it runs
    "studies.*.methods",  # the same of a study
    "studies.*.config",  # what it says is in the rows of the plans
    "studies.*.settings",
    "studies.common.configuration",
    "studies.common.rows",  # carries numbers and makes none
    "recheck.record.files",
)

_SOURCE = Path(__file__).resolve().parents[2]


def digest(modules: Iterable[str]) -> str:
    """Return one digest, 16 hexadecimal digits, of what `code_digests` says of modules."""
    return _short(json.dumps(code_digests(modules)).encode())


def digest_of_rows(study: str, experiment: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of the code that rows of a plan rest on: their experiment's, and that of their ``modules``."""
    modules = {name for row in rows for name in modules_of_row(row)}
    return _digest_of((f"studies.{study}.experiments.{experiment}", *sorted(modules)))


def modules_of_row(row: Mapping[str, Any]) -> list[str]:
    """Return what a row rests on beside the module of its experiment."""
    return sorted(row.get("modules", ()))


@cache
def _digest_of(modules: tuple[str, ...]) -> str:
    return digest(modules)


def code_digests(modules: Iterable[str]) -> dict[str, str]:
    """Return the digest of each module, and of each that they import.

    Parameters
    ----------
    modules : iterable of str
        Full names, as in ``"gpcmc.gaussian.ep"``.

    Returns
    -------
    dict
        Module to 16 hexadecimal digits, in alphabetical order. Every byte of a Cython file counts.

    Raises
    ------
    ValueError
        If a name is not that of a module of `PACKAGES`.
    """
    named = tuple(modules)
    found: dict[str, str] = {}
    waiting = list(named)
    while waiting:
        module = waiting.pop()
        if module not in found and (module in named or not _stops(module)):
            found[module], imported = _module(module)
            waiting += imported
    return dict(sorted(found.items()))


def _stops(module: str) -> bool:
    return any(fnmatchcase(module, pattern) for pattern in STOPS)


#: State of the source, digest and imports of modules that were read, and of those that were noted.
_read: dict[str, tuple[str, str, list[str]]] = {}
_noted: dict[str, tuple[str, str, list[str]]] = {}


def _module(module: str) -> tuple[str, list[str]]:
    """Digest of one module, and what it imports of these packages."""
    if module not in _read:
        path = _path(module)
        if path is None:
            raise ValueError(
                f"modules must name modules of {' or '.join(PACKAGES)}; got {module!r}, which has no source"
            )
        # before it is read: a source that changes meanwhile is another one to whoever reads the note
        state = _state(path)
        known = _noted.get(module, ("", "", []))
        _read[module] = known if known[0] == state else (state, *_parsed(module, path))
    return _read[module][1:]


def _state(path: Path) -> str:
    """When a source was written, and its size; of a Cython file also those of the headers, and where each is."""
    files = [path, *sorted(_SOURCE.rglob("*.h"))] if path.suffix == ".pyx" else [path]
    return " ".join(
        f"{one.relative_to(_SOURCE)}:{one.stat().st_mtime_ns}:{one.stat().st_size}" for one in files
    )


@cache
def _names() -> str:
    """A digest of which modules there are, and of what packages hand on: both say what an import means."""
    files = sorted(path for package in PACKAGES for path in (_SOURCE / package).rglob("*.py*"))
    sources = [path for path in files if path.suffix in (".py", ".pyx")]
    lines = [
        _state(path) if path.name == "__init__.py" else str(path.relative_to(_SOURCE))
        for path in sources
    ]
    return _short("\n".join(lines).encode())


def note_digests(path: str | Path) -> None:
    """Note the digests of all modules that were read, so that other processes need not read them.

    They are noted as of the first look: where modules came or went since, nobody takes them.
    """
    if all(_noted.get(module) == found for module, found in _read.items()):
        return
    text = json.dumps({"names": _names(), "modules": _noted | _read})
    place = Path(path)
    try:
        if place.exists() and place.read_text(encoding="utf-8") == text:
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f"{place.name}.{os.getpid()}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(place)
    except OSError:
        pass  # a tree that cannot be written, where only a look is taken


def read_digests(path: str | Path) -> None:
    """Take noted digests for those of modules whose sources are as they were then; without notes, do nothing."""
    names = _names()
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if found["names"] == names:
            _noted.update({name: tuple(note) for name, note in found["modules"].items()})
    except (OSError, ValueError, KeyError, TypeError):
        pass


def forget_modules() -> None:
    """Forget all digests, and where sources are."""
    _read.clear()
    _noted.clear()
    _names.cache_clear()
    _path.cache_clear()
    _digest_of.cache_clear()


def _parsed(module: str, path: Path) -> tuple[str, list[str]]:
    if path.suffix == ".pyx":
        # with all headers, which it may include; Python's tokeniser does not read Cython, so every byte counts
        files = [path, *sorted(_SOURCE.rglob("*.h"))]
        return _short(b"".join(file.read_bytes() for file in files)), []
    text = path.read_text(encoding="utf-8")
    statements = list(_statements(ast.parse(text)))
    return _short(_bare(text, statements).encode()), sorted(set(_imports(statements, module)))


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def _path(module: str) -> Path | None:
    """The source of a module or package; None where there is none."""
    first, *rest = module.split(".")
    if first not in PACKAGES or not rest:
        return None
    stem = _SOURCE.joinpath(first, *rest)
    candidates = [stem.with_suffix(".py"), stem.with_suffix(".pyx"), stem / "__init__.py"]
    return next((path for path in candidates if path.exists()), None)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; expressions have none."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for statement in getattr(node, block, ()):
            yield statement
            yield from _statements(statement)


def _imports(statements: Iterable[ast.AST], importer: str) -> Iterator[str]:
    """Modules that a module imports; a name that a package hands on counts for its origin."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if _path(name.name))
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"imports must be absolute; {importer} has a relative one")
            package = node.module or ""
            if package.split(".")[0] not in PACKAGES:
                continue
            for alias in node.names:
                submodule = f"{package}.{alias.name}"
                found = submodule if _path(submodule) else _origin(package, alias.name)
                if _path(found):  # a bare package, such as gpcmc, makes no numbers
                    yield found


def _origin(module: str, name: str) -> str:
    """The module that a name imported from `module` comes from: its own, or that which a package hands on."""
    path = _path(module)
    if path is not None and path.name == "__init__.py":
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if name == (alias.asname or alias.name):
                        return _origin(node.module, alias.name)
    return module


#: Comments, and strings, which may hold what looks like one.
_COMMENT_OR_STRING = re.compile(
    r"""#[^\n]*"""
    r"""|[bBfFrRuU]{0,2}(?:"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3})"""
    r"""|[bBfFrRuU]{0,2}(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""",
    re.DOTALL,
)


def _bare(text: str, statements: Iterable[ast.AST]) -> str:
    """Python source without comments, blank lines, and strings that stand alone, such as docstrings.

    Cut out of the text rather than made of tokens or of the syntax tree, which differ between versions of Python.
    """
    alone = {
        node.lineno
        for node in statements
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    parts, end, line, last = [], 0, 1, 0
    for found in _COMMENT_OR_STRING.finditer(text):
        line += text.count("\n", last, found.start())
        last = found.start()
        if found[0].startswith("#") or line in alone:
            parts.append(text[end : found.start()])
            end = found.end()
    bare = "".join([*parts, text[end:]])
    return "\n".join(line.rstrip() for line in bare.split("\n") if line.strip())

r"""LaTeX of the look-ups: ``values.tex`` with their texts, ``origins.tex`` with where each comes from.

``\val{key}`` prints a text as a link to the key's row in the appendix, ``\recheckorigins``. The pointer shows all
digits and the source. ``\origin{tables/<name>}`` in a caption names data, rule and code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from os.path import relpath
from pathlib import Path
from urllib.parse import quote

from recheck.files import write_text
from recheck.format import rendered
from recheck.lookups import Found, Study

#: Folders that are under version control.
_TRACKED = ("config/", "data/published/", "data/reference/", "paper/", "src/", "workflow/")
_MOST = 3  # files listed of one number


def web_link(place: str, record: Mapping[str, object]) -> str | None:
    """Address of ``file`` or ``file:lines`` at the commit; None without a remote, or if the file is not tracked."""
    path, _, lines = place.partition(":")
    remote, commit = record.get("remote"), record.get("commit")
    if not remote or not commit or not path.startswith(_TRACKED):
        return None
    span = re.match(r"(\d+)(?:-(\d+))?", lines)
    anchor = "#" + "-".join(f"L{line}" for line in span.groups() if line) if span else ""
    return f"{remote}/blob/{commit}/{quote(path)}{anchor}"


def write_values(found: Iterable[Found], path: str | Path) -> None:
    """Write ``values.tex``: the texts of look-ups and the macros that print them."""

    def tip(one: Found) -> str:
        text = "; ".join(filter(None, (one.digits, _short(one.source), one.seed)))
        return (b"\xfe\xff" + text.encode("utf-16-be")).hex()

    write_text(path, rendered("values.tex.j2", found=found, tip=tip))


def write_origins(
    found: Iterable[Found],
    studies: Mapping[str, Study],
    record: Mapping[str, object],
    folder: str | Path,
    path: str | Path,
) -> None:
    r"""Write ``origins.tex``: the rows of the appendix, and what ``\origin`` prints.

    Tables and figures have entries ``tables/<name>``; of all studies but the first ``<study>/tables/<name>``. `record`
    is the provenance: with its ``remote`` and ``commit``, tracked files are linked on the web, by line. Other files
    are linked from `folder`, where the PDF will be, from the root of the repository.
    """
    link = partial(_link, record=record, folder=Path(folder).as_posix())
    # a key can be looked up in kept results and in this run
    keys: dict[str, dict[str, Found]] = {}
    for one in found:
        keys.setdefault(one.use.key, {}).setdefault(one.source, one)
    given = {"studies": studies, "keys": keys, "link": link, "most": _MOST}
    write_text(path, rendered("origins.tex.j2", **given))


def _link(place: str, record: Mapping[str, object], folder: str) -> str:
    """A file as a link to the commit on the web, or to where it lies beside the PDF."""
    address = web_link(place, record) or f"run:{relpath(place.partition(':')[0], folder)}"
    address = re.sub("[%#]", r"\\\g<0>", address)
    return rf"\href{{{address}}}{{\nolinkurl{{{_short(place.removeprefix(f'{folder}/'))}}}}}"


def _short(source: str) -> str:
    """A source whose lists of lines and of files are cut short."""
    places = []
    for place in source.split("; "):
        file, colon, lines = place.partition(":")
        places.append(file + colon + (lines if len(lines) <= 24 else f"{lines[:21]}..."))
    return "; ".join([*places[:_MOST], *(["..."] if len(places) > _MOST else [])])

"""Templates of this package: LaTeX and pages, with the numbers of `recheck.judge.format`."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from recheck.judge.format import Format, effect, is_number, plain, short
from recheck.report import latex as tex
from recheck.report.latex import escape, latex, printed

_TEMPLATES = Environment(
    *("[%", "%]", "[[", "]]", "[##", "##]"),  # blocks, values, comments: braces are LaTeX's own
    autoescape=lambda name: ".tex." not in str(name),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    loader=FileSystemLoader([Path(__file__).parent, Path(__file__).parents[1] / "paper"]),
)
_SHARED = (Format, effect, is_number, latex, plain, printed, short)
_TEMPLATES.globals |= {one.__name__: one for one in _SHARED}
_TEMPLATES.globals["short_tex"] = tex.short
_TEMPLATES.filters["tex"] = escape


def rendered(template: str, **values: Any) -> str:
    """A template of this package, with functions that print numbers; the filter ``tex`` is `escape`."""
    return _TEMPLATES.get_template(template).render(**values)

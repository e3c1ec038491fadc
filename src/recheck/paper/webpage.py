"""A paper as one page of HTML that needs no network: the same source, look-ups, tables and figures as the PDF.

Pandoc reads the text that `recheck.paper.unfold` makes and writes formulas as MathML. In between, what pandoc leaves to
LaTeX is done here: numbers of sections, floats and equations, their references, and the links of look-ups. A macro that
pandoc does not know, a formula that it cannot write and a link that leads nowhere are errors.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recheck.paper.document import Document, plain_text
from recheck.paper.pandoc import pandoc
from recheck.paper.unfold import Sources, unfold
from recheck.record.files import write_text
from recheck.report.templates import rendered

#: Macros that have a meaning on a printed page alone.
_PRINT_ALONE = {
    *("centering", "raggedright", "arraybackslash", "noindent", "needspace", "setlength"),
    *("tiny", "scriptsize", "footnotesize", "small", "normalsize", "large"),
    *("hspace", "vspace", "smallskip", "medskip", "bigskip", "par"),
    *("FloatBarrier", "clearpage", "newpage", "pagebreak", "bibliographystyle", "maketitle"),
    *("toprule", "midrule", "bottomrule"),
}


def write_webpage(
    sources: Sources,
    numbers: Sequence[Mapping[str, Any]],
    bibliography: Path,
    page: str | Path,
    *,
    beside: Mapping[str, str] | None = None,
) -> None:
    """Write a paper as a page.

    Parameters
    ----------
    sources : Sources
    numbers : sequence of mapping
        `recheck.paper.records.records` of the look-ups of the text.
    bibliography : Path
        A file of BibTeX.
    page : path
    beside : mapping of str to str, optional
        Other documents that the page begins with links to, by what they are called.

    Raises
    ------
    ValueError
        If something of the text cannot be shown; the message names it.
    """
    document = Document(_read(unfold(sources, numbers), sources.main), numbers, sources.drawn)
    body = _written(document, bibliography)
    used = [numbers[place] for place in sorted(document.used)]
    text = rendered(
        "webpage.html.j2",
        title=plain_text(document.title),
        beside=beside or {},
        body=body,
        numbers=list({one["key"]: one for one in used}.values()),
        count=len(document.used),
    )
    _check(text)
    write_text(page, text)


def _read(text: str, main: Path) -> dict[str, Any]:
    """Pandoc's tree of a text; ValueError names what it did not understand."""
    tree, log = pandoc(["--from=latex", "--to=json"], text)
    unknown: dict[str, None] = {}
    for one in log:
        content = one.get("contents", "")
        if one["type"] == "SkippedContent":
            name = re.match(r"\\(?:begin\{|end\{)?([A-Za-z@]+)", content)
            if name and name[1] in {*_PRINT_ALONE, "note"}:
                continue
        if one["type"] in ("SkippedContent", "ParsingUnescaped") or one["verbosity"] != "INFO":
            unknown.setdefault(content.strip() or one["pretty"])
    if unknown:
        raise ValueError(
            f"{main}: a web page cannot show {', '.join(map(repr, unknown))}: "
            "write it otherwise, or teach recheck.paper.unfold what it means"
        )
    return dict(json.loads(tree))


def _written(document: Document, bibliography: Path) -> str:
    """The body of the page."""
    style = Path(__file__).with_name("numeric.csl")
    options = ["--from=json", "--to=html5", "--mathml", "--wrap=none", "--citeproc"]
    options += [f"--csl={style}", f"--bibliography={bibliography}", "--metadata=lang:en-GB"]
    options += ["--metadata=link-citations:true"]
    body, log = pandoc(options, json.dumps(document.tree))
    if wrong := [one["pretty"] for one in log if one["verbosity"] in ("WARNING", "ERROR")]:
        raise ValueError("; ".join(dict.fromkeys(wrong)))
    # the LaTeX of each formula beside its MathML, which a browser does not show
    body = re.sub(
        r'<annotation encoding="application/x-tex">.*?</annotation>', "", body, flags=re.S
    )
    # bars as high as what they enclose are too high in a line of text
    body = re.sub('<mo stretchy="true"([^>]*>[‖|])', r'<mo stretchy="false"\1', body)
    # the spaces around \\log and the like, which browsers leave out
    space, opens = '<mspace width="0.167em"></mspace>', r"(?:<mrow>)?<mo[^>]*>[(\[]"
    body = re.sub(rf"(<mo>&#8289;</mo>)(?!(?:</mrow>)?{opens})", rf"\1{space}", body)
    return re.sub(r'(?<=</mi>)(?=<mrow><mi mathvariant="normal">[a-z]{2,}</mi>)', space, body)


def _check(page: str) -> None:
    """ValueError if an id is there twice, or if a link within the page has no target."""
    ids = re.findall(r'\sid="([^"]*)"', page)
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ValueError(f"ids that are there more than once: {twice}")
    if lost := sorted(set(re.findall(r'\shref="#([^"]*)"', page)) - set(ids)):
        raise ValueError(f"links without a target: {lost}")

"""Pandoc's tree of a paper, changed for a web page: what LaTeX counts is counted, and numbers lead to their origin."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recheck.paper.unfold import HEAD, LOOKUP, ORIGIN

Node = dict[str, Any]
_NUMBER = re.compile(r"[-+\d.,()/ ]+|-")
_POWER = re.compile(r"(.*?)(?:\\times)?\s*10\^\{(-?\d+)\}")


def node(kind: str, *content: Any) -> Node:
    """An element of the tree."""
    return {"t": kind, "c": content[0] if len(content) == 1 else list(content)}


def text(words: str) -> list[Node]:
    """Words as elements."""
    return [node("Str", words)]


def plain_text(content: Any) -> str:
    """The words of an element or of a list of them."""
    if isinstance(content, list):
        return "".join(map(plain_text, content))
    if not isinstance(content, dict) or "t" not in content:
        return ""
    kind, inner = content["t"], content.get("c", [])
    if kind in ("Space", "SoftBreak", "LineBreak"):
        return " "
    if kind == "Quoted":
        marks = "‘’" if inner[0]["t"] == "SingleQuote" else "“”"
        return marks[0] + plain_text(inner[1]) + marks[1]
    if kind == "Math":
        return re.sub(r"[\\{}$]|\\[,;]", "", inner[1])
    if kind in ("Str", "Code"):
        return inner if kind == "Str" else str(inner[1])
    return plain_text(inner)


def walked(content: Any, change: Callable[[Node], Any]) -> Any:
    """A tree in which each element, the inner ones first, is what `change` makes of it: one, or a list of some."""
    if isinstance(content, list):
        made: list[Any] = []
        for one in content:
            new = walked(one, change)
            several = isinstance(one, dict) and isinstance(new, list)
            made += new if several else [new]
        return made
    if not isinstance(content, dict):
        return content
    new = {key: walked(value, change) for key, value in content.items()}
    return change(new) if "t" in new else new


class Document:
    """A paper as a tree that is ready to be written.

    `tree` is what pandoc writes, `title` the elements of the title, `used` the places of the look-ups that are there.
    ValueError if a reference has no label, or a figure no file.
    """

    def __init__(
        self, tree: Mapping[str, Any], numbers: Sequence[Mapping[str, Any]], figures: Path
    ) -> None:
        self.numbers, self.figures = numbers, figures
        self.used: set[int] = set()
        self._counts = {"figure": 0, "table": 0, "equation": 0}
        self._sections = [0, 0, 0]
        self._labels: dict[str, str] = {}
        meta = tree["meta"]
        self.title: list[Node] = walked(meta["title"]["c"], self._inline) if "title" in meta else []
        self.title = [node("Space", []) if one["t"] == "LineBreak" else one for one in self.title]
        blocks = [*self._front(meta), *_joined(_run_in(tree["blocks"]))]
        blocks = walked(walked(blocks, self._counted), self._inline)
        blocks = walked(blocks, self._referred)
        blocks += [node("Header", 2, ["references", [], []], text("References"))]
        blocks += [node("Div", ["refs", [], []], [])]
        self.tree = {"pandoc-api-version": tree["pandoc-api-version"], "meta": {}, "blocks": blocks}

    def _front(self, meta: Mapping[str, Any]) -> list[Node]:
        """Title, authors and abstract, which a page has in its text."""
        front = (
            [node("Header", 0, ["title", [], []], meta["title"]["c"])] if "title" in meta else []
        )
        for author in meta.get("author", {}).get("c", []):
            front.append(node("Div", ["", ["author"], []], [node("Para", author["c"])]))
        if "abstract" in meta:
            heading = node("Header", 1, ["abstract", ["unnumbered"], []], text("Abstract"))
            front.append(node("Div", ["", ["abstract"], []], [heading, *meta["abstract"]["c"]]))
        return front

    def _counted(self, one: Node) -> Any:
        """Sections, floats and equations with their numbers, which are kept by label."""
        count = {"Header": self._section, "Figure": self._figure, "Math": self._equation}
        if one["t"] == "Div" and any(inner["t"] == "Table" for inner in one["c"][1]):
            return self._table(one)
        return count[one["t"]](one) if one["t"] in count else one

    def _section(self, one: Node) -> Node:
        level, (id, classes, more), words = one["c"]
        if level and "unnumbered" not in classes:
            self._sections[level - 1] += 1
            self._sections[level:] = [0] * (3 - level)
            number = ".".join(map(str, self._sections[:level]))
            self._labels[id] = number
            mark = node("Span", ["", ["section-number"], []], text(number))
            words = [mark, node("Space", []), *words]
        return node("Header", level + 1, [id, classes, more], words)

    def _next(self, kind: str, label: str) -> str:
        self._counts[kind] += 1
        number = str(self._counts[kind])
        self._labels[label] = number
        return number

    def _figure(self, one: Node) -> Node:
        (id, classes, _), (short, caption), content = one["c"]
        number = self._next("figure", id)
        said = re.split(r"(?<=[a-z)])\.\s", plain_text(caption))[0].strip()

        def embedded(inner: Node) -> Node:
            if inner["t"] != "Image":
                return inner
            attributes, _, (name, title) = inner["c"]
            return node("Image", attributes, text(said), [self._data(name), title])

        caption = _titled(caption, f"Figure {number}.")
        # it scrolls where the window is too narrow for its letters
        plot = [
            "",
            ["plot"],
            [["role", "region"], ["tabindex", "0"], ["aria-label", f"Figure {number}"]],
        ]
        box = node("Div", plot, walked(content, embedded))
        return node("Figure", [id, classes, []], [short, caption], [box])

    def _data(self, name: str) -> str:
        path = self.figures / f"{name.removesuffix('.png')}.png"
        if not path.exists():
            raise ValueError(f"the figure {name!r} is not there: {path}")
        return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"

    def _table(self, one: Node) -> list[Node]:
        """A table below its caption, in a box of its own that scrolls where the window is narrow."""
        (id, _, _), blocks = one["c"]
        tables = [inner for inner in blocks if inner["t"] == "Table"]
        caption: list[Node] = []
        for table in tables:
            caption, table["c"][1] = caption or table["c"][1][1], [None, []]
            _with_heads(table)
        if not id:  # a display in the text, without a number
            region = 'role="region" tabindex="0" aria-label="A table in the text"'
            return [_html(f'<div class="wide" {region}>'), *blocks, _html("</div>")]
        number = self._next("table", id)
        for table in tables:
            table["c"][0] = ["", [], [["aria-labelledby", f"{id}:caption"]]]
        region = f'role="region" tabindex="0" aria-labelledby="{id}:caption"'
        return [
            _html(f'<figure id="{id}" class="table"><figcaption id="{id}:caption">'),
            *_titled(caption, f"Table {number}."),
            _html(f'</figcaption><div class="wide" {region}>'),
            *blocks,
            _html("</div></figure>"),
        ]

    def _equation(self, one: Node) -> Node:
        kind, formula = one["c"]
        label = re.search(r"\\label\{([^{}]*)\}", formula)
        numbered = re.match(r"\s*\\begin\{(equation|align|gather|multline)\}", formula)
        if not numbered:
            return one
        formula = re.sub(r"\\label\{[^{}]*\}|\\(?:begin|end)\{equation\}", "", formula).strip()
        number = self._next("equation", label[1] if label else "")
        mark = node("Span", ["", ["equation-number"], []], text(f"({number})"))
        place = [label[1] if label else "", ["equation"], []]
        return node("Span", place, [node("Math", kind, formula), mark])

    def _inline(self, one: Node) -> Any:
        """Numbers as text, and links as a page has them."""
        if one["t"] == "Math" and one["c"][0]["t"] == "InlineMath":
            return _as_text(one["c"][1]) or one
        if one["t"] == "Span" and one["c"][0][0].startswith(ORIGIN):
            return node("Span", ["", ["origin"], []], one["c"][1])
        if one["t"] != "Link":
            return one
        attributes, words, (address, title) = one["c"]
        if address.startswith(LOOKUP):
            return self._number(words, int(address.removeprefix(LOOKUP)))
        return node("Link", attributes, words, [address.removeprefix("run:"), title])

    def _number(self, words: list[Node], place: int) -> Node:
        self.used.add(place)
        one = self.numbers[place]
        origin = "; ".join(file for file, _ in one["places"]) or "none"
        seed = f"; seed {one['seed']}" if one["seed"] else ""
        title = f"origin: {origin}{seed}; {one['command']}"
        attributes = ["", ["number"], [["data-id", one["key"]]]]
        return node("Link", attributes, words, [f"#val:{one['key']}", title])

    def _referred(self, one: Node) -> Node:
        if one["t"] != "Link" or not (label := dict(one["c"][0][2]).get("reference")):
            return one
        if label not in self._labels:
            raise ValueError(f"\\ref{{{label}}}: there is no such label")
        return node("Link", ["", [], []], text(self._labels[label]), [f"#{label}", ""])


def _html(code: str) -> Node:
    return node("RawBlock", "html", code)


def _titled(caption: list[Node], number: str) -> list[Node]:
    """A caption whose first paragraph begins with the number of the float."""
    first, *rest = caption or [node("Plain", [])]
    words = [node("Strong", text(number)), node("Space", []), *first["c"]]
    return [node(first["t"], words), *rest]


def _with_heads(table: Node) -> None:
    """Put rows that are marked into the head of a table, and say which columns are heads of rows.

    Those are the columns in front, if all others hold numbers, which are aligned to the right; else the first one.
    """
    columns, head, bodies = table["c"][2], table["c"][3], table["c"][4]
    rows = [*head[1], *(row for body in bodies for row in body[3])]
    head[1] = [_unmarked(row) for row in rows if HEAD in plain_text(row[1])]
    numeric = [one[0]["t"] == "AlignRight" for one in columns]
    heads = numeric.index(True) if True in numeric else 0
    for body in bodies:
        body[1] = heads if all(numeric[heads:]) else min(1, len(columns) - 1)
        body[3] = [row for row in body[3] if HEAD not in plain_text(row[1])]


def _unmarked(row: list[Any]) -> Any:
    def bare(one: Node) -> Node:
        return node("Str", one["c"].replace(HEAD, "")) if one["t"] == "Str" else one

    return walked(row, bare)


def _joined(blocks: list[Node]) -> list[Node]:
    """The parts of one table, which pandoc gives the same label and caption, as one division."""
    made: list[Node] = []
    for one in blocks:
        before = made[-1] if made else one
        label = one["c"][0][0] if one["t"] == "Div" else ""
        if label and before is not one and before["t"] == "Div" and before["c"][0][0] == label:
            before["c"][1] += one["c"][1]
        else:
            made.append(one)
    return made


def _run_in(blocks: list[Node]) -> list[Node]:
    r"""Headings of paragraphs (``\paragraph``) as the first words of these."""
    made: list[Node] = []
    level = 1
    for one in blocks:
        if one["t"] == "Header" and one["c"][0] < 4:
            level = one["c"][0]
        if made and made[-1]["t"] == "Header" and made[-1]["c"][0] >= 4 and one["t"] == "Para":
            _, (id, _, _), words = made.pop()["c"]
            heading = ["", ["run-in"], [["role", "heading"], ["aria-level", str(level + 2)]]]
            heading[0] = f"par:{id.rstrip('.')}"
            one = node("Para", [node("Span", heading, words), node("Space", []), *one["c"]])
        made.append(one)
    return made


def _as_text(formula: str) -> list[Node] | None:
    """A formula that is only a number, as words; None if it is more."""
    bare = formula.replace(r"\,", "\N{THIN SPACE}").replace("\N{THIN SPACE}(", " (")
    power = _POWER.fullmatch(bare)
    digits = power[1] if power else bare
    if not _NUMBER.fullmatch(digits.replace("\N{THIN SPACE}", "")) and not (power and not digits):
        return None
    shown = digits.replace("-", "\N{MINUS SIGN}")
    if not power:
        return text(shown)
    raised = node("Superscript", text(power[2].replace("-", "\N{MINUS SIGN}")))
    return [node("Str", f"{shown} × 10" if shown else "10"), raised]

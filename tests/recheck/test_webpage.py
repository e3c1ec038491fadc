"""The paper as a web page: every number with its origin, nothing of LaTeX left; what cannot be shown is an error."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from made_book import book_of, rows

from recheck.judge.declared import checked
from recheck.paper import unfold as unfold_module
from recheck.paper.lookups import Facts, Study, collect, uses, write_origins
from recheck.paper.pandoc import find_pandoc
from recheck.paper.records import records
from recheck.paper.text import captions
from recheck.paper.unfold import Sources, unfold
from recheck.paper.webpage import write_webpage
from recheck.report.layout import Layout
from recheck.report.tables import write_tables

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_pandoc() is None, reason="there is no pandoc here"),
]

LAYOUT = {
    "units": {"table1/*": "%"},
    "labels": {"M": {"M1000": "$1\\,000$"}},
    "tables": {
        "one": {
            "title": "One",
            "caption": "Errors of $\\log I$.",
            "reads": ["part"],
            "blocks": [
                {
                    "cell": "table1/{N}/{M}",
                    "rows": ["M"],
                    "columns": ["N"],
                    "show": ["published", "run"],
                },
                {"cell": "table1/{N}/{M}", "rows": [], "columns": ["N", "M"]},
            ],
        }
    },
    "figures": {"plot": {"title": "Plot", "caption": "Errors fall. They do.", "reads": ["part"]}},
}
PREAMBLE = r"""\usepackage{amsmath}\newcommand{\Prob}{\mathbb{P}} % a set
\newcommand{\psec}[2]{Section~#1.#2 of theirs}
\makeatletter\renewcommand{\floatpagefraction}{\dimexpr\@colht*4/5\relax\@gobble}\makeatother
"""
MAIN = r"""\documentclass{article}
\input{preamble}\input{values}
\title{A paper:\\ run again}\author{Somebody}
\begin{document}
\maketitle
\begin{abstract}\noindent It is \val{table1/N50/M100}.\end{abstract}
\begin{center}\fbox{\begin{minipage}{\dimexpr\textwidth-2\fboxsep}\footnotesize A note.\end{minipage}}\end{center}
\section{First}\label{sec:first}
% \val{in/a/comment}
\paragraph{Words} (Figure~\ref{fig:plot}). As \psec{3}{2} has it~\cite{book2006}, 5\,\%
\val[nounit, digits=1]{table1/N50/M100}
in $\log a=\val[value]{x/y@v=once}$ and \emph{\val{published:table1/N50/M100}}. \ifval{run:commit}{There}{Not there}.
\begin{equation}
  \Prob(v>0)=\tfrac12 \label{eq:half}
\end{equation}
\begin{figure}[tb]\centering\includegraphics{plot}\caption{\figurecaption{plot}}\label{fig:plot}\end{figure}
\section{Second}\label{sec:second}
\subsection{Inner}\label{sec:inner}
Sections~\ref{sec:first} and~\ref{sec:inner}, Tables~\ref{tab:one} and~\ref{tab:two}, Eq.~(\ref{eq:half}),
\valtext{run:commit}.
\begin{center}\begin{tabular}[t]{ll}\toprule in & text \\\midrule no & number \\\bottomrule\end{tabular}\end{center}
\begin{table}[tb]\centering\footnotesize\setlength{\tabcolsep}{4pt}
  \caption{\tablecaption{one}}\label{tab:one}\input{tables/one}\end{table}
\begin{table}
  \caption{Ours.}\label{tab:two}
  \begin{tabular}[t]{@{}>{\raggedright}p{36mm}rr@{\hspace{7pt}}>{\raggedright\arraybackslash}p{4cm}@{}}
    \toprule
    & \multicolumn{2}{c@{\hspace{7pt}}}{numbers} & \\
    \cmidrule(lr){2-3}
    what & a & b & found\\
    \midrule
    first & \val{run:seed} & 2 & words\\\addlinespace[2pt]
    \quad second & 1 & 2 & more words\\
    \bottomrule
  \end{tabular}
\end{table}
\bibliographystyle{unsrtnat}
\bibliography{references}
\end{document}
"""
BOOK = "@book{book2006, author={Doe, Jane and Roe, Richard}, title={A {Gauss} Book}, year={2006}}\n"
FACTS = {"run": Facts({"commit": "abc_1", "seed": 123456}, "results/tiny/provenance.json")}


class Page(HTMLParser):
    """What a page has: its links to numbers with their words, ids, targets and words."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.targets, self.tags, self.words = [], [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if attrs.get("href", "").startswith("#"):
            self.targets.append(attrs["href"][1:])
        if attrs.get("class") == "number":
            self.links.append([attrs, len(self.words), ""])

    def handle_data(self, data):
        self.words += data

    def handle_endtag(self, tag):
        if tag == "a" and self.links and not self.links[-1][2]:
            self.links[-1][2] = self.words[self.links[-1][1] :]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("paper")


@pytest.fixture(scope="module")
def make(folder):
    """A function that makes the page of a text, and returns it."""
    measured = rows("table1/N50/M100", [0.21, 0.24, 0.3]) + rows("x/y", [1.0], "v=once")
    layout = checked(Layout, LAYOUT, "layout.yaml")
    study = Study(book_of(folder, measured), layout, "results/tiny/s", "data/published/s")
    (folder / "preamble.tex").write_text(PREAMBLE)
    (folder / "references.bib").write_text(BOOK)
    (folder / "captions.tex").write_text(captions({"s": layout}))
    write_tables(layout, study.book, None, folder / "drawn")
    (folder / "drawn/plot.png").write_bytes(b"\x89PNG")

    def page(text=MAIN, name="paper.html"):
        main = folder / "main.tex"
        main.write_text(text)
        found = collect(uses([main]), {"s": study}, FACTS, "run")
        write_origins(found, {"s": study}, {}, "results/tiny", folder / "origins.tex")
        numbers = records(found, {"s": study}, {}, "results/tiny", "run", "run {}".format)
        drawn = folder / "captions.tex", folder / "origins.tex", folder / "drawn"
        bibliography, out = folder / "references.bib", folder / name
        write_webpage(Sources(main, *drawn), numbers, bibliography, out, beside={"PDF": "p.pdf"})
        return out.read_text()

    return page


@pytest.fixture(scope="module")
def text(make):
    return make()


def test_every_number_has_its_value_and_its_command(text):
    page = Page(text)
    shown = {(attrs["data-id"], re.sub(r"\s", " ", words)) for attrs, _, words in page.links}
    assert shown == {
        ("table1/N50/M100", "0.250 (0.026) %"),
        ("table1/N50/M100", "0.25 (0.03)"),
        ("x/y@v=once", "1.00"),
        ("published:table1/N50/M100", "0.245 (0.0268) %"),
        ("run:seed", "123 456"),
    }
    for attrs, *_ in page.links:
        assert attrs["href"] == f"#val:{attrs['data-id']}"
        assert attrs["title"].endswith(f"; run {attrs['data-id']}")
        entry = text[text.index(f'<li id="val:{attrs["data-id"]}">') :].partition("</li>")[0]
        assert f'<code class="command">run {attrs["data-id"]}</code>' in entry
    entry = text[text.index('<li id="val:table1/N50/M100">') :].partition("</li>")[0]
    assert "<dd>0.245 (0.0268)</dd>" in entry and "raw.csv:2-4</a>" in entry and "1/a" in entry


def test_nothing_of_latex_is_left_and_every_link_has_a_target(text):
    page = Page(text)
    body = unescape(re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.S))
    assert "??" not in body and not re.search(r"\\[A-Za-z]", body)
    assert set(page.targets) <= set(page.ids) and len(page.ids) == len(set(page.ids))
    assert "in/a/comment" not in text and "http" not in re.sub(r'xmlns="[^"]*"', "", text)


def test_sections_floats_equations_and_sources_have_their_numbers(text):
    words = re.sub(r"\s+", " ", Page(text).words)
    assert "Sections 1 and 2.1, Tables 1 and 2, Eq. (1), abc_1." in words
    assert "Words (Figure 1). As Section 3.2 of theirs has it [1], 5 % 0.25" in words
    assert "Figure 1. Errors fall. They do." in words and "Table 1. Errors of" in words
    assert "There." in words and "Not there" not in words
    assert "[1] Jane Doe and Richard Roe. A Gauss book. 2006." in words.replace("  ", " ")
    assert re.search(r'id="eq:half".*\(1\)</span>', text)


def test_tables_and_figures_can_be_read_without_seeing_them(text):
    tags = Page(text).tags
    (image,) = [attrs for tag, attrs in tags if tag == "img"]
    assert image["alt"] == "Errors fall" and image["src"].startswith("data:image/png;base64,")
    assert ("html", {"lang": "en-GB"}) in tags and [tag for tag, _ in tags].count("h1") == 1
    assert "<title>A paper: run again</title>" in text
    heads = re.findall(r"<thead>(.*?)</thead>", text, re.S)
    assert len(heads) == 4 and heads[3].count("<tr>") == 2
    assert re.search(r'<th colspan="2"[^>]*>numbers</th>', heads[3])
    assert re.search(r"<th [^>]*>1\N{THIN SPACE}000</th>\s*<th [^>]*>published</th>", text)
    assert text.count('class="wide" role="region" tabindex="0"') == 3


def test_the_same_bytes_twice(make, text):
    assert make(name="again.html") == text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("5\\,\\%", r"\foo{bar}", r"main\.tex: a web page cannot show '.*foo\{bar\}'"),
        ("5\\,\\%", r"$\foo x$", "foo"),
        (r"\ref{sec:first}", r"\ref{sec:fist}", r"sec:fist.*no such label"),
        (r"\includegraphics{plot}", r"\includegraphics{plan}", "figure 'plan' is not there"),
        ("tables/one", "tables/none", "'tables/none' is not there"),
        (r"\tablecaption{one}", r"\tablecaption{two}", "no caption 'tablecaption@two'"),
        (r"\cite{book2006}", r"\cite{book2007}", "book2007"),
    ],
)
def test_what_cannot_be_shown_is_an_error_that_names_it(make, old, new, message):
    with pytest.raises(ValueError, match=message):
        make(MAIN.replace(old, new))


def test_a_number_without_an_answer_is_refused(make, folder):
    make()
    files = [folder / name for name in ("main.tex", "captions.tex", "origins.tex", "drawn")]
    with pytest.raises(ValueError, match=r"val\[\]\{table1/N50/M100\}: this look-up has no answer"):
        unfold(Sources(*files), [])


def test_a_text_that_is_put_into_itself_is_refused():
    def again(_, name):
        return rf"\input{{{name}}} and more"

    with pytest.raises(ValueError, match="is put into itself"):
        unfold_module._expanded(r"\input{main}", {"input": unfold_module._Macro(1, again)})
    # the same text twice, one after the other, is none
    plain = unfold_module._Macro(1, lambda _, name: name)
    assert unfold_module._expanded(r"\input{a} \input{a}", {"input": plain}) == "a a"


def test_three_thousand_brackets_are_a_text():
    text = "{" * 3000 + "x" + "}" * 3000
    assert unfold_module._group(text, 0)[0] == text[1:-1]
    with pytest.raises(ValueError, match="not closed"):
        unfold_module._group("{" * 3000, 0)

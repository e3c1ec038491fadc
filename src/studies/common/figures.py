"""What figures of all studies share: how each method looks and is called, legends, and the kept figure."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from recheck.report import style
from recheck.report.book import Book


class Look(NamedTuple):
    """The name of a method in every figure and table (a variant's goes on after a comma), its colour and its marker."""

    label: str
    color: str
    marker: str

    @property
    def points(self) -> dict[str, Any]:
        """Options of a plot that draws no line; a star has to be larger."""
        size = {"*": 6.5, "P": 4.8, "X": 4.8, "h": 4.8, "p": 4.8}.get(self.marker, 4.0)
        return {"color": self.color, "marker": self.marker, "markersize": size, "linestyle": "none"}

    @property
    def hollow(self) -> dict[str, Any]:
        """The same of what fails its diagnostics."""
        return self.points | {"markerfacecolor": "white"}


#: Every method of every figure, and what rows and ids call it. Those of the first part are drawn beside one another:
#: no two of them share a marker, and deuteranopes and protanopes tell the colours of the first seven apart.
_METHODS = {
    Look("sampler", style.BLUE, "o"): "sampler orthant new",
    Look("EP", "#e69f00", "D"): "ep",
    Look("twisted EP", style.INK, "*"): "twisted-ep best",
    Look("minimax tilting", "#56b4e9", "P"): "minimax-tilting",
    Look("EP importance", "#66bb66", "X"): "importance-ep",
    Look("annealed HMC", "#b2182b", "^"): "hmc hmc-ais hmc-annealed",
    Look("Laplace", style.GREY, "p"): "laplace",
    Look("adapted sampler", "#5b5be5", "s"): "adapted orthant-adapted",
    Look("Laplace importance", "#65724a", "d"): "importance-laplace",
    Look("annealed ESS", "#724a6c", "<"): "ess ess-ais ess-annealed",
    Look("toolbox HMC", "#e50000", "v"): "hmc-gpml",
    Look("toolbox ESS", "#007f99", ">"): "ess-gpml",
    Look("control variables", "#4c1900", "h"): "control-variables titsias",
    Look("Genz and Bretz", "#2d1e4c", "H"): "genz-bretz separation",
    # comparators
    Look("NUTS", "#663311", "p"): "nuts",
    Look("variational", "#1b9e77", "v"): "variational svgp",
    Look("linear probit", "#004c99", "s"): "linear-probit",
    Look("SVM", "#4cacee", "^"): "svm",
    Look("SVM without 1/2", "#222255", "v"): "svm-whole",
    Look("least squares", "#cc0044", "<"): "lsc",
    Look("nearest neighbour", "#557700", ">"): "p1nn",
    Look("ancillary (AA)", "#117733", "d"): "ancillary",
    Look("surrogate (SURR)", "#aa3377", "X"): "surrogate",
    Look("fitted", "#333399", "o"): "fitted",
    Look("mode", "#cc6677", "s"): "mode",
    Look("auto (default)", "#dd3497", "o"): "auto",
    Look("bivariate conditioning", "#8a6d00", "v"): "mvnxpb",
    Look("linear logistic", "#999933", "h"): "linear-logistic",
}
#: Every method by each of its names.
METHODS = {name: look for look, names in _METHODS.items() for name in names.split()}
#: The marker of another package, whose methods have the colours of ours.
PACKAGES = {
    **{"scikit-learn": "s", "GPy": ">", "NumPyro": "^", "mvtnorm": "v", "TruncatedNormal": "d"},
    **{
        "SciPy": "X",
        "BoTorch": "h",
        "GPBoost": "<",
        "GPflow": "v",
        "mord": "^",
        "statsmodels": "v",
    },
}


def look_of(package: str, method: str) -> Look:
    """The look of a method as a package has it: of another than ours the package's marker, and its name in front."""
    look = METHODS[method]
    if package == "gpcmc":
        return look
    return Look(f"{package}, {look.label}", look.color, PACKAGES[package])


def in_order(names: Iterable[str]) -> list[str]:
    """Methods that have a look, in the order of the dictionary."""
    return [name for name in METHODS if name in {*names}]


def handle(label: str, color: str, **look: Any) -> Line2D:
    """An entry of a legend; points only unless a line is asked for."""
    return Line2D([], [], color=color, label=label, **{"linestyle": "none", **look})


def named(methods: Iterable[str], **look: Any) -> list[Line2D]:
    """The entries of methods in the order of the dictionary."""
    return [handle(METHODS[m].label, **METHODS[m].points | look) for m in in_order(methods)]


#: What a hollow marker is, in every figure.
PASSING = [
    handle("passes its diagnostics", style.INK, marker="o"),
    handle("fails them", style.INK, marker="o", markerfacecolor="white"),
]


def legend(figure: Figure, handles: Sequence[Line2D], entries: int = 4) -> None:
    """A legend below the panels, with so many entries a row; none without entries."""
    if handles:
        figure.legend(handles=list(handles), loc="outside lower center", ncols=entries)


_LITTLE = "did too little"


def few(axes: Axes) -> None:
    """Say of a figure that the run did too little for it."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.set_gid(_LITTLE)


def nothing(axes: Axes, text: str = "not run at this scale") -> None:
    """Say in an empty panel why it is empty; the run did too little for the figure."""
    axes.text(0.04, 0.04, text, transform=axes.transAxes, color=style.GREY)
    few(axes)


def shown(draw: Callable[[Book], Figure], scale: float = 1.0) -> Callable[[Book], Figure]:
    """The same figure, for the paper to print at this scale.

    Where the run did too little for it, it is of the kept results, and stamped so.
    """

    @wraps(draw)
    def drawn(book: Book) -> Figure:
        with style.style(scale):
            figure = draw(book)
            if book.kept is not None and figure.get_gid() == _LITTLE:
                figure = draw(book.kept)
                title = f"{figure.get_suptitle()} [kept results: this run did too little]"
                figure.suptitle(title.strip(), x=0.995, ha="right", color=style.GREY)
        for axes in figure.axes:  # ticks are made when they are drawn
            axes.tick_params(labelsize=8.0 / scale)
        return figure

    drawn.scale = scale  # type: ignore[attr-defined]
    return drawn

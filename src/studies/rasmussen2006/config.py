"""The configuration of the study: which keys there are, and which values are allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from studies.common.configuration import (
    Block,
    Boolean,
    General,
    checked,
    leaf,
    listed,
    number,
    one_of,
    power_of_two,
    whole,
)
from studies.common.refusals import refuse

STUDY = "rasmussen2006"
#: Data sets of Kuss and Rasmussen (2005).
DATA = ("usps", "ionosphere", "wisconsin", "pima", "crabs", "sonar")
#: Images of each part in the book's partition.
HALF = 4649
_Every = Annotated[int, whole(1, 16)]
_Size = Annotated[int, whole(100, HALF)]


def _is_point(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(one, int | float) and -3 <= one <= 7 for one in value)
    )


_Point = Annotated[list[float], leaf(_is_point, "[log l, log sf], two numbers from -3 to 7")]
_Points = Annotated[list[_Point], listed(1)]


class Surface(Block):
    """Every how many values of the book's grid each method takes."""

    laplace: _Every
    ep: _Every
    exact: _Every


class Comparators(Block):
    """Figure 3.10, and the search for C and l of its support vector machine."""

    shares: Annotated[list[Annotated[float, number(0.0, 0.99)]], listed(1)]
    searches: Annotated[int, whole(3, 1000)]


class TwistedEp(Block):
    """Counts of the first estimator."""

    points: Annotated[int, power_of_two(8, 2**16)]
    randomizations: Annotated[int, whole(3, 64)]


class Annealing(Block):
    """Counts of the second estimator."""

    runs: Annotated[int, whole(25, 10**4)]
    temperatures: Annotated[int, whole(2, 10**6)]


class Exact(Block):
    """Figure 3.12."""

    points: _Points
    annealing_points: _Points
    twisted_ep: TwistedEp = Field(alias="twisted-ep")
    annealing: Annealing


class TenClasses(Block):
    """Figure 3.11."""

    training: _Size
    test: _Size
    points: _Points
    thetas: Annotated[list[Annotated[float, number(0.01, 100.0)]], listed(0)]
    search: Boolean
    machines: Boolean


class Toy(Block):
    """Figure 3.6."""

    draws: Annotated[int, whole(3, 10**4)]


_Seeds = dict[Annotated[str, one_of(*DATA)], Annotated[int, whole(3, 1000)]]


class Seeds(Block):
    """Seeds of the folds by data set, of each method; fewer than three give no idea of the spread."""

    laplace: _Seeds
    ep: _Seeds
    svm: _Seeds


class CrossValidation(Block):
    """Kuss and Rasmussen (2005), Table 1: with scaled features and smoothed images, and with both as they come."""

    prepared: Seeds
    unprepared: Seeds


class Study(Block):
    """All experiments."""

    surface: Surface
    comparators: Comparators
    exact: Exact
    ten_classes: TenClasses
    toy: Toy
    crossvalidation: CrossValidation


class Configuration(General):
    """What the plans of the study read."""

    rasmussen2006: Study


def check(config: Mapping[str, Any]) -> Configuration:
    """Return the configuration of the study; ValueError with a line for each problem in it."""
    found = checked(Configuration, config)
    shares = found.rasmussen2006.comparators.shares
    if shares[0] != 0:
        refuse([f"{STUDY}.comparators.shares: given {shares}; allowed is 0 in the first place"])
    return found

"""The configuration of the study: which keys there are, and which values are allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from studies.common.configuration import (
    Block,
    General,
    checked,
    multiple,
    one_of,
    power_of_two,
    whole,
)

Size = Annotated[int, whole(20, 6400)]
Several = Annotated[int, whole(3, 1000)]
Neighbours = Annotated[int, whole(1, 1000)]
# of a lattice under ten shifts, with antithetic points
Draws = Annotated[int, multiple(20, 20, 10**6)]


class Method(Block):
    """Draws of an estimate, and estimates of a probability."""

    draws: Draws
    estimates: Several


class Design(Block):
    """One dimension, and the methods that are run in it."""

    size: Size
    methods: dict[Annotated[str, one_of("vecchia", "minimax-tilting", "separation")], Method] = (
        Field(min_length=1)
    )


class Spread(Block):
    """Estimates of one probability again and again."""

    neighbours: Neighbours
    small: Design
    large: Design


class Twisted(Block):
    """Twisted EP under the sparse covariance."""

    neighbours: Neighbours
    points: Annotated[int, power_of_two(16, 2**19)]
    randomizations: Annotated[int, whole(2, 1000)]


class Finer(Block):
    """The authors' method on the orthant, for each of these numbers of neighbours."""

    neighbours: list[Neighbours] = Field(min_length=1)
    draws: Draws
    estimates: Several


class Reference(Block):
    """Probabilities by what the library has, and by the authors' method with more neighbours."""

    small: Size
    calls: Several
    samples: Annotated[int, whole(1000, 2**22)]
    size: Size
    twisted: Twisted
    finer: Finer


class Study(Block):
    """All experiments."""

    spread: Spread
    reference: Reference


class Configuration(General):
    """What the plans of the study read."""

    cao2024: Study


def check(config: Mapping[str, Any]) -> Configuration:
    """Return the configuration of the study; ValueError with a line for each problem in it."""
    return checked(Configuration, config)

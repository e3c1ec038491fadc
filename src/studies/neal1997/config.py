"""The configuration of the study: which keys there are, and which values are allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from studies.common.configuration import Block, General, checked, one_of, some_of, whole
from studies.neal1997.runs import CLASSES, CLASSES_ITERATIONS, OUTLIERS, OUTLIERS_ITERATIONS

#: Numbers of chains.
_Chains = Annotated[int, whole(1, 1000)]


class Classes(Block):
    """Section 6."""

    runs: dict[Annotated[str, one_of(*CLASSES)], _Chains] = Field(min_length=1)
    iterations: Annotated[int, whole(2, CLASSES_ITERATIONS)]


class Outliers(Block):
    """Section 7."""

    runs: dict[Annotated[str, one_of(*OUTLIERS)], _Chains] = Field(min_length=1)
    iterations: Annotated[int, whole(2, OUTLIERS_ITERATIONS)]


class Bayes(Block):
    """The Bayes rule of section 6."""

    points: Annotated[int, whole(50, 4000)]
    sets: Annotated[int, whole(2, 10**5)]


class LaplaceFits(Block):
    """Laplace's method beside the chains."""

    training: Annotated[list[int], some_of(100, 400)]


class Study(Block):
    """All experiments."""

    classes: Classes
    outliers: Outliers
    bayes: Bayes
    laplace: LaplaceFits


class Configuration(General):
    """What the plans of the study read."""

    neal1997: Study


def check(config: Mapping[str, Any]) -> Configuration:
    """Return the configuration of the study; ValueError with a line for each problem in it."""
    return checked(Configuration, config)

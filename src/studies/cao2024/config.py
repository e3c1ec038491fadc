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
    number,
    power_of_two,
    whole,
)

Count = Annotated[int, whole(1, 10**6)]
Shifted = Annotated[int, multiple(20, 20, 10**6)]
Scrambled = Annotated[int, power_of_two(16, 2**19)]


class Draws(Block):
    """Draws of an estimate by each method."""

    minimax_tilting: Annotated[Count, Field(alias="minimax-tilting")]
    separation: Shifted
    twisted_ep: Annotated[Scrambled, Field(alias="twisted-ep")]


class Units(Block):
    """Units of each method."""

    minimax_tilting: Annotated[Count, Field(alias="minimax-tilting")]
    separation: Count
    twisted_ep: Annotated[Count, Field(alias="twisted-ep")]


class Between(Block):
    """Cheaper runs of two methods, which tell how much a standard deviation varies."""

    draws: Shifted
    units: Count


class Spread(Block):
    """Standard deviations of estimates."""

    size: Annotated[int, whole(20, 6400)]
    estimates: Annotated[int, whole(2, 1000)]
    draws: Draws
    units: Units
    between: Between


class Reference(Block):
    """Probabilities of orthants by twisted expectation propagation."""

    size: Annotated[int, whole(20, 6400)]
    tolerance: Annotated[float, number(1e-4, 1)]
    large: Annotated[int, whole(20, 6400)]
    residual: Annotated[float, number(1e-6, 0.5)]
    points: Annotated[int, whole(1, 10**5)]
    randomizations: Annotated[int, whole(2, 1000)]


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

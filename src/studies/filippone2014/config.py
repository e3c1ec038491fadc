"""The configuration of the study: which keys there are, and which values are allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from studies.common.configuration import (
    Block,
    General,
    checked,
    listed,
    multiple,
    number,
    some_of,
    whole,
)
from studies.common.refusals import refuse
from studies.filippone2014.problems import CASES, KERNELS, LATENT, PSEUDO_MARGINAL

_Count = Annotated[int, whole(1, 10**6)]
_Sets = Annotated[int, whole(1, 1000)]
_Even = Annotated[int, multiple(2, 10, 1000)]
_Intervals = Annotated[int, multiple(2, 4, 128)]
_Counts = Annotated[list[Annotated[int, whole(1, 1000)]], listed(1)]


class Conditionals(Block):
    """Figure 1."""

    n: _Even
    sets: _Sets
    draws: Annotated[int, whole(2, 10**4)]
    sweeps: _Count
    values: Annotated[int, whole(10, 1000)]


class Spread(Block):
    """Figure 2."""

    n: Annotated[list[_Even], listed(1)]
    sets: _Sets
    samples: _Counts
    repetitions: Annotated[int, whole(20, 10**5)]
    values: Annotated[int, whole(5, 1000)]


class Pilot(Block):
    """Lengths of the chain that finds a proposal."""

    burn_in: _Count
    iterations: Annotated[int, whole(10, 10**6)]


class Schemes(Block):
    """The chains on a data set."""

    schemes: Annotated[list[str], some_of(*PSEUDO_MARGINAL, *LATENT)]
    samples: _Counts
    repeats: _Counts
    chains: Annotated[int, whole(2, 100)]
    iterations: Annotated[int, whole(20, 10**6)]
    burn_in: _Count


class Problem(Schemes):
    """Simulated data sets, and the chains on each."""

    n: _Even
    d: Annotated[int, whole(1, 100)]
    sets: _Sets
    kernels: Annotated[list[str], some_of(*KERNELS)]


class Chains(Block):
    """Tables I to III."""

    pilot: Pilot
    problems: Annotated[list[Problem], listed(1)]


class Real(Schemes):
    """Real data sets of section 4.4, and the chains on each."""

    data: Annotated[list[str], some_of(*CASES)]
    cases: Annotated[int, whole(0, 5000)]
    pilot: Pilot


class Chain(Block):
    """The pseudo-marginal chains that predictions are averaged over."""

    chains: Annotated[int, whole(2, 100)]
    samples: _Count
    iterations: Annotated[int, whole(20, 10**6)]
    burn_in: _Count
    pilot: Annotated[int, whole(10, 10**5)]
    draws: _Count


class Quadrature(Block):
    """The grid of two hyperparameters that predictions are integrated over."""

    intervals: _Intervals
    most: _Intervals
    tolerance: Annotated[float, number(0.0, 1.0)]


class Prediction(Block):
    """The abstract's claim."""

    data: Annotated[list[str], some_of("pima", "breast", "ionosphere", "sonar", "crabs")]
    sizes: Annotated[list[Annotated[int, whole(10, 200)]], listed(1)]
    splits: _Sets
    chain: Chain
    quadrature: Quadrature


class Study(Block):
    """All experiments."""

    conditionals: Conditionals
    spread: Spread
    chains: Chains
    real: Annotated[list[Real], listed(1)]
    prediction: Prediction


class Configuration(General):
    """What the plans of the study read."""

    filippone2014: Study


def check(config: Mapping[str, Any]) -> Configuration:
    """Return the configuration of the study; ValueError with a line for each problem in it."""
    found = checked(Configuration, config)
    study, problems = found.filippone2014, []
    named = [name for one in study.real for name in one.data]
    if len(named) > len(set(named)):
        problems.append(f"filippone2014.real: given {named}; allowed is each data set once")
    chain = study.prediction.chain
    if chain.draws > chain.iterations:
        problems.append(
            f"filippone2014.prediction.chain.draws: given {chain.draws}; allowed is at most "
            f"iterations, {chain.iterations}"
        )
    refuse(problems)
    return found

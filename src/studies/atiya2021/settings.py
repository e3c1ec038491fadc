"""The settings of the study: which keys there are, and which values are allowed.

`studies.atiya2021.config.check` is called before any job starts. It refuses whatever is wrong at once, a line each. The
options of a method are those of its dataclass in `studies.atiya2021.methods.METHODS`, which is loaded only then.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from studies.atiya2021.advice.names import DATA_SETS
from studies.atiya2021.methods import MODULES, WITHOUT_PREDICTIONS
from studies.atiya2021.names import PATTERNS, PROBLEMS
from studies.atiya2021.whofits.names import DATA_SETS as FITTED
from studies.atiya2021.whofits.names import SPLITS
from studies.common.configuration import (
    LARGEST,
    ROW_NAME,
    Block,
    Boolean,
    General,
    is_whole,
    leaf,
    listed,
    multiple,
    number,
    one_of,
    power_of_two,
    some_of,
    whole,
)

#: Problems of Table 4: an option that has one value a problem has so many.
NINE = len(PROBLEMS)


def whole_each(least: int = 1, most: int = LARGEST) -> BeforeValidator:
    """Return the leaf of whole numbers in a range, one or a list of nine."""

    def allows(value: Any) -> bool:
        values = value if isinstance(value, list) else [value] * NINE
        return len(values) == NINE and all(is_whole(one, least, most) for one in values)

    return leaf(allows, f"a whole number from {least} to {most}, or a list of nine, one a problem")


#: The largest number of runs, instances or data sets: each is a row or a piece.
MANY = 10_000
Count = Annotated[int, whole()]
Repeats = Annotated[int, whole(1, MANY)]
#: Fewer than three replicates give no idea of the spread.
Replicates = Annotated[int, whole(3, MANY)]
PowerOfTwo = Annotated[int, power_of_two(16, 2**20)]
Counting = Annotated[str, one_of("hard", "soft")]
Scheme = Annotated[str, one_of("bootstrap", "adapted")]
Positive = Annotated[float, number(1e-6, 1e6)]
Problems = Annotated[list[int], some_of(*PROBLEMS)]
Method = Annotated[str, one_of(*sorted(MODULES.keys() - {*WITHOUT_PREDICTIONS}))]
#: Those that estimate the marginal likelihood. The chains of the library do so by `annealed`, without drawing samples.
EvidenceMethod = Annotated[
    str, one_of(*sorted(MODULES.keys() - {"control-variables", "ess", "gpml", "hmc"}))
]
Name = Annotated[str, ROW_NAME]
_PosteriorMethod = Annotated[
    str, one_of("ancillary", "ep", "laplace", "orthant", "surrogate", "twisted-ep")
]


class WithOptions(Block, extra="allow"):
    """A row that names a method; keys that are not fields are options of the method."""

    @property
    def options(self) -> dict[str, Any]:
        """Options of the method, in alphabetical order; a list may have one value a problem."""
        return dict(self.model_extra or {})

    def options_on(self, problem: int) -> dict[str, Any]:
        """Options of the method on a problem."""
        return {key: on_problem(value, problem) for key, value in self.options.items()}


class Standardise(Block):
    """Whether features are scaled."""

    crabs: Boolean
    breast_cancer: Boolean
    usps: Boolean


class Quadrature(Block):
    """Coarse rectangle rules."""

    steps: Annotated[list[Annotated[float, number(1e-4, 10.0)]], listed(1)]
    limit: Annotated[float, number(0.1, 100.0)]


class Instances(Block):
    """A sample size of Experiment 1."""

    samples: Count
    instances: Replicates


class Experiment1(Block):
    """Table 1."""

    dimensions: Annotated[list[int], some_of(50, 200, 500)]
    count: Counting
    scheme: Scheme
    quadrature: Quadrature
    inexact: Repeats
    grid: Annotated[list[Instances], listed(2)]


class DataSets(Block):
    """A sample size of Experiment 2, on these problems; on all of them where none are named."""

    samples: Count
    datasets: Repeats
    runs: Repeats
    problems: Annotated[list[int], some_of(*PATTERNS)] | None = None


class Experiment2(Block):
    """Tables 2 and 3."""

    problems: Annotated[list[int], some_of(*PATTERNS)]
    count: Counting
    scheme: Scheme
    grid: Annotated[list[DataSets], listed(2)]

    def sizes(self, problem: int) -> list[DataSets]:
        """Sample sizes that a problem has."""
        return [size for size in self.grid if size.problems is None or problem in size.problems]


class TradeoffRow(WithOptions):
    """A row of Experiment 3; its options are those that all sizes share."""

    method: Method
    grid: Annotated[list[dict[str, Any]], listed(1)] = Field(default=[])
    data_sets: Repeats = 1


class Experiment3(Block):
    """Figures 1 and 2."""

    runs: Replicates
    methods: dict[Name, TradeoffRow] = Field(min_length=1)


class Setting(Block):
    """A hyperparameter setting."""

    set: Annotated[int, whole(1, 6)]
    alpha: Positive
    beta: Positive


class Row(WithOptions):
    """A row of Experiment 4."""

    method: Method
    replicates: Annotated[Any, whole_each(3, MANY)] = None
    data_sets: Annotated[Any, whole_each(1, MANY)] = None
    problems: Problems = Field(default=list(PROBLEMS))


class Experiment4(Block):
    """Table 4."""

    problems: Problems
    hyperparameters: Annotated[list[Setting], listed(1)]
    scanned: Boolean = True
    data_sets: Annotated[Any, whole_each(1, MANY)]
    spread_data_sets: Annotated[Any, whole_each(2, MANY)]
    methods: dict[Name, Row] = Field(min_length=1)


class Benchmark(Block):
    """Error against CPU seconds."""

    problems: Problems
    methods: Annotated[list[Name], listed(1)]
    parts: Annotated[list[Annotated[int, whole(2, 1024)]], listed(1)]
    replicates: Replicates


class Chains(Block):
    """What all rows of the posterior share."""

    chains: Annotated[int, multiple(2, 2, 64)]
    kept: Annotated[Any, whole_each()]
    predictive: Annotated[Any, whole_each()]


class PosteriorRow(WithOptions):
    """A row of the posterior."""

    method: _PosteriorMethod
    iterations: Annotated[Any, whole_each()]
    burn_in: Annotated[Any, whole_each()]


class Posterior(Block):
    """Experiment 5, the posterior of the hyperparameters."""

    problems: Problems
    settings: Chains
    methods: dict[Name, PosteriorRow] = Field(min_length=1)


class Judge(Block):
    """The method that judges all searches."""

    method: Method
    options: dict[str, Any] = Field(default={})


class SearchRow(Judge):
    """A method that searches."""

    final: dict[str, Any] = Field(default={})
    replicates: Replicates | None = None


class Tuning(Block):
    """Experiment 5, the search for hyperparameters."""

    problems: Problems
    evaluations: Annotated[int, whole(4, MANY)]
    few: Annotated[int, whole(1, MANY)]
    judge: Judge
    methods: dict[Name, SearchRow] = Field(min_length=1)


class GradientRow(Block):
    """A method whose evidence has a gradient; with `relevance`, each input has a length scale."""

    method: Annotated[str, one_of("ep", "laplace")]
    options: dict[str, Any] = Field(default={})
    relevance: Boolean = False


class Experiment5(Block):
    """New: the posterior, the search, and the search with gradients on the same problems."""

    posterior: Posterior
    tuning: Tuning
    gradient: dict[Name, GradientRow] = Field(min_length=1)


class ToolboxRuns(Block):
    """A number of samples of the toolbox."""

    samples: Annotated[int, whole(8)]
    replicates: Replicates


class Defects(Block):
    """The toolbox's defects."""

    grid: Annotated[list[ToolboxRuns], listed(1)]
    reference_points: PowerOfTwo
    skip: Annotated[int, whole(1, MANY)]
    burn_in: Annotated[int, whole(1, MANY)]


class Ordering(Block):
    """The order of the patterns."""

    problem: Annotated[int, one_of(*PATTERNS)]
    data_sets: Replicates
    runs: Repeats
    samples: Annotated[int, whole(100)]


class Kernel(Block):
    """An RBF kernel, the number of inputs of the patterns, and the law of their labels."""

    law: Annotated[str, one_of("model", "normals")]
    inputs: Annotated[int, one_of(2, 8)]
    alpha: Positive
    beta: Positive


class Size(Block):
    """A number of patterns, the data sets of each kernel, and the kernels: all, where none are named."""

    patterns: Annotated[int, whole(2, MANY)]
    data_sets: Repeats
    kernels: list[Name] = Field(default=[])


class Points(Block):
    """Sobol' points of a randomisation, and randomisations, whose spread is the standard error."""

    points: PowerOfTwo
    randomizations: Annotated[int, whole(8, MANY)]


class ScalingRow(WithOptions):
    """A method, and the numbers of patterns and the kernels that it is for: all, where none are named."""

    method: EvidenceMethod
    smallest: Annotated[int, whole(2, MANY)] = 2
    largest: Annotated[int, whole(2, MANY)] = MANY
    kernels: list[Name] = Field(default=[])


class Curve(Block):
    """Error against seconds: further counts of methods, each an option with its values, at a number of patterns."""

    patterns: Annotated[int, whole(2, MANY)]
    kernels: Annotated[list[Name], listed(1)]
    counts: dict[Name, dict[Name, Annotated[list[Count], listed(1)]]]


#: The two long runs that stand for the truth, by method.
References = Annotated[
    dict[Annotated[str, one_of("twisted-ep", "minimax-tilting")], Points], Field(min_length=2)
]


class Scaling(Block):
    """How each method scales."""

    kernels: dict[Name, Kernel] = Field(min_length=1)
    sizes: Annotated[list[Size], listed(1)]
    references: References
    methods: dict[Name, ScalingRow] = Field(min_length=1)
    curve: Curve


#: A study of nothing. Kept rows may be of a configuration that has no such block.
NO_SCALING = Scaling.model_construct(kernels={}, sizes=[], references={}, methods={})


class MethodRow(WithOptions):
    """A method with its options, of `Advice` and `Variances`."""

    method: Method


class Simulated(Block):
    """Data sets of `Scaling` whose labels come from the model: kernels, sizes, and names of methods."""

    kernels: list[Name]
    sizes: Annotated[list[Size], listed(1)]
    methods: Annotated[list[Name], listed(1)]


class Rule(Block):
    """How often the advice is followed, to which tolerances in nats, and with at most how many points."""

    points: PowerOfTwo
    tolerances: Annotated[list[Annotated[float, number(1e-4, 10.0)]], listed(1)]
    replicates: Repeats


class Advice(Block):
    """The advice for the marginal likelihood, on real and on simulated data sets."""

    data_sets: Annotated[list[str], some_of(*DATA_SETS)]
    simulated: Simulated
    references: References
    truth: Points
    methods: dict[Name, MethodRow] = Field(min_length=1)
    rule: Rule


#: As `NO_SCALING`.
NO_ADVICE = Advice.model_construct(
    data_sets=[], methods={}, simulated=Simulated.model_construct(kernels=[], sizes=[], methods=[])
)


class Climb(Block):
    """Sobol' points of a randomisation of the judge's gradient, and how often it is climbed at most."""

    points: PowerOfTwo
    steps: Annotated[int, whole(1, 100)]


class WhoFits(Block):
    """Real data sets that are fitted, in several splits; twisted EP judges."""

    data_sets: Annotated[list[str], some_of(*FITTED)]
    splits: Annotated[int, whole(1, SPLITS)]
    judge: Points
    climb: Climb


#: As `NO_SCALING`.
NO_WHO_FITS = WhoFits.model_construct(
    data_sets=[], splits=0, judge=Points.model_construct(), climb=Climb.model_construct()
)


class Cases(Block):
    """A number of patterns, and data sets of each law of labels."""

    patterns: Annotated[int, whole(2, MANY)]
    data_sets: Repeats


class Gibbs(Block):
    """Chains of each half of the truth, and their sweeps that do not count, and that do."""

    chains: Annotated[int, whole(2, MANY)]
    burn_in: Count
    sweeps: Count


class Variances(Block):
    """Class probabilities at large variances of the kernel; Gibbs sampling gives the truth."""

    labels: Annotated[list[str], some_of("process", "boundary")]
    alpha: Positive
    betas: Annotated[list[Positive], listed(1)]
    sizes: Annotated[list[Cases], listed(1)]
    test: Annotated[int, whole(2, MANY)]
    truth: Gibbs
    methods: dict[Name, MethodRow] = Field(min_length=1)


#: As `NO_SCALING`.
NO_VARIANCES = Variances.model_construct(labels=[], methods={}, sizes=[])


class ReferenceCheck(Block):
    """Cells of the reference that are estimated anew."""

    cells: Annotated[int, whole(1, 54)]
    points: PowerOfTwo
    samples: Count


class Study(Block):
    """All experiments."""

    experiment1: Experiment1
    experiment2: Experiment2
    experiment3: Experiment3
    experiment4: Experiment4
    benchmark: Benchmark
    experiment5: Experiment5
    defects: Defects
    ordering: Ordering
    scaling: Scaling = NO_SCALING
    advice: Advice = NO_ADVICE
    whofits: WhoFits = NO_WHO_FITS
    variances: Variances = NO_VARIANCES
    reference_check: ReferenceCheck


class Configuration(General):
    """What the plans of the study read."""

    atiya2021: Study


def on_problem(value: Any, problem: int) -> Any:
    """Return a value on a problem: a list in the configuration has one a problem."""
    return value[problem - 1] if isinstance(value, list) else value

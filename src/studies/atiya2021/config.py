"""The configuration of the study: which keys there are, and which values are allowed.

`check` is called before any job starts. It refuses whatever is wrong at once, a line each. The options of a method
are those of its dataclass in `studies.atiya2021.methods.METHODS`, which is loaded only when `check` looks at them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from studies.atiya2021.jobs import PATTERNS, PROBLEMS, on_problem
from studies.atiya2021.methods import DETERMINISTIC, MODULES
from studies.common.configuration import (
    ROW_NAME,
    Block,
    Boolean,
    is_whole,
    leaf,
    listed,
    number,
    one_of,
    problems_of,
    refuse,
    some_of,
    text,
    whole,
    whole_each,
)

STUDY = "atiya2021"

#: The largest number of runs, instances or data sets: each is a row or a piece.
MANY = 10_000
Count = Annotated[int, whole()]
Repeats = Annotated[int, whole(1, MANY)]
#: Fewer than three replicates give no idea of the spread.
Replicates = Annotated[int, whole(3, MANY)]
PowerOfTwo = Annotated[
    int,
    leaf(lambda v: is_whole(v, 16, 2**20) and v & (v - 1) == 0, "a power of two from 16 to 2^20"),
]
Counting = Annotated[str, one_of("hard", "soft")]
Scheme = Annotated[str, one_of("bootstrap", "adapted")]
Positive = Annotated[float, number(1e-6, 1e6)]
Problems = Annotated[list[int], some_of(*PROBLEMS)]
Method = Annotated[str, one_of(*sorted(MODULES))]
Name = Annotated[str, ROW_NAME]
_PosteriorMethod = Annotated[
    str, one_of("ancillary", "ep", "laplace", "orthant", "surrogate", "twisted-ep")
]


class Standardise(Block):
    """Whether features are scaled."""

    crabs: Boolean
    breast_cancer: Boolean
    usps: Boolean


class Data(Block):
    """Where raw data come from."""

    mirrors: Annotated[list[Annotated[str, text(".+", "a path")]], listed(0)]
    retries: Annotated[int, whole(0, 100)]
    timeout_seconds: Annotated[float, number(1e-3, 1e5)]
    deadline_seconds: Annotated[float, number(1e-3, 1e5)]
    standardise: Standardise


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
    grid: Annotated[list[Instances], listed(2)]


class DataSets(Block):
    """A sample size of Experiment 2."""

    samples: Count
    datasets: Repeats
    runs: Repeats


class Experiment2(Block):
    """Tables 2 and 3."""

    problems: Annotated[list[int], some_of(*PATTERNS)]
    count: Counting
    scheme: Scheme
    grid: Annotated[list[DataSets], listed(2)]


class TradeoffRow(Block, extra="allow"):
    """A row of Experiment 3; its other keys are options of the method that all sizes share."""

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


class Row(Block, extra="allow"):
    """A row of Experiment 4; its other keys are options of the method, one value or one a problem."""

    method: Method
    replicates: Annotated[Any, whole_each(3, MANY)] = None
    data_sets: Annotated[Any, whole_each(1, MANY)] = None
    problems: Problems = Field(default=list(PROBLEMS))


class Experiment4(Block):
    """Table 4."""

    problems: Problems
    hyperparameters: Annotated[list[Setting], listed(1)]
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

    chains: Annotated[
        int, leaf(lambda v: is_whole(v, 2, 64) and v % 2 == 0, "an even number up to 64")
    ]
    kept: Annotated[Any, whole_each()]
    predictive: Annotated[Any, whole_each()]


class PosteriorRow(Block, extra="allow"):
    """A row of the posterior; its other keys are options of the method."""

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
    reference_check: ReferenceCheck


class Configuration(Block):
    """The whole configuration."""

    scale: Annotated[str, ROW_NAME]
    seed: Annotated[int, whole(0, 2**63 - 1)]
    missing_data: Annotated[str, one_of("continue", "fail")]
    numbers: Annotated[str, one_of("kept", "run")]
    data: Data
    atiya2021: Study


def check(config: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse a configuration that does not allow every job to run.

    Parameters
    ----------
    config : mapping
        ``config/<scale>.yaml`` with ``scale``. Blocks of other studies are not looked at.

    Returns
    -------
    dict
        The same, with the keys of every mapping in alphabetical order: options are columns of result files, and their
        order must not depend on which file or argument set a key first.

    Raises
    ------
    ValueError
        With a line for each problem: key, value given, what is allowed.
    """
    if not isinstance(config, Mapping):
        refuse([f"it must be a block; got {config!r}"])
    others = {key for key in config if key != STUDY and _is_study(key)}
    own = {key: value for key, value in config.items() if key not in others}
    found = problems_of(Configuration, own) or [*_combinations(own[STUDY]), *_methods(own[STUDY])]
    refuse(found)
    ordered: dict[str, Any] = _in_order(config)
    return ordered


def _is_study(key: Any) -> bool:
    folder = Path(__file__).resolve().parents[1] / str(key)
    return key != "common" and str(key).isidentifier() and (folder / "__init__.py").exists()


def _in_order(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {key: _in_order(part[key]) for key in sorted(part)}
    return [_in_order(item) for item in part] if isinstance(part, list) else part


def _combinations(study: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong that no model of a single value can say."""
    one, two, four = (study[f"experiment{k}"] for k in (1, 2, 4))
    # two rows with one name would draw the same numbers and pass for two
    for key, name, rows in (
        ("experiment1.grid", "samples", one["grid"]),
        ("experiment2.grid", "samples", two["grid"]),
        ("experiment4.hyperparameters", "set", four["hyperparameters"]),
        ("defects.grid", "samples", study["defects"]["grid"]),
    ):
        values = [row[name] for row in rows]
        if len(set(values)) < len(values):
            yield f"{STUDY}.{key}: given {name} {values}; allowed is a different one in each row"
    for cell in two["grid"]:
        if cell["datasets"] * cell["runs"] < 3:
            yield f"{STUDY}.experiment2.grid: given {cell}; allowed are at least 3 datasets x runs"
    for name in study["benchmark"]["methods"]:
        row = four["methods"].get(name)
        if row is None or row["method"] in DETERMINISTIC:
            known = [key for key, r in four["methods"].items() if r["method"] not in DETERMINISTIC]
            yield f"{STUDY}.benchmark.methods: given {name!r}; allowed are {known}"
    yield from _chains(study["experiment5"]["posterior"])
    searches = study["experiment5"]["tuning"]["methods"]
    for name in sorted(searches.keys() & study["experiment5"]["gradient"].keys()):
        yield f"{STUDY}.experiment5.gradient: given {name!r}; allowed are names that tuning has not"


def _chains(posterior: Mapping[str, Any]) -> Iterator[str]:
    key = f"{STUDY}.experiment5.posterior"
    for problem in posterior["problems"]:
        settings = on_problem(posterior["settings"], problem)
        rows = {name: on_problem(row, problem) for name, row in posterior["methods"].items()}
        for name, row in rows.items():
            if row["burn_in"] > row["iterations"]:
                yield (
                    f"{key}.methods.{name}.burn_in: given {row['burn_in']} on Problem {problem}; allowed are at "
                    f"most the iterations: {row['iterations']}"
                )
        shortest = min(rows, key=lambda name: (rows[name]["iterations"], name))
        most = rows[shortest]["iterations"]
        for what in ("kept", "predictive"):
            if settings[what] > most:
                yield (
                    f"{key}.settings.{what}: given {settings[what]}; allowed are at most the iterations of {shortest} "
                    f"on Problem {problem}: {most}"
                )


def _methods(study: Mapping[str, Any]) -> list[str]:
    from studies.atiya2021.options import problems_of_methods

    return problems_of_methods(study)

"""What is wrong with a configuration that no model of a single value can say."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec

from studies.atiya2021.methods import DETERMINISTIC, MODULES
from studies.atiya2021.settings import Advice, Posterior, Scaling, Study, on_problem
from studies.common.code import digest
from studies.common.notes import note, noted

_STUDY = "atiya2021"
#: Digests of options that were found right.
NOTES = "build/options.txt"


def combinations(study: Study) -> Iterator[str]:
    """Yield what is wrong that no model of a single value can say, a line each."""
    one, two, four = study.experiment1, study.experiment2, study.experiment4
    sizes = [tuple(cell.samples for cell in two.sizes(problem)) for problem in two.problems]
    # two rows with one name would draw the same numbers and pass for two
    for key, name, values in (
        ("experiment1.grid", "samples", [cell.samples for cell in one.grid]),
        *(("experiment2.grid", "samples", list(each)) for each in dict.fromkeys(sizes)),
        ("experiment4.hyperparameters", "set", [setting.set for setting in four.hyperparameters]),
        ("defects.grid", "samples", [cell.samples for cell in study.defects.grid]),
        ("scaling.sizes", "patterns", [size.patterns for size in study.scaling.sizes]),
        (
            "advice.simulated.sizes",
            "patterns",
            [one.patterns for one in study.advice.simulated.sizes],
        ),
        ("variances.sizes", "patterns", [one.patterns for one in study.variances.sizes]),
    ):
        if len(set(values)) < len(values):
            yield f"{_STUDY}.{key}: given {name} {values}; allowed is a different one in each row"
    for cell in two.grid:
        if cell.datasets * cell.runs < 3:
            given = cell.model_dump()
            yield f"{_STUDY}.experiment2.grid: given {given}; allowed are at least 3 datasets x runs"
    known = [name for name, row in four.methods.items() if row.method not in DETERMINISTIC]
    for name in study.benchmark.methods:
        if name not in known:
            yield f"{_STUDY}.benchmark.methods: given {name!r}; allowed are {known}"
    yield from _scaling(study.scaling)
    yield from _advice(study.advice, study.scaling)
    yield from _chains(study.experiment5.posterior)
    searches = study.experiment5.tuning.methods
    for name in sorted(searches.keys() & study.experiment5.gradient.keys()):
        yield f"{_STUDY}.experiment5.gradient: given {name!r}; allowed are names that tuning has not"


def _scaling(given: Scaling) -> Iterator[str]:
    if not given.kernels:
        return
    key = f"{_STUDY}.scaling"
    for name in given.methods:
        if name.startswith("reference-"):
            yield f"{key}.methods: given {name!r}; allowed are names without `reference-` in front"
    named = {f"sizes.N{size.patterns}": size.kernels for size in given.sizes}
    named |= {f"methods.{name}": row.kernels for name, row in given.methods.items()}
    for where, kernels in {**named, "curve": given.curve.kernels}.items():
        if not {*kernels} <= given.kernels.keys():
            yield f"{key}.{where}.kernels: given {kernels}; allowed are some of {[*given.kernels]}"
    sizes = [size.patterns for size in given.sizes]
    if given.curve.patterns not in sizes:
        yield f"{key}.curve.patterns: given {given.curve.patterns}; allowed is one of {sizes}"
    for name in sorted(given.curve.counts.keys() - given.methods.keys()):
        yield f"{key}.curve.counts: given {name!r}; allowed are some of {[*given.methods]}"


def _chains(posterior: Posterior) -> Iterator[str]:
    key = f"{_STUDY}.experiment5.posterior"
    for problem in posterior.problems:
        lengths = {}
        for name, row in posterior.methods.items():
            lengths[name] = on_problem(row.iterations, problem)
            burn_in = on_problem(row.burn_in, problem)
            if burn_in > lengths[name]:
                yield (
                    f"{key}.methods.{name}.burn_in: given {burn_in} on Problem {problem}; allowed are at "
                    f"most the iterations: {lengths[name]}"
                )
        most, shortest = min((length, name) for name, length in lengths.items())
        for what in ("kept", "predictive"):
            given = on_problem(getattr(posterior.settings, what), problem)
            if given > most:
                yield (
                    f"{key}.settings.{what}: given {given}; allowed are at most the iterations of {shortest} "
                    f"on Problem {problem}: {most}"
                )


def _advice(given: Advice, scaling: Scaling) -> Iterator[str]:
    if not given.methods:
        return
    key, own = f"{_STUDY}.advice", given.simulated
    drawn = [name for name, law in scaling.kernels.items() if law.law == "model"]
    for name in own.kernels:
        if name not in drawn:
            yield f"{key}.simulated.kernels: given {name!r}; allowed are some of {drawn}, whose labels are the model's"
    for name in own.methods:
        if name not in given.methods:
            yield f"{key}.simulated.methods: given {name!r}; allowed are some of {[*given.methods]}"
    for size in own.sizes:
        if size.kernels:
            yield f"{key}.simulated.sizes: given kernels {size.kernels}; allowed are none of its own"
    for name in given.methods:
        if name.startswith(("reference-", "fit-", "rule-", "truth")):
            yield f"{key}.methods: given {name!r}; allowed are names that begin otherwise"


def methods(study: Study) -> list[str]:
    """Return what is wrong with the options of methods, a line each; nothing if the extensions have not been built.

    To look at them takes the import of all methods. What was found right is noted, with the code of that time.
    """
    if not _built():
        return []
    modules = [*MODULES.values(), "studies.atiya2021.options"]
    known = f"{study.model_dump_json()} {digest(modules)}"
    if noted(NOTES, known):
        return []
    from studies.atiya2021.options import problems_of_methods

    found = problems_of_methods(study)
    if not found:
        note(NOTES, known)
    return found


def _built() -> bool:
    """Whether the extensions are there; nothing is imported."""
    package = find_spec("gpcmc")
    folders = package.submodule_search_locations or [] if package else []
    return PathFinder.find_spec("_sampler", [f"{path}/orthant" for path in folders]) is not None

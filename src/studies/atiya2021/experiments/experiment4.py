"""Experiment 4: nine problems, six hyperparameter settings, every method (section 6.4, Table 4)."""

from __future__ import annotations

from collections.abc import Iterator

from studies.atiya2021.methods import MODULES, seconds
from studies.atiya2021.names import REAL, SCANNED, TRAINING, data_set_seed
from studies.atiya2021.settings import Configuration, on_problem
from studies.atiya2021.settings import Row as MethodRow
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: The paper's methods also run on Problem 9 with the images as scanned.
PAPER = ("orthant", "control-variables", "ess-gpml", "hmc-gpml")


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem, method, setting and run.

    A method that draws at random runs `replicates` times on the first data set, and once on each further one. Further
    data sets of real data are other splits.
    """
    return planned(_lines(config))


def _lines(config: Configuration) -> Iterator[Line]:
    given = config.atiya2021.experiment4
    problems: list[int | str] = [*sorted(given.problems)]
    again = [SCANNED] if given.scanned and 9 in problems else []
    for problem in [*problems, *again]:
        # "ess-gpml" before "ess": the last bits of kept measures depend on the order of lines in their sums
        for name in sorted(given.methods, key="{}.".format):
            method, number = given.methods[name], number_of(problem)
            if number in method.problems and (problem != SCANNED or name in PAPER):
                data_sets = on_problem(method.data_sets or given.data_sets, number)
                replicates = on_problem(method.replicates, number) or 1
                runs = [(0, replicate) for replicate in range(replicates)]
                if problem != SCANNED:
                    runs += [(dataset, 0) for dataset in range(1, data_sets)]
                yield from lines(config, problem, name, method, runs)


def number_of(problem: int | str) -> int:
    """Return the number of a problem, whatever its images."""
    return int(str(problem).partition("_")[0])


def lines(
    config: Configuration,
    problem: int | str,
    name: str,
    method: MethodRow,
    runs: list[tuple[int, int]],
) -> Iterator[Line]:
    """Return the lines of a method on a problem: runs (data set, replicate) at each hyperparameter setting.

    The name keys the random streams.
    """
    number, settings = number_of(problem), config.atiya2021.experiment4.hyperparameters
    options = method.options_on(number)
    each = seconds(method.method, options, TRAINING[number])
    for setting in settings:
        for dataset, replicate in runs:
            path = [f"set{setting.set}", name, *([f"dataset{dataset}"] if dataset else [])]
            path.append(f"replicate{replicate}")
            line: Line = {
                "row": f"problem{problem}/{name}/set{setting.set}/dataset{dataset}/replicate{replicate}",
                "problem": problem,
                "method": name,
                "seconds": each,
                "alpha": setting.alpha,
                "beta": setting.beta,
                "set": setting.set,
                "dataset": dataset,
                "replicate": replicate,
                "fitter": {"method": method.method, "options": options},
                "modules": [MODULES[method.method]],
            }
            if method.replicates:
                line["seed"] = seed(config.seed, "experiment4", f"problem{number}", *path)
            if dataset:
                scaled = number in REAL and config.data.standardise[REAL[number]]
                drawn = data_set_seed(number, dataset, config.seed)
                line["data"] = {"seed": drawn, "standardise": scaled}
            yield line


def run(row: Row, inputs: Inputs) -> Result:
    """Run a method once: the settings of the row, and what `studies.atiya2021.experiment4.one_run` found."""
    from studies.atiya2021.experiment4 import one_run
    from studies.atiya2021.methods import METHODS
    from studies.atiya2021.problems import Problem, further_data_set

    problem = Problem(**inputs["problem"])
    if row["dataset"]:
        scaled = row["data"]["standardise"]
        problem = further_data_set(
            number_of(row["problem"]), problem, row["data"]["seed"], standardise=scaled
        )
    options, path = row["fitter"]["options"], row.get("seed")
    method = METHODS[row["fitter"]["method"]](**options)
    found = one_run(problem, method, row["alpha"], row["beta"], path)
    keys = ("problem", "method", "alpha", "beta", "set", "dataset", "replicate")
    (line,) = found.lines
    line = {key: row[key] for key in keys} | {"trivial": line["trivial"]} | _given(row) | line
    arrays = {f"problem{row['problem']}/{name}": one for name, one in found.arrays.items()}
    return Result([line], arrays, found.timing)


def _given(row: Row) -> Line:
    """Columns of a method that draws at random: its seed and its options."""
    return {"seed": row["seed"], **row["fitter"]["options"]} if "seed" in row else {}

"""Our value for a published cell, with everything that makes it and the published value vary.

Tables 1 to 3 take the hard count of the paper's own scheme (Algorithm GPC-MC), Table 4 the method
under its own name (the paper's with the soft count), and only with the published hyperparameter
sets. All variances are relative, that is of the logarithm of a value, because the audit compares log
ratios.

What the published value of a cell rests on decides what it is compared with:

- Table 1: 50 problems on both sides; the bracket is a standard error.
- Tables 2 and 3: 20 runs (Problem 4: 15) on one unknown data set. The brackets are not standard
  errors, so the noise of their runs is taken from ours and divided by their number of runs, and the
  variance between data sets, taken from ours as well, enters undivided.
- Table 4: one run on one unknown data set. Where ours is one data set too, the variance between data
  sets (of MAE-POST, by Laplace's approximation) enters twice. Where the method was run on several, ours
  is their mean, and their variance enters undivided on the published side. Of MAE-MED nothing but the
  latter is known: with one data set it is shown and not compared.

Only runs with the status "ok" enter a value, but at the paper's budget every run; the note counts the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpcmc.audit.published import (
    METHODS,
    PUBLISHED_ITERATIONS,
    PUBLISHED_PROBLEMS,
    PUBLISHED_RUNS,
    PUBLISHED_SETS,
)
from gpcmc.audit.results import Predictions, ResultFiles, read_long, read_probabilities
from gpcmc.experiments.classification import NO_DATA
from gpcmc.inference.interface import OK

__all__ = [
    "EVERY_RUN",
    "DataSetSpread",
    "Estimate",
    "Estimator",
    "Term",
    "absolute_percentage_error",
    "at_published_budget",
    "data_set_spread",
    "median_errors",
    "paper_scheme",
]

#: Squared coefficient of variation of the absolute value of a centred normal: the run-to-run noise
#: of an absolute error where no cell has two runs to measure it from.
HALF_NORMAL = math.pi / 2 - 1

#: What is said where the paper's rule stands in for ours.
EVERY_RUN = "every run counts, converged or not, as in the paper"


@dataclass(frozen=True, slots=True)
class Term:
    """One source of variation of a log ratio.

    Attributes
    ----------
    variance : float
        A multiple of an estimated variance, or a known one.
    df : float
        The degrees of freedom of the estimate.
    source : str
        Names the estimate where several terms are multiples of the same one, which then counts
        once in the degrees of freedom of their sum.
    shared : bool
        Whether the cells of one problem have this variation in common: they are then right or wrong
        together.
    """

    variance: float
    df: float = math.inf
    source: str = ""
    shared: bool = False

    def over(self, divisor: float) -> Term:
        """The variance of a mean of so many, from the same estimate."""
        return replace(self, variance=self.variance / divisor)

    def split(self, share: float) -> tuple[Term, Term]:
        """The part that the cells of one problem have in common, and the rest."""
        common = replace(self, variance=share * self.variance, shared=True)
        return common, replace(self, variance=(1 - share) * self.variance)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Our side of one cell.

    Attributes
    ----------
    status : str
        "ok", or why there is no value ("not run", "data not available", "not comparable", "not
        converged", ...).
    value, standard_error : float
        In the units of the cell; NaN without a value.
    replicates : int
        Rows of result files behind the value.
    ours, theirs : tuple of Term
        Sources of variation of log(ours) and log(published), rounding apart. Empty where a
        comparison is not possible, and `note` says why.
    expected : float
        Expectation of log(ours/published) where both sides draw from the same distribution: not
        zero where the two average over different numbers of values that differ much.
    result_file : str
        Where the rows are.
    note : str
        What a reader should know.
    every : bool
        Whether every run counts, converged or not, because at its budget the paper has no other rule.
    """

    status: str
    value: float = math.nan
    standard_error: float = math.nan
    replicates: int = 0
    ours: tuple[Term, ...] = ()
    theirs: tuple[Term, ...] = ()
    expected: float = 0.0
    result_file: str = ""
    note: str = ""
    every: bool = False


def absolute_percentage_error(frame: pd.DataFrame) -> pd.Series:
    """100 |log I - log I-hat| / |log I| of each row (Eq. 64 before averaging), in percent."""
    return 100.0 * (frame["estimate"] - frame["truth"]).abs() / frame["truth"].abs()


def paper_scheme(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of Algorithm GPC-MC with the hard count, which is what Tables 1 to 3 were made with."""
    return frame[(frame["scheme"] == "bootstrap") & (frame["count"] == "hard")]


def at_published_budget(rows: pd.DataFrame) -> set[int]:
    """The problems of Experiment 4 whose runs had the paper's budget: the length of control variables is that of all.

    Its own rule stands in for ours there: it looks at no diagnostics, and runs that converged are not drawn as its
    runs were.
    """
    if "iterations" not in rows:
        return set()
    own = rows[rows["method"] == METHODS["titsias"]]
    return set(own.loc[own["iterations"] == PUBLISHED_ITERATIONS, "problem"])


@dataclass(frozen=True, slots=True)
class DataSetSpread:
    """How an error of Experiment 2 varies between data sets and between runs on one data set.

    Attributes
    ----------
    means : DataFrame
        One row a (samples, data set): ``samples``, ``dataset``, ``mean``, ``runs``.
    between : Term
        Variance of the log of a data set's mean. A data set is easy or hard by much the same factor
        at every sample size, so sample sizes are pooled, and its degrees of freedom are the number
        of data sets less one. The weights are the squares of the runs a data set, which is best
        where run noise is all there is. What is left of run noise is not taken off: the comparison
        rather errs on the side of agreement. NaN with zero degrees of freedom where no sample size
        has two data sets.
    run : Term
        Squared coefficient of variation of one run on a given data set.
    """

    means: pd.DataFrame
    between: Term
    run: Term


def data_set_spread(frame: pd.DataFrame, error: pd.Series) -> DataSetSpread:
    """Split the variation of an error of one problem into data sets and runs.

    Parameters
    ----------
    frame : DataFrame
        Rows of Experiment 2 of one problem.
    error : Series
        The positive error of each row.

    Returns
    -------
    DataSetSpread
    """
    cells = frame.assign(error=error).groupby(["samples", "dataset"])["error"]
    means = cells.agg(mean="mean", runs="size", variance="var").reset_index()
    repeated = means[means["runs"] > 1]
    if len(repeated):
        weights = repeated["runs"] - 1
        relative = repeated["variance"] / repeated["mean"] ** 2
        run = Term(float((weights * relative).sum() / weights.sum()), float(weights.sum()), "runs")
    else:
        run = Term(HALF_NORMAL, source="runs")
    variances, weights, most = [], [], 0
    for _, group in means.groupby("samples"):
        if len(group) > 1:
            variances.append(float(np.log(group["mean"]).var()))
            weights.append((len(group) - 1) * float(group["runs"].mean()) ** 2)
            most = max(most, len(group))
    between = (
        Term(float(np.average(variances, weights=weights)), most - 1, "data sets", shared=True)
        if variances
        else Term(math.nan, 0)
    )
    return DataSetSpread(means[["samples", "dataset", "mean", "runs"]], between, run)


def _correlation(rows: pd.DataFrame) -> float:
    """How alike the errors of one problem are at different sample sizes: the mean correlation, not below zero.

    Experiment 1 runs the same problems at each of them, here as in the paper.
    """
    errors = absolute_percentage_error(rows).groupby([rows["instance"], rows["samples"]]).mean()
    correlations = errors.unstack().corr(min_periods=4).to_numpy()
    between = correlations[np.triu_indices(len(correlations), 1)]
    between = between[np.isfinite(between)]
    return float(np.clip(between.mean(), 0.0, 1.0)) if len(between) else 0.0


def _no_rows(there: pd.DataFrame, what: str) -> Estimate:
    """Not run: no rows at all. Not comparable: only rows of another count or scheme than the paper's."""
    if there.empty:
        return Estimate("not run", note=f"no rows for this {what} at this scale")
    settings = sorted(set(zip(there["count"], there["scheme"], strict=True)))
    named = "; ".join(f"count {count}, scheme {scheme}" for count, scheme in settings)
    return Estimate(
        "not comparable",
        result_file="; ".join(sorted(set(there["file"]))),
        note=f"other settings than published: {named} (needed: count hard, scheme bootstrap)",
    )


class Estimator:
    """Our side of any published cell, from the result files of one run.

    Parameters
    ----------
    files : ResultFiles
        What was run; a cell whose rows are absent has the status "not run".
    registry : DataFrame
        The published cells (`read_registry`); the consensus of Table 4 is over the methods that it
        has there.
    every : bool
        Whether every run of Experiment 4 that predicted counts, converged or not. Otherwise that is so only
        where the runs had the paper's budget (`at_published_budget`).
    """

    def __init__(self, files: ResultFiles, registry: pd.DataFrame, *, every: bool = False) -> None:
        self._all1 = read_long("experiment1", files.experiment1)
        self._all2 = read_long("experiment2", files.experiment2)
        self._experiment1, self._experiment2 = paper_scheme(self._all1), paper_scheme(self._all2)
        self._experiment4 = read_long("experiment4", files.experiment4)
        self._spread = read_long("spread", files.spread)
        self._probabilities = read_probabilities(files.probabilities, every=every)
        if every and not self._experiment4.empty:
            predicted = self._experiment4["error_rate"].notna()
            self._experiment4["status"] = self._experiment4["status"].mask(predicted, OK)
        self._registry = registry
        self._data_sets: dict[tuple[int, int], DataSetSpread] = {}
        self._at_published_budget = set() if every else at_published_budget(self._experiment4)
        if self._at_published_budget:
            self._as_published = Estimator(files, registry, every=True)

    def __call__(self, cell: pd.Series) -> Estimate:
        """Our side of one row of the registry."""
        if cell["table"] == 1:
            return self._table1(cell)
        if cell["table"] in (2, 3):
            return self._table2or3(cell)
        problem, method = int(cell["problem"]), METHODS[cell["method"]]
        if cell["metric"] == "mae_post":
            found, methods = self.mae_post(problem, method), [method]
        else:
            found, methods = self._mae_med(cell), self.consensus(problem)
        if problem not in self._at_published_budget:
            return found
        frame = self._experiment4
        runs = frame[(frame["problem"] == problem) & frame["method"].isin(methods)]
        doubtful = runs[runs["error_rate"].notna() & (runs["status"] != OK)]
        if doubtful.empty:
            return found
        loose = self._as_published(cell)
        if loose.status != OK:
            return found
        note = f"{EVERY_RUN} (of {len(runs)} runs {_in_words(doubtful)}); {loose.note}"
        return replace(loose, note=note, every=True)

    def _table1(self, cell: pd.Series) -> Estimate:
        frame = self._experiment1
        rows = frame[
            (frame["dimension"] == cell["dimension"]) & (frame["samples"] == cell["samples"])
        ]
        if rows.empty:
            there = self._all1[self._all1["dimension"] == cell["dimension"]]
            return _no_rows(there[there["samples"] == cell["samples"]], "dimension and sample size")
        errors = absolute_percentage_error(rows).groupby(rows["instance"]).mean()
        n, value = len(errors), float(errors.mean())
        se = float(errors.std() / math.sqrt(n)) if n > 1 else math.nan
        share = _correlation(frame[frame["dimension"] == cell["dimension"]])
        ours = Term((se / value) ** 2, n - 1, "problems") if n > 1 else None
        theirs = Term(
            (cell["published_bracket"] / cell["published"]) ** 2,
            PUBLISHED_PROBLEMS - 1,
            "their problems",
        )
        return Estimate(
            OK,
            value,
            se,
            len(rows),
            () if ours is None else ours.split(share),
            theirs.split(share),
            result_file="; ".join(sorted(set(rows["file"]))),
            note=f"{n} problems; the published bracket is a standard error"
            if n > 1
            else "one problem only: no standard error, not compared",
        )

    def _table2or3(self, cell: pd.Series) -> Estimate:
        """The mean over data sets, beside one data set.

        The logarithm of a mean of n values X is expected var(X)/(2 n) (relative) below that of their
        expectation, to second order: little for our mean of several data sets, more for the
        published one. The half difference of the two variances is what log(ours/published) is
        expected to be. (The mean of our logarithms would not do in its place: where we have one run
        a data set and they have 20, run noise moves it further than data sets do.)
        """
        table, problem = int(cell["table"]), int(cell["problem"])
        frame = self._experiment2[self._experiment2["problem"] == problem]
        rows = frame[frame["samples"] == cell["samples"]]
        if rows.empty:
            there = self._all2[self._all2["problem"] == problem]
            return _no_rows(there[there["samples"] == cell["samples"]], "problem and sample size")
        if (table, problem) not in self._data_sets:
            error = frame["mae"] if table == 2 else absolute_percentage_error(frame)
            self._data_sets[table, problem] = data_set_spread(frame, error)
        spread = self._data_sets[table, problem]
        means = spread.means[spread.means["samples"] == cell["samples"]]
        sets, value = len(means), float(means["mean"].mean())
        result_file = "; ".join(sorted(set(rows["file"])))
        runs = PUBLISHED_RUNS[problem]
        described = f"{sets} data sets, {len(rows)} runs"
        if spread.between.df < 1:
            note = f"{described}; one data set gives no variance between data sets, not compared"
            return Estimate(OK, value, math.nan, len(rows), result_file=result_file, note=note)
        ours = (
            spread.between.over(sets),
            spread.run.over(sets / float((1 / means["runs"]).mean())),
        )
        theirs = (spread.between, spread.run.over(runs))
        variance_ours, variance_theirs = (
            sum(term.variance for term in side) for side in (ours, theirs)
        )
        return Estimate(
            OK,
            value,
            value * math.sqrt(variance_ours),
            len(rows),
            ours,
            theirs,
            (variance_theirs - variance_ours) / 2,
            result_file,
            f"{described}; published: one unknown data set, bracket is value/sqrt({runs}) and no standard error, "
            f"so theirs is our run noise over {runs} runs and our variance between data sets undivided; "
            f"z allows for the mean of a logarithm being below the logarithm of the mean",
        )

    def mae_post(self, problem: int, method: str) -> Estimate:
        """Mean absolute error against the Bayes posterior, averaged over the six hyperparameter sets.

        Parameters
        ----------
        problem : int
            1 to 9.
        method : str
            Our name of the method.
        """
        frame = self._experiment4
        rows = frame[(frame["problem"] == problem) & (frame["method"] == method)]
        refused = self._unusable(rows, method)
        if refused is not None:
            return refused
        complete = _complete(rows)
        good = rows[(rows["status"] == OK) & rows["dataset"].isin(complete)]
        if good["mae_post"].isna().all():
            return Estimate("not run", note="real data have no Bayes posterior")
        cells = good.groupby(["dataset", "set"])["mae_post"]
        means = cells.mean().groupby("dataset").mean()
        result_file = "; ".join(sorted(set(rows["file"])))
        left_out = _left_out(rows)
        if len(means) > 1:
            return _over_data_sets(means.to_numpy(), len(good), result_file, left_out)
        value = float(means.iloc[0])
        first = cells.agg(["var", "size"])
        noise = (first["var"].fillna(0.0) / first["size"]).sum() / len(first) ** 2
        se = math.sqrt(float(noise))
        between = self._between_data_sets(problem)
        note = "published and ours rest on one data set each"
        if between is None:
            note += "; the variance between data sets was not measured at this scale, not compared"
            return Estimate(OK, value, se, len(good), result_file=result_file, note=note + left_out)
        ours = (between, Term((se / value) ** 2, max(int(first["size"].min()) - 1, 1)))
        note += f": variance between {int(between.df) + 1} data sets (by Laplace), undivided, on both sides"
        return Estimate(
            OK, value, se, len(good), ours, (between,), 0.0, result_file, note + left_out
        )

    def _between_data_sets(self, problem: int) -> Term | None:
        rows = self._spread[self._spread["problem"] == problem]
        means = rows.groupby("dataset")["mae_post"].mean().dropna()
        if len(means) < 2:
            return None
        return Term(
            float(np.log(means.to_numpy()).var(ddof=1)), len(means) - 1, "data sets", shared=True
        )

    @staticmethod
    def _unusable(rows: pd.DataFrame, method: str) -> Estimate | None:
        """Why the rows of one method cannot be averaged over the six sets, or None."""
        if rows.empty:
            return Estimate(
                "not run", note=f"method {method} was not run on this problem at this scale"
            )
        result_file = "; ".join(sorted(set(rows["file"])))
        if (rows["status"] == NO_DATA).any():
            return Estimate(NO_DATA, result_file=result_file, note="see the result file")
        have = rows["set"].nunique()
        if have < len(PUBLISHED_SETS):
            wanted = len(PUBLISHED_SETS)
            note = (
                f"the published cell averages {wanted} hyperparameter sets; this scale ran {have}"
            )
            return Estimate("not comparable", result_file=result_file, note=note)
        used = {
            (int(number), float(alpha), float(beta))
            for number, alpha, beta in zip(rows["set"], rows["alpha"], rows["beta"], strict=True)
        }
        published = {(number, *pair) for number, pair in PUBLISHED_SETS.items()}
        other = [] if used == published else ["hyperparameters"]
        if method == "orthant":  # files of other methods, and older ones, do not say
            other += [
                f"{name} {', '.join(sorted(strange))}"
                for name, wanted in (("count", "soft"), ("scheme", "bootstrap"))
                if (strange := set(rows[name].dropna()) - {wanted})
            ]
        if other:
            note = f"other settings than published: {'; '.join(other)}"
            return Estimate("not comparable", result_file=result_file, note=note)
        if not _complete(rows):
            first = rows[rows["dataset"] == 0]
            bad = first[first["status"] != OK]
            lost = sorted(set(first["set"]) - set(first["set"][first["status"] == OK]))
            said = "; ".join(f"{n} of {len(first)} runs {s}" for s, n in _statuses(bad).items())
            note = f"{said}; no run that counts with set {', '.join(map(str, lost))}"
            return Estimate(next(iter(_statuses(bad))), result_file=result_file, note=note)
        return None

    def _mae_med(self, cell: pd.Series) -> Estimate:
        problem, method = int(cell["problem"]), METHODS[cell["method"]]
        consensus = self.consensus(problem)
        frame = self._experiment4[self._experiment4["problem"] == problem]
        without, complete = {}, []
        for name in consensus:
            rows = frame[frame["method"] == name]
            refused = self._unusable(rows, name)
            if refused is not None and refused.status == NO_DATA:
                return refused
            if refused is not None:
                without[name] = refused.status
            complete.append(_complete(rows))
        shared = sorted(set.intersection(*map(set, complete)))
        if without or not shared:
            named = ", ".join(f"{name} ({status})" for name, status in without.items())
            lack = f"without {named} there is none" if named else "no data set has them all"
            status = "not run" if "not run" in without.values() else "not comparable"
            return Estimate(status, note=f"the median is over {', '.join(consensus)}; {lack}")
        inside = frame[frame["method"].isin(consensus)]
        result_file = "; ".join(sorted(set(inside["file"])))
        left_out = _left_out(inside)
        values, variances = [], []
        for dataset in shared:
            errors = [
                median_errors(self._probabilities, problem, consensus, method, k, dataset=dataset)
                for k in PUBLISHED_SETS
            ]
            values.append(float(np.mean([e.mean() for e in errors])))
            single = [e.var(ddof=1) / len(e) if len(e) > 1 else math.nan for e in errors]
            variances.append(sum(single) / len(PUBLISHED_SETS) ** 2)
        own = inside[(inside["method"] == method) & (inside["status"] == OK)]
        runs = int(own["dataset"].isin(shared).sum())
        if len(shared) > 1:
            return _over_data_sets(np.array(values), runs, result_file, left_out)
        return Estimate(
            OK,
            values[0],
            math.sqrt(variances[0]),
            runs,
            result_file=result_file,
            note="the variance between data sets of this measure was not measured, not compared"
            + left_out,
        )

    def consensus(self, problem: int) -> list[str]:
        """Methods whose median a published MAE-MED of a problem is taken from: four, or three on USPS."""
        registry = self._registry
        inside = registry[(registry["problem"] == problem) & (registry["metric"] == "mae_med")]
        return [METHODS[name] for name in inside["method"]]


def _complete(rows: pd.DataFrame) -> list[int]:
    """Data sets on which every hyperparameter set has a run that counts."""
    good = rows[rows["status"] == OK].groupby("dataset")["set"].nunique()
    return [int(dataset) for dataset, sets in good.items() if sets == rows["set"].nunique()]


def _statuses(bad: pd.DataFrame) -> dict[str, int]:
    """Numbers of runs by status, the most frequent first."""
    return {str(status): int(n) for status, n in bad["status"].value_counts().items()}


def _in_words(bad: pd.DataFrame) -> str:
    """Numbers of runs by status, as words of a note."""
    return ", ".join(f"{n} {status}" for status, n in _statuses(bad).items())


def _left_out(rows: pd.DataFrame) -> str:
    """The end of a note: how many runs do not count, and why."""
    said = _in_words(rows[rows["status"] != OK])
    return f"; of {len(rows)} runs are left out: {said}" if said else ""


def _over_data_sets(
    values: np.ndarray, runs: int, result_file: str, left_out: str = ""
) -> Estimate:
    """The mean over our data sets beside one data set of theirs, drawn and run alike.

    The logarithm of a mean is expected above that of a single value, as in Tables 2 and 3.
    """
    n, value = len(values), float(values.mean())
    between = Term(float(np.log(values).var(ddof=1)), n - 1, "data sets", shared=True)
    return Estimate(
        OK,
        value,
        value * math.sqrt(between.variance / n),
        runs,
        (between.over(n),),
        (between,),
        between.variance * (1 - 1 / n) / 2,
        result_file,
        f"mean over {n} data sets, {float(values.min()):.4g} to {float(values.max()):.4g}, of which "
        f"the published value rests on one; the variance between them stands undivided on its side{left_out}",
    )


def median_errors(
    probabilities: Mapping[tuple[int, str, int], Predictions],
    problem: int,
    consensus: Sequence[str],
    method: str,
    number: int,
    *,
    dataset: int = 0,
) -> np.ndarray:
    """Mean |P - median| over test patterns, for one hyperparameter set.

    Parameters
    ----------
    probabilities : mapping
        `read_probabilities`.
    problem, number : int
        Problem and hyperparameter set.
    consensus : sequence of str
        Methods that the median is over; their runs are paired in order.
    method : str
        One of them, or another one: all of its runs are then set beside each median.
    dataset : int
        Data set.

    Returns
    -------
    ndarray, shape (medians,)

    Raises
    ------
    ValueError
        A method has no probabilities.
    """
    runs = {
        name: probabilities[problem, name, number].on(dataset)
        if (problem, name, number) in probabilities
        else np.empty((0, 0))
        for name in {*consensus, method}
    }
    if lost := sorted(name for name, found in runs.items() if not len(found)):
        raise ValueError(
            f"no finite probabilities of {lost} on problem {problem}, set {number}, "
            f"data set {dataset}, although their rows say ok"
        )
    n = min(len(runs[name]) for name in consensus)
    medians = np.median(np.stack([runs[name][:n] for name in consensus]), axis=0)
    if method in consensus:
        return np.abs(runs[method][:n] - medians).mean(axis=1)
    return np.abs(runs[method][None] - medians[:, None]).mean(axis=(1, 2))

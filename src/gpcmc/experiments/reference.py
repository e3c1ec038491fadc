"""The certified reference: log evidence and test probabilities of every cell of Experiment 4.

A cell is one problem's first data set at one hyperparameter set. Its reference values come from our best
estimator (`gpcmc.inference.Twisted`), with points doubled until the standard errors are below `REFERENCE`.
They are certified by a method that shares no estimator with it: the adapted orthant sampler; or, where that
would take more than `Plan.max_draws`, importance sampling with Laplace's Gaussian if its weights' k-hat is below
one half. (Not minimax tilting: it is the best estimator's defence.) The certifier's standard errors must be below
`CERTIFIER`; the
log evidences must differ by less than three joint standard errors, and the largest of the t differences
between test probabilities must lie below the bound that t independent normal differences exceed as rarely
as one exceeds three (Sidak's; dependence between the probabilities makes it rarer still). A right cell is thus
refused with a probability of at most 0.0054. Whatever is refused reads "uncertified", with the reason.

The reference is computed once, kept with the repository, and read at every scale. Each cell carries a digest of
its data and hyperparameters, so that results on other data cannot be compared with it by mistake.

The truths of Experiments 1 to 3 are closed forms; the same sampler certifies them (`certify_truths`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import norm, t

from gpcmc.experiments.classification import NO_DATA, TRIVIAL, Problem, digest_bytes
from gpcmc.experiments.orthant_accuracy import EXPERIMENT2, one_factor_vector, two_class_data
from gpcmc.experiments.pieces import Piece, Pieces, Row, join
from gpcmc.experiments.seeds import generator, seed
from gpcmc.gp import Prior, linear, prior, rbf
from gpcmc.inference import Inference, Orthant, Twisted, infer
from gpcmc.inference.importance import ImportanceSampling
from gpcmc.inference.interface import OK
from gpcmc.orthant.sampler import orthant_probability
from gpcmc.orthant.truths import linear_kernel_truth, one_factor_log_probability

Array = np.ndarray


class Limits(NamedTuple):
    """Largest standard errors: of the log evidence, nats, and of a test probability."""

    evidence: float
    probability: float


REFERENCE = Limits(1e-3, 2e-4)
CERTIFIER = Limits(5e-3, 1e-3)

#: Largest difference between log evidences, in joint standard errors.
MAX_Z = 3.0
#: How rarely a right value is refused: as rarely as a normal variable exceeds `MAX_Z` in size.
LEVEL = float(2 * norm.sf(MAX_Z))
#: The same for the check of every run, which must not cry wolf.
CHECK_LEVEL = 1e-5
#: Randomisations of the best estimator in that check.
RUNS = 16
#: Below this k-hat the weights of a certifier have a variance, and its errors a meaning.
MAX_CERTIFIER_K_HAT = 0.5
#: Added to joint standard errors: where K is beta I nothing is left but rounding.
ROUNDING = 1e-9

CERTIFIED, UNCERTIFIED = "certified", "uncertified"
AGREES, DIFFERS, NO_REFERENCE = "agrees", "differs", "no reference"

EVIDENCE, PROBABILITIES, TRUTHS = "evidence.csv", "probabilities.npz", "truths.csv"


@dataclass(frozen=True, slots=True)
class Plan:
    """How the reference is computed; the same at every scale.

    Attributes
    ----------
    points, max_points : int
        Sobol' points of a randomisation, at first and at most.
    randomizations : int
    pilot : int
        Samples of the run that tells how many samples the certifier needs.
    max_samples : int
        Samples of the certifier at most.
    population : int
        Samples of one of its populations at most.
    max_draws : float
        Samples times patterns of the adapted sampler above which importance sampling is tried first.
    """

    points: int = 1024
    max_points: int = 2**17
    randomizations: int = 32
    pilot: int = 20_000
    max_samples: int = 40_000_000
    population: int = 50_000
    max_draws: float = 1e9


@dataclass(frozen=True, slots=True)
class Cell:
    """The reference values of one problem at one hyperparameter set.

    Attributes
    ----------
    log_evidence, log_evidence_se : float
        Log p(y | X), nats, and its standard error.
    probability, probability_se : (t,) array
        P(y* = +1 | y) at the test patterns, and the standard errors.
    certified, trivial : bool
        Whether the certifier agrees; whether K is beta I to rounding.
    """

    log_evidence: float
    log_evidence_se: float
    probability: Array
    probability_se: Array
    certified: bool
    trivial: bool


@dataclass(frozen=True, slots=True)
class Reference:
    """All cells.

    Attributes
    ----------
    evidence : DataFrame
        One row a cell.
    arrays : dict of str to array
        Test probabilities ``problem<p>_set<k>`` and standard errors ``problem<p>_set<k>_se``.
    """

    evidence: pd.DataFrame
    arrays: Mapping[str, Array]

    def cell(self, problem: int, number_of_set: int, expected: str) -> Cell | None:
        """Return a cell, or None where there is no reference for it.

        Parameters
        ----------
        problem, number_of_set : int
        expected : str
            `digest` of the data that results were computed on.

        Raises
        ------
        ValueError
            If the reference was computed on other data or hyperparameters.
        """
        rows = self.evidence
        rows = rows[(rows["problem"] == problem) & (rows["set"] == number_of_set)]
        if rows.empty:
            return None
        row = rows.iloc[0]
        if row["digest"] != expected:
            raise ValueError(
                f"the reference of problem {problem}, set {number_of_set} was computed on other data "
                f"or hyperparameters: its digest is {row['digest']}, that of these is {expected}; "
                "run `snakemake reference` to compute it anew"
            )
        name = _name(problem, number_of_set)
        return Cell(
            log_evidence=float(row["log_evidence"]),
            log_evidence_se=float(row["log_evidence_se"]),
            probability=self.arrays[name],
            probability_se=self.arrays[f"{name}_se"],
            certified=row["verdict"] == CERTIFIED,
            trivial=bool(row["trivial"]),
        )


def digest(problem: Problem, alpha: float, beta: float) -> str:
    """Return 16 hexadecimal digits that name a problem's patterns, its labels and its kernel.

    The features are rounded to 8 decimals, which moves a log evidence by less than 1e-5 nats.
    """
    found = hashlib.sha256()
    for array in (problem.X_train, problem.y_train, problem.X_test):
        found.update(digest_bytes(array))
    found.update(np.array([alpha, beta], dtype="<f8").tobytes())
    return found.hexdigest()[:16]


def load_reference(folder: str | Path) -> Reference:
    """Read the reference that `save_reference` wrote.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a cell has no probabilities, or there are two rows for one cell.
    """
    evidence = pd.read_csv(Path(folder) / EVIDENCE)
    with np.load(Path(folder) / PROBABILITIES) as stored:
        arrays = {name: stored[name] for name in stored.files}
    _check_complete(evidence, arrays)
    return Reference(evidence, arrays)


def save_reference(folder: str | Path, evidence: pd.DataFrame, arrays: Mapping[str, Array]) -> None:
    """Write evidence.csv and probabilities.npz, in the order of problems and sets.

    Parameters
    ----------
    folder : path
        Made if absent.
    evidence : DataFrame
        Rows of `reference_problem`.
    arrays : dict of str to array
        As `Reference.arrays`.

    Raises
    ------
    ValueError
        As `load_reference`.
    """
    evidence = evidence.sort_values(["problem", "set"])
    _check_complete(evidence, arrays)
    Path(folder).mkdir(parents=True, exist_ok=True)
    evidence.to_csv(Path(folder) / EVIDENCE, index=False)
    named: Any = {name: arrays[name] for name in sorted(arrays)}
    np.savez(Path(folder) / PROBABILITIES, **named)


def reference_problem(
    number: int,
    problem: Problem,
    *,
    root: int,
    hyperparameters: Sequence[Mapping[str, float]],
    pieces: Pieces,
    plan: Plan | None = None,
) -> Piece:
    """Compute and certify the reference of one problem at every hyperparameter set.

    Parameters
    ----------
    number : int
        Problem, 1 to 9.
    problem : Problem
    root : int
        Root of the random streams.
    hyperparameters : sequence of {"set": int, "alpha": float, "beta": float}
    pieces : Pieces
        Finished hyperparameter sets.
    plan : Plan, optional

    Returns
    -------
    rows, timing : list of dict
        One row a cell; no timing.
    arrays : dict
        As `Reference.arrays`.
    """
    plan = plan or Plan()

    rows: list[Row] = []
    arrays: dict[str, Array] = {}
    for hyper in hyperparameters:
        number_of_set, alpha, beta = int(hyper["set"]), float(hyper["alpha"]), float(hyper["beta"])
        gp = prior(rbf(alpha, beta), problem.X_train, problem.X_test)
        path = seed(root, "reference", f"problem{number}", f"set{number_of_set}")
        best, of_best = _stored(
            pieces, f"set{number_of_set}", partial(_best, gp, problem.y_train, path, plan)
        )
        other, of_other = _stored(
            pieces, f"certifier{number_of_set}", partial(_certify, problem, gp, path, plan)
        )
        off_diagonal = gp.K - np.diag(np.diag(gp.K))
        row = {
            "problem": number,
            "set": number_of_set,
            "alpha": alpha,
            "beta": beta,
            "digest": digest(problem, alpha, beta),
            "trivial": bool(np.max(np.abs(off_diagonal)) <= TRIVIAL * beta),
            "train_patterns": len(problem.y_train),
            "test_patterns": len(problem.X_test),
            "log_evidence": best.log_evidence,
            "log_evidence_se": best.log_evidence_se,
            "max_probability_se": float(np.max(best.probability_se)),
            "method": of_best,
            "seed": path,
            "samples": best.work["samples"],
            "randomizations": plan.randomizations,
            "k_hat": best.diagnostics["k_hat"],
            "effective_fraction": best.diagnostics["effective_fraction"],
            "certifier": of_other,
            "certifier_log_evidence": other.log_evidence,
            "certifier_se": other.log_evidence_se,
            "certifier_max_probability_se": float(np.max(other.probability_se)),
            "certifier_samples": other.work["samples"],
            "certifier_k_hat": other.diagnostics.get("k_hat", np.nan),
        }
        rows.append(row | verdict(best, other))
        name = _name(number, number_of_set)
        arrays |= {name: best.probability, f"{name}_se": best.probability_se}
    return rows, [], arrays


def verdict(best: Inference, certifier: Inference) -> Row:
    """Say whether the certifier bears out the reference.

    Returns
    -------
    dict
        ``z``: difference of the log evidences in joint standard errors; ``max_z``: largest of the test
        probabilities', and ``max_z_threshold``; ``verdict``; ``reason``, ``AGREES`` for a certified cell.
    """
    z, max_z = _differences(best, certifier)
    threshold = largest_of(len(best.probability), LEVEL)
    problems = [
        f"reference: {best.status}" if best.status != OK else "",
        "reference: standard error" if not _within(best, REFERENCE) else "",
        "certifier: standard error" if not _within(certifier, CERTIFIER) else "",
        "log evidence differs" if not abs(z) < MAX_Z else "",
        "probability differs" if not max_z < threshold else "",
    ]
    reason = "; ".join(filter(None, problems))
    return {
        "z": z,
        "max_z": max_z,
        "max_z_threshold": threshold,
        "verdict": UNCERTIFIED if reason else CERTIFIED,
        "reason": reason or AGREES,
    }


def largest_of(count: int, level: float, degrees_of_freedom: float = np.inf) -> float:
    """Return what the largest of `count` independent |t| exceeds with probability `level` (Sidak).

    Where the variables are dependent the probability is smaller (Sidak 1967, for normal ones).

    References
    ----------
    Sidak (1967), Journal of the American Statistical Association 62, 626.
    """
    each = -np.expm1(np.log1p(-level) / max(count, 1))
    return float(t.isf(each / 2, degrees_of_freedom))


def recertify(
    reference: Reference,
    problems: Mapping[int, Problem | None],
    *,
    root: int,
    hyperparameters: Sequence[Mapping[str, float]],
    cells: int,
    points: int,
    samples: int,
) -> list[Row]:
    """Estimate a few cells anew, by both methods with other seeds, and compare them with the reference.

    Every comparison of log evidences, and every largest difference of probabilities, raises a false
    alarm with a probability of 1e-5.

    Parameters
    ----------
    reference : Reference
    problems : mapping
        First data sets by number; None where the data could not be had.
    root : int
        Root of the random streams; also draws the cells.
    hyperparameters : sequence of {"set": int, "alpha": float, "beta": float}
    cells : int
        How many; fewer where fewer are configured.
    points : int
        Sobol' points of the best estimator, in `RUNS` randomisations.
    samples : int
        Samples of the adapted orthant sampler, one population.

    Returns
    -------
    list of dict
        One row a cell and method: ``problem``, ``set``, ``method``, both log evidences with their errors,
        ``z``, ``max_z`` and their thresholds, ``verdict``: ``AGREES``, ``DIFFERS``, ``NO_DATA`` or
        ``NO_REFERENCE``.

    Raises
    ------
    ValueError
        If the reference of a drawn cell was computed on other data.
    """
    path = seed(root, "reference_check")
    every = [(number, dict(hyper)) for number in sorted(problems) for hyper in hyperparameters]
    drawn = generator(path).choice(len(every), size=min(cells, len(every)), replace=False)
    rows: list[Row] = []
    for number, hyper in [every[k] for k in sorted(drawn)]:
        key = {"problem": number, "set": int(hyper["set"])}
        problem = problems[number]
        if problem is None:
            rows.append(key | {"verdict": NO_DATA})
            continue
        known = reference.cell(number, key["set"], digest(problem, hyper["alpha"], hyper["beta"]))
        if known is None:
            rows.append(key | {"verdict": NO_REFERENCE})
            continue
        gp = prior(rbf(hyper["alpha"], hyper["beta"]), problem.X_train, problem.X_test)
        methods: dict[str, Callable[..., Inference]] = {
            "best": partial(
                infer, Twisted(points=points, randomizations=RUNS), gp, problem.y_train
            ),
            "adapted orthant": partial(_adapted, problem, gp, samples, samples),
        }
        for method, run in methods.items():
            of_run = seed(path, f"problem{number}", f"set{key['set']}", method)
            found = run(rng=generator(of_run))
            z, max_z = _differences(found, known)
            # a standard error from few randomisations is itself uncertain: Student's t
            limit = largest_of(1, CHECK_LEVEL, RUNS - 1)
            threshold = largest_of(len(found.probability), CHECK_LEVEL, RUNS - 1)
            rows.append(
                key
                | {
                    "method": method,
                    "seed": of_run,
                    "reference": known.log_evidence,
                    "reference_se": known.log_evidence_se,
                    "certified": known.certified,
                    "log_evidence": found.log_evidence,
                    "log_evidence_se": found.log_evidence_se,
                    "z": z,
                    "z_threshold": limit,
                    "max_z": max_z,
                    "max_z_threshold": threshold,
                    "verdict": AGREES if abs(z) < limit and max_z < threshold else DIFFERS,
                }
            )
    return rows


def certify_truths(
    *,
    root: int,
    pieces: Pieces,
    dimensions: Sequence[int] = (50, 200, 500),
    instances: int = 20,
    problems: Sequence[int] = (1, 2, 3, 4),
    data_sets: int = 5,
    plan: Plan | None = None,
) -> list[Row]:
    """Compare the closed forms of Experiments 1 to 3 with the adapted orthant sampler.

    Experiment 3 is Problem 3 of Experiment 2. The bounds are Sidak's for all rows together, and within a
    row for all its test probabilities: all right truths pass with a probability of at least 0.9946.

    Parameters
    ----------
    root : int
        Root of the random streams.
    pieces : Pieces
        Finished rows.
    dimensions : sequence of int
        Of Experiment 1.
    instances : int
        Problems of each.
    problems : sequence of int
        Of Experiment 2.
    data_sets : int
        Of each.
    plan : Plan, optional

    Returns
    -------
    list of dict
        One row a truth.
    """
    plan = plan or Plan()

    def orthant(dimension: int, instance: int) -> Piece:
        d, path = one_factor_vector(root, dimension, instance)
        cov = np.outer(d, d)
        np.fill_diagonal(cov, 1.0)

        def run(samples: int, *, rng: np.random.Generator) -> Inference:
            found = orthant_probability(cov, samples=samples, scheme="adapted", rng=rng)
            work = {"samples": found.samples, "populations": found.populations}
            none = np.empty(0)
            return Inference(found.log_probability, found.standard_error, none, none, work)

        truth = _exact(one_factor_log_probability(d), np.empty(0))
        return (
            [
                _truth_row(
                    1,
                    dimension,
                    instance,
                    path,
                    truth,
                    _sized(run, run(plan.pilot, rng=generator(seed(path, "pilot"))), path, plan),
                )
            ],
            [],
            {},
        )

    def classification(number: int, dataset: int) -> Piece:
        path = seed(root, "experiment2", f"problem{number}", f"dataset{dataset}")
        x, y, x_star = two_class_data(EXPERIMENT2[number], generator(path))
        exact = linear_kernel_truth(x, y, x_star)
        truth = _exact(exact.log_evidence, exact.probability)
        gp = prior(linear(), x[:, None], x_star[:, None])

        def run(samples: int, *, rng: np.random.Generator) -> Inference:
            return infer(Orthant(samples=samples, scheme="adapted"), gp, y, rng=rng)

        return (
            [
                _truth_row(
                    2,
                    number,
                    dataset,
                    path,
                    truth,
                    _sized(run, run(plan.pilot, rng=generator(seed(path, "pilot"))), path, plan),
                )
            ],
            [],
            {},
        )

    jobs = [
        (f"experiment1_{dimension}_{k}", partial(orthant, dimension, k))
        for dimension in dimensions
        for k in range(instances)
    ] + [
        (f"experiment2_{number}_{k}", partial(classification, number, k))
        for number in problems
        for k in range(data_sets)
    ]
    rows, _, _ = join(pieces.get(name, compute) for name, compute in jobs)
    everyone = -float(np.expm1(np.log1p(-LEVEL) / max(len(rows), 1)))
    limit = largest_of(1, everyone)
    for row in rows:
        threshold = largest_of(row["test_patterns"], everyone)
        small = row["certifier_se"] < CERTIFIER.evidence
        small &= row["certifier_max_probability_se"] < CERTIFIER.probability
        agrees = abs(row["z"]) < limit and row["max_z"] < threshold
        row["z_threshold"], row["max_z_threshold"] = limit, threshold
        row["verdict"] = CERTIFIED if small and agrees else UNCERTIFIED
    return rows


def _truth_row(
    experiment: int, problem: int, dataset: int, path: str, truth: Inference, found: Inference
) -> Row:
    z, max_z = _differences(truth, found)
    return {
        "experiment": experiment,
        "problem": problem,
        "dataset": dataset,
        "seed": path,
        "truth": truth.log_evidence,
        "test_patterns": len(truth.probability),
        "certifier": "adapted orthant",
        "certifier_log_evidence": found.log_evidence,
        "certifier_se": found.log_evidence_se,
        "certifier_max_probability_se": float(np.max(found.probability_se, initial=0.0)),
        "certifier_samples": found.work["samples"],
        "z": z,
        "max_z": max_z,
    }


def _exact(log_evidence: float, probability: Array) -> Inference:
    return Inference(log_evidence, 0.0, probability, np.zeros_like(probability), {})


def _stored(
    pieces: Pieces, name: str, compute: Callable[[], tuple[str, Inference]]
) -> tuple[Inference, str]:
    """Keep a method's name and its estimates as a finished piece, and give them back."""

    def piece() -> Piece:
        method, found = compute()
        row = {
            "method": method,
            "log_evidence": found.log_evidence,
            "log_evidence_se": found.log_evidence_se,
            "work": found.work,
            "diagnostics": found.diagnostics,
            "status": found.status,
        }
        arrays = {"probability": found.probability, "probability_se": found.probability_se}
        return [row], [], arrays

    (row,), _, arrays = pieces.get(name, piece)
    method = row.pop("method")
    return Inference(**(row | arrays)), method


def _name(problem: int, number_of_set: int) -> str:
    return f"problem{problem}_set{number_of_set}"


def _check_complete(evidence: pd.DataFrame, arrays: Mapping[str, Array]) -> None:
    names = [_name(*key) for key in zip(evidence["problem"], evidence["set"], strict=True)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"reference: one row a cell is needed; there are several of {twice}")
    for name, t_patterns in zip(names, evidence["test_patterns"], strict=True):
        for array in (name, f"{name}_se"):
            shape = np.shape(arrays[array]) if array in arrays else None
            if shape != (t_patterns,):
                raise ValueError(
                    f"reference: {array} must have shape ({t_patterns},); got {shape}; "
                    "run `snakemake reference` to compute it anew"
                )


def _best(gp: Prior, y: Array, path: str, plan: Plan) -> tuple[str, Inference]:
    """Double the points until the standard errors are small enough, with new seeds each time."""
    points = plan.points
    while True:
        rng = generator(seed(path, f"points{points}"))
        method = Twisted(points=points, randomizations=plan.randomizations)
        found = infer(method, gp, y, rng=rng)
        if _within(found, REFERENCE) or 2 * points > plan.max_points:
            return "best", found
        points *= 2


def _adapted(
    problem: Problem, gp: Prior, population: int, samples: int, *, rng: np.random.Generator
) -> Inference:
    """The adapted orthant sampler, with the patterns in the order of their first principal component.

    Resampling makes samples forget their early coordinates. It does no harm where later coordinates
    depend on neighbours only, so neighbours come one after the other: against a random order the variance is
    smaller by up to 100 times at N = 1000.
    """
    X = problem.X_train - problem.X_train.mean(axis=0)
    order = np.argsort(X @ np.linalg.svd(X, full_matrices=False)[2][0], kind="stable")
    ordered = Prior(gp.K[np.ix_(order, order)], gp.K_star[order], gp.k_star_star)
    runs = -(-samples // population)
    method = Orthant(samples=samples, scheme="adapted", order="given", runs=runs)
    return infer(method, ordered, problem.y_train[order], rng=rng)


def _laplace(problem: Problem, gp: Prior, samples: int, *, rng: np.random.Generator) -> Inference:
    """Importance sampling with Laplace's Gaussian."""
    method = ImportanceSampling(samples=samples, proposal="laplace", points="random")
    return infer(method, gp, problem.y_train, rng=rng)


def _certify(problem: Problem, gp: Prior, path: str, plan: Plan) -> tuple[str, Inference]:
    """The adapted orthant sampler; where it is dear, importance sampling if that can be trusted."""
    adapted = partial(_adapted, problem, gp, plan.population)
    pilot = adapted(plan.pilot, rng=generator(seed(path, "pilot")))
    if _needed(pilot, plan.pilot) * len(gp.K) > plan.max_draws:
        run, of_run = partial(_laplace, problem, gp), seed(path, "laplace")
        first = run(plan.pilot, rng=generator(seed(of_run, "pilot")))
        if _trusted(first):
            found = _sized(run, first, of_run, plan)
            if _trusted(found) and _within(found, CERTIFIER):
                return "Laplace importance sampling", found
    return "adapted orthant", _sized(adapted, pilot, path, plan)


def _trusted(found: Inference) -> bool:
    """Whether the weights have a variance, as far as k-hat can tell."""
    return found.diagnostics.get("k_hat", -np.inf) < MAX_CERTIFIER_K_HAT


def _sized(run: Callable[..., Inference], pilot: Inference, path: str, plan: Plan) -> Inference:
    """Run with as many samples as a pilot says, and with more if that was not enough.

    The pilot is not used again, so that a small error met by chance does not pass for a small one.
    """
    found, samples = pilot, plan.pilot
    for attempt in range(4):
        least = 2 * samples if attempt else plan.pilot
        samples = min(max(least, _needed(found, samples)), plan.max_samples)
        found = run(samples, rng=generator(seed(path, f"certifier{attempt}")))
        if _within(found, CERTIFIER) or samples == plan.max_samples:
            break
    return found


def _needed(found: Inference, samples: int) -> int:
    """Samples for the certifier's errors: a tenth more than the variance asks for."""
    return int(1.1 * _excess(found, CERTIFIER) ** 2 * samples)


def _excess(found: Inference, limits: Limits) -> float:
    """Largest standard error, as a multiple of its limit."""
    assert found.log_evidence_se is not None
    largest = np.max(found.probability_se, initial=0.0)
    shares = [found.log_evidence_se / limits.evidence, largest / limits.probability]
    return float(np.max(shares))  # NaN, if there is one


def _within(found: Inference, limits: Limits) -> bool:
    return _excess(found, limits) < 1.0


def _differences(one: Inference | Cell, other: Inference | Cell) -> tuple[float, float]:
    """Difference of the log evidences, and largest of the probabilities, in joint standard errors."""

    def joint(a: ArrayLike, b: ArrayLike) -> Array:
        return np.sqrt(np.square(a) + np.square(b) + ROUNDING**2)

    assert one.log_evidence is not None and other.log_evidence is not None
    assert one.log_evidence_se is not None and other.log_evidence_se is not None
    z = (one.log_evidence - other.log_evidence) / joint(one.log_evidence_se, other.log_evidence_se)
    differences = np.abs(one.probability - other.probability)
    largest = differences / joint(one.probability_se, other.probability_se)
    return float(z), float(np.max(largest, initial=0.0))

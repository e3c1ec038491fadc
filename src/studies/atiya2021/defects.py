"""What each defect of the toolbox that the paper used for its Markov chains does to the answers.

On three problems with known answers the toolbox's inference (`studies.atiya2021.toolbox`) runs with all of
its defects, with each one repaired alone, with each one alone, and with none. Of one replicate all
these share a seed: the defects that only change how chains are read are compared on the same chains,
and those that change the chains on the same random numbers.

Problem 3 of Experiment 2 has the truth of Eq. (66). Two problems with the RBF kernel, one smooth and
one rough, have a long run of the adapted orthant sampler as their reference, its standard error in
every row.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gpcmc._validation import check_option
from gpcmc.gp.covariance import Prior, linear, prior, rbf
from gpcmc.inference.twisted import Twisted
from gpcmc.orthant.truths import linear_kernel_truth
from studies.atiya2021.problems import EXPERIMENT2, synthetic_problem, two_class_data
from studies.atiya2021.runs import infer
from studies.atiya2021.toolbox import APPLICABLE, DYNAMIC, GpmlMonteCarlo, Sampler
from studies.atiya2021.toolbox_posterior import GpmlPosterior
from studies.common.pieces import Piece, Pieces, Row, join
from studies.common.seeds import generator, seed
from studies.common.timing import import_late


@dataclass(frozen=True, slots=True)
class Case:
    """A problem and its kernel.

    Attributes
    ----------
    problem : str
        ``linear``: Problem 3 of Experiment 2, its first data set. ``rbf``: 100 training and 50 test
        patterns of the law of Problem 2 of Experiment 4.
    alpha, beta : float
        Of the RBF kernel; NaN for the linear one, which has none.
    """

    problem: str
    alpha: float = np.nan
    beta: float = np.nan


#: Problems by name.
CASES = {
    "linear": Case("linear"),
    "smooth": Case("rbf", 3.0, 2.0),
    "rough": Case("rbf", 0.5, 3.0),
}
_N_TRAIN, _N_TEST = 100, 50  # of the problems with the RBF kernel


def switches(sampler: Sampler) -> dict[str, tuple[str, ...]]:
    """Return the sets of defects that are compared, by label: only those that can touch `sampler`."""
    every = APPLICABLE[sampler]
    return (
        {"all": every}
        | {f"without {one}": tuple(d for d in every if d != one) for one in every}
        | {f"only {one}": (one,) for one in every}
        | {"none": ()}
    )


def defects(
    case: str,
    sampler: Sampler,
    *,
    root: int,
    grid: Sequence[Mapping[str, int]],
    skip: int,
    burn_in: int,
    reference_points: int,
    pieces: Pieces,
) -> Piece:
    """Run the toolbox's inference on one problem with every set of defects that is compared.

    Parameters
    ----------
    case : {"linear", "smooth", "rough"}
    sampler : {"ess", "hmc"}
    root : int
        Root of the random streams.
    skip, burn_in : int
        Of `GpmlMonteCarlo`; the toolbox has 40 and 10.
    grid : sequence of {"samples": int, "replicates": int}
        Numbers of samples, and of independent runs at each.
    reference_points : int
        Of the twisted orthant sampler, where the truth has no closed form.
    pieces : Pieces
        The finished reference and replicates.

    Returns
    -------
    rows : list of dict
        One row a set of defects, number of samples and replicate. `log_evidence_error` and
        `ape_percent` are against `reference`, `probability_mae` against the arrays below.
    timing : list of dict
        One row for every distinct set of chains, `chains` naming the defects that shaped them.
    arrays : dict
        `reference_<what>`: `log_evidence`, `log_evidence_se`, numbers; `probability`, `probability_se`, (t,).

    Raises
    ------
    ValueError
        If `case` or `sampler` is not one of these.
    """
    check_option("case", case, tuple(CASES))
    check_option("sampler", sampler, tuple(APPLICABLE))
    gp, y, answer = _problem(case, root)
    if answer is None:
        find = partial(_long_run, gp, y, seed(root, "defects", case, "reference"), reference_points)
        answer = pieces.get(f"{case}-reference", find)[2]
    import_late()
    runs = partial(_runs, case, sampler, root, skip, burn_in, gp, y, answer)
    rows, timing, _ = join(
        pieces.get(
            f"{case}-{sampler}-samples{cell['samples']}-replicate{replicate}",
            partial(runs, cell["samples"], replicate),
        )
        for cell in grid
        for replicate in range(cell["replicates"])
    )
    return rows, timing, {f"reference_{name}": array for name, array in answer.items()}


def _runs(
    case: str,
    sampler: Sampler,
    root: int,
    skip: int,
    burn_in: int,
    gp: Prior,
    y: np.ndarray,
    answer: Mapping[str, np.ndarray],
    samples: int,
    replicate: int,
) -> Piece:
    """One replicate of every set of defects; sets that differ in reading alone share their chains."""
    path = seed(root, "defects", case, sampler, f"samples{samples}", f"replicate{replicate}")
    setting = {"alpha": CASES[case].alpha, "beta": CASES[case].beta}
    key: Row = {"problem": CASES[case].problem, **setting, "sampler": sampler}
    cell = {"samples": samples, "skip": skip, "burn_in": burn_in, "replicate": replicate}
    found: dict[tuple[str, ...], GpmlPosterior] = {}
    rows: list[Row] = []
    timing: list[Row] = []
    for label, switched in switches(sampler).items():
        chains = tuple(d for d in switched if d in DYNAMIC)
        if chains not in found:
            method = GpmlMonteCarlo(
                sampler=sampler, samples=samples, skip=skip, burn_in=burn_in, defects=chains
            )
            start = time.process_time()
            found[chains] = method.fit(Prior(gp.K), y, rng=generator(path))
            seconds = time.process_time() - start
            timing.append(key | cell | {"chains": "+".join(chains), "cpu_seconds": seconds})
        posterior = replace(found[chains], defects=switched)
        row = key | {"switched": label} | cell | {"seed": path}
        rows.append(row | _columns(posterior, gp, answer))
    return rows, timing, {}


def _columns(posterior: GpmlPosterior, gp: Prior, answer: Mapping[str, np.ndarray]) -> Row:
    """What a row says of an answer beside the truth."""
    truth = float(answer["log_evidence"])
    estimate = posterior.predict(gp.K_star, gp.k_star_star).probability
    error = posterior.log_evidence - truth
    return (
        {
            "reference": truth,
            "reference_se": float(answer["log_evidence_se"]),
            "log_evidence": posterior.log_evidence,
            "log_evidence_se": posterior.log_evidence_se,
            "log_evidence_error": error,
            "ape_percent": 100.0 * abs(error / truth),
            "probability_mae": float(np.mean(np.abs(estimate - answer["probability"]))),
            "status": posterior.status,
        }
        | {f"work_{name}": count for name, count in posterior.work.items()}
        | posterior.diagnostics
    )


def _problem(case: str, root: int) -> tuple[Prior, np.ndarray, dict[str, np.ndarray] | None]:
    """Prior, labels, and the truth where it has a closed form."""
    if CASES[case].problem == "linear":
        path = seed(root, "experiment2", "problem3", "dataset0")
        x, y, x_star = two_class_data(EXPERIMENT2[3], generator(path))
        truth = linear_kernel_truth(x, y, x_star)
        gp = prior(linear(), x[:, None], x_star[:, None])
        exact = np.zeros(len(x_star))
        return gp, y, _answer(truth.log_evidence, 0.0, truth.probability, exact)
    patterns = synthetic_problem(2, generator(seed(root, "defects", "rbf")))
    kernel = rbf(CASES[case].alpha, CASES[case].beta)
    gp = prior(kernel, patterns.X_train[:_N_TRAIN], patterns.X_test[:_N_TEST])
    return gp, patterns.y_train[:_N_TRAIN], None


def _long_run(gp: Prior, y: np.ndarray, path: str, points: int) -> Piece:
    """The twisted orthant sampler's answer."""
    found = infer(Twisted(points=points), gp, y, rng=generator(path))
    assert found.log_evidence is not None and found.log_evidence_se is not None
    answer = _answer(
        found.log_evidence, found.log_evidence_se, found.probability, found.probability_se
    )
    return [], [], answer


def _answer(
    log_evidence: float, log_evidence_se: float, probability: np.ndarray, probability_se: np.ndarray
) -> dict[str, np.ndarray]:
    return {
        "log_evidence": np.array(log_evidence),
        "log_evidence_se": np.array(log_evidence_se),
        "probability": probability,
        "probability_se": probability_se,
    }

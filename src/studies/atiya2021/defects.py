"""What each defect of the toolbox that the paper used for its Markov chains does to the answers.

On three problems with known answers the toolbox's inference (`studies.atiya2021.toolbox.gpml`) runs with all of
its defects, with each one repaired alone, with each one alone, and with none. Of one replicate all
these share a seed: the defects that only change how chains are read are compared on the same chains,
and those that change the chains on the same random numbers.

Problem 3 of Experiment 2 has the truth of Eq. (66). Two problems with the RBF kernel, one smooth and
one rough, have a long run of the adapted orthant sampler as their reference, its standard error in
every row.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from gpcmc._validation import check_option
from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import Prior, prior
from gpcmc.rectangle.classification import Twisted
from studies.atiya2021.experiment2 import data_set
from studies.atiya2021.problems import synthetic_problem
from studies.atiya2021.runs import infer
from studies.atiya2021.toolbox.gpml import APPLICABLE, DYNAMIC, GpmlMonteCarlo, Sampler
from studies.atiya2021.toolbox.posterior import GpmlPosterior
from studies.common.rows import Line
from studies.common.seeds import generator
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
#: What an answer consists of.
ANSWER = ("log_evidence", "log_evidence_se", "probability", "probability_se")


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
    cell: dict[str, int],
    data: str,
    seed: str,
    reference: Mapping[str, np.ndarray],
) -> tuple[list[Line], list[Line]]:
    """Run the toolbox's inference on one problem with every set of defects that is compared.

    Parameters
    ----------
    case : {"linear", "rough", "smooth"}
    sampler : {"ess", "hmc"}
    cell : dict
        ``samples``, ``skip`` and ``burn_in`` of `GpmlMonteCarlo` (the toolbox skips 40 and burns 10), and
        ``replicate``.
    data, seed : str
        Seeds of the patterns and of all chains.
    reference : mapping
        What `long_run` returns of the cases that have no closed form, stacked, with their names in ``<name>/rows``.

    Returns
    -------
    lines : list of dict
        A line a set of defects. `log_evidence_error` and `ape_percent` are against `reference`.
    timing : list of dict
        A line for every distinct set of chains, `chains` naming the defects that shaped them.

    Raises
    ------
    ValueError
        If `case` or `sampler` is not one of these.
    """
    check_option("case", case, tuple(CASES))
    check_option("sampler", sampler, tuple(APPLICABLE))
    gp, y, answer = _problem(case, data)
    if answer is None:
        answer = {name: reference[name][_of(reference, name, case)] for name in ANSWER}
    import_late()
    setting = {"alpha": CASES[case].alpha, "beta": CASES[case].beta}
    key: Line = {"case": case, "problem": CASES[case].problem, **setting, "sampler": sampler}
    lengths = {name: cell[name] for name in ("samples", "skip", "burn_in")}
    found: dict[tuple[str, ...], GpmlPosterior] = {}
    lines: list[Line] = []
    timing: list[Line] = []
    for label, switched in switches(sampler).items():
        # sets that differ in reading alone share their chains
        chains = tuple(d for d in switched if d in DYNAMIC)
        if chains not in found:
            method = GpmlMonteCarlo(sampler=sampler, defects=chains, **lengths)
            start = time.process_time()
            found[chains] = method.fit(Prior(gp.K), y, rng=generator(seed))
            seconds = time.process_time() - start
            timing.append(key | cell | {"chains": "+".join(chains), "cpu_seconds": seconds})
        posterior = replace(found[chains], defects=switched)
        line = key | {"switched": label} | cell | {"seed": seed}
        lines.append(line | _columns(posterior, gp, answer))
    return lines, timing


def _of(reference: Mapping[str, np.ndarray], name: str, case: str) -> int:
    return reference[f"{name}/rows"].tolist().index(case)


def _columns(posterior: GpmlPosterior, gp: Prior, answer: Mapping[str, np.ndarray]) -> Line:
    """What a line says of an answer beside the truth."""
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


def _problem(case: str, data: str) -> tuple[Prior, np.ndarray, dict[str, np.ndarray] | None]:
    """Prior, labels, and the truth where it has a closed form."""
    if CASES[case].problem == "linear":
        gp, y, truth = data_set(3, data)
        exact = np.zeros(len(truth.probability))
        return gp, y, _answer(truth.log_evidence, 0.0, truth.probability, exact)
    patterns = synthetic_problem(2, generator(data))
    kernel = rbf(CASES[case].alpha, CASES[case].beta)
    gp = prior(kernel, patterns.X_train[:_N_TRAIN], patterns.X_test[:_N_TEST])
    return gp, patterns.y_train[:_N_TRAIN], None


def long_run(case: str, data: str, points: int, seed: str) -> dict[str, np.ndarray]:
    """Return the answer of the twisted orthant sampler.

    Parameters
    ----------
    case : {"rough", "smooth"}
    data, seed : str
        Seeds of the patterns and of the run.
    points : int
        Of the sampler.

    Returns
    -------
    dict
        ``log_evidence``, ``log_evidence_se``, (); ``probability``, ``probability_se``, (t,).
    """
    gp, y, _ = _problem(case, data)
    found = infer(Twisted(points=points), gp, y, rng=generator(seed))
    assert found.log_evidence is not None and found.log_evidence_se is not None
    return _answer(
        found.log_evidence, found.log_evidence_se, found.probability, found.probability_se
    )


def _answer(*numbers: float | np.ndarray) -> dict[str, np.ndarray]:
    return {name: np.asarray(one) for name, one in zip(ANSWER, numbers, strict=True)}

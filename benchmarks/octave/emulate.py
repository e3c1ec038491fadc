"""The emulation of the GPML toolbox's Markov chains beside the toolbox itself, run in Octave; README.md says how.

``python benchmarks/octave/emulate.py problem FOLDER`` writes the problem: the first data set of Problem 1 with the
sixth of the paper's settings. ``... compare FOLDER`` makes as many runs with the emulation as FOLDER/toolbox.csv has
of the toolbox, and writes docs/toolbox.csv, a line a sampler and number of samples: mean and standard deviation of
log L and of the mean log likelihood of the kept states, with p-values of equal means (Welch) and equal laws
(Kolmogorov and Smirnov); and the mean absolute difference between probabilities averaged over runs, beside what it
would be by chance.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp, ttest_ind

from gpcmc.gp import prior, rbf
from studies.atiya2021.names import data_set_seed
from studies.atiya2021.problems import synthetic_problem
from studies.atiya2021.toolbox.gpml import GpmlMonteCarlo
from studies.common.seeds import generator

ALPHA, BETA = 0.5, 3.0
TRUTH = "data/reference/atiya2021/certified/evidence.csv"
ROOT = Path(__file__).resolve().parents[2]
#: Columns of toolbox.csv before the probabilities.
COLUMNS = ["sampler", "samples", "skip", "run", "log_evidence", "level", "acceptance", "seconds"]


def problem():
    return synthetic_problem(1, generator(data_set_seed(1, 0, 20210308)))


def write(folder):
    given = problem()
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "train": np.column_stack([given.X_train, given.y_train]),
        "test": given.X_test,
        "hyperparameters": np.array([[ALPHA], [BETA]]),
    }
    for name, values in tables.items():
        np.savetxt(folder / f"{name}.csv", values, fmt="%.17g", delimiter=",")


def emulated(sampler, samples, skip, runs):
    given = problem()
    prepared = prior(rbf(ALPHA, BETA), given.X_train, given.X_test)
    method, lines, probabilities = GpmlMonteCarlo(sampler, samples=samples, skip=skip), [], []
    for run in range(runs):
        rng = np.random.default_rng([5, samples, run])
        found = method.fit(prepared, given.y_train, rng=rng)
        level = float(found.log_likelihood.mean())
        lines.append({"log_evidence": found.log_evidence, "level": level})
        probabilities.append(found.prediction.probability)
    return pd.DataFrame(lines), np.array(probabilities)


def compare(folder):
    table = pd.read_csv(folder / "toolbox.csv", header=None)
    table = table.rename(columns=dict(enumerate(COLUMNS)))
    truths = pd.read_csv(ROOT / TRUTH)
    truth = truths.query("problem == 1 and alpha == @ALPHA and beta == @BETA")[
        "log_evidence"
    ].item()
    lines = []
    for (sampler, samples, skip), theirs in table.groupby(COLUMNS[:3], sort=False):
        ours, probabilities = emulated(sampler, samples, skip, len(theirs))
        other = theirs.iloc[:, len(COLUMNS) :].to_numpy()
        line = dict(zip(COLUMNS, (sampler, samples, skip), strict=False))
        line |= {"runs": len(theirs), "truth": truth}
        for name in ("log_evidence", "level"):
            one, two = theirs[name], ours[name]
            line |= {f"{name}_toolbox": one.mean(), f"{name}_emulation": two.mean()}
            line |= {f"{name}_sd_toolbox": one.std(), f"{name}_sd_emulation": two.std()}
            line[f"{name}_p_mean"] = ttest_ind(one, two, equal_var=False).pvalue
            line[f"{name}_p_law"] = ks_2samp(one, two).pvalue
        apart = other.mean(axis=0) - probabilities.mean(axis=0)
        chance = np.sqrt(
            (other.var(axis=0, ddof=1) + probabilities.var(axis=0, ddof=1)) / len(theirs)
        )
        line |= {
            "probability_apart": np.abs(apart).mean(),
            "by_chance": np.sqrt(2 / np.pi) * chance.mean(),
        }
        lines.append(line)
    found = pd.DataFrame(lines)
    found.to_csv(ROOT / "docs" / "toolbox.csv", index=False, float_format="%.4g")
    print(found.T.to_string())


if __name__ == "__main__":
    {"problem": write, "compare": compare}[sys.argv[1]](Path(sys.argv[2]))

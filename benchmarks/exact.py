"""Where the optimum moves when twisted EP's evidence is climbed in place of expectation propagation's.

The twenty binary data sets of the experiment `advice`, at most 200 training and 200 test patterns each; one length
scale, ``1.0 * RBF(1.0)``. Each is fitted by ``Twisted(points=256)`` with either optimizer. What is compared at the two
optima comes from other seeds than the search, the same at both. `evidence_*` is the log evidence by twisted EP with
eight times the points, `se_*` its standard error, and `ep_*` is expectation propagation's. `gain` is `evidence_exact`
less `evidence_ep`, in nats; `gain_se` takes them for independent, which makes it too large. `decisions` counts the test
patterns whose class is another one, `apart` is the mean distance of their probabilities, and the log losses are means
over them. Seconds are CPU seconds of whole fits.

``python benchmarks/exact.py`` takes all of them, or those that are named. Registered ones have to be fetched first, by
``snakemake``; what is not there is left out. Writes docs/exact.csv, where rows of other data sets stay.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.gp import prior
from gpcmc.inference import ExpectationPropagation, Twisted
from studies.atiya2021.advice.data import real_data
from studies.atiya2021.advice.names import DATA_SETS
from studies.common.data import DataUnavailableError

ROOT = Path(__file__).resolve().parents[1]
SEED = 20210308  # of config/default.yaml, so that the splits are those of the experiment
SEARCH = Twisted(points=256)
REFERENCE = Twisted(points=2048)
COLUMNS = ["data", "N", "variance_ep", "variance_exact", "length_ep", "length_exact"]
COLUMNS += [
    "evidence_ep",
    "se_ep",
    "evidence_exact",
    "se_exact",
    "gain",
    "gain_se",
    "ep_ep",
    "ep_exact",
]
COLUMNS += ["decisions", "test", "apart", "log_loss_ep", "log_loss_exact"]
COLUMNS += ["seconds_ep", "seconds_exact", "evaluations"]


def fitted(problem, optimizer):
    """The classifier, and its CPU seconds."""
    model = GaussianProcessClassifier(
        1.0 * RBF(1.0), SEARCH, random_state=SEED, optimizer=optimizer
    )
    start = time.process_time()
    model.fit(problem.X_train, problem.y_train)
    return model, time.process_time() - start


def measure(name):
    """One row."""
    problem = real_data(name, SEED)
    y = problem.y_train
    row = {"data": name, "N": len(y), "test": len(problem.y_test)}
    probability = {}
    for key, optimizer in (("ep", "lbfgs"), ("exact", "exact")):
        model, row[f"seconds_{key}"] = fitted(problem, optimizer)
        given = prior(model.kernel_, problem.X_train, problem.X_test)
        found = REFERENCE.fit(given, y, rng=np.random.default_rng([SEED, 1]))
        row[f"evidence_{key}"], row[f"se_{key}"] = found.log_evidence, found.log_evidence_se
        row[f"ep_{key}"] = ExpectationPropagation().fit(given, y).log_evidence
        row[f"variance_{key}"], row[f"length_{key}"] = np.exp(model.kernel_.theta)
        p = probability[key] = found.prediction.probability
        row[f"log_loss_{key}"] = -np.mean(np.log(np.where(problem.y_test > 0, p, 1.0 - p)))
        row["evaluations"] = model._fits[0].found.evaluations
    row["gain"] = row["evidence_exact"] - row["evidence_ep"]
    row["gain_se"] = np.hypot(row["se_ep"], row["se_exact"])
    row["decisions"] = np.sum((probability["ep"] >= 0.5) != (probability["exact"] >= 0.5))
    row["apart"] = np.mean(np.abs(probability["ep"] - probability["exact"]))
    return row


def main(names):
    file = ROOT / "docs/exact.csv"
    for name in names:
        try:
            row = measure(name)
        except DataUnavailableError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        table = pd.DataFrame([row], columns=COLUMNS)
        print(table.to_dict("records")[0], flush=True)
        if file.exists():
            old = pd.read_csv(file)
            table = pd.concat([old[old["data"] != name], table])
        order = {name: k for k, name in enumerate(DATA_SETS)}
        table = table.sort_values("data", key=lambda some: some.map(order))
        table.to_csv(file, index=False, float_format="%.6g")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a variance at its bound is no matter here
    with threadpool_limits(1):
        main(sys.argv[1:] or list(DATA_SETS))

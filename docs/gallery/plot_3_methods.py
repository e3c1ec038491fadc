"""
All methods on one problem
==========================

Nine methods at one setting of the hyperparameters, beside ``twisted-ep`` with many points, which serves as the truth.
(The tenth, ``pseudo-marginal``, integrates over the hyperparameters: see the next example.)
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from gpcmc.gp import prior, rbf
from gpcmc.inference import (
    ControlVariables,
    EllipticalSlice,
    ExpectationPropagation,
    HamiltonianMonteCarlo,
    ImportanceSampling,
    Laplace,
    MinimaxTilting,
    Orthant,
    Twisted,
    infer,
)

X, labels = make_moons(80, noise=0.3, random_state=1)
y = np.where(labels[:60] == 1, 1.0, -1.0)
problem = prior(rbf(alpha=1.0, beta=4.0), X[:60], X[60:])
truth = infer(Twisted(), problem, y, rng=np.random.default_rng(0))
print(f"truth {truth.log_evidence:.4f} ({truth.log_evidence_se:.4f})")

# %%
# The counts are small; a method whose run was too short for its numbers says so in ``status``.

methods = {
    "laplace": Laplace(),
    "ep": ExpectationPropagation(),
    "importance": ImportanceSampling(samples=2000),
    "orthant": Orthant(samples=20000),
    "orthant, adapted": Orthant(samples=2000, scheme="adapted"),
    "minimax-tilting": MinimaxTilting(points=128),
    "twisted-ep": Twisted(points=128),
    "ess": EllipticalSlice(samples=16000, temperatures=300),
    "hmc": HamiltonianMonteCarlo(samples=3200, temperatures=25),
    "control-variables": ControlVariables(
        iterations=400, burn_in=50, line_searches=20, max_evaluations=500, adaptation_rounds=4
    ),
}
results, seconds = {}, {}
for name, method in methods.items():
    start = time.process_time()
    results[name] = infer(method, problem, y, rng=np.random.default_rng(0))
    seconds[name] = time.process_time() - start

# %%

print(f"{'method':18}{'log evidence':>14}{'error':>9}{'worst probability':>19}  status")
for name, result in results.items():
    evidence = "none" if result.log_evidence is None else f"{result.log_evidence:.3f}"
    error = "" if result.log_evidence is None else f"{result.log_evidence - truth.log_evidence:.3f}"
    worst = (
        f"{np.abs(result.probability - truth.probability).max():.4f}"
        if len(result.probability)
        else "none"
    )
    print(f"{name:18}{evidence:>14}{error:>9}{worst:>19}  {result.status}")
assert abs(results["ep"].log_evidence - truth.log_evidence) < 0.3
assert results["twisted-ep"].status == "ok"

# %%
# Error against CPU seconds on the machine that built this page. At these sizes the deterministic methods are hard to
# beat for probabilities; what they cannot give is an error bar.

figure, axes = plt.subplots()
for name, result in results.items():
    if len(result.probability):
        error = np.sqrt(np.mean((result.probability - truth.probability) ** 2))
        axes.loglog(max(seconds[name], 1e-3), error, "o")
        # names stand right of their points, but where another one is near
        left, below = name == "minimax-tilting", name in ("orthant", "hmc")
        axes.annotate(
            name,
            (max(seconds[name], 1e-3), error),
            xytext=(-4 if left else 4, -4 if below else 4),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top" if below else "bottom",
        )
axes.set(xlabel="CPU seconds", ylabel="error of the class probabilities (root mean square)")
axes.margins(x=0.25, y=0.1)

"""
Orthant probabilities against a closed form
===========================================

Where all correlations are one half, the probability that :math:`n` standard normal variables are all positive is
:math:`1 / (n + 1)`. Here are three ways of estimating it, each with its standard error.
"""

import matplotlib.pyplot as plt
import numpy as np

from gpcmc import orthant_probability

n = 40
cov = np.full((n, n), 0.5) + 0.5 * np.eye(n)
truth = -np.log(n + 1)
sizes = 2 ** np.arange(7, 14)
ways = {
    "bootstrap, hard count": {"count": "hard"},
    "bootstrap, soft count": {"count": "soft"},
    "adapted": {"scheme": "adapted"},
}

# %%
# The bootstrap scheme is the paper's: draw each coordinate, keep the samples inside, and refill the others from them.
# The adapted scheme draws inside and weights.

rng = np.random.default_rng(1)
figure, axes = plt.subplots()
for shift, (name, options) in enumerate(ways.items()):
    estimates = [orthant_probability(cov, samples=int(size), rng=rng, **options) for size in sizes]
    axes.errorbar(
        sizes * 1.06**shift,
        [estimate.log_probability for estimate in estimates],
        yerr=[2 * estimate.standard_error for estimate in estimates],
        fmt="o",
        capsize=3,
        label=name,
    )
    last = estimates[-1]
    print(f"{name:22} {last.log_probability:.4f} ({last.standard_error:.4f})")
    assert abs(last.log_probability - truth) < 5 * last.standard_error
axes.axhline(truth, color="black", linewidth=1, label="$-\\log(n + 1)$")
axes.set(xscale="log", xlabel="samples", ylabel="log probability (two standard errors)")
axes.legend()
print(f"{'closed form':22} {truth:.4f}")

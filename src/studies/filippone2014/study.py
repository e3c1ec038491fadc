"""Filippone and Girolami (2014): pseudo-marginal chains against those that hold latent values.

Settings are in the block ``filippone2014`` of ``config/default.yaml``.
"""

from __future__ import annotations

from studies.common.plan import From, Study
from studies.filippone2014.problems import REGISTERED

SIMULATED = "n{n}_d{d}_set{set}"

STUDY = Study(
    experiments={
        # Figure 1: variances of the log length scale, given what each kind of chain holds.
        "conditionals": {},
        # Figure 2: the spread of the estimates of the evidence over length scales.
        "spread": {},
        # The tails of the weights behind Figure 2.
        "weights": {},
        # The proposals that the chains of a problem share: on simulated data for Tables I to III, real for section 4.4.
        "pilot": {"data": "data/{data}"},
        # Tables I to III: chains on simulated data.
        "chains": {
            "data": f"data/{SIMULATED}",
            "pilot": From("pilot", lambda row: [f"{{kernel}}/{SIMULATED}".format_map(row)]),
        },
        # Section 4.4: chains on real data.
        "real": {
            "data": "data/{name}",
            "pilot": From("pilot", lambda row: ["{kernel}/{name}".format_map(row)]),
        },
        # The abstract's claim: predictions by fitted and integrated hyperparameters and by support vector machines.
        "prediction": {"data": "data/{data}"},
        # The same predictions integrated by quadrature.
        "quadrature": {"data": "data/{data}"},
    },
    measures={
        "chains": ["chains"],
        "evidence": ["conditionals", "spread", "weights"],
        "prediction": ["prediction", "quadrature"],
        "real": ["real"],
    },
    targets={
        "pseudo_marginal_chains": ["chains", "real"],
        "integrated_predictions": ["prediction", "quadrature"],
    },
    whole="pseudo_marginal",
    raw=REGISTERED,
)

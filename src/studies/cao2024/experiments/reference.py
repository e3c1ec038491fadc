"""Probabilities of orthants by twisted expectation propagation: N = 900, dense, and N = 6,400, of low rank."""

from __future__ import annotations

from studies.cao2024.config import Configuration
from studies.cao2024.problems import NUGGETS, RANGE
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: Covariances as they are, and of low rank with a diagonal.
DENSE, LOW_RANK = "dense", "low-rank"


def plan(config: Configuration) -> list[Line]:
    """Return a row a probability."""
    given = config.cao2024.reference
    rows: list[Line] = [
        {
            "row": f"{DENSE}/{nugget}",
            "nugget": nugget,
            "size": given.size,
            "seconds": 15.0 * (given.size / 900) ** 2,
            "tolerance": given.tolerance,
        }
        for nugget in NUGGETS
    ]
    names = ("residual", "points", "randomizations")
    large = {name: getattr(given, name) for name in names}
    rows.append(
        {
            "row": f"{LOW_RANK}/paper",
            "seconds": 45.0 * given.large / 6400,
            "nugget": "paper",
            "size": given.large,
            **large,
        }
    )
    return planned(row | {"seed": seed(config.seed, "cao2024", row["row"])} for row in rows)


def run(row: Row, inputs: Inputs) -> Result:
    """Estimate the logarithm (``value``) with its standard error (``se``).

    The probability that v ~ N(0, K + nugget I) is positive everywhere is the evidence of labels +1 under the covariance
    K / nugget. There the evidence by expectation propagation alone stands under ``ep``.
    """
    import numpy as np

    from studies.cao2024.problems import grid, problem
    from studies.common.seeds import generator

    rng, nugget = generator(row["seed"]), NUGGETS[row["nugget"]]
    if "tolerance" in row:
        from gpcmc.rectangle import rectangle_probability

        given = problem("orthant", row["size"], nugget, rng)
        found = rectangle_probability(
            -np.inf,
            given.upper,
            cov=given.cov,
            method="twisted-ep",
            tolerance=row["tolerance"],
            rng=rng,
        )
        value, se, status = found.log_probability, found.standard_error, found.status
        rest: Line = {}
    else:
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern

        from gpcmc.covariance.prior import prior as prior_of
        from gpcmc.rectangle.classification import Twisted

        kernel = ConstantKernel(1.0 / nugget) * Matern(np.sqrt(3.0) * RANGE, nu=1.5)
        prior = prior_of(
            kernel, grid(row["size"]), covariance="low-rank", tolerance=row["residual"]
        )
        method = Twisted(points=row["points"], randomizations=row["randomizations"])
        posterior = method.fit(prior, np.ones(row["size"]), rng=rng)
        assert posterior.guide is not None
        names = ("rank", "correction", "correction_rest", "k_hat")
        rest = {name: posterior.diagnostics[name] for name in names}
        value, se, status = posterior.log_evidence, posterior.log_evidence_se, posterior.status
        rest["groups"] = row["randomizations"]
        rest["ep"] = posterior.guide.log_evidence
    line = {name: row[name] for name in ("nugget", "size", "seed")}
    return Result([{**line, "value": value, "se": se, "status": status, **rest}])

"""Deterministic methods: expectation propagation and Laplace's, over kernels and forms of the covariance."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from before import adapter
from gpcmc.gp import Prior, linear, prior, rbf
from gpcmc.inference import METHODS

DETERMINISTIC = {
    "ep": ("ep", {}),
    "laplace": ("laplace", {}),
    "logistic": ("laplace", {"likelihood": "logistic"}),
}
#: What a search would call a theta, at which the gradients are taken.
GRADIENT_KERNELS = {
    "smooth": rbf(3.0, 2.0),
    "rough": rbf(0.5, 3.0),
    "ard": ConstantKernel(3.0) * RBF([0.7, 2.0, 9.0]),
    "matern": 2.0 * Matern(1.3, nu=1.5),
}


def patterns(n, d=2, seed=0, tests=5, noise=0.5):
    """Inputs (n, d), labels -1/+1 that follow the first input, and test inputs."""
    rng = np.random.default_rng([n, d, seed])
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y, rng.standard_normal((tests, d))


def three_classes(n, seed=0):
    """Inputs (n, 2), labels 0 to 2, all of which occur, and test inputs."""
    X, _, X_star = patterns(n, seed=seed)
    return X, (np.arctan2(X[:, 1], X[:, 0]) // (2 * np.pi / 3 + 1e-9) + 2).astype(int) % 3, X_star


#: Name: kernel, patterns, inputs.
KERNELS = {
    "smooth, n = 40": (rbf(3.0, 2.0), 40, 2),
    "rough, n = 40": (rbf(0.5, 3.0), 40, 2),
    "large variance, n = 40": (rbf(1.0, 1e4), 40, 2),
    "tiny variance, n = 40": (rbf(1.0, 1e-6), 40, 2),
    "lone, n = 30": (rbf(1e-3, 4.0), 30, 2),
    "near-singular, n = 60": (rbf(40.0, 50.0), 60, 1),
    "linear, n = 50": (linear(), 50, 3),
    "ard, n = 80": (GRADIENT_KERNELS["ard"], 80, 3),
    "matern and noise, n = 80": (2.0 * Matern(1.3, nu=1.5) + WhiteKernel(0.3), 80, 2),
    "one pattern": (rbf(1.0, 2.0), 1, 1),
    "two patterns": (rbf(1.0, 2.0), 2, 1),
    "smooth, n = 250": (rbf(3.0, 2.0), 250, 2),
    "rough, n = 250": (rbf(0.5, 3.0), 250, 2),
}


def dense(rows, name):
    """Evidence, probabilities, latent means and variances of the three deterministic methods."""
    kernel, n, d = KERNELS[name]
    X, y, X_star = patterns(n, d)
    given = prior(kernel, X, X_star)
    for method, (named, options) in DETERMINISTIC.items():
        found = adapter.fit(METHODS[named](**options), given, y)
        rows.exact(f"{method}: evidence", found.log_evidence)
        rows.exact(f"{method}: its error", found.log_evidence_se)
        rows.status(f"{method}: status", found.status)
        rows.exact(f"{method}: probability", found.prediction.probability)
        rows.exact(
            f"{method}: probability later",
            found.predict(given.K_star, given.k_star_star).probability,
        )
        mean, variance = adapter.latent_at_test(found, given)
        rows.exact(f"{method}: latent mean at test inputs", mean)
        rows.exact(f"{method}: latent variance at test inputs", variance)
        rows.exact(f"{method}: latent mean", adapter.latent_mean(found)[:8])
        rows.exact(f"{method}: latent variance", adapter.latent_variance(found, given)[:8])


def one_label(rows):
    """All labels alike, repeated inputs, and MacKay's approximation."""
    X, _, X_star = patterns(25)
    X = np.vstack([X, X[:5]])
    given = prior(rbf(1.0, 5.0), X, X_star)
    for method, (named, options) in DETERMINISTIC.items():
        found = adapter.fit(METHODS[named](**options), given, np.ones(30))
        rows.exact(f"{method}: evidence", found.log_evidence)
        rows.exact(f"{method}: probability", found.prediction.probability)
    mackay = METHODS["laplace"](likelihood="logistic", predictive="mackay")
    rows.exact(
        "mackay: probability", adapter.fit(mackay, given, np.ones(30)).prediction.probability
    )


def contradicting(rows):
    """The same inputs with both labels, under a covariance without a kernel."""
    X, y, _ = patterns(20, 1)
    K = rbf(1.0, 9.0)(np.vstack([X, X]))
    for method, (named, options) in DETERMINISTIC.items():
        found = adapter.fit(METHODS[named](**options), Prior(K), np.concatenate([y, -y]))
        rows.exact(f"{method}: evidence", found.log_evidence)
        rows.exact(f"{method}: latent mean", adapter.latent_mean(found)[::5] + 1.0)


def factors(n, r, seed=0):
    """Factors F (n, r) and D (n,) of a covariance of low rank, and labels."""
    rng = np.random.default_rng([n, r, seed])
    F = rng.standard_normal((n, r)) * np.geomspace(1.0, 0.1, r)
    y = np.where(F[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return F, rng.uniform(0.01, 0.5, n), y


def given_factors(rows):
    """Covariances of low rank that are given."""
    for n, r in ((1, 1), (30, 3), (400, 12)):
        F, D, y = factors(n, r)
        given = adapter.given_low_rank(F, D)
        for method, (named, options) in DETERMINISTIC.items():
            found = adapter.fit(METHODS[named](**options), given, y)
            near = method == "ep"
            name = f"{method}, n = {n}, rank {r}"
            rows.exact(
                f"{name}: evidence",
                found.log_evidence,
                "low-rank evidence" if near else "deterministic",
            )
            for quantity, value in (
                ("latent mean", adapter.latent_mean(found)),
                ("latent variance", adapter.latent_variance(found, given)),
            ):
                rows.exact(
                    f"{name}: {quantity}", value[:8], "low-rank sites" if near else "deterministic"
                )
            rows.status(f"{name}: status", found.status)


#: Name: kernel, patterns, inputs, options of the prior.
LOW_RANK = {
    "smooth, n = 300": (rbf(3.0, 2.0), 300, 2, {}),
    "rough, n = 300": (rbf(0.5, 3.0), 300, 2, {"tolerance": 1e-3}),
    "ard, n = 300": (GRADIENT_KERNELS["ard"], 300, 3, {"tolerance": 1e-2}),
    "inducing inputs, n = 300": (
        rbf(1.0, 3.0),
        300,
        1,
        {"inducing": np.linspace(-3, 3, 15)[:, None]},
    ),
    "matern and noise, n = 200": (
        2.0 * Matern(1.3, nu=1.5) + WhiteKernel(0.3),
        200,
        1,
        {"tolerance": 3e-2},
    ),
}


def low_rank(rows, name):
    """Covariances of low rank from kernels: by pivots, and at inducing inputs that are given."""
    kernel, n, d, options = LOW_RANK[name]
    X, y, X_star = patterns(n, d)
    given = adapter.low_rank_prior(kernel, X, X_star, **options)
    for method, (named, of_method) in DETERMINISTIC.items():
        found = adapter.fit(METHODS[named](**of_method), given, y)
        near = method == "ep"
        rows.exact(
            f"{method}: evidence",
            found.log_evidence,
            "low-rank evidence" if near else "deterministic",
        )
        if "inducing" not in options:
            rows.exact(
                f"{method}: left out",
                [adapter.left_out(found), found.log_evidence],
                "low-rank evidence",
            )
        for quantity, value in (
            ("probability", found.prediction.probability),
            ("latent mean", adapter.latent_mean(found)[:8]),
            ("latent variance", adapter.latent_variance(found, given)[:8]),
        ):
            rows.exact(
                f"{method}: {quantity}", value, "low-rank sites" if near else "deterministic"
            )
        rows.status(f"{method}: status", found.status)


def gradients(rows, name):
    """The surfaces that a search climbs, away from their top, by the classifier."""
    kernel = GRADIENT_KERNELS[name]
    d = 3 if name == "ard" else 2
    X, y, _ = patterns(60, d)
    for method, (named, options) in DETERMINISTIC.items():
        for form in (adapter.DENSE, adapter.LOW_RANK):
            model = adapter.classifier(
                kernel, METHODS[named](**options), form=form, optimizer=None
            ).fit(X, y)
            for k, step in enumerate((0.0, 0.3)):
                value, gradient = model.log_marginal_likelihood(model.kernel_.theta + step, True)
                near = method == "ep" and form == adapter.LOW_RANK
                which = f"{method}, {form}, {k}"
                rows.exact(
                    f"{which}: evidence", value, "low-rank evidence" if near else "deterministic"
                )
                rows.exact(f"{which}: gradient", gradient, _of_gradient(form, near))


def _of_gradient(form, near):
    """Under a covariance of low rank the kernel's derivative is a difference quotient of step 1e-4 or so."""
    return (
        "low-rank sites"
        if near
        else "deterministic"
        if form == adapter.DENSE
        else "low-rank evidence"
    )


def softmax(rows):
    """Several classes at once, under both forms; a probability is an average over Sobol' points."""
    X, code, X_star = three_classes(90)
    for form, given in (
        ("dense", prior(rbf(1.0, 4.0), X, X_star)),
        ("low rank", adapter.low_rank_prior(rbf(1.0, 4.0), X, X_star)),
    ):
        found = adapter.softmax(given, code)
        rows.exact(f"{form}: evidence", found.log_evidence)
        rows.exact(f"{form}: latent mean", adapter.latent_mean(found)[:, :4])
        rows.estimate(
            f"{form}: probability", found.prediction.probability, found.prediction.standard_error, 3
        )
        rows.status(f"{form}: status", found.status)
        if form == "dense":
            mean, covariance = adapter.latent_at_test(found, given)
            rows.exact("latent mean at test inputs", mean)
            rows.exact("latent covariance at test inputs", covariance)
    for form in (adapter.DENSE, adapter.LOW_RANK):
        model = adapter.classifier(rbf(1.0, 4.0), "laplace", form=form, optimizer=None).fit(X, code)
        value, gradient = model.log_marginal_likelihood(model.kernel_.theta + 0.2, True)
        rows.exact(f"{form}: surface", value)
        rows.exact(f"{form}: gradient", gradient, _of_gradient(form, False))


PROBLEMS = (
    {f"dense, {name}": lambda rows, name=name: dense(rows, name) for name in KERNELS}
    | {"dense, one label": one_label, "dense, both labels at an input": contradicting}
    | {"low rank, given factors": given_factors}
    | {f"low rank, {name}": lambda rows, name=name: low_rank(rows, name) for name in LOW_RANK}
    | {
        f"gradient, {name}": lambda rows, name=name: gradients(rows, name)
        for name in GRADIENT_KERNELS
    }
    | {"softmax": softmax}
)

"""Methods that draw: evidence, probabilities, latent moments and statuses, over kernels and forms."""

from before import adapter
from before.gaussian import factors, patterns
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import METHODS

#: Degrees of freedom of errors that are wide enough for a normal law by themselves.
NORMAL = 1e6
#: Name: method, options, degrees of freedom.
EXACT = {
    "twisted-ep": ("twisted-ep", {"points": 128}, 15),
    "minimax-tilting": ("minimax-tilting", {"points": 512}, 15),
    "minimax-tilting, given order": ("minimax-tilting", {"points": 512, "order": "given"}, 15),
    "importance": ("importance", {"samples": 4096}, NORMAL),
    "importance, antithetic": ("importance", {"samples": 4096, "points": "antithetic"}, NORMAL),
    "importance, sobol": ("importance", {"samples": 4096, "points": "sobol", "replicates": 16}, 15),
    "importance, laplace": ("importance", {"samples": 4096, "proposal": "laplace"}, NORMAL),
    "orthant, soft": ("orthant", {"samples": 60_000}, NORMAL),
    "orthant, hard": ("orthant", {"samples": 60_000, "count": "hard"}, NORMAL),
    "orthant, adapted": ("orthant", {"samples": 20_000, "scheme": "adapted"}, NORMAL),
    "orthant, ten runs": ("orthant", {"samples": 20_000, "scheme": "adapted", "runs": 16}, 15),
    "orthant, given order": (
        "orthant",
        {"samples": 20_000, "scheme": "adapted", "order": "given"},
        NORMAL,
    ),
}
#: Name: kernel, patterns, inputs, methods that have weights too heavy there or too few eves.
KERNELS = {
    "smooth, n = 30": (rbf(3.0, 2.0), 30, 2, ()),
    "rough, n = 30": (rbf(0.5, 3.0), 30, 2, ("importance, laplace",)),
    "near-singular, n = 40": (rbf(40.0, 50.0), 40, 1, ("orthant, soft", "orthant, hard")),
    "lone, n = 12": (rbf(1e-3, 4.0), 12, 2, ()),
    "one pattern": (rbf(1.0, 2.0), 1, 1, ()),
}


def exact(rows, name, method):
    """One method for the exact posterior, with the test inputs in the prior and without."""
    kernel, n, d, untrusted = KERNELS[name]
    named, options, degrees = EXACT[method]
    X, y, X_star = patterns(n, d)
    found = adapter.fit(METHODS[named](**options), prior(kernel, X, X_star), y, rng=rows.rng)
    if method in untrusted:  # its status may turn with the draws
        rows.exact("shape", len(found.prediction.probability))
        return
    outcome(rows, found, degrees, by_chance=named == "importance")


def outcome(rows, found, degrees, name="", by_chance=False, evidence=True):
    """Status, evidence and probabilities of a run."""
    rows.status(f"{name}status", found.status, by_chance)
    if evidence:
        rows.estimate(
            f"{name}evidence", found.log_evidence, found.log_evidence_se, degrees, found.status
        )
    p = found.prediction
    if len(p.probability):
        rows.estimate(f"{name}probability", p.probability, p.standard_error, degrees, found.status)


def later(rows):
    """Predictions after the fit, at inputs that the prior did not have."""
    X, y, X_star = patterns(30)
    given = prior(rbf(1.0, 3.0), X, X_star)
    for method in (
        "twisted-ep",
        "minimax-tilting",
        "importance",
        "orthant, adapted",
        "orthant, hard",
    ):
        named, options, degrees = EXACT[method]
        found = adapter.fit(METHODS[named](**options), Prior(given.K), y, rng=rows.rng)
        p = found.predict(given.K_star, given.k_star_star)
        rows.estimate(
            f"{method}: probability", p.probability, p.standard_error, degrees, found.status
        )


def large(rows, method):
    """150 patterns, smooth and rough."""
    X, y, X_star = patterns(150)
    named, options, degrees = EXACT[method]
    for name, kernel in {"smooth": rbf(3.0, 2.0), "rough": rbf(0.5, 3.0)}.items():
        found = adapter.fit(METHODS[named](**options), prior(kernel, X, X_star), y, rng=rows.rng)
        outcome(rows, found, degrees, f"{name}: ", by_chance=named == "orthant")


CHAINS = {
    "ess": {
        "samples": 8000,
        "burn_in": 200,
        "thin": 5,
        "chains": 16,
        "temperatures": 200,
        "annealing_runs": 32,
    },
    "hmc": {
        "samples": 4800,
        "burn_in": 50,
        "chains": 16,
        "temperatures": 100,
        "annealing_runs": 32,
    },
}


def chains(rows, method, kernel):
    """Chains: evidence by annealing, probabilities, and moments of the latent values."""
    X, y, X_star = patterns(30)
    given = prior(kernel, X, X_star)
    found = adapter.fit(METHODS[method](**CHAINS[method]), given, y, rng=rows.rng)
    outcome(rows, found, NORMAL, by_chance=True)
    f = adapter.latent_draws(found, given.K)[:, :, :5]
    rows.mean("latent mean", f.mean(axis=1))
    rows.mean("latent variance", ((f - f.mean(axis=(0, 1))) ** 2).mean(axis=1))


def annealing(rows):
    """Annealed importance sampling alone."""
    X, y, _ = patterns(25)
    for method in CHAINS:
        found = adapter.annealed(
            method, rbf(1.0, 3.0)(X), y, temperatures=150, runs=32, rng=rows.rng
        )
        rows.estimate(f"{method}: evidence", found.log_evidence, found.log_evidence_se, NORMAL)


def control_variables(rows):
    """Control variables, at free inputs and at training inputs."""
    X, y, X_star = patterns(25)
    given = prior(rbf(2.0, 2.0), X, X_star)
    method = METHODS["control-variables"](iterations=12_000, burn_in=300, thin=4, chains=8)
    for name, one in {
        "free": given,
        "training": Prior(given.K, given.K_star, given.k_star_star),
    }.items():
        found = adapter.fit(method, one, y, rng=rows.rng)
        outcome(rows, found, NORMAL, f"{name}: ", by_chance=True, evidence=False)
        rows.status(f"{name}: evidence", str(found.log_evidence))
        f = adapter.latent_draws(found, given.K)[:, :, :5]
        rows.mean(f"{name}: latent mean", f.mean(axis=1))
    stopped = METHODS["control-variables"](max_controls=3, start=3, trace_fraction=1e-6)
    found = adapter.fit(stopped, given, y, rng=rows.rng)
    rows.status("too few: status", found.status)
    rows.exact("too few: probability", found.prediction.probability)


def pseudo_marginal(rows):
    """An integral over the hyperparameters too."""
    X, y, X_star = patterns(20, 1)
    prior_of = adapter.hyperparameter_prior((2.0, 2.0), (1.0, 1.0))
    predictor = METHODS["ep"]()
    method = METHODS["pseudo-marginal"](
        "laplace",
        iterations=150,
        burn_in=100,
        chains=8,
        prior=prior_of,
        draws=80,
        predictor=predictor,
    )
    found = adapter.fit(method, prior(rbf(1.0, 1.0), X, X_star), y, rng=rows.rng)
    outcome(rows, found, NORMAL, by_chance=True, evidence=False)
    rows.status("evidence", str(found.log_evidence))
    for name, draws in adapter.hyperparameter_draws(found).items():
        rows.mean(f"log {name}: mean", draws.mean(axis=1))


def low_rank(rows, form):
    """Twisted EP and importance sampling under covariances of low rank."""
    if form == "given":
        F, D, y = factors(120, 6)
        given = adapter.given_low_rank(F, D)
    else:
        X, y, X_star = patterns(250)
        kernel = {"smooth": rbf(3.0, 2.0), "rough": rbf(0.7, 3.0)}[form]
        given = adapter.low_rank_prior(kernel, X, X_star, tolerance=1e-3)
    methods = ["twisted-ep", "importance", "importance, antithetic"]
    for method in methods if form != "rough" else methods[:1]:
        named, options, degrees = EXACT[method]
        found = adapter.fit(METHODS[named](**options), given, y, rng=rows.rng)
        degrees = min(degrees, 7)  # groups of draws
        outcome(rows, found, degrees, f"{method}: ", by_chance=named == "importance")


PROBLEMS = (
    {f"{m}, {k}": lambda rows, k=k, m=m: exact(rows, k, m) for k in KERNELS for m in EXACT}
    | {
        f"{m}, n = 150": lambda rows, m=m: large(rows, m)
        for m in ("twisted-ep", "minimax-tilting", "orthant, adapted")
    }
    | {"predictions later": later, "annealing": annealing}
    | {
        f"{m}, {name}": lambda rows, m=m, k=k: chains(rows, m, k)
        for m in CHAINS
        for name, k in {"smooth": rbf(3.0, 2.0), "rough": rbf(0.7, 3.0)}.items()
    }
    | {"control-variables": control_variables, "pseudo-marginal": pseudo_marginal}
    | {
        f"low rank draws, {form}": lambda rows, form=form: low_rank(rows, form)
        for form in ("given", "smooth", "rough")
    }
)

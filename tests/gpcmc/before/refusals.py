"""What is refused: the type of the error, and the argument that its message names."""

import numpy as np

from before import adapter
from before.gaussian import patterns
from gpcmc import TruncatedNormal, compare, orthant_probability, rectangle_probability
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import METHODS, method_class

_X, _Y, _X_STAR = patterns(12)
_PRIOR = prior(rbf(1.0, 2.0), _X, _X_STAR)
_NAN = np.where(np.eye(12, dtype=bool), np.nan, _PRIOR.K)

#: Method, option, value that is refused.
OPTIONS = [
    ("orthant", "samples", 0),
    ("orthant", "count", "medium"),
    ("orthant", "scheme", "other"),
    ("orthant", "order", "sorted"),
    ("orthant", "runs", 0),
    ("twisted-ep", "points", 1000),
    ("twisted-ep", "randomizations", 1),
    ("twisted-ep", "n_jobs", 0),
    ("minimax-tilting", "points", 0),
    ("minimax-tilting", "order", "random"),
    ("importance", "samples", 1),
    ("importance", "proposal", "vb"),
    ("importance", "points", "halton"),
    ("importance", "replicates", 0),
    ("ess", "chains", 1),
    ("ess", "thin", 0),
    ("ess", "annealing_runs", 1),
    ("hmc", "leapfrog_steps", 0),
    ("hmc", "tuning", 0),
    ("hmc", "burn_in", 2.5),
    ("control-variables", "trace_fraction", 1.0),
    ("control-variables", "max_controls", 2),
    ("control-variables", "iterations", 12),
    ("pseudo-marginal", "method", "aa"),
    ("pseudo-marginal", "draws", 3),
    ("pseudo-marginal", "predictor", "ep"),
    ("laplace", "tolerance", 0.0),
    ("laplace", "likelihood", "cauchit"),
    ("laplace", "predictive", "mackay"),
    ("laplace", "max_iterations", 0),
    ("ep", "tolerance", -1.0),
    ("ep", "max_sweeps", 0),
]


def options(rows):
    """Options of the methods."""
    for method, name, value in OPTIONS:
        rows.refusal(
            f"{method}: {name}={value}",
            name,
            lambda m=method, n=name, v=value: METHODS[m](**{n: v}),
        )
    rows.refusal("unknown method", "method", lambda: method_class("vb"))
    rows.status("methods", ", ".join(METHODS))


def arguments(rows):
    """Arguments of `fit`, by every method."""
    for name in METHODS:
        method = METHODS[name]()

        def fit(given=_PRIOR, y=_Y, rng=None, method=method):
            return adapter.fit(
                method, given, y, rng=np.random.default_rng(0) if rng is None else rng
            )

        rows.refusal(f"{name}: labels 0 and 1", "y", lambda fit=fit: fit(y=(_Y > 0) * 1.0))
        rows.refusal(f"{name}: too few labels", "y", lambda fit=fit: fit(y=_Y[:5]))
        rows.refusal(f"{name}: NaN in K", "prior.K", lambda fit=fit: fit(Prior(_NAN)))
        rows.refusal(f"{name}: an array for a prior", "prior", lambda fit=fit: fit(_PRIOR.K))
        skew = _PRIOR.K + np.triu(np.ones((12, 12)), 1)
        rows.refusal(
            f"{name}: K not symmetric", "prior.K", lambda fit=fit, skew=skew: fit(Prior(skew))
        )
        rows.refusal(
            f"{name}: K indefinite",
            "prior.K",
            lambda fit=fit: fit(Prior(_PRIOR.K - 1.5 * np.eye(12))),
        )
        short = Prior(_PRIOR.K, _PRIOR.K_star[:5], _PRIOR.k_star_star)
        rows.refusal(
            f"{name}: K_star too short", "prior.K_star", lambda fit=fit, short=short: fit(short)
        )
        rows.refusal(f"{name}: rng a seed", "rng", lambda fit=fit, m=method: _seeded(fit, m))
    for name in ("ep", "laplace", "twisted-ep"):
        found = adapter.fit(METHODS[name](), Prior(_PRIOR.K), _Y, rng=np.random.default_rng(0))
        rows.refusal(
            f"{name}: predict with a wrong shape",
            "K_star",
            lambda f=found: f.predict(_PRIOR.K_star[:3], _PRIOR.k_star_star),
        )
    limits = {"ep": {"max_sweeps": 1}, "laplace": {"max_iterations": 1}}
    for name, option in limits.items():
        method = METHODS[name](**option)
        (argument,) = option
        rows.refusal(
            f"{name}: one iteration", argument, lambda m=method: adapter.fit(m, _PRIOR, _Y)
        )
    rows.refusal("X empty", "X", lambda: prior(rbf(1.0, 1.0), np.empty((0, 2))))
    rows.refusal(
        "X_star of other columns", "X_star", lambda: prior(rbf(1.0, 1.0), _X, np.ones((2, 3)))
    )
    rows.refusal("alpha", "alpha", lambda: rbf(0.0, 1.0))
    rows.refusal("beta", "beta", lambda: rbf(1.0, -1.0))


def _seeded(fit, method):
    """Pass a seed where a generator is needed; a deterministic method heeds neither."""
    return fit(rng=7) if not method.deterministic else fit()


def low_rank(rows):
    """Covariances of low rank."""
    rng = np.random.default_rng(0)
    rows.refusal(
        "D negative", "D", lambda: adapter.given_low_rank(np.ones((3, 1)), [-1.0, 1.0, 1.0])
    )
    rows.refusal(
        "F and D of other lengths", "F", lambda: adapter.given_low_rank(np.ones((3, 1)), np.ones(4))
    )
    rows.refusal(
        "F not finite", "F", lambda: adapter.given_low_rank(np.full((3, 1), np.nan), np.ones(3))
    )
    kernel = rbf(1.0, 2.0)
    rows.refusal(
        "tolerance 0", "tolerance", lambda: adapter.low_rank_prior(kernel, _X, tolerance=0.0)
    )
    rows.refusal(
        "tolerance 1", "tolerance", lambda: adapter.low_rank_prior(kernel, _X, tolerance=1.0)
    )
    lone = rbf(1e-3, 2.0)
    rows.refusal(
        "rank", "max_rank", lambda: adapter.low_rank_prior(lone, _X, tolerance=1e-4, max_rank=3)
    )
    rows.refusal(
        "inducing of other columns",
        "inducing",
        lambda: adapter.low_rank_prior(kernel, _X, inducing=np.ones((2, 3))),
    )
    rows.refusal("X empty", "X", lambda: adapter.low_rank_prior(kernel, np.empty((0, 2))))
    given = adapter.low_rank_prior(kernel, _X)
    for name in (
        "orthant",
        "minimax-tilting",
        "ess",
        "hmc",
        "control-variables",
        "pseudo-marginal",
    ):
        rows.refusal(
            f"{name} has no form",
            "inference",
            lambda n=name: adapter.fit(METHODS[n](), given, _Y, rng=rng),
        )
    sobol = METHODS["importance"](points="sobol")
    rows.refusal("Sobol' points", "points", lambda: adapter.fit(sobol, given, _Y, rng=rng))
    rows.refusal("labels", "y", lambda: adapter.fit(METHODS["ep"](), given, _Y[:4]))
    rows.refusal("no generator", "rng", lambda: adapter.fit(METHODS["twisted-ep"](), given, _Y))


#: Name of a refusal: the argument that is named, and the classifier's arguments.
OF_CLASSIFIER = {
    "kernel a string": ("kernel", {"kernel": "rbf"}),
    "inference unknown": ("inference", {"inference": "vb"}),
    "inference a number": ("inference", {"inference": 3}),
    "optimizer unknown": ("optimizer", {"optimizer": "adam"}),
    "n_restarts negative": ("n_restarts", {"n_restarts": -1}),
    "two numbers of restarts": ("n_restarts", {"n_restarts": 1, "n_restarts_optimizer": 2}),
    "random_state": ("random_state", {"random_state": "seed"}),
    "multi_class": ("multi_class", {"multi_class": "all"}),
    "one_vs_one": ("multi_class", {"multi_class": "one_vs_one"}),
    "softmax of ep": ("multi_class", {"multi_class": "softmax"}),
    "max_iter_predict": ("max_iter_predict", {"max_iter_predict": 0}),
    "tolerance": ("tolerance", {"form": adapter.LOW_RANK, "tolerance": 2.0}),
    "surface unknown": ("surface", {"surface": "other"}),
    "exact surface of ep": ("surface", {"surface": "exact"}),
    "low rank and callable": (
        "optimizer",
        {"form": adapter.LOW_RANK, "optimizer": lambda f, start, bounds: (start, 0.0)},
    ),
}


def classifier(rows):
    """The classifier's arguments and inputs."""
    labels = _Y.astype(int)
    for name, (argument, options) in OF_CLASSIFIER.items():
        rows.refusal(name, argument, lambda o=options: adapter.classifier(**o).fit(_X, labels))
    rows.refusal("form unknown", "form", lambda: adapter.classifier(form="none").fit(_X, labels))
    hard = {"form": adapter.LOW_RANK, "inference": "orthant"}
    rows.refusal(
        "form that the method has not", "form", lambda: adapter.classifier(**hard).fit(_X, labels)
    )
    model = adapter.classifier(optimizer=None)
    rows.refusal("one class", "class", lambda: model.fit(_X, np.ones(12)))
    rows.refusal("X with NaN", "NaN", lambda: model.fit(np.full((12, 2), np.nan), labels))
    rows.refusal("y continuous", "label type", lambda: model.fit(_X, _X[:, 0]))
    rows.refusal("lengths", "inconsistent", lambda: model.fit(_X, labels[:5]))
    rows.refusal("not fitted", "fitted", lambda: adapter.classifier().predict_proba(_X))
    model.fit(_X, labels)
    rows.refusal("features", "features", lambda: model.predict_proba(np.ones((2, 3))))
    rows.refusal("theta of another shape", "theta", lambda: model.log_marginal_likelihood([0.0]))
    rows.refusal("theta too large", "theta", lambda: model.log_marginal_likelihood([1e3, 0.0]))
    ess = METHODS["ess"](samples=64, temperatures=5, burn_in=5, thin=1)
    chains = adapter.classifier(inference=ess, optimizer=None, random_state=0).fit(_X, labels)
    rows.refusal("no Gaussian", "latent", lambda: chains.latent_mean_and_variance(_X))
    rows.refusal("one kernel compared", "kernels", lambda: compare([rbf(1.0, 1.0)], _X, labels))
    rows.refusal(
        "compared without evidence",
        "marginal likelihood",
        lambda: compare(
            [rbf(1.0, 1.0), rbf(2.0, 1.0)],
            _X,
            labels,
            inference=METHODS["control-variables"](iterations=64),
            optimizer=None,
        ),
    )


def rectangles(rows):
    """Rectangles, truncated normals and orthants."""
    eye = np.eye(3)
    wrong = {
        "lower above upper": ("lower", {"lower": 1.0, "upper": 0.0}),
        "lower NaN": ("lower", {"lower": np.nan}),
        "shapes": ("lower", {"lower": np.zeros(4)}),
        "cov not symmetric": ("cov", {"cov": np.triu(np.ones((3, 3)))}),
        "cov indefinite": ("cov", {"cov": np.ones((3, 3)) - 1.5 * eye}),
        "cov not square": ("cov", {"cov": np.ones((3, 2))}),
        "mean infinite": ("mean", {"mean": np.inf}),
        "method": ("method", {"method": "mc"}),
        "tolerance": ("tolerance", {"tolerance": 0.0}),
        "max_samples": ("max_samples", {"max_samples": 0}),
        "confidence": ("confidence", {"confidence": 1.0}),
        "n_jobs": ("n_jobs", {"n_jobs": 0}),
        "rng": ("rng", {"rng": "seed"}),
    }
    plain = {"lower": -1.0, "upper": 1.0, "cov": eye}
    for name, (argument, options) in wrong.items():
        rows.refusal(
            f"rectangle: {name}", argument, lambda o=options: rectangle_probability(**(plain | o))
        )
    found = rectangle_probability(-1.0, 1.0, cov=eye, rng=0)
    rows.refusal("interval: confidence", "confidence", lambda: found.interval(2.0))
    rows.refusal("interval: kind", "kind", lambda: found.interval(kind="exact"))
    rows.refusal("gradient: points", "points", lambda: found.gradient(100))
    zero = rectangle_probability([0.0, 1.0], [1.0, 1.0], cov=np.eye(2))
    rows.refusal("gradient of zero", "probability", lambda: zero.gradient())
    rows.refusal(
        "truncated: zero", "lower", lambda: TruncatedNormal([0.0, 1.0], [1.0, 1.0], cov=np.eye(2))
    )
    one = TruncatedNormal(0.0, 1.0, cov=0.5 + 0.5 * eye)
    rows.refusal("truncated: size", "size", lambda: one.rvs(0))
    rows.refusal("truncated: method", "method", lambda: one.rvs(1, method="hmc"))
    rows.refusal("truncated: points", "points", lambda: one.mean(100))
    rough = np.random.default_rng(0).standard_normal((60, 60))
    hard = TruncatedNormal(0.0, np.inf, cov=rough @ rough.T)
    rows.refusal(
        "truncated: acceptance", "max_draws", lambda: hard.rvs(1000, rng=0, max_draws=1000)
    )
    rng = np.random.default_rng(0)
    for name, options in {
        "samples": {"samples": 0},
        "count": {"count": "x"},
        "scheme": {"scheme": "x"},
        "runs": {"runs": 0},
        "mean": {"mean": np.ones(2)},
        "lower": {"lower": np.nan},
    }.items():
        rows.refusal(
            f"orthant: {name}", name, lambda o=options: orthant_probability(eye, rng=rng, **o)
        )
    rows.refusal("orthant: rng", "rng", lambda: orthant_probability(eye, rng=3))
    rows.refusal("orthant: singular", "cov", lambda: orthant_probability(np.ones((3, 3)), rng=rng))
    far = {"lower": 40.0, "samples": 1000}
    rows.refusal(
        "orthant: extinct",
        "adapted",
        lambda: orthant_probability(eye, rng=rng, count="hard", **far),
    )


PROBLEMS = {
    "refused options": options,
    "refused arguments": arguments,
    "refused low rank": low_rank,
    "refused by the classifier": classifier,
    "refused rectangles": rectangles,
}

"""The classifier: what its searches find, several classes, forms, statuses; and kernels compared."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from before import adapter
from before.gaussian import patterns, three_classes
from before.sampling import NORMAL
from gpcmc import compare
from gpcmc.gp import rbf
from gpcmc.inference import METHODS

#: Name: kernel, method, form, patterns, inputs, other arguments. Their searches are from the kernel's own values.
SEARCHES = {
    "default": (None, "ep", adapter.DENSE, 100, 2, {}),
    "default, n = 200": (None, "ep", adapter.DENSE, 200, 2, {}),
    "laplace": (None, "laplace", adapter.DENSE, 100, 2, {}),
    "logistic": (None, METHODS["laplace"](likelihood="logistic"), adapter.DENSE, 100, 2, {}),
    "ard, laplace": (1.0 * RBF(np.ones(4)), "laplace", adapter.DENSE, 120, 4, {}),
    "ard, ep": (1.0 * RBF(np.ones(4)), "ep", adapter.DENSE, 80, 4, {}),
    "linear kernel": (DotProduct(1.0), "ep", adapter.DENSE, 80, 3, {}),
    "restarts": (1.0 * RBF(20.0), "laplace", adapter.DENSE, 60, 2, {"n_restarts": 2}),
    "at a bound": (1.0 * RBF(1.0, (0.5, 1.5)), "ep", adapter.DENSE, 60, 2, {}),
    "other scale": (1.0 * RBF(1e-4), "ep", adapter.DENSE, 60, 2, {}),
    "low rank": (None, "ep", adapter.LOW_RANK, 300, 2, {}),
    "low rank, laplace": (None, "laplace", adapter.LOW_RANK, 300, 2, {}),
}


def search(rows, name):
    """The optimum, and what the posterior there says."""
    kernel, inference, form, n, d, options = SEARCHES[name]
    X, y, X_star = patterns(n, d, tests=6)
    model = adapter.classifier(
        kernel, inference, form=form, random_state=rows.number % 1000, **options
    )
    model.fit(X, np.where(y > 0, "yes", "no"))
    low = "low-rank " if form == adapter.LOW_RANK else ""
    rows.exact("evidence", model.log_marginal_likelihood_, f"{low}optimum")
    rows.exact("probability", model.predict_proba(X_star)[:, 1], f"at {low}optimum")
    rows.exact("theta", model.kernel_.theta, f"at {low}optimum")
    rows.status("status", model.status_)
    rows.status("at a bound", ", ".join(model.at_bound_))
    rows.status("labels", ", ".join(model.predict(X_star)))
    if form == adapter.DENSE:
        mean, variance = model.latent_mean_and_variance(X_star)
        rows.exact("latent mean", mean, "at optimum")
        rows.exact("latent variance", variance, "at optimum")


def several(rows):
    """More than two classes: one against the rest, and the softmax."""
    X, code, X_star = three_classes(75)
    labels = np.array(["ant", "bee", "cow"])[code]
    kinds = {
        "one vs rest, ep": ("ep", {}, adapter.DENSE),
        "one vs rest, laplace": ("laplace", {"multi_class": "one_vs_rest"}, adapter.DENSE),
        "one vs rest, low rank": ("ep", {}, adapter.LOW_RANK),
        "softmax": ("laplace", {}, adapter.DENSE),
    }
    for kind, (inference, options, form) in kinds.items():
        fixed = adapter.classifier(
            rbf(1.0, 4.0), inference, form=form, optimizer=None, **options
        ).fit(X, labels)
        low = form == adapter.LOW_RANK
        rows.exact(
            f"{kind}: evidence",
            fixed.log_marginal_likelihood_,
            "low-rank evidence" if low else "deterministic",
        )
        p, error = fixed.predict_proba(X_star, return_std=True)
        if kind == "softmax":
            rows.estimate(f"{kind}: probability", p, error, 3)
        else:
            rows.exact(f"{kind}: probability", p, "low-rank sites" if low else "deterministic")
        rows.status(f"{kind}: labels", ", ".join(fixed.predict(X_star)))
        rows.status(f"{kind}: status", fixed.status_)
    for kind in ("one vs rest, ep", "softmax"):
        inference, options, _ = kinds[kind]
        model = adapter.classifier(None, inference, **options).fit(X, labels)
        rows.exact(f"searched, {kind}: evidence", model.log_marginal_likelihood_, "optimum")
        rows.exact(f"searched, {kind}: theta", model.kernel_.theta, "at optimum")
        rows.status(f"searched, {kind}: status", model.status_)


def several_drawn(rows):
    """One against the rest by methods that draw."""
    X, code, X_star = three_classes(45)
    for name, method in {
        "twisted-ep": METHODS["twisted-ep"](points=128),
        "minimax-tilting": METHODS["minimax-tilting"](points=256),
    }.items():
        model = adapter.classifier(
            rbf(1.5, 3.0), method, optimizer=None, random_state=rows.number
        ).fit(X, code)
        rows.status(f"{name}: status", model.status_)
        rows.estimate(
            f"{name}: evidence",
            model.log_marginal_likelihood_,
            model.log_marginal_likelihood_se_,
            15,
        )
        rows.estimate(f"{name}: probability", *model.predict_proba(X_star, return_std=True), 15)


def large(rows, form):
    """600 patterns, at hyperparameters that are given: by the classifier another algorithm runs there."""
    X, y, X_star = patterns(600)
    low = form == adapter.LOW_RANK
    for method in ("ep", "laplace"):
        model = adapter.classifier(rbf(1.0, 3.0), method, form=form, optimizer=None).fit(X, y)
        # from 500 patterns on, expectation propagation starts from one of low rank, and stops at another tolerance
        near = method == "ep"
        rows.exact(
            f"{method}: evidence",
            model.log_marginal_likelihood_,
            "low-rank evidence" if near else "deterministic",
        )
        rows.exact(
            f"{method}: probability",
            model.predict_proba(X_star)[:, 1],
            "low-rank sites" if near else "deterministic",
        )
        rows.status(f"{method}: status", model.status_)
    method = METHODS["twisted-ep"](points=64)
    model = adapter.classifier(
        rbf(1.0, 3.0), method, form=form, optimizer=None, random_state=rows.number
    ).fit(X, y)
    rows.status("twisted-ep: status", model.status_)
    degrees = 7 if low else 15
    rows.estimate(
        "twisted-ep: evidence",
        model.log_marginal_likelihood_,
        model.log_marginal_likelihood_se_,
        degrees,
    )
    p, error = (x[:, 1] for x in model.predict_proba(X_star, return_std=True))
    rows.estimate("twisted-ep: probability", p, error, degrees)


def automatic(rows):
    """The form that is chosen below its threshold, and the former name of a method."""
    X, y, X_star = patterns(120)
    model = adapter.classifier(rbf(1.0, 3.0), "ep", form=adapter.AUTO, optimizer=None).fit(X, y)
    rows.exact("evidence", model.log_marginal_likelihood_)
    rows.exact("probability", model.predict_proba(X_star)[:, 1])
    best = adapter.classifier(rbf(1.0, 3.0), "best", optimizer=None, random_state=rows.number).fit(
        X, y
    )
    rows.estimate(
        "best: evidence", best.log_marginal_likelihood_, best.log_marginal_likelihood_se_, 15
    )
    rows.status("best: status", best.status_)


def exact_surface(rows):
    """The search on twisted EP's estimate: its optimum moves with the points, within its errors."""
    X, y, X_star = patterns(60)
    method = METHODS["twisted-ep"](points=128)
    model = adapter.classifier(
        rbf(1.0, 2.0), method, surface="exact", random_state=rows.number
    ).fit(X, y)
    rows.status("status", model.status_)
    rows.estimate("evidence", model.log_marginal_likelihood_, model.log_marginal_likelihood_se_, 15)
    fixed = adapter.classifier(
        rbf(1.0, 2.0), method, optimizer=None, random_state=rows.number, surface="exact"
    ).fit(X, y)
    value, gradient = fixed.log_marginal_likelihood(eval_gradient=True)
    error = fixed.log_marginal_likelihood_se_
    rows.estimate("surface", value, error, 15)
    rows.exact("length of the gradient", len(gradient))
    rows.estimate(
        "probability", *(x[:, 1] for x in fixed.predict_proba(X_star, return_std=True)), 15
    )


def compared(rows):
    """Kernels compared, as they are and at their optima."""
    X, y, _ = patterns(60)
    kernels = {
        "smooth": rbf(3.0, 2.0),
        "rough": rbf(0.5, 3.0),
        "linear": ConstantKernel(2.0) * DotProduct(1.0),
    }
    found = compare(kernels, X, y, optimizer=None, random_state=rows.number)
    rows.status("names", ", ".join(found.names))
    rows.status("status", ", ".join(found.status))
    rows.estimate("evidence", found.log_evidence, found.standard_error, 15)
    rows.estimate("Bayes factor", found.log_bayes_factor, found.log_bayes_factor_se, 15)
    searched = compare(kernels, X, y, inference="ep")
    rows.exact("searched: evidence", searched.log_evidence, "optimum")
    rows.exact("searched: Bayes factor", searched.log_bayes_factor, "at optimum")
    rows.exact("searched: maximised", searched.maximized)
    rows.status("searched: approximate", str(searched.approximate))


def by_name(rows):
    """Every method by its name, with its defaults, on few patterns; what it gives and what it is called."""
    X, y, X_star = patterns(14)
    small = {
        "ess": {"samples": 1600, "temperatures": 50},
        "hmc": {"samples": 1600, "temperatures": 50},
    }
    for name in (
        "orthant",
        "twisted-ep",
        "minimax-tilting",
        "importance",
        "ess",
        "hmc",
        "laplace",
        "ep",
    ):
        method = METHODS[name](**small[name]) if name in small else name
        model = adapter.classifier(
            rbf(1.0, 3.0), method, optimizer=None, random_state=rows.number
        ).fit(X, y)
        p, error = (x[:, 1] for x in model.predict_proba(X_star, return_std=True))
        if name in ("laplace", "ep"):
            rows.exact(f"{name}: probability", p)
            continue
        degrees = 15 if name in ("twisted-ep", "minimax-tilting") else NORMAL
        value, of_value = model.log_marginal_likelihood_, model.log_marginal_likelihood_se_
        rows.status(f"{name}: status", model.status_, name in ("importance", "ess", "hmc"))
        rows.estimate(f"{name}: evidence", value, of_value, degrees, model.status_)
        rows.estimate(f"{name}: probability", p, error, degrees, model.status_)


PROBLEMS = (
    {f"search, {name}": lambda rows, name=name: search(rows, name) for name in SEARCHES}
    | {"several classes": several, "several classes, drawn": several_drawn}
    | {
        f"classifier, n = 600, {form}": lambda rows, form=form: large(rows, form)
        for form in (adapter.DENSE, adapter.LOW_RANK)
    }
    | {"classifier, automatic form": automatic, "classifier, exact surface": exact_surface}
    | {"classifier, methods by name": by_name, "kernels compared": compared}
)

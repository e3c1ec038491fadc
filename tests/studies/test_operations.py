"""Operations of the order of n^3 that a study says its chains take, counted where they happen."""

import __future__

import ast
import inspect
import textwrap
from collections import Counter
from functools import cache

import numpy as np
import pytest

from gpcmc import _validation
from gpcmc.chains import hyperparameter_steps as steps
from gpcmc.chains.hyperparameters import HyperparameterPrior, model_of
from gpcmc.covariance import dense, root
from gpcmc.gaussian import ep, importance, laplace, posterior
from studies.filippone2014 import tuned_chains
from studies.filippone2014.operations import cubic_operations
from studies.filippone2014.problems import PSEUDO_MARGINAL
from studies.filippone2014.tuned_chains import (
    CountedEstimator,
    latent_chain,
    pseudo_marginal_chain,
)


def model(n):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 3)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return model_of(X, y, HyperparameterPrior((2.0, 3.0), (0.4, 2.0), 3), jitter=1e-6)


class Products(ast.NodeTransformer):
    """Makes every ``a @ b`` of a function a call of ``_product(a, b)``."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return ast.Call(ast.Name("_product", ast.Load()), [node.left, node.right], [])


def with_calls_for_products(function):
    """The code of a function whose products are calls."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tree.body[0].decorator_list = []
    tree = ast.fix_missing_locations(Products().visit(tree))
    made = {}
    exec(compile(tree, "<counted>", "exec", flags=__future__.annotations.compiler_flag), made)
    return made[function.__name__].__code__


#: What a function of LAPACK or SciPy has to be given to be an operation of the order of n^3.
CUBIC = {
    "cholesky": lambda n, A: A.shape == (n, n),
    "dpotrf": lambda n, A: A.shape == (n, n),
    "dlauum": lambda n, A: A.shape == (n, n),
    "dpstrf": lambda n, A: A.shape == (n, n),
    "dtrtri": lambda n, A: A.shape == (n, n),
    "dpotri": lambda n, A: A.shape == (n, n),
    "qr": lambda n, A: A.shape == (n, n),
    "eigh": lambda n, A: A.shape == (n, n),
    "solve": lambda n, A, b: b.shape == (n, n),
    "solve_triangular": lambda n, A, b: b.shape == (n, n),
    "cho_solve": lambda n, A, b: b.shape == (n, n),
}
#: Modules that do the work of chains.
WORKING = [
    _validation, dense, root, ep, importance, laplace, posterior, steps, tuned_chains
]  # fmt: skip


@cache
def counting_codes():
    """Functions and methods of these modules that have a product of matrices, with code that counts."""
    found = {}
    for module in WORKING:
        owners = [module, *(one for one in vars(module).values() if inspect.isclass(one))]
        for member in (member for owner in owners for member in vars(owner).values()):
            member = getattr(member, "__func__", getattr(member, "func", member))
            function = inspect.unwrap(member) if inspect.isfunction(member) else None
            here = function and function.__code__.co_filename == module.__file__
            if here and "@" in inspect.getsource(function):
                found[function] = with_calls_for_products(function)
    return found


@pytest.fixture
def operations(monkeypatch):
    """Counts operations on (n, n) matrices where they happen: a function of n that begins to count."""
    seen, size = Counter(), [0]

    def wrapped(own, what, is_one):
        def wrapper(*given, **more):
            seen[what] += bool(is_one(size[0], *given))
            return own(*given, **more)

        return wrapper

    def product(a, b):
        seen["product"] += np.shape(a) == np.shape(b) == (size[0], size[0])
        return a @ b

    for module in WORKING:
        monkeypatch.setattr(module, "_product", product, raising=False)
        for name, is_one in CUBIC.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, wrapped(getattr(module, name), name, is_one))
    for function, code in counting_codes().items():
        monkeypatch.setattr(function, "__code__", code)
    monkeypatch.setattr(np.linalg, "eigh", wrapped(np.linalg.eigh, "eigh", CUBIC["eigh"]))

    def begin(n):
        seen.clear()
        size[0] = n
        return seen

    return begin


@pytest.mark.parametrize("n", [8, 60])
@pytest.mark.parametrize("name", PSEUDO_MARGINAL)
def test_operations_of_an_estimate_are_counted_where_they_happen(name, n, operations):
    m, rng = model(n), np.random.default_rng(5)
    for _ in range(4):
        K, estimator = m.covariance(m.prior.draw(rng)), CountedEstimator(name, 3)
        seen = operations(n)
        estimator(K, m.y, rng)
        found, iterations = estimator.work, {"laplace": "newton_steps", "ep": "sweeps"}[name]
        assert found[f"{name}_estimates"] == 1 and found[iterations] > 1
        assert cubic_operations(found, own=True) == seen.total()
        # of the Gaussian in the coordinates of a root of K: two factorizations, an inverse, a product
        assert (
            seen["dpstrf"] == seen["product"] == 1
            and seen["cholesky"] == 2
            and seen["eigh"] == seen["qr"] == 0
        )
        if name == "laplace":
            assert seen["dpotrf"] == found["newton_steps"] + 1 and seen["dtrtri"] == 0
            assert cubic_operations(found) == found["newton_steps"] + 1
        else:
            assert (
                seen["dpotrf"] == seen["dtrtri"] == found["sweeps"] - 1
            )  # at first sites are zero
            assert cubic_operations(found) == 5 * found["sweeps"] + 1


@pytest.mark.parametrize("name", PSEUDO_MARGINAL)
def test_operations_of_a_chain_are_those_of_its_estimates(name, operations):
    """The estimate that the chain starts with, and burn-in, are not counted."""
    m, lengths, totals = model(8), {"samples": 3, "iterations": 20}, []
    for burn_in in (0, 7):
        seen = operations(8)
        rng = np.random.default_rng(5)
        found = pseudo_marginal_chain(m, name, 0.5 * np.eye(4), burn_in=burn_in, rng=rng, **lengths)
        totals.append(seen.total() - cubic_operations(found.work, own=True))
        assert found.work[f"{name}_estimates"] == 20
    seen, rng = operations(8), np.random.default_rng(5)
    CountedEstimator(name, 3)(m.covariance(m.prior.draw(rng)), m.y, rng)
    assert totals[0] == seen.total() < totals[1]


@pytest.mark.parametrize(
    ("scheme", "each", "own"), [("sufficient", 1, 1), ("ancillary", 1, 1), ("surrogate", 3, 5)]
)
def test_operations_of_latent_chains(scheme, each, own, operations):
    """The update of f takes products with vectors alone. The root that a chain starts with is not counted."""
    seen = operations(8)
    found = latent_chain(
        model(8), scheme, 0.1 * np.eye(4), repeats=4, iterations=10, burn_in=0,
        rng=np.random.default_rng(6),
    )  # fmt: skip
    assert found.work == {scheme: 40} and cubic_operations(found.work) == each * 40
    assert cubic_operations(found.work, own=True) == own * 40 == seen.total() - 1
    assert seen["product"] == (80 if scheme == "surrogate" else 0)
    assert found.theta.shape == (10, 4) and 0 < found.acceptance <= 1

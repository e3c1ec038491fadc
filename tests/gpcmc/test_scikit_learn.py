"""scikit-learn's own public tests of its classifier, as installed, against ours; exceptions have names and reasons."""

import types

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier as TheirClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.gaussian_process.tests import test_gpc as theirs

from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.inference import Laplace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

#: Tests that do not pass, and why that is meant.
EXCEPTIONS = {
    "test_warning_bounds": "one warning names all hyperparameters that ended at a bound, with value, side and meaning",
    "test_gpc_latent_mean_and_variance_complain_on_more_than_2_classes": "they are there for several classes too",
    "test_lml_gradient": "they expect that it fails: differences over 1e-9 are rounding; test_evidence.py has our own",
}


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    monkeypatch.setattr(theirs, "GaussianProcessClassifier", GaussianProcessClassifier)


@pytest.fixture
def global_random_seed():
    """The seed that scikit-learn's own run has by default."""
    return 42


def _adopted(name):
    """Return a test of theirs as one of ours, with its parameters; they expect one of them to fail for themselves."""
    test = getattr(theirs, name)
    copy = types.FunctionType(test.__code__, test.__globals__, name, test.__defaults__)
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name != "xfail"]
    if name in EXCEPTIONS:
        marks.append(pytest.mark.xfail(reason=EXCEPTIONS[name], strict=False).mark)
    copy.pytestmark = marks
    return copy


globals().update({name: _adopted(name) for name in dir(theirs) if name.startswith("test_")})


def test_it_takes_the_arguments_of_scikit_learn():
    given = TheirClassifier().get_params()
    assert GaussianProcessClassifier(**given).get_params().items() >= given.items()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_same_approximation_gives_the_same_probabilities(classes):
    """Laplace's with the logistic likelihood; theirs averages it by five error functions, which are right to 2e-4."""
    X, y = load_iris(return_X_y=True)
    X, y = X[50 * (3 - classes) :: 2, :2], y[50 * (3 - classes) :: 2]
    kernel = 2.0 * RBF(0.8)
    options = {"optimizer": None, "multi_class": "one_vs_rest"}
    their = TheirClassifier(kernel, **options).fit(X, y)
    our = GaussianProcessClassifier(kernel, Laplace(likelihood="logistic"), **options).fit(X, y)
    assert our.log_marginal_likelihood_value_ == pytest.approx(
        their.log_marginal_likelihood_value_, abs=1e-6
    )
    p, error = our.predict_proba(X, return_std=True)
    np.testing.assert_allclose(p, their.predict_proba(X), atol=5e-4)
    assert (error == 0.0).all()
    if classes == 2:
        found = our.latent_mean_and_variance(X)
        np.testing.assert_allclose(found, their.latent_mean_and_variance(X), atol=1e-6)

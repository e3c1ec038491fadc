"""A fit draws its samples once: test inputs that the prior has are seen in that pass."""

import numpy as np
import pytest

from gpcmc.gp import prior, rbf
from gpcmc.inference import METHODS
from gpcmc.rectangle import classification


@pytest.mark.parametrize("method", ["twisted-ep", "minimax-tilting"])
def test_predictions_at_the_priors_inputs_cost_no_further_pass(method, monkeypatch):
    rng, passes, draw = np.random.default_rng(0), [], classification.draw

    def counted(*args, **options):
        passes.append(options)
        return draw(*args, **options)

    monkeypatch.setattr(classification, "draw", counted)
    X, X_star = rng.standard_normal((12, 2)), rng.standard_normal((3, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    given = prior(rbf(1.0, 2.0), X, X_star)
    posterior = METHODS[method](points=16, randomizations=4).fit(given, y, rng=1)
    assert len(passes) == 1
    # a later prediction has the same draws, and so the same bits
    again = posterior.predict(given.K_star, given.k_star_star)
    assert np.array_equal(again.probability, posterior.prediction.probability)
    assert len(passes) == 2

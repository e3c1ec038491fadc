"""NumPyro: the No-U-Turn sampler of the whitened latent values, probit likelihood; it has no marginal likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.stats import norm
from numpyro.diagnostics import split_gelman_rubin
from numpyro.infer import MCMC, NUTS
from work import run

jax.config.update("jax_enable_x64", True)


def nuts(warmup, samples):
    def fit(given):
        K, K_star = given["K"], given["K_star"]
        L = np.linalg.cholesky(K + 1e-10 * given["beta"] * np.eye(len(K)))

        def model():
            z = numpyro.sample("z", dist.Normal(0, 1).expand([len(K)]).to_event(1))
            numpyro.factor("likelihood", norm.logcdf(given["y"] * (jnp.asarray(L) @ z)).sum())

        chain = MCMC(NUTS(model), num_warmup=warmup, num_samples=samples, progress_bar=False)
        chain.run(jax.random.PRNGKey(0))
        a = np.linalg.solve(L, K_star)
        mean = np.asarray(chain.get_samples()["z"]) @ a
        spread = np.sqrt(1.0 + given["k_star_star"] - (a**2).sum(axis=0))
        return None, np.asarray(norm.cdf(mean / spread)).mean(axis=0), judged(chain, mean)

    return fit


def judged(chain, draws):
    """What NumPyro itself says of one chain: divergences, and the worst split R-hat of the latent values drawn."""
    diverging = int(chain.get_extra_fields()["diverging"].sum())
    r_hat = float(np.max(split_gelman_rubin(draws[None])))
    if diverging or r_hat > 1.05:
        return {"status": f"not converged: {diverging} divergences, R-hat {r_hat:.2f}"}
    return {}


run({f"NUTS, {n} draws": nuts(n // 2, n) for n in (200, 800)})

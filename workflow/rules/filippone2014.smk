# Filippone and Girolami (2014): pseudo-marginal chains against those that hold latent values.
# Settings: the block `filippone2014` of config/default.yaml.

from studies.filippone2014 import problems

#: What each part of the measures reads.
MEASURED["filippone2014"] = {
    "chains": ["chains"],
    "evidence": ["conditionals", "spread", "weights"],
    "prediction": ["prediction", "quadrature"],
    "real": ["real"],
}
#: Names of targets, and what each makes.
TARGETS |= {
    "pseudo_marginal": whole("filippone2014"),
    "pseudo_marginal_chains": tables("filippone2014", "chains", "real"),
    "integrated_predictions": tables("filippone2014", "prediction", "quadrature"),
}
REGISTERED |= problems.REGISTERED


# Real data from raw files, and the simulated data of the chains: n<cases>_d<inputs>_set<number>.
use rule patterns as filippone2014_patterns with:
    input:
        compiled=ancient("build/compiled.json"),
        raw=raw_status,
    pathvars:
        patterns="filippone2014/data/{data}",


# Figure 1: variances of the log length scale, given what each kind of chain holds.
use rule run as filippone2014_conditionals with:
    pathvars:
        rows="filippone2014/conditionals/{block}",


# Figure 2: the spread of the estimates of the evidence over length scales.
use rule run as filippone2014_spread with:
    pathvars:
        rows="filippone2014/spread/n{n}/{block}",


# The tails of the weights behind Figure 2.
use rule run as filippone2014_weights with:
    pathvars:
        rows="filippone2014/weights/{block}",


# The proposals that the chains of a problem share: of simulated data for Tables I to III, of real ones for section 4.4.
use rule run as filippone2014_pilot with:
    input:
        compiled=ancient("build/compiled.json"),
        data="<results>/filippone2014/data/{data}.npz",
    pathvars:
        rows="filippone2014/pilot/{kernel}/{data}/{block}",
    priority: 1  # others read it


# Tables I to III: chains on simulated data.
use rule run as filippone2014_chains with:
    input:
        compiled=ancient("build/compiled.json"),
        data="<results>/filippone2014/data/n{n}_d{d}_set{set}.npz",
        pilot="<results>/filippone2014/pilot/{kernel}/n{n}_d{d}_set{set}/0.npz",
    pathvars:
        rows="filippone2014/chains/{kernel}/n{n}_d{d}_set{set}/{block}",


# Section 4.4: chains on real data.
use rule run as filippone2014_real with:
    input:
        compiled=ancient("build/compiled.json"),
        data="<results>/filippone2014/data/{name}.npz",
        pilot="<results>/filippone2014/pilot/{kernel}/{name}/0.npz",
    pathvars:
        rows="filippone2014/real/{kernel}/{name}/{block}",


# The abstract's claim: predictions by fitted and integrated hyperparameters and by support vector machines.
use rule filippone2014_pilot as filippone2014_prediction with:
    pathvars:
        rows="filippone2014/prediction/{data}/n{n}/{block}",


# The same predictions integrated by quadrature.
use rule filippone2014_pilot as filippone2014_quadrature with:
    pathvars:
        rows="filippone2014/quadrature/{data}/n{n}/{block}",

# Neal (1997): a three-way classification (section 6) and a regression with outliers (section 7).
# Settings: the block `neal1997` of config/default.yaml.

#: What each part of the measures reads.
MEASURED["neal1997"] = {
    "classes": ["classes"],
    "outliers": ["outliers", "exact"],
    "beside": ["bayes", "laplace", "priors"],
}
#: Names of targets, and what each makes: the whole study, sections 6 and 7.
TARGETS |= {
    "neal": whole("neal1997"),
    "three_classes": tables("neal1997", "classes", "bayes", "laplace"),
    "outliers": tables("neal1997", "outliers"),
}
#: Cases of the author's files, in the releases of 1997 and 2022.
REGISTERED |= {
    f"{name}_{release}": f"neal_{name}_{release}"
    for name in ("classes", "outliers")
    for release in (1997, 2022)
}


use rule patterns as neal1997_patterns with:
    pathvars:
        patterns="neal1997/data/{data}",


# Section 6, Figures 3 and 4: chains on the three-way problem.
use rule run as neal1997_classes with:
    input:
        compiled=ancient("build/compiled.json"),
        data="<results>/neal1997/data/classes_{release}.npz",
    pathvars:
        rows="neal1997/classes/{release}/{run}/{block}",


# Section 7, Figure 5: chains on the regression with outliers.
use rule run as neal1997_outliers with:
    input:
        compiled=ancient("build/compiled.json"),
        data="<results>/neal1997/data/outliers_{release}.npz",
    pathvars:
        rows="neal1997/outliers/{release}/{run}/{block}",


# Section 7 by quadrature, where the noise is Gaussian.
use rule neal1997_outliers as neal1997_exact with:
    pathvars:
        rows="neal1997/exact/{release}/{block}",


# The best that any classifier can do on the problem of section 6.
use rule run as neal1997_bayes with:
    input:
        compiled=ancient("build/compiled.json"),
        old="<results>/neal1997/data/classes_1997.npz",
        new="<results>/neal1997/data/classes_2022.npz",
    pathvars:
        rows="neal1997/bayes/{block}",


# Laplace's method on the problem of section 6.
use rule run as neal1997_laplace with:
    input:
        compiled=ancient("build/compiled.json"),
        data="<results>/neal1997/data/classes_1997.npz",
    pathvars:
        rows="neal1997/laplace/{block}",


# Figure 1: draws from four priors.
use rule run as neal1997_priors with:
    pathvars:
        rows="neal1997/priors/{block}",

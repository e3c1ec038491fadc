"""Neal (1997): a three-way classification (section 6) and a regression with outliers (section 7).

Settings are in the block ``neal1997`` of ``config/default.yaml``.
"""

from __future__ import annotations

from studies.common.plan import Study

STUDY = Study(
    experiments={
        # Section 6, Figures 3 and 4: chains on the three-way problem.
        "classes": {"data": "data/classes_{release}"},
        # Section 7, Figure 5: chains on the regression with outliers.
        "outliers": {"data": "data/outliers_{release}"},
        # Section 7 by quadrature, where the noise is Gaussian.
        "exact": {"data": "data/outliers_{release}"},
        # The best that any classifier can do on the problem of section 6.
        "bayes": {"old": "data/classes_1997", "new": "data/classes_2022"},
        # Laplace's method on the problem of section 6.
        "laplace": {"data": "data/classes_1997"},
        # Figure 1: draws from four priors.
        "priors": {},
    },
    measures={
        "classes": ["classes"],
        "outliers": ["outliers", "exact"],
        "beside": ["bayes", "laplace", "priors"],
    },
    # sections 6 and 7
    targets={"three_classes": ["classes", "bayes", "laplace"], "outliers": ["outliers"]},
    whole="neal",
    # cases of the author's files, in the releases of 1997 and 2022
    raw={
        f"{name}_{release}": f"neal_{name}_{release}"
        for name in ("classes", "outliers")
        for release in (1997, 2022)
    },
)

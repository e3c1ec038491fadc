"""Atiya, Fayed and Abdel-Gawad (2021): Tables 1 to 4, Figures 1 and 2, and what is beside them.

Settings are in the block ``atiya2021`` of ``config/default.yaml``.
"""

from __future__ import annotations

from studies.atiya2021.advice.names import DATA_SETS
from studies.atiya2021.whofits.names import DATA_SETS as FITTED
from studies.atiya2021.whofits.names import SPLITS
from studies.common.plan import From, Study

#: Section 6.4: the first data set of each problem; Problem 9 once more with the images as scanned.
PROBLEM = {"problem": "experiment4/problem{problem}"}
REFERENCE = From("defects_reference", lambda row: [] if row["case"] == "linear" else [row["case"]])

STUDY = Study(
    experiments={
        # ----- Experiments 1 to 3, and what belongs to no experiment
        # Section 6.1, Table 1: orthants whose probability is known.
        "experiment1": {},
        # Section 6.1: truths from coarse rectangle rules, whose errors are set beside the floor of Table 1.
        "quadrature": {},
        # Section 6.1: truths from adaptive rules, and other suspects for the same floor.
        "inexact": {},
        # Section 6.2, Tables 2 and 3: two normal classes and the linear kernel.
        "experiment2": {},
        # Section 6.3, Figures 1 and 2: error against CPU seconds where the truth is known.
        "experiment3": {},
        # New: the long run that stands for the truth of the problems with the RBF kernel on which defects are studied.
        "defects_reference": {},
        # New: each defect of the toolbox that the paper used for its chains, repaired alone and left alone.
        "defects": {"reference": REFERENCE},
        # Sections 5.7, 6.2 and 6.5: the order of the patterns and the way of counting.
        "ordering": {},
        # New: how each method scales with patterns and roughness.
        "scaling": {},
        # New: the variance of the sampler on the data sets of `scaling`, foretold without a sample.
        "asymptotic_variance": {},
        # New: the advice for the marginal likelihood, followed on real and simulated data sets.
        "advice": {"problem": "{patterns}"},
        # New: real data sets that are fitted, and whether the error of the evidence matters.
        "whofits": {"problem": "whofits/{data}-split{split}"},
        # New: class probabilities at large variances of the kernel, where the truth is known.
        "variances": {},
        # Sections 3 to 5 and the appendix: doubtful equations and limits, checked numerically.
        "equations": {},
        # ----- Experiments 4 and 5, and the reference
        # Section 6.4, Table 4: nine problems, six hyperparameter settings, every method.
        "experiment4": PROBLEM,
        # New: rows of Experiment 4 with parts of their counts. With the whole counts, error against CPU seconds.
        "benchmark": PROBLEM,
        # New: many data sets of the synthetic problems, to know how much Table 4 may differ between data sets.
        "spread": {},
        # New: pairs of Markov chains over the hyperparameters.
        "posterior_chains": PROBLEM,
        # New: the posterior that these chains have, and predictions with the hyperparameters averaged out.
        "experiment5": {**PROBLEM, "chains": From("posterior_chains", lambda row: row["pairs"])},
        # Section 6.5: hyperparameters tuned by the evidence, without gradients and with them.
        "tuning": PROBLEM,
        "tuning_gradient": PROBLEM,
        # A few cells of the certified reference, estimated anew in every run.
        "reference_check": PROBLEM,
        # The certified reference of Experiment 4. It is computed once and kept. A cell with a thousand patterns takes
        # an hour.
        "reference_cells": PROBLEM,
        # The closed forms of Experiments 1 to 3, certified by the sampler that is adapted to the labels.
        "reference_truths": {},
    },
    measures={
        "experiment1": ["experiment1", "quadrature", "inexact"],
        "experiment2": ["experiment2"],
        "experiment3": ["experiment3"],
        "experiment4": ["experiment4", "spread"],
        "experiment5": ["posterior_chains", "experiment5", "tuning", "tuning_gradient"],
        "benchmark": ["benchmark", "experiment4"],
        "other": ["defects", "ordering", "equations", "reference_check"],
        "scaling": ["scaling"],
        "asymptotic_variance": ["asymptotic_variance", "scaling"],
        "whofits": ["whofits"],
        "variances": ["variances"],
        "advice": ["advice"],
    },
    targets={
        "experiment1": ["experiment1", "quadrature", "inexact"],
        "experiment2": ["experiment2"],
        "experiment3": ["experiment3"],
        "experiment4": ["experiment4", "spread"],
        "scaling": ["scaling", "asymptotic_variance"],
        "advice": ["advice"],
        "whofits": ["whofits", "variances"],
        "benchmark": ["benchmark"],
        "experiment5": ["experiment5", "tuning", "tuning_gradient"],
        "defects": ["defects"],
    },
    raw={
        **{"problem7": "crabs", "problem8": "breast_cancer"},
        **{"problem9": "usps", "problem9_raw": "usps"},
        **{name: one.registered for name, one in DATA_SETS.items() if one.registered},
        **{
            f"{name}-split{split}": one.registered
            for name, one in FITTED.items()
            for split in range(SPLITS)
            if one.registered
        },
    },
    apart=("reference_cells", "reference_truths"),
)

# Atiya, Fayed, Abdel-Gawad (2021): Tables 1 to 4, Figures 1 and 2, and what is beside them.
# Settings: the block `atiya2021` of config/default.yaml. The rules that run rows end in `_rows`, because the names of the
# experiments are targets.

from studies.atiya2021.packaged_names import DATA_SETS

#: Patterns of the problems of Experiment 4.
ATIYA2021_PATTERNS = [
    f"experiment4/problem{number}.npz"
    for number in CHECKED["atiya2021"].atiya2021.experiment4.problems
]
#: Real data sets of the problems, by what the file of their patterns is called.
REGISTERED |= {"7": "crabs", "8": "breast_cancer", "9": "usps", "9_raw": "usps"}
#: Packaged data sets that are raw data, by the name of their patterns.
REGISTERED |= {name: one.registered for name, one in DATA_SETS.items() if one.registered}
#: What each part of the measures reads.
MEASURED["atiya2021"] = {
    "experiment1": ["experiment1", "quadrature", "inexact"],
    "experiment2": ["experiment2"],
    "experiment3": ["experiment3"],
    "experiment4": ["experiment4", "spread", *ATIYA2021_PATTERNS],
    "experiment5": ["posterior_chains", "experiment5", "tuning", "tuning_gradient"],
    "benchmark": ["benchmark", "experiment4", *ATIYA2021_PATTERNS],
    "other": ["defects", "ordering", "equations", "reference_check"],
    "scaling": ["scaling"],
    "packaged": ["packaged"],
    "rule": ["packaged", "scaling"],
}
#: Names of targets, and what each makes.
TARGETS |= {
    "experiment1": tables("atiya2021", "experiment1", "quadrature", "inexact"),
    "experiment2": tables("atiya2021", "experiment2"),
    "experiment3": tables("atiya2021", "experiment3"),
    "experiment4": tables("atiya2021", "experiment4", "spread"),
    "scaling": tables("atiya2021", "scaling"),
    "packaged": tables("atiya2021", "packaged"),
    "benchmark": tables("atiya2021", "benchmark"),
    "experiment5": tables("atiya2021", "experiment5", "tuning", "tuning_gradient"),
    "defects": tables("atiya2021", "defects"),
}


# Section 6.4: the first data set of each problem, and Problem 9 once more with the images as scanned.
use rule patterns as atiya2021_patterns with:
    pathvars:
        patterns="atiya2021/experiment4/problem{data}",
    wildcard_constraints:
        data="[1-9]|9_raw",


# New: binary data sets that ship with scikit-learn or are registered.
use rule patterns as packaged_patterns with:
    pathvars:
        patterns="atiya2021/packaged/{data}",
    wildcard_constraints:
        data="|".join(DATA_SETS),


# ----- Experiments 1 to 3, and what belongs to no experiment


# Section 6.1, Table 1: orthants whose probability is known.
use rule run as experiment1_rows with:
    pathvars:
        rows="atiya2021/experiment1/N{dimension}/M{samples}/{block}",


# Section 6.1: truths from coarse rectangle rules, whose errors are set beside the floor of Table 1.
use rule run as quadrature_rows with:
    pathvars:
        rows="atiya2021/quadrature/{block}",


# Section 6.1: truths from adaptive rules, and other suspects for the same floor.
use rule run as inexact_rows with:
    pathvars:
        rows="atiya2021/inexact/{block}",


# Section 6.2, Tables 2 and 3: two normal classes and the linear kernel.
use rule run as experiment2_rows with:
    pathvars:
        rows="atiya2021/experiment2/problem{problem}/M{samples}/{block}",


# Section 6.3, Figures 1 and 2: error against CPU seconds where the truth is known.
use rule run as experiment3_rows with:
    pathvars:
        rows="atiya2021/experiment3/{method}/{block}",


# New: the long run that stands for the truth of the problems with the RBF kernel on which defects are studied.
use rule run as defects_reference_rows with:
    pathvars:
        rows="atiya2021/defects_reference/{block}",
    priority: 1  # others read it


# New: each defect of the toolbox that the paper used for its Markov chains, repaired alone and left alone.
use rule run as defects_rows with:
    input:
        compiled=ancient("build/compiled.json"),
        reference="<results>/atiya2021/defects_reference.npz",
    pathvars:
        rows="atiya2021/defects/{case}/{sampler}/{block}",


# Sections 5.7, 6.2 and 6.5: the order of the patterns and the way of counting.
use rule run as ordering_rows with:
    pathvars:
        rows="atiya2021/ordering/{block}",


# New: how each method scales with patterns and roughness. A job has all kernels, as one of Experiment 4 has all settings.
use rule run as scaling_rows with:
    pathvars:
        rows="atiya2021/scaling/N{N}/{method}/{block}",


# New: every method, and the rule for users, on packaged data sets with fitted hyperparameters. A job has one data set,
# whose hyperparameters are fitted once.
use rule run as packaged_rows with:
    input:
        compiled=ancient("build/compiled.json"),
        problem="<results>/atiya2021/packaged/{data}.npz",
    pathvars:
        rows="atiya2021/packaged/{data}/{block}",


# Sections 3 to 5 and the appendix: doubtful equations and limits, checked numerically.
use rule run as equations_rows with:
    pathvars:
        rows="atiya2021/equations/{block}",


# ----- Experiments 4 and 5, and the reference


# Section 6.4, Table 4: nine problems, six hyperparameter settings, every method. What is based on this rule reads the
# same problem.
use rule run as experiment4_rows with:
    input:
        compiled=ancient("build/compiled.json"),
        problem="<results>/atiya2021/experiment4/problem{problem}.npz",
    pathvars:
        rows="atiya2021/experiment4/problem{problem}/{method}/{block}",


# New: rows of Experiment 4 with parts of their counts. With the whole counts, error against CPU seconds.
use rule experiment4_rows as benchmark_rows with:
    pathvars:
        rows="atiya2021/benchmark/problem{problem}/{method}/{block}",


# New: many data sets of the synthetic problems, to know how much Table 4 may differ between data sets.
use rule run as spread_rows with:
    pathvars:
        rows="atiya2021/spread/problem{problem}/{block}",


# New: pairs of Markov chains over the hyperparameters.
use rule experiment4_rows as posterior_chains_rows with:
    pathvars:
        rows="atiya2021/posterior_chains/problem{problem}/{method}/{block}",
    priority: 1  # others read it


# New: the posterior that these chains have, and predictions with the hyperparameters averaged out.
use rule run as experiment5_rows with:
    input:
        compiled=ancient("build/compiled.json"),
        problem="<results>/atiya2021/experiment4/problem{problem}.npz",
        chains="<results>/atiya2021/posterior_chains.npz",
    pathvars:
        rows="atiya2021/experiment5/problem{problem}/{block}",


# Section 6.5: hyperparameters tuned by the evidence, without gradients and with them.
use rule experiment4_rows as tuning_rows with:
    pathvars:
        rows="atiya2021/tuning/problem{problem}/{method}/{block}",


use rule experiment4_rows as tuning_gradient_rows with:
    pathvars:
        rows="atiya2021/tuning_gradient/problem{problem}/{block}",


# A few cells of the certified reference, estimated anew in every run.
use rule run as reference_check_rows with:
    input:
        "data/reference/atiya2021/certified/evidence.csv",
        compiled=ancient("build/compiled.json"),
        problem="<results>/atiya2021/experiment4/problem{problem}.npz",
    pathvars:
        rows="atiya2021/reference_check/problem{problem}/{block}",


# The certified reference of Experiment 4. It is computed once and kept. A cell with a thousand patterns takes an hour.
use rule experiment4_rows as reference_cells_rows with:
    pathvars:
        rows="atiya2021/reference_cells/problem{problem}/{block}",
    resources:
        runtime=240,


# The closed forms of Experiments 1 to 3, certified by the sampler that is adapted to the labels.
use rule run as reference_truths_rows with:
    pathvars:
        rows="atiya2021/reference_truths/{block}",
    resources:
        runtime=30,


# The files in data/reference are no declared outputs: Snakemake would delete them before the job runs, and make
# them again in every ordinary run.
rule reference:
    input:
        cells="<results>/atiya2021/reference_cells.csv",
        probabilities="<results>/atiya2021/reference_cells.npz",
        truths="<results>/atiya2021/reference_truths.csv",
        compiled="build/compiled.json",
    output:
        "<results>/atiya2021/reference/provenance.json",
    log:
        "<results>/logs/atiya2021/reference.log",
    params:
        store="data/reference/atiya2021/certified",
        config=dict(config),
        packages=PACKAGES,
    message:
        "Put the certified reference in data/reference/atiya2021/certified"
    script:
        "../scripts/reference.py"


# Counts that give all methods equal CPU seconds, to be copied to the file of the scale. Nothing else should run meanwhile.
rule calibrate:
    input:
        compiled="build/compiled.json",
        problems=expand("<results>/atiya2021/experiment4/problem{data}.npz", data=range(1, 10)),
    output:
        counts="<results>/atiya2021/budgets.yaml",
    log:
        "<results>/logs/atiya2021/calibrate.log",
    resources:
        runtime=240,
    message:
        "Find the counts that give the rows of Experiment 4 equal CPU seconds"
    script:
        "../scripts/calibrate.py"

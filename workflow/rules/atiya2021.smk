# Targets of the study of Atiya et al. (2021), each alone. What comes after `defects` is not part of `all`.


# The longest jobs start first: Experiment 5, which is not divided into slices, and Experiment 2 at scales without any.
use rule run as run_first with:
    wildcard_constraints:
        run="atiya2021/experiment(2|5)/problem[0-9]+(/.*|_tuning)?",
    priority: 3


# The longest slices, of one run each at the published scale.
use rule slice as slice_first with:
    wildcard_constraints:
        run="|".join(re.escape(run) for run in SLICES if run.endswith("control-variables")) or NONE,
    priority: 4


# Seconds, or a minute at most: on a cluster these share allocations (profiles/slurm).
use rule run as run_short with:
    wildcard_constraints:
        run="atiya2021/(benchmark/problem[1-5]_.*|experiment4/problem[0-9]+(_raw)?/(laplace|ep|pseudo-marginal-(laplace|ep))|experiment5/problem[0-9]+_gradient)",
    resources:
        mem_mb=lambda wildcards: JOBS[wildcards.run].mem_mb,
        runtime=5,


ruleorder: run_first > run_short > run
ruleorder: slice_first > slice


rule experiment1:
    input:
        made_by("atiya2021", "experiment1", "quadrature"),
    localrule: True


rule experiment2:
    input:
        made_by("atiya2021", "experiment2"),
    localrule: True


rule experiment3:
    input:
        made_by("atiya2021", "experiment3"),
    localrule: True


rule experiment4:
    input:
        made_by("atiya2021", "experiment4", "spread"),
    localrule: True


rule benchmark:
    input:
        made_by("atiya2021", "benchmark"),
    localrule: True


rule experiment5:
    input:
        made_by("atiya2021", "experiment5", "tuning", "tuning_gradient"),
    localrule: True


rule defects:
    input:
        made_by("atiya2021", "defects"),
    localrule: True


# Counts that give all methods equal CPU seconds, to be copied to the file of the scale.
rule calibrate:
    input:
        made_by("atiya2021", "calibrate"),
    localrule: True


# The files in data/reference are no declared outputs: Snakemake would delete them before the job runs, and make
# them again in every ordinary run.
rule reference:
    input:
        rows=made_by("atiya2021", "reference"),
        truths=made_by("atiya2021", "reference_truths"),
        compiled="build/compiled.json",
    output:
        "<results>/atiya2021/reference/provenance.json",
    log:
        "<results>/logs/atiya2021/reference.log",
    params:
        store="data/reference/atiya2021",
        config=CONFIG,
        packages=PACKAGES,
    message:
        "Put the certified reference in data/reference/atiya2021"
    script:
        "../scripts/reference.py"

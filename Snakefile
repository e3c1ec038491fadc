# From raw data to the paper, at the scale that the configuration names:
#
#   plans  ->  rows  ->  measures, verdicts  ->  tables, figures, look-ups  ->  PDF
#
# Each stage has a file of rules. What a study runs and reads, and which table rests on what, is in
# src/studies/<study>/study.py.

from snakemake.utils import min_version

min_version("9.20")


# With --software-deployment-method apptainer; otherwise jobs run in the environment that is active. container/gpcmc.def says
# what is in it, and how it is built.
container: "container/gpcmc.sif"


report: "workflow/report/workflow.rst"


# The configuration: config/default.yaml, the file of the scale over it, and what was given.
include: "workflow/rules/common.smk"


pathvars:
    results=f"results/{config['scale']}",
    figures=f"figures/{config['scale']}",


include: "workflow/rules/data.smk"
include: "workflow/rules/rows.smk"
include: "workflow/rules/measures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/kept.smk"


rule all:
    default_target: True
    input:
        "<results>/summary.txt",
        "<results>/MANIFEST.sha256",


# What is no file of this workflow and no name of a rule: the answer names the targets that there are.
rule unknown:
    input:
        lambda wildcards: refuse_target(wildcards.target),
    output:
        "{target}",
    log:
        "<results>/logs/unknown/{target}.log",
    wildcard_constraints:
        target="[A-Za-z0-9_-]+",
    localrule: True
    message:
        "There is no target {wildcards.target}"
    shell:
        "exit 1"

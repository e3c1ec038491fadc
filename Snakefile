# From raw data to the paper, at the scale that the configuration names:
#
#   plans  ->  rows  ->  measures  ->  verdicts  ->  tables, figures, look-ups  ->  PDF
#
# Each stage has a file of rules and a script. What a study runs is in the rule file that bears its name.

from snakemake.utils import min_version

min_version("9.20")


configfile: "config/default.yaml"


# With --software-deployment-method apptainer; otherwise jobs run in the environment that is active. container/gpcmc.def says
# what is in it, and how it is built.
container: "container/gpcmc.sif"


report: "workflow/report/workflow.rst"


# Puts the file of the scale over this one.
include: "workflow/rules/common.smk"


pathvars:
    results=f"results/{config['scale']}",
    figures=f"figures/{config['scale']}",


include: "workflow/rules/data.smk"
include: "workflow/rules/rows.smk"


for study in STUDIES:

    include: f"workflow/rules/{study}.smk"


include: "workflow/rules/measures.smk"
include: "workflow/rules/judge.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/kept.smk"


rule all:
    default_target: True
    input:
        "<results>/summary.txt",
        "<results>/MANIFEST.sha256",

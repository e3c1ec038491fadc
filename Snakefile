# From raw data to the paper, at the scale that the configuration names:
#
#   runs  ->  measures  ->  verdicts  ->  tables, figures, look-ups  ->  PDF
#
# Each stage has a file of rules and a script. What a study runs is in the rule file that bears its name.

from snakemake.utils import min_version

min_version("9.20")


configfile: "config/config.yaml"


if not Path(f"config/{config['scale']}.yaml").exists():
    raise WorkflowError(
        f"scale: given {config['scale']!r}; allowed is a scale that has a file config/<scale>.yaml"
    )
try:
    Path(f"config/{config['scale']}.yaml").read_text(encoding="utf-8")
except UnicodeDecodeError as error:
    raise WorkflowError(f"config/{config['scale']}.yaml is no text in UTF-8: {error}") from None


configfile: f"config/{config['scale']}.yaml"


# `snakemake --lint` asks for an image. This one is bare: jobs run in the environment that is active.
container: "docker://condaforge/miniforge3"


report: "workflow/report/workflow.rst"


pathvars:
    results=f"results/{config['scale']}",
    figures=f"figures/{config['scale']}",


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/measures.smk"
include: "workflow/rules/judge.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/kept.smk"


for study in STUDIES:

    include: f"workflow/rules/{study}.smk"


rule all:
    default_target: True
    input:
        "<results>/summary.txt",
        "<results>/MANIFEST.sha256",

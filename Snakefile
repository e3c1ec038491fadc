# From raw data to the paper, at the scale that the configuration names; rules stand in workflow/rules, by stage.

from copy import deepcopy

from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"


if not Path(f"config/{config['scale']}.yaml").exists():
    raise WorkflowError(
        f"scale: given {config['scale']!r}; allowed is a scale that has a file config/<scale>.yaml"
    )


configfile: f"config/{config['scale']}.yaml"


# the rows of Experiment 4 without the counts that `snakemake calibrate` finds
UNCALIBRATED = deepcopy(config.get("experiment4", {}).get("methods", {}))

if Path(f"config/budgets/{config['scale']}.yaml").exists():

    # those counts: of equal CPU seconds
    configfile: f"config/budgets/{config['scale']}.yaml"
    # once more: what a person wrote there goes before what was calibrated
    configfile: f"config/{config['scale']}.yaml"


# `snakemake --lint` asks for one. Jobs run in the environment that is active: the image is bare, it has none of the
# packages, so that nothing runs with `--sdm apptainer`.
container: "docker://condaforge/miniforge3"


report: "workflow/report/workflow.rst"


include: "workflow/rules/guard.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/package.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/experiments.smk"
include: "workflow/rules/reference.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/kept.smk"
include: "workflow/rules/review.smk"


rule all:
    default_target: True
    input:
        f"results/{config['scale']}/data_check.csv",
        f"results/{config['scale']}/audit.ipynb",
        f"results/{config['scale']}/summary.txt",
        f"results/{config['scale']}/MANIFEST.sha256",

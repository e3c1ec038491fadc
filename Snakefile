# From raw data to the paper, at the scale that the configuration names; rules stand in workflow/rules, by stage.

from snakemake.utils import min_version, validate

min_version("9.0")


configfile: "config/config.yaml"
configfile: f"config/{config['scale']}.yaml"


if Path(f"config/budgets/{config['scale']}.yaml").exists():

    # counts of equal CPU seconds, made by `snakemake calibrate`
    configfile: f"config/budgets/{config['scale']}.yaml"


validate(config, "workflow/schemas/config.schema.yaml")


# `snakemake --lint` asks for one. Jobs run in the environment that is active, unless `--sdm apptainer` is given.
container: "docker://condaforge/miniforge3"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/package.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/experiments.smk"
include: "workflow/rules/reference.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/review.smk"


rule all:
    default_target: True
    input:
        f"results/{config['scale']}/data_check.csv",
        f"results/{config['scale']}/summary.txt",
        f"results/{config['scale']}/MANIFEST.sha256",

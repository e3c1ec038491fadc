# The certified reference of Experiment 4, and the certified truths of Experiments 1 to 3. `snakemake reference`
# computes them and puts them in data/reference, which every scale reads; it is not part of `all`. Every
# run computes a few cells anew.

NINE = range(1, 10)


rule reference_problem:
    input:
        problem="results/{scale}/experiment4/problem{problem}.npz",
        package="build/package.json",
    output:
        rows="results/{scale}/reference/problem{problem}.csv",
        probabilities="results/{scale}/reference/problem{problem}.npz",
    log:
        "results/{scale}/logs/reference/problem{problem}.log",
    threads: 1
    resources:
        mem_mb=population_mb(1000, 50_000),
    params:
        pieces="build/pieces/{scale}/reference/problem{problem}",
        root=config["seed"],
        hyperparameters=config["experiment4"]["hyperparameters"],
    message:
        "Reference of Experiment 4, Problem {wildcards.problem}"
    script:
        "../scripts/reference.py"


rule reference_truths:
    input:
        package="build/package.json",
    output:
        "results/{scale}/reference/truths.csv",
    log:
        "results/{scale}/logs/reference/truths.log",
    threads: 1
    resources:
        mem_mb=population_mb(800, 200_000),
    params:
        pieces="build/pieces/{scale}/reference/truths",
        root=config["seed"],
    message:
        "Certify the truths of Experiments 1 to 3"
    script:
        "../scripts/reference_truths.py"


# The files in data/reference are no declared outputs: Snakemake would delete them before the job runs, and make
# them again in every ordinary run.
rule reference:
    input:
        rows=expand(
            "results/{scale}/reference/problem{problem}.csv", scale=config["scale"], problem=NINE
        ),
        probabilities=expand(
            "results/{scale}/reference/problem{problem}.npz", scale=config["scale"], problem=NINE
        ),
        truths=expand("results/{scale}/reference/truths.csv", scale=config["scale"]),
        registry="data/registry.csv",
        package="build/report.json",
    output:
        expand("results/{scale}/reference/provenance.json", scale=config["scale"]),
    log:
        expand("results/{scale}/logs/reference/store.log", scale=config["scale"]),
    localrule: True
    params:
        folder="data/reference",
        config=config,
    message:
        "Put the reference in data/reference"
    script:
        "../scripts/reference_store.py"


rule check_reference:
    input:
        evidence="data/reference/evidence.csv",
        probabilities="data/reference/probabilities.npz",
        problems=expand(
            "results/{{scale}}/experiment4/problem{problem}.npz",
            problem=config["experiment4"]["problems"],
        ),
        package="build/package.json",
    output:
        "results/{scale}/reference_check.csv",
    log:
        "results/{scale}/logs/reference_check.log",
    threads: 1
    params:
        root=config["seed"],
        problems=config["experiment4"]["problems"],
        hyperparameters=config["experiment4"]["hyperparameters"],
        check=config["reference_check"],
    message:
        "Estimate some cells of the reference anew"
    script:
        "../scripts/recertify.py"


rule recertify:
    input:
        expand("results/{scale}/reference_check.csv", scale=config["scale"]),
    localrule: True
    message:
        "The check of the reference is done"

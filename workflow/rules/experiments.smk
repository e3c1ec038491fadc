# Numerical jobs: one thread each, parallel by jobs, so that results do not depend on the number of cores.
# `pieces` is where a job keeps what is finished, for the case that it is interrupted.


onsuccess:
    # Nothing was interrupted: jobs that run again compute anew, unless `resume` puts their pieces back.
    for done in sorted(Path("build/pieces").glob(f"{config['scale']}/**/done")):
        aside = done.parent.with_name(f"{done.parent.name}.finished")
        shutil.rmtree(aside, ignore_errors=True)
        done.unlink()
        done.parent.rename(aside)


rule experiment1_dimension:
    input:
        package="build/package.json",
    output:
        rows="results/{scale}/experiment1/N{dimension}.csv",
        timing="results/{scale}/experiment1/N{dimension}_timing.csv",
    log:
        "results/{scale}/logs/experiment1/N{dimension}.log",
    priority: 1
    threads: 1
    resources:
        mem_mb=memory_experiment1,
    params:
        pieces="build/pieces/{scale}/experiment1/N{dimension}",
        root=config["seed"],
        grid=config["experiment1"]["grid"],
        options={key: config["experiment1"][key] for key in ("count", "scheme")},
    message:
        "Experiment 1, N = {wildcards.dimension}"
    script:
        "../scripts/experiment1.py"


rule quadrature:
    input:
        package="build/package.json",
    output:
        "results/{scale}/experiment1/quadrature.csv",
    log:
        "results/{scale}/logs/experiment1/quadrature.log",
    threads: 1
    params:
        root=config["seed"],
        dimensions=config["experiment1"]["dimensions"],
        instances=max(cell["instances"] for cell in config["experiment1"]["grid"]),
        quadrature=config["experiment1"]["quadrature"],
    message:
        "Errors of coarse quadrature in the truth of Experiment 1"
    script:
        "../scripts/quadrature.py"


rule equations:
    input:
        package="build/package.json",
    output:
        "results/{scale}/equations.csv",
    log:
        "results/{scale}/logs/equations.log",
    threads: 1
    params:
        root=config["seed"],
    message:
        "Check the paper's equations numerically"
    script:
        "../scripts/equations.py"


rule ordering:
    input:
        package="build/package.json",
    output:
        "results/{scale}/ordering.csv",
    log:
        "results/{scale}/logs/ordering.log",
    threads: 1
    resources:
        mem_mb=population_mb(800, config["ordering"]["samples"]),
    params:
        pieces="build/pieces/{scale}/ordering",
        root=config["seed"],
        settings=config["ordering"],
    message:
        "Order of the patterns, and soft against hard count"
    script:
        "../scripts/ordering.py"


rule broken_runs:
    input:
        package="build/package.json",
    output:
        experiment1="results/{scale}/controls/{kind}_experiment1.csv",
        experiment2="results/{scale}/controls/{kind}_experiment2.csv",
    log:
        "results/{scale}/logs/controls/{kind}.log",
    threads: 1
    params:
        root=config["seed"],
        settings=config["controls"],
    message:
        "Negative controls of the audit: {wildcards.kind}"
    script:
        "../scripts/broken.py"


rule experiment2_problem:
    input:
        package="build/package.json",
    output:
        rows="results/{scale}/experiment2/problem{problem}.csv",
        timing="results/{scale}/experiment2/problem{problem}_timing.csv",
        truth="results/{scale}/experiment2/problem{problem}.npz",
    log:
        "results/{scale}/logs/experiment2/problem{problem}.log",
    # the longest job of all is one of these: they start first
    priority: 2
    threads: 1
    resources:
        mem_mb=memory_experiment2,
    params:
        pieces="build/pieces/{scale}/experiment2/problem{problem}",
        root=config["seed"],
        grid=config["experiment2"]["grid"],
        options={key: config["experiment2"][key] for key in ("count", "scheme")},
    message:
        "Experiment 2, Problem {wildcards.problem}"
    script:
        "../scripts/experiment2.py"


rule experiment3_method:
    input:
        package="build/package.json",
    output:
        rows="results/{scale}/experiment3/{method}.csv",
        timing="results/{scale}/experiment3/{method}_timing.csv",
    log:
        "results/{scale}/logs/experiment3/{method}.log",
    priority: 1
    threads: 1
    resources:
        mem_mb=population_mb(400, 200_000),
    params:
        pieces="build/pieces/{scale}/experiment3/{method}",
        root=config["seed"],
        method=tradeoff_row,
    message:
        "Experiment 3, {wildcards.method}"
    script:
        "../scripts/experiment3.py"


rule toolbox_defects:
    input:
        package="build/package.json",
    output:
        rows="results/{scale}/defects/{case}_{sampler}.csv",
        timing="results/{scale}/defects/{case}_{sampler}_timing.csv",
    log:
        "results/{scale}/logs/defects/{case}_{sampler}.log",
    threads: 1
    params:
        pieces="build/pieces/{scale}/defects/{case}_{sampler}",
        root=config["seed"],
        settings=config["defects"],
    message:
        "Defects of the toolbox: {wildcards.case}, {wildcards.sampler}"
    script:
        "../scripts/defects.py"


rule experiment4_method:
    input:
        problem="results/{scale}/experiment4/problem{problem}.npz",
        package="build/package.json",
    output:
        rows="results/{scale}/experiment4/problem{problem}/{method}.csv",
        timing="results/{scale}/experiment4/problem{problem}/{method}_timing.csv",
        probabilities=expand(
            "results/{{scale}}/experiment4/problem{{problem}}/{{method}}_set{set}.npz", set=SETS
        ),
    log:
        "results/{scale}/logs/experiment4/problem{problem}_{method}.log",
    threads: 1
    resources:
        mem_mb=memory_experiment4,
    params:
        pieces="build/pieces/{scale}/experiment4/problem{problem}_{method}",
        root=config["seed"],
        hyperparameters=config["experiment4"]["hyperparameters"],
        method=method_row,
    message:
        "Experiment 4, Problem {wildcards.problem}, {wildcards.method}"
    script:
        "../scripts/experiment4.py"


# The name of the row keys the random streams: these are the chains of Experiment 4, read otherwise.
use rule experiment4_method as single_variance with:
    output:
        rows="results/{scale}/experiment4/single_variance/problem{problem}/{method}.csv",
        timing="results/{scale}/experiment4/single_variance/problem{problem}/{method}_timing.csv",
        probabilities=expand(
            "results/{{scale}}/experiment4/single_variance/problem{{problem}}/{{method}}_set{set}.npz",
            set=SETS,
        ),
    log:
        "results/{scale}/logs/experiment4/single_variance/problem{problem}_{method}.log",
    params:
        pieces="build/pieces/{scale}/experiment4/single_variance/problem{problem}_{method}",
        root=config["seed"],
        hyperparameters=config["experiment4"]["hyperparameters"],
        method=single_variance_row,
    message:
        "Experiment 4 without the double variance, Problem {wildcards.problem}, {wildcards.method}"


rule calibrate:
    input:
        problems=expand(
            "results/{scale}/experiment4/problem{problem}.npz",
            scale=config["scale"],
            problem=range(1, 10),
        ),
        package="build/package.json",
    output:
        expand("results/{scale}/budgets.yaml", scale=config["scale"]),
    log:
        expand("results/{scale}/logs/experiment4/budgets.log", scale=config["scale"]),
    threads: 1
    params:
        root=config["seed"],
        alpha=5.0,
        beta=1.0,
        rows={
            name: {problem: row_on(given, problem) for problem in range(1, 10)}
            for name, given in UNCALIBRATED.items()
        },
    message:
        "Find counts of equal CPU seconds; copy the file to config/budgets to use it"
    script:
        "../scripts/calibrate.py"


rule spread_of_data_sets:
    input:
        package="build/package.json",
    output:
        "results/{scale}/experiment4/spread.csv",
    log:
        "results/{scale}/logs/experiment4/spread.log",
    threads: 1
    params:
        root=config["seed"],
        problems=config["experiment4"]["problems"],
        hyperparameters=config["experiment4"]["hyperparameters"],
        data_sets=config["experiment4"]["spread_data_sets"],
    message:
        "Experiment 4: how MAE-POST varies between data sets"
    script:
        "../scripts/spread.py"


rule experiment5_posterior:
    input:
        problem="results/{scale}/experiment4/problem{problem}.npz",
        package="build/package.json",
    output:
        rows="results/{scale}/experiment5/problem{problem}/{method}.csv",
        timing="results/{scale}/experiment5/problem{problem}/{method}_timing.csv",
        draws="results/{scale}/experiment5/problem{problem}/{method}.npz",
    log:
        "results/{scale}/logs/experiment5/problem{problem}_{method}.log",
    threads: 1
    params:
        pieces="build/pieces/{scale}/experiment5/problem{problem}_{method}",
        root=config["seed"],
        method=posterior_row,
    message:
        "Experiment 5, Problem {wildcards.problem}: posterior by {wildcards.method}"
    script:
        "../scripts/experiment5.py"


rule experiment5_tuning:
    input:
        problem="results/{scale}/experiment4/problem{problem}.npz",
        package="build/package.json",
    output:
        rows="results/{scale}/experiment5/problem{problem}_tuning.csv",
        timing="results/{scale}/experiment5/problem{problem}_tuning_timing.csv",
        searches="results/{scale}/experiment5/problem{problem}_tuning.npz",
    log:
        "results/{scale}/logs/experiment5/problem{problem}_tuning.log",
    threads: 1
    params:
        pieces="build/pieces/{scale}/experiment5/problem{problem}_tuning",
        root=config["seed"],
        settings={k: v for k, v in config["experiment5"]["tuning"].items() if k != "problems"},
    message:
        "Experiment 5, Problem {wildcards.problem}: tuning"
    script:
        "../scripts/tuning.py"


rule experiment1:
    input:
        expand(
            "results/{scale}/experiment1/N{dimension}.csv",
            scale=config["scale"],
            dimension=config["experiment1"]["dimensions"],
        ),
    localrule: True
    message:
        "Experiment 1 is done"


rule experiment2:
    input:
        expand(
            "results/{scale}/experiment2/problem{problem}.csv",
            scale=config["scale"],
            problem=config["experiment2"]["problems"],
        ),
    localrule: True
    message:
        "Experiment 2 is done"


rule experiment3:
    input:
        expand(
            "results/{scale}/experiment3/{method}.csv",
            scale=config["scale"],
            method=config["experiment3"]["methods"],
        ),
    localrule: True
    message:
        "Experiment 3 is done"


rule defects:
    input:
        expand(
            "results/{scale}/defects/{case}_{sampler}.csv",
            scale=config["scale"],
            case=["linear", "smooth", "rough"],
            sampler=["ess", "hmc"],
        ),
    localrule: True
    message:
        "The study of the toolbox's defects is done"


rule experiment4:
    input:
        expand(
            "results/{scale}/experiment4/problem{problem}/{method}.csv",
            scale=config["scale"],
            problem=config["experiment4"]["problems"],
            method=config["experiment4"]["methods"],
        ),
    localrule: True
    message:
        "Experiment 4 is done"


rule experiment5:
    input:
        expand(
            "results/{scale}/experiment5/problem{problem}/{method}.csv",
            scale=config["scale"],
            problem=config["experiment5"]["posterior"]["problems"],
            method=config["experiment5"]["posterior"]["methods"],
        ),
        expand(
            "results/{scale}/experiment5/problem{problem}_tuning.csv",
            scale=config["scale"],
            problem=config["experiment5"]["tuning"]["problems"],
        ),
    localrule: True
    message:
        "Experiment 5 is done"

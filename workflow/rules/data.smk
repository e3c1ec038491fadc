rule fetch:
    input:
        registry="data/registry.csv",
        package="build/package.json",
    output:
        # Not the raw file: Snakemake would delete a file that a person placed there by hand.
        status="results/{scale}/data/{file}.json",
    log:
        "results/{scale}/logs/fetch/{file}.log",
    params:
        again=fetch_again,
        data=config["data"],
        missing_data=config["missing_data"],
    message:
        "Fetch and verify {wildcards.file}"
    script:
        "../scripts/fetch.py"


rule data_check:
    input:
        status=RAW_STATUS,
        registry="data/registry.csv",
        package="build/package.json",
    output:
        table="results/{scale}/data_check.csv",
        page=report(
            "results/{scale}/data_check.html",
            caption="../report/data_check.rst",
            category="Data",
            labels={"kind": "page", "content": "Facts of the raw data"},
        ),
    log:
        "results/{scale}/logs/data_check.log",
    message:
        "Check the raw data's facts"
    script:
        "../scripts/data_check.py"


rule problem:
    input:
        status=raw_status,
        registry="data/registry.csv",
        package="build/package.json",
    output:
        "results/{scale}/experiment4/problem{problem}.npz",
    log:
        "results/{scale}/logs/experiment4/problem{problem}.log",
    threads: 1
    params:
        root=config["seed"],
        standardise=standardise,
    message:
        "Make the patterns of Experiment 4, Problem {wildcards.problem}"
    script:
        "../scripts/problem.py"

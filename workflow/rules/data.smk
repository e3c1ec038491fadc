# Raw data: fetched once, verified on arrival and before each use.


rule fetch:
    input:
        registry="data/registry.csv",
    output:
        # Not the raw file: Snakemake would delete a file that a person placed there by hand.
        status="<results>/data/{file}.json",
    log:
        "<results>/logs/data/{file}.log",
    localrule: True  # the nodes of a cluster may have no internet
    params:
        again=fetch_again,
        data=GENERAL.data.model_dump(exclude={"standardise"}),
        missing_data=GENERAL.missing_data,
    message:
        "Fetch and verify {wildcards.file}"
    script:
        "../scripts/data.py"


rule data_check:
    input:
        RAW_STATUS,
        registry="data/registry.csv",
    output:
        table="<results>/data_check.csv",
        page=shown("<results>/data_check.html", "Data", "Facts of the raw data"),
    log:
        "<results>/logs/data/check.log",
    localrule: True
    message:
        "Check the facts of the raw data"
    script:
        "../scripts/data.py"

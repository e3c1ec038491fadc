# Raw data: fetched once, verified on arrival and before each use; and the patterns that are made from them.

import csv

with open("data/registry.csv", newline="", encoding="utf-8") as registry:
    RAW_FILES = {row["file"]: row for row in csv.DictReader(registry)}
RAW_STATUS = [f"{RESULTS}/data/{file}.json" for file in RAW_FILES]


rule fetch:
    input:
        registry="data/registry.csv",
        facts="data/facts.yaml",
    output:
        # Not the raw files: Snakemake would delete one that a person placed there by hand.
        status=RAW_STATUS,
        table=f"{RESULTS}/data_check.csv",
        page=shown(f"{RESULTS}/data_check.html", "Data", "Facts of the raw data"),
    log:
        "<results>/logs/data.log",
    localrule: True  # the nodes of a cluster may have no internet
    params:
        # another one where data/raw is not as it was left: a file was placed there, or damaged
        asked=lambda wildcards: asked_of_raw(RAW_STATUS),
        data=GENERAL.data.model_dump(exclude={"standardise"}),
        missing_data=GENERAL.missing_data,
        code=digest(["studies.common.data"]),
    message:
        "Fetch and verify the raw data"
    script:
        "../scripts/data.py"


for study in STUDIES:
    for group, names in PLAN.patterns(study).items():

        # Patterns of the experiments, from raw files or from a law.
        rule:
            name:
                f"{study}_{group}_patterns"
            input:
                compiled=ancient("build/compiled.json"),
                raw=raw_status(PLAN.raw(study, names)),
            output:
                [f"{RESULTS}/{study}/{name}.npz" for name in names],
            log:
                f"<results>/logs/{study}/patterns_{group}.log",
            params:
                study=study,
                names=names,
                # of each, the raw files that it needs
                needs={name: raw_status(PLAN.raw(study, [name])) for name in names},
                seed=GENERAL.seed,
                standardise=GENERAL.data.standardise,
                code=digest([f"studies.{study}.patterns"]),
            message:
                f"Make the patterns of {study}: {group}"
            script:
                "../scripts/patterns.py"

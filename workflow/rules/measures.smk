# Measures: the only stage that opens raw files. A part is what is measured together; all parts make one table.


rule measure:
    input:
        raw_files,
        reference_files,
        published="data/published/{study}/cells.csv",
        claims="data/published/{study}/claims.yaml",
        compiled="build/compiled.json",
    output:
        measures="<results>/{study}/measures/{part}.csv",
        estimates="<results>/{study}/estimates/{part}.csv",
    log:
        "<results>/logs/{study}/measure_{part}.log",
    params:
        code=lambda wildcards: [
            digest([f"studies.{wildcards.study}.measures.{wildcards.part}"]),
            code("recheck.measures"),
        ],
    message:
        "Measure {wildcards.part} of {wildcards.study}"
    script:
        "../scripts/measure.py"


rule measures:
    input:
        measures=lambda wildcards: [
            f"{RESULTS}/{wildcards.study}/measures/{part}.csv" for part in PARTS[wildcards.study]
        ],
        estimates=lambda wildcards: [
            f"{RESULTS}/{wildcards.study}/estimates/{part}.csv" for part in PARTS[wildcards.study]
        ],
    output:
        measures="<results>/{study}/measures.csv",
        estimates="<results>/{study}/estimates.csv",
    log:
        "<results>/logs/{study}/measures.log",
    message:
        "Put the measures of {wildcards.study} together"
    script:
        "../scripts/measure.py"

# Measures: the only stage that opens rows. A part is what is measured together; all parts make one table. The rule file of
# a study says which experiments a part reads (MEASURED).


rule measure:
    input:
        rows_read,
        lambda wildcards: sorted(glob(f"data/reference/{wildcards.study}/certified/*")),
        published="data/published/{study}/cells.csv",
        claims="data/published/{study}/claims.yaml",
        compiled="build/compiled.json",
    output:
        measures="<results>/{study}/measures/{part}.csv",
        estimates="<results>/{study}/estimates/{part}.csv",
    log:
        "<results>/logs/{study}/measure_{part}.log",
    params:
        experiments=lookup("{study}/{part}", within=MEASURED),
        code=lambda wildcards: digest(
            [f"studies.{wildcards.study}.measures.{wildcards.part}", "recheck.judge.measures"]
        ),
    message:
        "Measure {wildcards.part} of {wildcards.study}"
    script:
        "../scripts/measure.py"


rule measures:
    input:
        measures=collect(
            "<results>/{{study}}/measures/{part}.csv", part=lookup("{study}", within=MEASURED)
        ),
        estimates=collect(
            "<results>/{{study}}/estimates/{part}.csv", part=lookup("{study}", within=MEASURED)
        ),
    output:
        measures="<results>/{study}/measures.csv",
        estimates="<results>/{study}/estimates.csv",
    log:
        "<results>/logs/{study}/measures.log",
    message:
        "Put the measures of {wildcards.study} together"
    script:
        "../scripts/measure.py"

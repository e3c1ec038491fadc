# Verdicts on published cells, contrasts, columns and claims; planted faults that the judge should detect; the audit.


rule judge:
    input:
        published,
        measures="<results>/{study}/measures.csv",
        estimates="<results>/{study}/estimates.csv",
    output:
        verdicts="<results>/{study}/verdicts.csv",
        readings="<results>/{study}/readings.csv",
        outcomes="<results>/{study}/outcomes.csv",
    log:
        "<results>/logs/{study}/judge.log",
    params:
        seed=GENERAL.seed,
        code=digest(["recheck.judge.verdicts"]),
    message:
        "Judge what {wildcards.study} published"
    script:
        "../scripts/judge.py"


use rule judge as controls with:
    input:
        rules.judge.input,
        verdicts=rules.judge.output.verdicts,
    output:
        controls="<results>/{study}/controls.csv",
    log:
        "<results>/logs/{study}/controls.log",
    params:
        code=digest(["recheck.judge.controls"]),
    message:
        "Plant faults, and see which the judge detects"


rule remeasured:
    input:
        lambda wildcards: kept(wildcards.study),
        published,
        measures="<results>/{study}/measures.csv",
        layout="src/studies/{study}/layout.yaml",
    output:
        remeasured="<results>/{study}/remeasured.csv",
    log:
        "<results>/logs/{study}/remeasured.log",
    params:
        code=digest(["recheck.record.remeasured"]),
        plans=lambda wildcards: plans(wildcards.study),
    message:
        "Set what this run measured beside the kept results"
    script:
        "../scripts/remeasured.py"


rule audit:
    input:
        sorted(glob("data/published/*/*")),
        "src/recheck/report/audit.html.j2",
        "src/recheck/report/picture.svg.j2",
        verdicts=expand("<results>/{study}/verdicts.csv", study=STUDIES),
        layouts=expand("src/studies/{study}/layout.yaml", study=STUDIES),
    output:
        table=shown("<results>/audit.csv", "Audit", "Every verdict"),
        page=shown("<results>/audit.html", "Audit", "Every verdict"),
    log:
        "<results>/logs/audit.log",
    params:
        studies=STUDIES,
        code=digest(["recheck.report.audit"]),
    message:
        "Put the verdicts of all studies together"
    script:
        "../scripts/audit.py"

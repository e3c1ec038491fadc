# What is made of the rows of a study: tables of them, measures and estimates, verdicts on published cells, contrasts,
# columns and claims, planted faults that the judge should detect, and what differs from the kept results. One job a
# study; src/studies/<study>/study.py says what each part of the measures reads.

for study in STUDIES:

    rule:
        name:
            f"measure_{study}"
        input:
            read_for(study),
            kept(study),
            compiled=ancient("build/compiled.json"),
        output:
            [path for name in PLAN.kept(study) for path in table(f"{RESULTS}/{study}/{name}")],
            **{name: f"{RESULTS}/{study}/{name}.csv" for name in JUDGED},
        log:
            f"<results>/logs/{study}/measure.log",
        params:
            **PLAN.tables(study, PLAN.kept(study)),
            study=study,
            parts=declared(study).measures,
            plans=PLAN.plans(study),
            seed=GENERAL.seed,
            code=code_of(study, declared(study).measures, *JUDGES),
        message:
            f"Measure {study}, and judge what it published"
        script:
            "../scripts/measure.py"


rule audit:
    input:
        [path for study in STUDIES for path in published(study)],
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


# What the measures of this run have that those of the run before, with another setting or code, had not.
rule moved:
    input:
        expand("<results>/{study}/measures.csv", study=STUDIES),
    log:
        "<results>/logs/moved.log",
    localrule: True
    params:
        studies=STUDIES,
    message:
        "Set the measures of this run beside those of the run before"
    script:
        "../scripts/moved.py"

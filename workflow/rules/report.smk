# What readers see. Tables, figures and look-ups read measures, estimates and verdicts, and no raw file; layout.yaml of
# a study declares them. All tables and figures of a study are one job; `table4` or `figure_floor` alone is a job that
# reads the rows of those parts of the measures that the layout says it reads, and measures them by itself.

for study in STUDIES:

    rule:
        name:
            f"draw_{study}"
        input:
            book(study),
            [f"data/published/{study}/protocol.yaml"],
            [f"{RESULTS}/{study}/{name}.csv" for name in ("readings", "controls")],
            [f"src/recheck/report/{name}.tex.j2" for name in ("verdicts", "readings", "protocol")],
        output:
            drawn(study, "tables", "csv", "tex"),
            drawn(study, "figures", "pdf", "png"),
            on_paper(study),
        log:
            f"<results>/logs/{study}/draw.log",
        params:
            study=study,
            numbers=GENERAL.numbers,
            below=below(study),
            code=digest([*DRAWS, *figures_of(study)]),
        message:
            f"Draw all tables and figures of {study}"
        script:
            "../scripts/report.py"

    # These declare no outputs: the files belong to the rule above. Names of the first study have no prefix.
    for kind in ("tables", "figures"):
        for name, item in LAYOUTS[study][kind].items():
            short = name if re.fullmatch(f"{kind[:-1]}[0-9]+", name) else f"{kind[:-1]}_{name}"
            parts = PLAN.parts_of(study, item)

            rule:
                name:
                    short if study == STUDIES[0] else f"{study}_{short}"
                input:
                    [*read_for(study, parts), *kept(study, "*")] if parts else book(study),
                    compiled=ancient("build/compiled.json"),
                log:
                    f"<results>/logs/{study}/{kind}_{name}.log",
                params:
                    **PLAN.tables(study, PLAN.experiments_of(study, parts)),
                    study=study,
                    kind=kind,
                    only=name,
                    parts={part: declared(study).measures[part] for part in parts},
                message:
                    item["title"]
                script:
                    "../scripts/report.py"

    # All tables and figures of the study.
    if declared(study).whole:

        rule:
            name:
                declared(study).whole
            input:
                whole(study),
            localrule: True


rule provenance:
    input:
        RAW_STATUS,
        # made once the numbers are, so that it tells what they were made with
        expand("<results>/{study}/verdicts.csv", study=STUDIES),
        remeasured=expand("<results>/{study}/remeasured.csv", study=STUDIES),
        registry="data/registry.csv",
        compiled="build/compiled.json",
    output:
        shown("<results>/provenance.json", "Audit", "Provenance"),
    log:
        "<results>/logs/provenance.log",
    params:
        config=dict(config),
        packages=PACKAGES,
    message:
        "Record commit, configuration, software, machine, raw data, start, end and CPU hours"
    script:
        "../scripts/record.py"


rule look_up:
    input:
        [path for study in STUDIES for path in book(study)],
        [f"data/published/{study}/protocol.yaml" for study in STUDIES],
        readings=expand("<results>/{study}/readings.csv", study=STUDIES),
        provenance="<results>/provenance.json",
        text=PAPER,
        templates=["src/recheck/paper/values.tex.j2", "src/recheck/paper/origins.tex.j2"],
    output:
        values="<results>/values.tex",
        origins="<results>/origins.tex",
        captions="<results>/captions.tex",
        numbers="<results>/numbers.json",
        table=shown("<results>/origins.csv", "Audit", "Where every number comes from"),
    log:
        "<results>/logs/look_up.log",
    params:
        studies=STUDIES,
        numbers=GENERAL.numbers,
        code=digest(["recheck.paper.lookups", "recheck.paper.records", "recheck.paper.text"]),
    message:
        "Look up every number of the text"
    script:
        "../scripts/look_up.py"


rule paper:
    input:
        [path for study in STUDIES for path in on_paper(study, ".tex", ".pdf")],
        text=[*PAPER, "paper/references.bib"],
        values=[rules.look_up.output[name] for name in ("values", "origins", "captions")],
        provenance="<results>/provenance.json",
    output:
        paper=shown("<results>/paper.pdf", "Paper", "The paper"),
        supplement=shown("<results>/supplement.pdf", "Paper", "The supplement"),
    log:
        "<results>/logs/paper.log",
    localrule: True  # the nodes of a cluster may have no LaTeX
    params:
        drawn={below(study): on_paper(study, ".tex", ".pdf") for study in STUDIES},
        code=digest(["recheck.paper.typeset"]),
    message:
        "Typeset the paper and its supplement"
    script:
        "../scripts/paper.py"


rule webpage:
    input:
        [path for study in STUDIES for path in on_paper(study, ".tex", ".png")],
        "src/recheck/paper/webpage.html.j2",
        "src/recheck/paper/numeric.csl",
        text=PAPER,
        main="paper/main.tex",
        bibliography="paper/references.bib",
        captions="<results>/captions.tex",
        origins="<results>/origins.tex",
        numbers="<results>/numbers.json",
    output:
        page=shown("<results>/paper.html", "Paper", "The paper as a web page"),
    log:
        "<results>/logs/webpage.log",
    params:
        beside={
            **({"PDF": "paper.pdf", "Supplement": "supplement.pdf"} if HAVE_LATEX else {}),
            "All verdicts": "audit.html",
        },
        code=digest(["recheck.paper.webpage"]),
    message:
        "Make the paper a web page"
    script:
        "../scripts/webpage.py"


rule notebook:
    input:
        "data/published/atiya2021/cells.csv",
        # an experiment of every scale
        "<results>/atiya2021/experiment1.csv",
        "<results>/audit.csv",
        notebook="notebooks/audit.ipynb",
    output:
        "<results>/audit.ipynb",
    log:
        "<results>/logs/notebook.log",
    message:
        "Execute the notebook: one number, from the printed table to its seed"
    script:
        "../scripts/notebook.py"


rule summary:
    input:
        "<results>/data_check.csv",
        "<results>/audit.ipynb",
        "<results>/values.tex",
        [whole(study) for study in STUDIES],
        expand("<results>/{study}/{name}.csv", study=STUDIES, name=["controls", "remeasured"]),
        data=RAW_STATUS,
        audit="<results>/audit.csv",
        provenance="<results>/provenance.json",
        pdfs=["<results>/paper.pdf", "<results>/supplement.pdf"] if HAVE_LATEX else [],
        page=["<results>/paper.html"] if HAVE_PANDOC else [],
    output:
        summary="<results>/summary.txt",
        manifest="<results>/MANIFEST.sha256",
    log:
        "<results>/logs/summary.log",
    localrule: True
    params:
        studies=STUDIES,
        code=digest(["recheck.paper.summary"]),
    message:
        "Sum up the run, with checksums of all its files"
    script:
        "../scripts/record.py"

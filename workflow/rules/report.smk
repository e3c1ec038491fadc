# What readers see. Tables, figures and look-ups read measures, estimates and verdicts, and no raw file; layout.yaml of
# a study declares them. All tables of a study are one job, and all its figures; `table1` or `figure_floor` alone is a
# job that needs only those parts of the measures that the layout says it reads.

for study in STUDIES:
    for kind, endings in {"tables": ("csv", "tex"), "figures": ("pdf", "png")}.items():

        rule:
            name:
                f"draw_{kind}_{study}"
            input:
                book(study),
            output:
                drawn(study, kind, *endings),
            log:
                f"<results>/logs/{study}/{kind}.log",
            params:
                study=study,
                figures=kind == "figures",
                code=(
                    digest(["recheck.report.book", "recheck.report.style", *DRAWING[study]])
                    if kind == "figures"
                    else digest(["recheck.report.book", "recheck.report.tables"])
                ),
            message:
                f"Draw all {kind} of {study}"
            script:
                "../scripts/report.py"

        # These declare no outputs: the files belong to the rule above. Names of the first study have no prefix.
        for name, item in LAYOUTS[study][kind].items():
            short = name if re.fullmatch(f"{kind[:-1]}[0-9]+", name) else f"{kind[:-1]}_{name}"

            rule:
                name:
                    short if study == STUDIES[0] else f"{study}_{short}"
                input:
                    book(study, parts_of(study, item)),
                log:
                    f"<results>/logs/{study}/{kind}_{name}.log",
                params:
                    study=study,
                    figures=kind == "figures",
                    only=[name],
                    parts=parts_of(study, item),
                message:
                    item["title"]
                script:
                    "../scripts/report.py"


# Targets that the studies name.
for target, files in TARGETS.items():

    rule:
        name:
            target
        input:
            files,
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
        code=digest(["recheck.paper.lookups", "recheck.paper.records"]),
    message:
        "Look up every number of the text"
    script:
        "../scripts/look_up.py"


rule draw_paper:
    input:
        book=[path for study in STUDIES for path in book(study)],
        lists=expand("<results>/{study}/{name}.csv", study=STUDIES, name=["readings", "controls"]),
        templates=expand(
            "src/recheck/report/{name}.tex.j2", name=["verdicts", "readings", "protocol"]
        ),
    output:
        [path for paths in on_paper("").values() for path in paths],
    log:
        "<results>/logs/draw_paper.log",
    params:
        studies=STUDIES,
        numbers=GENERAL.numbers,
        code=digest(
            ["recheck.report.audit", "recheck.report.style", "recheck.report.tables"]
            + [module for study in STUDIES for module in DRAWING[study]]
        ),
    message:
        "Draw tables, figures and lists as the paper shows them"
    script:
        "../scripts/draw_paper.py"


rule paper:
    input:
        [path for paths in on_paper(".tex", ".pdf").values() for path in paths],
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
        drawn=on_paper(".tex", ".pdf"),
        code=digest(["recheck.paper.typeset"]),
    message:
        "Typeset the paper and its supplement"
    script:
        "../scripts/paper.py"


rule webpage:
    input:
        [path for paths in on_paper(".tex", ".png").values() for path in paths],
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
    message:
        "Sum up the run, with checksums of all its files"
    script:
        "../scripts/record.py"

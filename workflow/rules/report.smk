# What readers see. Tables, figures and look-ups read measures, estimates and verdicts, and no raw file; layout.yaml of
# a study declares them. All tables of a study are one job, and all its figures; `table1` or `figure_floor` alone is a
# job that needs only those parts of the measures that the layout says it reads.

for study in STUDIES:
    for kind, endings in {"tables": ("csv", "tex"), "figures": ("pdf", "png")}.items():
        figures = [path.stem for path in Path(f"src/studies/{study}/figures").glob("*.py")]

        rule:
            name:
                f"draw_{kind}_{study}"
            input:
                book(study),
            output:
                list(drawn(study, kind, *endings)),
            log:
                f"<results>/logs/{study}/{kind}.log",
            params:
                study=study,
                figures=kind == "figures",
                only=None,
                parts=None,
                code=code(
                    *("recheck.book", "recheck.style" if kind == "figures" else "recheck.tables"),
                    *(f"studies.{study}.figures.{name}" for name in figures if kind == "figures"),
                ),
            message:
                f"Draw all {kind} of {study}"
            script:
                "../scripts/report.py"


# These declare no outputs: the files belong to the rules above. Names of the first study have no prefix.
for (study, kind, name), item in ITEMS.items():
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
        config=CONFIG,
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
        templates=["src/recheck/values.tex.j2", "src/recheck/origins.tex.j2"],
    output:
        values="<results>/values.tex",
        origins="<results>/origins.tex",
        captions="<results>/captions.tex",
    log:
        "<results>/logs/look_up.log",
    params:
        studies=STUDIES,
        numbers=CONFIG["numbers"],
        code=code("recheck.lookups"),
    message:
        "Look up every number of the text"
    script:
        "../scripts/look_up.py"


rule paper:
    input:
        text=[*PAPER, "paper/references.bib"],
        values=rules.look_up.output,
        provenance="<results>/provenance.json",
        book=[path for study in STUDIES for path in book(study)],
        lists=expand("<results>/{study}/{name}.csv", study=STUDIES, name=["readings", "controls"]),
        templates=expand("src/recheck/{name}.tex.j2", name=["verdicts", "readings", "protocol"]),
    output:
        paper=shown("<results>/paper.pdf", "Paper", "The paper"),
        supplement=shown("<results>/supplement.pdf", "Paper", "The supplement"),
    log:
        "<results>/logs/paper.log",
    localrule: True  # the nodes of a cluster may have no LaTeX
    params:
        studies=STUDIES,
        numbers=CONFIG["numbers"],
        code=code(
            *("recheck.audit", "recheck.style", "recheck.tables", "recheck.typeset"),
            *(
                f"studies.{study}.figures.{path.stem}"
                for study in STUDIES
                for path in Path(f"src/studies/{study}/figures").glob("*.py")
            ),
        ),
    message:
        "Typeset the paper and its supplement"
    script:
        "../scripts/paper.py"


rule notebook:
    input:
        "data/published/atiya2021/cells.csv",
        # an experiment of every scale
        "<results>/atiya2021/experiment1/N50.csv",
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
        [path for study in STUDIES for path in drawn(study, "tables", "csv")],
        [path for study in STUDIES for path in drawn(study, "figures", "png")],
        expand("<results>/{study}/controls.csv", study=STUDIES),
        data=RAW_STATUS,
        audit="<results>/audit.csv",
        provenance="<results>/provenance.json",
        pdfs=["<results>/paper.pdf", "<results>/supplement.pdf"] if HAVE_LATEX else [],
    output:
        summary="<results>/summary.txt",
        manifest="<results>/MANIFEST.sha256",
    log:
        "<results>/logs/summary.log",
    localrule: True
    params:
        study=STUDIES[0],
    message:
        "Sum up the run, with checksums of all its files"
    script:
        "../scripts/record.py"

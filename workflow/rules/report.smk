# From result files to tables, figures, the audit, the values of the text and the PDF. The targets
# at the end (table1, figure_floor, audit, paper, ...) name the files of the configured scale.

PUBLISHED = collect("data/published/table{table}.csv", table=[1, 2, 3, 4])
CLAIMS = "data/published/claims.yaml"
EXPLANATIONS = "data/published/explanations.yaml"
with open(EXPLANATIONS) as explanations:
    # Inputs of the audit: an explanation whose evidence no rule makes stops the workflow before it starts.
    EVIDENCE = sorted(
        {f"results/{{scale}}/{row['evidence']}" for row in yaml.safe_load(explanations) or []}
    )
EXPERIMENT1 = expand(
    "results/{{scale}}/experiment1/N{dimension}.csv",
    dimension=config["experiment1"]["dimensions"],
)
EXPERIMENT2 = expand(
    "results/{{scale}}/experiment2/problem{problem}.csv",
    problem=config["experiment2"]["problems"],
)
EXPERIMENT4 = expand(
    "results/{{scale}}/experiment4/problem{problem}/{method}.csv",
    problem=config["experiment4"]["problems"],
    method=config["experiment4"]["methods"],
)
PROBABILITIES = expand(
    "results/{{scale}}/experiment4/problem{problem}/{method}_set{set}.npz",
    problem=config["experiment4"]["problems"],
    method=config["experiment4"]["methods"],
    set=SETS,
)
SINGLE = expand(
    "results/{{scale}}/experiment4/single_variance/problem{problem}/{method}.csv",
    problem=config["experiment4"]["problems"],
    method=[n for n, row in config["experiment4"]["methods"].items() if row["method"] == "gpml"],
)
PROBLEMS = expand(
    "results/{{scale}}/experiment4/problem{problem}.npz",
    problem=config["experiment4"]["problems"],
)
EXPERIMENT3 = expand(
    "results/{{scale}}/experiment3/{method}.csv", method=config["experiment3"]["methods"]
)
DEFECTS = expand(
    "results/{{scale}}/defects/{case}_{sampler}.csv",
    case=["linear", "smooth", "rough"],
    sampler=["ess", "hmc"],
)
EXPERIMENT5 = expand(
    "results/{{scale}}/experiment5/problem{problem}/{method}.csv",
    problem=config["experiment5"]["posterior"]["problems"],
    method=config["experiment5"]["posterior"]["methods"],
)
TUNING = expand(
    "results/{{scale}}/experiment5/problem{problem}_tuning.csv",
    problem=config["experiment5"]["tuning"]["problems"],
)


# What a table or a figure is called, and the result files that it reads.
RESULTS = dict(
    experiment1=EXPERIMENT1,
    quadrature="results/{scale}/experiment1/quadrature.csv",
    experiment2=EXPERIMENT2,
    experiment4=EXPERIMENT4,
    experiment4_timing=timing_of(EXPERIMENT4),
    probabilities=PROBABILITIES,
    single_variance=SINGLE,
    single_variance_probabilities=[
        f"{path.removesuffix('.csv')}_set{set}.npz" for path in SINGLE for set in SETS
    ],
    problems=PROBLEMS,
    spread="results/{scale}/experiment4/spread.csv",
    equations="results/{scale}/equations.csv",
    # kept with the repository: `snakemake reference` makes it
    reference=[
        f"data/reference/{file}" for file in ("evidence.csv", "probabilities.npz", "truths.csv")
    ],
    reference_check="results/{scale}/reference_check.csv",
    experiment3=EXPERIMENT3,
    experiment3_timing=timing_of(EXPERIMENT3),
    defects=DEFECTS,
    experiment5=EXPERIMENT5,
    experiment5_timing=timing_of(EXPERIMENT5),
    draws=[path.removesuffix(".csv") + ".npz" for path in EXPERIMENT5],
    tuning=TUNING,
    tuning_timing=timing_of(TUNING),
    ordering="results/{scale}/ordering.csv",
)
TIMINGS = timing_of(
    [
        *(*EXPERIMENT1, *EXPERIMENT2, *EXPERIMENT3, *EXPERIMENT4, *SINGLE, *EXPERIMENT5),
        *(*TUNING, *DEFECTS),
    ]
)
NINE_PROBLEMS = ["experiment4", "probabilities", "problems", "spread"]
TRADEOFF = ["experiment3", "experiment3_timing"]
CELLS = ["experiment4", "experiment4_timing", "probabilities", "problems", "reference"]
TABLES = {
    "table1": ("Table 1: orthant probabilities", ["experiment1"]),
    "table2": ("Table 2: class probabilities", ["experiment2"]),
    "table3": ("Table 3: marginal likelihood", ["experiment2"]),
    "table4": ("Table 4: nine problems", NINE_PROBLEMS),
    "readings": (
        "Table 4 with the double variance and without",
        ["experiment4", "probabilities", "single_variance", "single_variance_probabilities"],
    ),
    "posterior": ("MAE-POST and MAE-MED of all methods", CELLS),
    "accuracy": ("Errors against the certified reference", CELLS),
    "metrics": ("Test errors, and largest errors of probabilities", CELLS),
    "efficiency": ("CPU seconds and effective samples", CELLS),
    "seconds": ("CPU seconds by hyperparameter set", CELLS),
    "evidence": ("Log evidence: reference and the paper's methods", CELLS),
    "evidence_more": ("Log evidence: the other methods", CELLS),
    "reference": ("The certified reference", ["reference"]),
    "tradeoff": ("Errors and CPU seconds, Experiment 3", TRADEOFF),
    "targets": ("CPU seconds for a given error", TRADEOFF),
    "claims": ("Statements of section 6.3", TRADEOFF),
    "defects": ("What the defects of the toolbox do", ["defects"]),
    "chains": (
        "Chains over the hyperparameters",
        ["experiment5", "experiment5_timing", "draws"],
    ),
    "tuning": ("Tuning by the evidence", ["tuning", "tuning_timing"]),
    "spread": ("Spread between data sets", ["experiment2"]),
    "brackets": ("Brackets of the published tables", []),
    "variance": ("Measured variance and Eq. (44)", ["experiment1", "experiment2"]),
    "floor": ("The floor of Table 1", ["experiment1"]),
    "equations": ("Misprinted equations", ["equations"]),
    "settings": ("Counts of Experiment 4", ["experiment4"]),
}
FIGURES = {
    "error_experiment1": ("Error against M, Experiment 1", ["experiment1"]),
    "error_experiment2": ("Error against M, Experiment 2", ["experiment2"]),
    "reliability": ("Reliability of predicted probabilities", NINE_PROBLEMS),
    "evidence": ("Where the evidence lies", CELLS),
    "accuracy": ("Errors against the certified reference", CELLS),
    "seconds": ("CPU seconds by hyperparameter set", CELLS),
    "status": ("Which runs count", ["experiment4"]),
    "figure1": ("Figure 1: error of probabilities against CPU seconds", TRADEOFF),
    "figure2": ("Figure 2: error of the evidence against CPU seconds", TRADEOFF),
    "defects": ("What the defects of the toolbox do", ["defects"]),
    "posterior": (
        "Posterior of the hyperparameters",
        ["experiment5", "experiment5_timing", "draws", "tuning", "tuning_timing"],
    ),
    "floor": ("The floor of Table 1", ["experiment1", "quadrature"]),
    "variance": ("Measured variance and Eq. (44)", ["experiment1", "experiment2"]),
}


for table, (title, reads) in TABLES.items():

    rule:
        name:
            f"tabulate_{table}"
        input:
            **{name: RESULTS[name] for name in reads},
            published=PUBLISHED,
            package="build/report.json",
        output:
            csv=report(
                f"results/{{scale}}/tables/{table}.csv",
                caption=f"../report/table_{table}.rst",
                category="Tables",
                labels={"table": title, "format": "CSV"},
            ),
            tex=report(
                f"results/{{scale}}/tables/{table}.tex",
                caption=f"../report/table_{table}.rst",
                category="Tables",
                labels={"table": title, "format": "LaTeX"},
            ),
        log:
            f"results/{{scale}}/logs/report/table_{table}.log",
        params:
            table=table,
        message:
            title
        script:
            "../scripts/table.py"


for figure, (title, reads) in FIGURES.items():

    rule:
        name:
            f"draw_{figure}"
        input:
            **{name: RESULTS[name] for name in reads},
            published=PUBLISHED,
            package="build/report.json",
        output:
            pdf=report(
                f"figures/{{scale}}/{figure}.pdf",
                caption=f"../report/figure_{figure}.rst",
                category="Figures",
                labels={"figure": title, "format": "PDF"},
            ),
            png=report(
                f"figures/{{scale}}/{figure}.png",
                caption=f"../report/figure_{figure}.rst",
                category="Figures",
                labels={"figure": title, "format": "PNG"},
            ),
        log:
            f"results/{{scale}}/logs/report/figure_{figure}.log",
        params:
            figure=figure,
        message:
            title
        script:
            "../scripts/figure.py"


rule compare_cells:
    input:
        **{name: RESULTS[name] for name in ("experiment1", "experiment2", *NINE_PROBLEMS)},
        published=PUBLISHED,
        claims=CLAIMS,
        explanations=EXPLANATIONS,
        evidence=EVIDENCE,
        package="build/report.json",
    output:
        cells=report(
            "results/{scale}/audit.csv",
            caption="../report/audit.rst",
            category="Audit",
            labels={"table": "Every published cell", "format": "CSV"},
        ),
        columns="results/{scale}/audit_columns.csv",
        agreement="results/{scale}/audit_agreement.csv",
    log:
        "results/{scale}/logs/report/audit.log",
    message:
        "Audit: every published cell beside ours"
    script:
        "../scripts/audit.py"


rule judge_claims:
    input:
        **RESULTS,
        published=PUBLISHED,
        claims=CLAIMS,
        explanations=EXPLANATIONS,
        evidence=EVIDENCE,
        package="build/report.json",
    output:
        report(
            "results/{scale}/audit_claims.csv",
            caption="../report/audit_claims.rst",
            category="Audit",
            labels={"table": "Every statement", "format": "CSV"},
        ),
    log:
        "results/{scale}/logs/report/claims.log",
    message:
        "Audit: every statement of the paper"
    script:
        "../scripts/claims.py"


rule plant_faults:
    input:
        **{name: RESULTS[name] for name in ("experiment1", "experiment2", *NINE_PROBLEMS)},
        broken=expand(
            "results/{{scale}}/controls/{kind}_experiment{number}.csv",
            kind=BROKEN,
            number=[1, 2],
        ),
        published=PUBLISHED,
        claims=CLAIMS,
        judged="results/{scale}/audit_claims.csv",
        package="build/report.json",
    output:
        report(
            "results/{scale}/controls.csv",
            caption="../report/controls.rst",
            category="Audit",
            labels={"table": "Negative controls", "format": "CSV"},
        ),
    log:
        "results/{scale}/logs/report/controls.log",
    message:
        "Audit: plant faults, and see which are found"
    script:
        "../scripts/controls.py"


AUDITED = dict(
    columns="results/{scale}/audit_columns.csv",
    claims="results/{scale}/audit_claims.csv",
    agreement="results/{scale}/audit_agreement.csv",
    controls="results/{scale}/controls.csv",
)


rule write_audit_pages:
    input:
        **AUDITED,
        cells="results/{scale}/audit.csv",
        template="workflow/report/audit.html.j2",
        package="build/report.json",
    output:
        page=report(
            "results/{scale}/audit.html",
            caption="../report/audit.rst",
            category="Audit",
            labels={"table": "The whole audit", "format": "HTML"},
        ),
        appendix="results/{scale}/audit.tex",
        claims="results/{scale}/audit_claims.tex",
        controls="results/{scale}/audit_controls.tex",
        line="results/{scale}/audit.txt",
    log:
        "results/{scale}/logs/report/audit_pages.log",
    message:
        "Audit: a page to sort, and the tables of the paper"
    script:
        "../scripts/audit_pages.py"


rule record_provenance:
    input:
        # made once the numbers are, so that it tells what they were made with
        audit="results/{scale}/audit.csv",
        data=RAW_STATUS,
        registry="data/registry.csv",
        timings=TIMINGS,
        package="build/package.json",
        report="build/report.json",
    output:
        report(
            "results/{scale}/provenance.json",
            caption="../report/provenance.rst",
            category="Audit",
            labels={"table": "Provenance", "format": "JSON"},
        ),
    log:
        "results/{scale}/logs/report/provenance.log",
    params:
        config=config,
        logs="results/{scale}/logs",
    message:
        "Record commit, configuration, software, machine, raw data, start, end and CPU hours"
    script:
        "../scripts/provenance.py"


rule write_values:
    input:
        **RESULTS,
        **AUDITED,
        audit="results/{scale}/audit.csv",
        provenance="results/{scale}/provenance.json",
        # values of the text are looked up in the tables, to link to their lines
        tables=expand("results/{{scale}}/tables/{table}.csv", table=TABLES),
        published=PUBLISHED,
        package="build/report.json",
    output:
        json="results/{scale}/values.json",
        tex="results/{scale}/values.tex",
        origins="results/{scale}/origins.tex",
    log:
        "results/{scale}/logs/report/values.log",
    params:
        reads={
            "tables": {name: reads for name, (_, reads) in TABLES.items()},
            "figures": {name: reads for name, (_, reads) in FIGURES.items()},
        },
    message:
        "Every number of the text, and where it comes from"
    script:
        "../scripts/values.py"


rule typeset:
    input:
        text=["paper/main.tex", "paper/comparisons.tex", "paper/references.bib"],
        values="results/{scale}/values.tex",
        origins="results/{scale}/origins.tex",
        appendix=expand(
            "results/{{scale}}/{name}.tex", name=["audit", "audit_claims", "audit_controls"]
        ),
        # without an explanation, discrepancies and cells that are not compared stop the paper at the published scale
        audit=expand(
            "results/{{scale}}/{name}.csv", name=["audit", "audit_columns", "audit_claims"]
        ),
        provenance="results/{scale}/provenance.json",
        tables=expand("results/{{scale}}/tables/{table}.tex", table=TABLES),
        figures=expand("figures/{{scale}}/{figure}.pdf", figure=FIGURES),
        package="build/report.json",
    output:
        report(
            "results/{scale}/paper.pdf",
            caption="../report/paper.rst",
            category="Paper",
            labels={"document": "The paper", "format": "PDF"},
        ),
    log:
        "results/{scale}/logs/report/paper.log",
    message:
        "Typeset the paper"
    script:
        "../scripts/paper.py"


rule execute_notebook:
    input:
        notebook="notebooks/audit.ipynb",
        # an experiment of every scale
        rows="results/{scale}/experiment1/N50.csv",
        audit="results/{scale}/audit.csv",
        published=PUBLISHED,
        package="build/report.json",
    output:
        "results/{scale}/audit.ipynb",
    log:
        "results/{scale}/logs/report/notebook.log",
    message:
        "Execute the notebook: one number, from the printed table to its seed"
    script:
        "../scripts/notebook.py"


rule summarise:
    input:
        audit="results/{scale}/audit.csv",
        line="results/{scale}/audit.txt",
        page="results/{scale}/audit.html",
        values="results/{scale}/values.json",
        provenance="results/{scale}/provenance.json",
        problems=PROBLEMS,
        data=RAW_STATUS,
        tables=expand("results/{{scale}}/tables/{table}.csv", table=TABLES),
        figures=expand("figures/{{scale}}/{figure}.png", figure=FIGURES),
        pdf=["results/{scale}/paper.pdf"] if HAVE_LATEX else [],
        package="build/report.json",
    output:
        "results/{scale}/summary.txt",
    log:
        "results/{scale}/logs/report/summary.log",
    message:
        "Sum up the run"
    script:
        "../scripts/summary.py"


for table in TABLES:

    rule:
        name:
            table if table in ("table1", "table2", "table3", "table4") else f"table_{table}"
        input:
            expand(
                "results/{scale}/tables/{table}.{ending}",
                scale=config["scale"],
                table=table,
                ending=["csv", "tex"],
            ),
        localrule: True
        message:
            f"Table {table} is done"


for figure in FIGURES:

    rule:
        name:
            figure if figure in ("figure1", "figure2") else f"figure_{figure}"
        input:
            expand(
                "figures/{scale}/{figure}.{ending}",
                scale=config["scale"],
                figure=figure,
                ending=["pdf", "png"],
            ),
        localrule: True
        message:
            f"Figure {figure} is done"


rule notebook:
    input:
        expand("results/{scale}/audit.ipynb", scale=config["scale"]),
    localrule: True
    message:
        "Notebook is done"


rule audit:
    input:
        expand(
            "results/{scale}/{file}",
            scale=config["scale"],
            file=["audit.csv", "audit.html", "audit.tex", "audit.txt"],
        ),
    localrule: True
    message:
        "Audit is done"


rule controls:
    input:
        expand("results/{scale}/controls.csv", scale=config["scale"]),
    localrule: True
    message:
        "Controls is done"


rule provenance:
    input:
        expand("results/{scale}/provenance.json", scale=config["scale"]),
    localrule: True
    message:
        "Provenance is done"


rule values:
    input:
        expand("results/{scale}/values.json", scale=config["scale"]),
    localrule: True
    message:
        "Values is done"


rule paper:
    input:
        expand("results/{scale}/paper.pdf", scale=config["scale"]),
    localrule: True
    message:
        "Paper is done"


rule summary:
    input:
        expand("results/{scale}/summary.txt", scale=config["scale"]),
    localrule: True
    message:
        "Summary is done"

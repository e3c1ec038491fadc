# For a reviewer: what makes each table, figure and statement alone, and checksums of everything.

PDF = ["results/{scale}/paper.pdf"] if HAVE_LATEX else []
# Everything under results/ and figures/ but logs and what the rules below make.
MADE = [
    *[
        path
        for name, paths in RESULTS.items()
        if name != "reference"
        for path in ([paths] if isinstance(paths, str) else paths)
    ],
    *TIMINGS,
    *RAW_STATUS,
    *expand("results/{{scale}}/data_check.{ending}", ending=["csv", "html"]),
    *expand(
        "results/{{scale}}/experiment2/problem{problem}.npz",
        problem=config["experiment2"]["problems"],
    ),
    *[path.removesuffix(".csv") + ".npz" for path in TUNING],
    *expand("results/{{scale}}/tables/{table}.{ending}", table=TABLES, ending=["csv", "tex"]),
    *expand("figures/{{scale}}/{figure}.{ending}", figure=FIGURES, ending=["pdf", "png"]),
    *expand("results/{{scale}}/{file}.json", file=["provenance", "values"]),
    *expand("results/{{scale}}/{file}.tex", file=["origins", "values"]),
    *expand(
        "results/{{scale}}/audit{file}",
        file=[
            *(".csv", "_agreement.csv", "_claims.csv", "_columns.csv"),
            *(".html", ".tex", "_claims.tex", "_controls.tex", ".txt"),
        ],
    ),
    *expand(
        "results/{{scale}}/controls/{kind}_experiment{number}.csv",
        kind=BROKEN,
        number=[1, 2],
    ),
    "results/{scale}/controls.csv",
    "results/{scale}/audit.ipynb",
    "results/{scale}/summary.txt",
    *PDF,
]


rule write_review:
    input:
        **RESULTS,
        files=MADE,
        audit="results/{scale}/audit.csv",
        claims="results/{scale}/audit_claims.csv",
        provenance="results/{scale}/provenance.json",
        pdf=PDF,
        template="workflow/report/review.html.jinja",
        package="build/report.json",
    output:
        page=report(
            "results/{scale}/review.html",
            caption="../report/review.rst",
            category="Audit",
            labels={"page": "Reviewer's page", "format": "HTML"},
        ),
        codecheck="results/{scale}/codecheck.yml",
        crate="results/{scale}/ro-crate-metadata.json",
    log:
        "results/{scale}/logs/report/review.log",
    params:
        tables=TABLES,
        figures=FIGURES,
    message:
        "Write the reviewer's page, the CODECHECK manifest and the RO-Crate"
    script:
        "../scripts/review.py"


rule write_manifest:
    input:
        files=[
            *MADE,
            *expand(
                "results/{{scale}}/{file}",
                file=["codecheck.yml", "review.html", "ro-crate-metadata.json"],
            ),
        ],
        package="build/report.json",
    output:
        "results/{scale}/MANIFEST.sha256",
    log:
        "results/{scale}/logs/report/manifest.log",
    params:
        # there before any rule runs: no rule makes it, so that it cannot be an input
        stamp="results/{scale}/schema.json",
    message:
        "Checksums of all result files and figures"
    script:
        "../scripts/manifest.py"


rule review:
    input:
        expand(
            "results/{scale}/{file}",
            scale=config["scale"],
            file=["review.html", "codecheck.yml", "ro-crate-metadata.json", "MANIFEST.sha256"],
        ),
    localrule: True
    message:
        "Review is done"

# `ancient` would not do instead of the two layers: in Snakemake 9, a job whose ancient input is about to be made
# again is left out of the run, even where its own sources have changed.


rule package:
    input:
        sources=NUMERICAL_SOURCES,
        build=["LICENSE", "pyproject.toml", "setup.py", "src/gpcmc/py.typed"],
    output:
        "build/package.json",
    log:
        "build/package.log",
    message:
        "Build the package's numerical layer as a wheel, and unpack it to build/lib"
    script:
        "../scripts/package.py"


rule package_report:
    input:
        package="build/package.json",
        sources=REPORT_SOURCES,
    output:
        "build/report.json",
    log:
        "build/package_report.log",
    message:
        "Add the report and audit layer to build/lib"
    script:
        "../scripts/package_report.py"

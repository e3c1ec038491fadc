# Rows: what experiments compute. A job runs a block of them.


rule compile:
    input:
        sources=ancient(
            sorted(glob("src/**/*.pyx", recursive=True) + glob("src/**/*.h", recursive=True))
        ),
        build=ancient("setup.py"),
    output:
        "build/compiled.json",
    log:
        "build/compiled.log",
    localrule: True  # the nodes of a cluster may have no compiler
    params:
        studies=STUDIES,
        # the content of the sources counts, and not when they were touched
        content=content(
            glob("src/**/*.pyx", recursive=True)
            + glob("src/**/*.h", recursive=True)
            + ["setup.py"]
        ),
    message:
        "Build the Cython extensions in place"
    script:
        "../scripts/compile.py"


# Rows one after the other in one thread. src/studies/<study>/study.py says what each experiment is and reads, its module
# in src/studies/<study>/experiments which rows it has. A block has rows of one experiment, by which it is named; at small
# scales (`pack` in the configuration) of all experiments of a study.
rule run:
    input:
        lambda wildcards: PLAN.inputs_of(block(wildcards)),
        compiled=ancient("build/compiled.json"),
    output:
        "<results>/{study}/rows/{block}.npz",
    log:
        "<results>/logs/{study}/{block}.log",
    priority: 1  # others read them, and they take longest
    resources:
        mem_mb=lambda wildcards: block(wildcards).megabytes,
        runtime=lambda wildcards: block(wildcards).minutes,
    params:
        rows=lambda wildcards: block(wildcards).rows,
        # an edit of a comment runs nothing again, an edit of one method the jobs that have rows of this method
        code=lambda wildcards: block(wildcards).code,
        inputs=lambda wildcards: {
            f"{experiment}/{row['row']}": PLAN.inputs(wildcards.study, experiment, row)
            for experiment, row in block(wildcards).rows
        },
    message:
        "Run {wildcards.block} of {wildcards.study}"
    script:
        "../scripts/run.py"


# Tables of some experiments, without measures: `experiment4`, `scaling` and the like. They declare no outputs: the files
# belong to the rules that measure.
for target, (study, experiments) in PLAN.targets.items():

    rule:
        name:
            target
        input:
            PLAN.files(study, experiments),
        log:
            f"<results>/logs/{study}/{target}.log",
        params:
            **PLAN.tables(study, experiments),
            study=study,
        message:
            f"Write the rows of {target} as tables"
        script:
            "../scripts/tables.py"


# The files in data/reference are no declared outputs: Snakemake would delete them before the job runs, and make
# them again in every ordinary run.
rule reference:
    input:
        PLAN.files("atiya2021", ["reference_cells", "reference_truths"]),
        compiled="build/compiled.json",
    output:
        "<results>/atiya2021/reference/provenance.json",
    log:
        "<results>/logs/atiya2021/reference.log",
    params:
        **PLAN.tables("atiya2021", ["reference_cells", "reference_truths"]),
        store="data/reference/atiya2021/certified",
        config=dict(config),
        packages=PACKAGES,
    message:
        "Put the certified reference in data/reference/atiya2021/certified"
    script:
        "../scripts/reference.py"


# Counts that give all methods equal CPU seconds, to be copied to the file of the scale. Nothing else should run meanwhile.
rule calibrate:
    input:
        compiled="build/compiled.json",
        problems=expand("<results>/atiya2021/experiment4/problem{number}.npz", number=range(1, 10)),
    output:
        counts="<results>/atiya2021/budgets.yaml",
    log:
        "<results>/logs/atiya2021/calibrate.log",
    resources:
        runtime=240,
    message:
        "Find the counts that give the rows of Experiment 4 equal CPU seconds"
    script:
        "../scripts/calibrate.py"

# Rows: what experiments compute. The rules of the experiments are in the file of their study. Here are the two rules
# that they inherit from, and the one that puts the blocks of an experiment together.


rule compile:
    input:
        sources=sorted(glob("src/**/*.pyx", recursive=True) + glob("src/**/*.h", recursive=True)),
        build="setup.py",
    output:
        "build/compiled.json",
    log:
        "build/compiled.log",
    localrule: True  # the nodes of a cluster may have no compiler
    params:
        studies=STUDIES,
    message:
        "Build the Cython extensions in place"
    script:
        "../scripts/compile.py"


# Patterns of the experiments, from raw files or from a law. A template: each study has a rule that inherits from it.
rule patterns:
    input:
        raw=raw_status,
    output:
        "<results>/<patterns>.npz",
    log:
        "<results>/logs/<patterns>.log",
    pathvars:
        patterns="template/data/{data}",
    params:
        study=lambda wildcards, output: place(output[0])[0],
        seed=GENERAL.seed,
        standardise=GENERAL.data.standardise,
        code=lambda wildcards, **given: digest([f"studies.{place(given['output'][0])[0]}.patterns"]),
    message:
        "Make the patterns {output}"
    script:
        "../scripts/patterns.py"


# Some rows of an experiment, one after the other in one thread. A template: each experiment has a rule that inherits from
# it, and says into which files its rows are divided, and what they read beside the extensions.
rule run:
    input:
        compiled=ancient("build/compiled.json"),
    output:
        table("<results>/<rows>"),
    log:
        "<results>/logs/<rows>.log",
    pathvars:
        rows="template/run/{block}",
    resources:  # of the largest job of the published scale: megabytes, minutes
        mem_mb=2400,
        runtime=10,
    params:
        study=lambda wildcards, output: place(output.rows)[0],
        experiment=lambda wildcards, output: place(output.rows)[1],
        rows=planned,
        # an edit of a comment runs nothing again, an edit of one method the jobs of that method
        code=sources,
    message:
        "Run {output.rows}"
    script:
        "../scripts/run.py"


rule gather:
    input:
        lambda wildcards: list(blocks(wildcards.study, wildcards.experiment)),
    output:
        table("<results>/{study}/{experiment}"),
    log:
        "<results>/logs/{study}/{experiment}.log",
    params:
        order=lambda wildcards: [row["row"] for row in plan(wildcards.study, wildcards.experiment)],
    message:
        "Put the rows of {wildcards.study}, {wildcards.experiment} together"
    script:
        "../scripts/gather.py"

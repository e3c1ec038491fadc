# Runs: the jobs of all studies. `studies.<study>.jobs` derives them from the configuration; what a job computes is its
# own affair, so that there is a rule for each set of files that jobs write. One thread each, parallel by jobs: results
# do not depend on the number of cores.


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
        # nothing else in pyproject.toml concerns the extensions
        requires=re.search(
            r"(?ms)^\[build-system\].*?(?=^\[)", Path("pyproject.toml").read_text()
        )[0],
    message:
        "Build the Cython extensions in place"
    script:
        "../scripts/compile.py"


rule run:
    input:
        read_by_whole,
        compiled="build/compiled.json",
    output:
        rows="<results>/{run}.csv",
        timing="<results>/{run}_timing.csv",
        arrays="<results>/{run}.npz",
    log:
        "<results>/logs/{run}.log",
    wildcard_constraints:
        run=that_write("rows", "timing", "arrays"),
    threads: 1
    resources:
        mem_mb=lambda wildcards: JOBS[wildcards.run].mem_mb,
        runtime=60,  # minutes; a job that meets its limit goes on from its pieces
    params:
        pieces=f"build/pieces/{config['scale']}",
        job=lambda wildcards: asdict(JOBS[wildcards.run]),
        # an edit of a comment runs nothing again, an edit of one method the jobs of that method
        code=lambda wildcards: digest(JOBS[wildcards.run].modules),
    message:
        "Run {wildcards.run}"
    script:
        "../scripts/run.py"


use rule run as run_without_arrays with:
    output:
        rows="<results>/{run}.csv",
        timing="<results>/{run}_timing.csv",
    wildcard_constraints:
        run=that_write("rows", "timing"),
    priority: 1


use rule run as run_without_timing with:
    output:
        rows="<results>/{run}.csv",
        arrays="<results>/{run}.npz",
    wildcard_constraints:
        run=that_write("rows", "arrays"),


use rule run as run_rows with:
    output:
        rows="<results>/{run}.csv",
    wildcard_constraints:
        run=that_write("rows"),


use rule run as patterns with:
    output:
        arrays="<results>/{run}.npz",
    wildcard_constraints:
        run=that_write("arrays"),
    resources:
        mem_mb=lambda wildcards: JOBS[wildcards.run].mem_mb,
        runtime=5,
    message:
        "Make the patterns {wildcards.run}"


use rule run as budgets with:
    output:
        counts="<results>/{run}.yaml",
    wildcard_constraints:
        run=that_write("counts"),


# A job that would take long on one core: each slice computes some of its pieces, which the job then finds.
rule slice:
    input:
        read_by,
        compiled="build/compiled.json",
    output:
        temp(touch(f"{SLICED}/done/{{run}}/{{k}}")),
    log:
        "<results>/logs/{run}_slice{k}.log",
    wildcard_constraints:
        run="|".join(map(re.escape, SLICES)) or NONE,
        k="[0-9]+",
    priority: 2
    threads: 1
    resources:
        mem_mb=lambda wildcards: JOBS[wildcards.run].mem_mb,
        runtime=30,
    params:
        pieces=f"build/pieces/{config['scale']}",
        job=lambda wildcards: asdict(JOBS[wildcards.run]),
        code=lambda wildcards: digest(JOBS[wildcards.run].modules),
        units=lambda wildcards: SLICES[wildcards.run][int(wildcards.k)],
    message:
        "Run slice {wildcards.k} of {wildcards.run}"
    script:
        "../scripts/run.py"

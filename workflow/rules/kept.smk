# What the repository keeps of long runs, how it is checked, and one file for a repository of record. None of this is part
# of `all`. These rules have no outputs, so they run whenever they are asked for.


rule keep:
    input:
        "<results>/summary.txt",
    log:
        "<results>/logs/kept/keep.log",
    localrule: True
    params:
        plans=lambda wildcards: {study: PLAN.plans(study) for study in STUDIES},
    message:
        "Store rows, measures, verdicts and documents of this run in data/reference"
    script:
        "../scripts/keep.py"


rule resume:
    input:
        # made before rows are put back, so that no job finds its inputs newer than its rows
        lambda wildcards: [
            path for study in KEPT_STUDIES for path in PLAN.measured(study) if "/rows/" not in path
        ],
        compiled="build/compiled.json",
    log:
        "<results>/logs/kept/resume.log",
    localrule: True
    params:
        config=dict(config),
        studies=KEPT_STUDIES,
    message:
        "Put kept rows back, where they are what this tree would compute"
    script:
        "../scripts/keep.py"


rule verify:
    input:
        lambda wildcards: files_of(drawn_rows()),
        compiled="build/compiled.json",
    log:
        "<results>/logs/kept/verify.log",
    threads: lambda wildcards: workflow.cores or 1
    params:
        jobs=lambda wildcards: drawn_rows(),
    message:
        "Run kept rows again that are drawn at random"
    script:
        "../scripts/verify.py"


use rule verify as number with:
    input:
        lambda wildcards: files_of(asked_rows()[1]),
        compiled="build/compiled.json",
    log:
        "<results>/logs/kept/number.log",
    params:
        asked=lambda wildcards: asked_rows()[0],
        jobs=lambda wildcards: asked_rows()[1],
    message:
        "Look one number up, and run the rows behind it again"


rule renew:
    input:
        lambda wildcards: sorted(
            path for study in KEPT_STUDIES for path in PLAN.measured(study) if "/rows/" not in path
        ),
        compiled="build/compiled.json",
    log:
        "<results>/logs/kept/renew.log",
    threads: lambda wildcards: workflow.cores or 1
    params:
        config=dict(config),
        studies=KEPT_STUDIES,
        packages=PACKAGES,
        parts=f"{RESULTS}/renewed",
    message:
        "Make kept rows again that other code made, and keep them"
    script:
        "../scripts/renew.py"


rule jobs:
    log:
        "<results>/logs/kept/jobs.log",
    localrule: True
    params:
        config=dict(config),
    message:
        "List the jobs of this scale, with the CPU seconds of kept rows"
    script:
        "../scripts/jobs.py"


rule archive:
    input:
        lambda wildcards: rules.all.input,
    log:
        "<results>/logs/kept/archive.log",
    localrule: True
    params:
        made=f"{RESULTS} {FIGURES}",
        target=f"build/gpcmc-{config['scale']}.tar.gz",
    message:
        "Pack the sources of the commit, the results and their checksums into {params.target}"
    shell:
        "(git rev-parse --quiet --verify HEAD >/dev/null || {{ echo 'This is no clone: an archive has the sources of a"
        " commit'; exit 1; }}) 2>&1 | tee {log} && (git diff --quiet HEAD || {{ echo 'The sources are not those of the commit: commit them first'; exit 1; }}) "
        "2>&1 | tee {log} && (git ls-files -z; find {params.made} -type f -not -path '*/logs/*' -print0) | sort -z"
        " | tar --null --no-recursion --files-from=- --mtime=@0 --owner=0 --group=0 --numeric-owner"
        " --transform='s,^,gpcmc/,' --create | gzip --no-name > {params.target}.partial"
        " && mv {params.target}.partial {params.target}"


rule crate:
    input:
        lambda wildcards: rules.all.input,
        sources=[
            "Snakefile",
            *sorted(glob("workflow/**/*.*", recursive=True)),
            *sorted(glob("config/*.yaml")),
            *("data/registry.csv", "requirements.lock"),
        ],
        provenance="<results>/provenance.json",
        manifest="<results>/MANIFEST.sha256",
    log:
        "<results>/logs/kept/crate.log",
    localrule: True
    params:
        target=f"build/gpcmc-{config['scale']}.crate.zip",
    message:
        "Describe the run as a Workflow Run RO-Crate in {params.target}"
    script:
        "../scripts/crate.py"

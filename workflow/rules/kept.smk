# What the repository keeps of long runs, and one file for a repository of record. None of this is part of `all`.
# These rules have no outputs, so they run whenever they are asked for: what they find is for them to say.


rule keep:
    input:
        compiled="build/compiled.json",
    log:
        "<results>/logs/kept/keep.log",
    localrule: True
    params:
        stores=STORES,
        pieces=f"build/pieces/{config['scale']}",
    message:
        "Store the pieces that are finished so far"
    script:
        "../scripts/kept.py"


use rule keep as resume with:
    input:
        stored,
        compiled="build/compiled.json",
    log:
        "<results>/logs/kept/resume.log",
    message:
        "Put stored pieces back, where they are what this tree would compute"


rule keep_results:
    input:
        "<results>/summary.txt",
    log:
        "<results>/logs/kept/keep_results.log",
    localrule: True
    params:
        stores=STORES,
    message:
        "Store the measures, verdicts and raw tables of this run"
    script:
        "../scripts/kept.py"


rule verify_kept:
    input:
        stored,
        [path for study in STUDIES for path in read_in(study)],
        compiled="build/compiled.json",
    log:
        "<results>/logs/kept/verify.log",
    threads: workflow.cores
    params:
        stores=STORES,
        config=CONFIG,
        share=float(OPTIONS.get("share", 0.03)),
        seed=OPTIONS.get("sample_seed", CONFIG["seed"]),
    message:
        "Recompute a random sample of the kept pieces, and carry the rest over where they are the same"
    script:
        "../scripts/verify.py"


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
        "(git diff --quiet HEAD || {{ echo 'The sources are not those of the commit: commit them first'; exit 1; }}) "
        "2>&1 | tee {log} && (git ls-files -z; find {params.made} -type f -not -path '*/logs/*' -print0) | sort -z"
        " | tar --null --no-recursion --files-from=- --mtime=@0 --owner=0 --group=0 --numeric-owner"
        " --transform='s,^,gpcmc/,' --create | gzip --no-name > {params.target}.partial"
        " && mv {params.target}.partial {params.target}"

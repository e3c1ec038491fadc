# What the repository keeps of long runs in data/reference/<scale>, and one file for a repository of record. None of
# this is part of `all`.


# These two have no outputs, so they run whenever they are asked for: what they find is for them to say.
rule keep_pieces:
    input:
        package="build/report.json",
    log:
        f"results/{config['scale']}/logs/kept/keep_pieces.log",
    localrule: True
    params:
        pieces=f"build/pieces/{config['scale']}",
        store=f"{KEPT}/pieces",
    message:
        "Store the pieces that are finished so far in data/reference"
    script:
        "../scripts/keep_pieces.py"


rule resume:
    input:
        stored=stored("pieces", f"make keep SCALE={config['scale']}"),
        package="build/report.json",
    log:
        f"results/{config['scale']}/logs/kept/resume.log",
    localrule: True
    params:
        pieces=f"build/pieces/{config['scale']}",
        store=f"{KEPT}/pieces",
    message:
        "Put stored pieces back, where they are what this tree would compute"
    script:
        "../scripts/resume.py"


rule keep_results:
    input:
        summary=f"results/{config['scale']}/summary.txt",
        package="build/report.json",
    log:
        f"results/{config['scale']}/logs/kept/keep_results.log",
    localrule: True
    params:
        store=f"{KEPT}/results",
    message:
        "Store the tables of this run in data/reference"
    script:
        "../scripts/keep_results.py"


rule compare:
    input:
        kept=stored("results", f"snakemake keep_results --cores 2 --config scale={config['scale']}"),
        summary=f"results/{config['scale']}/summary.txt",
        package="build/report.json",
    output:
        f"results/{config['scale']}/comparison.csv",
    log:
        f"results/{config['scale']}/logs/kept/compare.log",
    localrule: True
    params:
        store=f"{KEPT}/results",
    message:
        "Set this run beside the one that is kept"
    script:
        "../scripts/compare.py"


rule archive:
    input:
        lambda wildcards: rules.all.input,
        package="build/report.json",
    log:
        f"results/{config['scale']}/logs/kept/archive.log",
    localrule: True
    params:
        scale=config["scale"],
        target=f"build/gpcmc-{config['scale']}.tar.gz",
    message:
        "Pack sources, results and checksums into one file"
    script:
        "../scripts/archive.py"

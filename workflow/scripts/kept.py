"""Store pieces or results of a run with the repository, or put stored pieces back."""

import shutil
from pathlib import Path

from begin import begin

results = begin(snakemake)

from recheck.files import read_csv, write_csv
from studies.common.kept import keep, resume, summary

given = snakemake.params
#: What is below a study's results and no raw table.
DERIVED = {
    *("measures", "estimates", "verdicts", "readings", "outcomes", "controls", "remeasured"),
    *("tables", "reference"),
}


def keep_results(made: Path, store: Path) -> str:
    """Store a study's measures, verdicts, provenance and raw tables without seconds, both PDFs and README's figure."""
    for name in ("measures", "estimates"):
        table = read_csv(made / f"{name}.csv", dtype=str, keep_default_na=False)
        write_csv(store / f"{name}.csv.gz", table)
    shutil.copy(made.parent / "provenance.json", store)
    for name in ("verdicts", "readings", "outcomes", "controls"):
        shutil.copy(made / f"{name}.csv", store)
        shutil.copy(made / f"{name}.csv.digest", store)
    shutil.rmtree(store / "results", ignore_errors=True)
    tables = [path.relative_to(made) for path in made.rglob("*.csv")]
    raw = [path for path in tables if Path(path.parts[0]).stem not in DERIVED]
    raw = [path for path in raw if not path.stem.endswith("_timing")]
    for path in raw:
        (store / "results" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / path, store / "results" / path)
    for name in ("paper.pdf", "supplement.pdf"):
        if (made.parent / name).exists():  # not without LaTeX
            shutil.copy(made.parent / name, store.parents[1])
    picture = Path("figures", *made.parts[-2:], "accuracy.png")
    if picture.exists():  # of the first study
        shutil.copy(picture, store.parents[1])
    return f"Measures, verdicts, {len(raw)} raw tables and the documents kept in {store.parents[1]}"


for study, store in given.stores.items():
    if snakemake.rule == "keep_results":
        print(keep_results(results / study, Path(store)))
    elif snakemake.rule == "keep":
        print(summary(keep(f"{given.pieces}/{study}", f"{store}/pieces"), "kept"))
    elif Path(store, "pieces").is_dir():  # the rule asks that a study has some
        print(summary(resume(f"{store}/pieces", f"{given.pieces}/{study}"), "put back"))

"""Tables, figures and lists as the paper shows them, of the kept numbers or of those of this run.

Those of another study than the first are in a folder of its name.
"""

from importlib import import_module
from pathlib import Path

from begin import begin, kept_results
from recheck.report.documents import draw

results = begin(snakemake)
for number, study in enumerate(snakemake.params.studies):
    draw(
        results / study,
        Path("data/published", study),
        Path("src/studies", study, "layout.yaml"),
        kept_results(study),
        snakemake.params.numbers == "kept",
        import_module(f"studies.{study}.figures").FIGURES,
        Path(f"{results}/paper", study if number else ""),
    )

"""The look-ups of the text: what each prints, where each comes from, and the captions that the layouts give."""

import re
from pathlib import Path

from begin import begin, kept_results

results = begin(snakemake)

import yaml

from recheck.book import Book
from recheck.files import read_csv, read_json, write_text
from recheck.layout import Layout, read_layout
from recheck.lookups import Facts, Study, collect, uses, write_origins, write_values

given, made, first = snakemake.params, snakemake.output, snakemake.params.studies[0]


def code_of_figures(study: str) -> dict[str, str]:
    """File and line of the function that draws each figure."""
    places = {}
    for path in sorted(Path("src/studies", study, "figures").glob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := re.match(r"def ([a-z]\w*)\(", line):
                places[f"figures/{found[1]}"] = f"{path.as_posix()}:{number}"
    return places


def study_of(name: str) -> Study:
    """What look-ups need of a study."""
    kept, layout = kept_results(name), f"src/studies/{name}/layout.yaml"
    published = f"data/published/{name}"
    book = Book.read(results / name, Path(published), None, kept)
    folder = kept.as_posix() if kept else ""
    return Study(
        book,
        read_layout(layout),
        f"{results.as_posix()}/{name}",
        published,
        folder,
        layout,
        code_of_figures(name),
    )


def captions(layouts: dict[str, Layout]) -> str:
    r"""``\tablecaption{name}`` and ``\figurecaption{name}``: title, caption, and where the data come from.

    Names of all studies but the first begin with the study.
    """
    lines = [r"\newcommand{\tablecaption}[1]{\csname tablecaption@#1\endcsname}"]
    lines += [r"\newcommand{\figurecaption}[1]{\csname figurecaption@#1\endcsname}"]
    for study, layout in layouts.items():
        front = "" if study == first else f"{study}/"
        for kind in ("tables", "figures"):
            for name, entry in getattr(layout, kind).items():
                text = f"{entry.caption} \\origin{{{front}{kind}/{name}}}"
                macro = f"{kind[:-1]}caption@{front}{name}"
                lines.append(rf"\expandafter\def\csname {macro}\endcsname{{{text}}}")
    return "\n".join([*lines, ""])


def facts(path: str) -> Facts:
    """A file of values, JSON being YAML too."""
    return Facts(yaml.safe_load(Path(path).read_text(encoding="utf-8")), path)


def evidence(folder: Path) -> Facts:
    """What speaks for each level, by choice and kind, with how far it is ``behind`` the ``best`` in log likelihood.

    Where no number has a likelihood, the best level is the one under which most numbers agree.
    """
    path, values = folder / "readings.csv", {}
    order = ["log_likelihood", "agrees"]
    ordered = read_csv(path).sort_values(order, ascending=False, kind="stable")
    for (choice, kind), rows in ordered.groupby(["choice", "kind"]):
        behind = rows["log_likelihood"].max() - rows["log_likelihood"]
        levels = rows.assign(behind=behind).set_index("level").to_dict("index")
        values.setdefault(choice, {})[kind] = levels | {"best": rows["level"].iloc[0]}
    return Facts(values, path.as_posix())


studies = {name: study_of(name) for name in given.studies}
write_text(made.captions, captions({name: one.layout for name, one in studies.items()}))
record = read_json(snakemake.input.provenance)
values = {"run": Facts(record, snakemake.input.provenance)}
for name in studies:
    front, kept = "" if name == first else f"{name}:", kept_results(name)
    values[f"{front}protocol"] = facts(f"data/published/{name}/protocol.yaml")
    if kept:
        values[f"{front}kept"] = facts((kept / "provenance.json").as_posix())
    judged = kept if kept and given.numbers == "kept" else results / name
    values[f"{front}readings"] = evidence(judged)
found = collect(uses([*snakemake.input.text, made.captions]), studies, values, given.numbers)
write_values(found, made.values)
write_origins(found, studies, record, results, made.origins)

"""The reviewer's page, the CODECHECK manifest and the RO-Crate: one list, said in three ways.

For each table, figure and statement: the command that makes just this one, the minutes that its
results took, the files, the verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import jinja2
import pandas as pd
import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from gpcmc.audit import ResultFiles
from gpcmc.audit.claims import FILES
from gpcmc.report.provenance import cpu_seconds

__all__ = ["Item", "claim_items", "items", "write_codecheck", "write_crate", "write_review"]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that can be checked alone.

    Attributes
    ----------
    kind : str
        "table", "figure" or "statement".
    title : str
        What it is.
    command : str
        The command that makes just this one, from the repository's root.
    files : tuple of str
        What the command makes, from the repository's root.
    minutes : float
        CPU minutes of the methods behind it.
    untimed : tuple of str
        Result files behind it whose making is not timed.
    verdict : str
        What was found; empty where nothing is judged.
    """

    kind: str
    title: str
    command: str
    files: tuple[str, ...]
    minutes: float
    untimed: tuple[str, ...]
    verdict: str


def _cost(files: ResultFiles, kinds: Iterable[str]) -> tuple[float, tuple[str, ...]]:
    """CPU minutes of the result files of these kinds, and the CSV files of this run without any."""
    minutes, untimed = 0.0, []
    for kind in kinds:
        if kind == "reference" or kind.endswith("_timing"):  # kept with the repository; seconds
            continue
        for path in getattr(files, kind):
            if path.suffix != ".csv":
                continue
            seconds = path.with_name(f"{path.stem}_timing.csv")
            if seconds.is_file():
                minutes += cpu_seconds(seconds) / 60
            else:
                untimed.append(path.as_posix())
    return minutes, tuple(untimed)


def _count(verdicts: pd.Series) -> str:
    counts = verdicts.dropna().value_counts(sort=False)
    return ", ".join(f"{number} {verdict}" for verdict, number in counts.items())


def items(
    scale: str,
    files: ResultFiles,
    tables: Mapping[str, tuple[str, Sequence[str]]],
    figures: Mapping[str, tuple[str, Sequence[str]]],
) -> list[Item]:
    """Every table and figure of a run.

    Parameters
    ----------
    scale : str
        Name of the scale.
    files : ResultFiles
        All result files of the run.
    tables, figures : mapping of str to (str, sequence of str)
        Title, and the kinds of result files that it reads, by name. A target ``table_<name>`` or
        ``figure_<name>`` makes just this one; those that are numbered have their name for it.

    Returns
    -------
    list of Item
        A table's verdict counts the entries of its column ``verdict``, if it has one.
    """
    found = []
    for kind, things in (("table", tables), ("figure", figures)):
        for name, (title, reads) in things.items():
            target = name if name.startswith(kind) else f"{kind}_{name}"
            made = {
                "table": [f"results/{scale}/tables/{name}.{end}" for end in ("csv", "tex")],
                "figure": [f"figures/{scale}/{name}.{end}" for end in ("pdf", "png")],
            }[kind]
            verdict = ""
            if kind == "table":
                frame = pd.read_csv(made[0])
                verdict = _count(frame["verdict"]) if "verdict" in frame else ""
            minutes, untimed = _cost(files, reads)
            found.append(
                Item(
                    kind=kind,
                    title=title,
                    command=f"snakemake --cores 1 {target} --config scale={scale}",
                    files=tuple(made),
                    minutes=minutes,
                    untimed=untimed,
                    verdict=verdict,
                )
            )
    return found


def claim_items(scale: str, files: ResultFiles, claims: pd.DataFrame) -> list[Item]:
    """Every statement of the paper's prose.

    Parameters
    ----------
    scale : str
        Name of the scale.
    files : ResultFiles
        All result files of the run.
    claims : DataFrame
        ``audit_claims.csv``: columns ``statement``, ``section``, ``verdict``, ``result_file``.

    Returns
    -------
    list of Item
        One for each. They are judged together, by the target ``audit``; minutes are those of the result
        files that a statement reads.
    """
    found = []
    for claim in claims.to_dict("records"):
        read = claim["result_file"].split("; ")
        minutes, untimed = _cost(files, [kind for kind, name in FILES.items() if name in read])
        found.append(
            Item(
                kind="statement",
                title=f"{claim['statement']} ({claim['section']})",
                command=f"snakemake --cores 1 audit --config scale={scale}",
                files=(f"results/{scale}/audit_claims.csv",),
                minutes=minutes,
                untimed=untimed,
                verdict=claim["verdict"],
            )
        )
    return found


def write_review(
    found: Sequence[Item],
    audited: pd.DataFrame,
    record: Mapping[str, object],
    template: str | Path,
    path: str | Path,
) -> None:
    """Write the reviewer's page: one HTML file that needs no other and no server.

    Parameters
    ----------
    found : sequence of Item
        What can be checked alone.
    audited : DataFrame
        `read_audit`: columns ``id``, ``verdict`` and ``result_file`` are shown.
    record : mapping
        `provenance` with `run_timing`.
    template : path
        Jinja template.
    path : path
        Where to write; links are relative to its folder.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    depth = len(Path(path).parent.parts)
    page = environment.from_string(Path(template).read_text(encoding="utf-8")).render(
        items=found,
        cells=audited[["id", "verdict", "result_file"]].to_dict("records"),
        counts=_count(audited["verdict"]),
        record=record,
        up="../" * depth,
    )
    Path(path).write_text(page, encoding="utf-8")


def write_codecheck(
    found: Sequence[Item], pdf: str | None, record: Mapping[str, object], path: str | Path
) -> None:
    """Write the configuration of a CODECHECK (version 1.0 of its specification).

    The author's part: the paper and the manifest, with paths from the repository's root, where the
    checker puts the file. Codechecker, report, certificate and time of the check are the checker's.

    Parameters
    ----------
    found : sequence of Item
        What can be checked alone; tables and figures are listed.
    pdf : str, optional
        The paper, if it was typeset.
    record : mapping
        `provenance`.
    path : path
        Where to write.
    """
    manifest = [{"file": pdf, "comment": "The paper, with all tables and figures"}] if pdf else []
    for item in found:
        if item.kind == "statement":
            continue
        comment = f"{item.title}. {item.command}; CPU minutes: {item.minutes:.1f}"
        comment += f"; {item.verdict}" if item.verdict else ""
        manifest += [
            {"file": file, "comment": comment} for file in item.files if not file.endswith("tex")
        ]
    paper: dict[str, object] = {
        "title": "Gaussian process classification by orthant probabilities: a re-run and an audit",
        "authors": [{"name": "The gpcmc project"}],
    }
    config: dict[str, object] = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "source": f"commit {record['commit']}"
        if record["commit"]
        else "a copy without version control",
        "paper": paper,
        "manifest": manifest,
    }
    if record.get("remote"):
        paper["reference"] = config["repository"] = record["remote"]
    text = yaml.safe_dump(
        config, explicit_start=True, sort_keys=False, allow_unicode=True, width=120
    )
    Path(path).write_text(text, encoding="utf-8")


_FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".npz": "application/zip",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".tex": "application/x-tex",
    ".txt": "text/plain",
    ".yml": "application/yaml",
}


def write_crate(
    found: Sequence[Item],
    files: Iterable[str | Path],
    record: Mapping[str, object],
    path: str | Path,
) -> None:
    """Write the metadata of ``results/<scale>`` as an RO-Crate (version 1.1).

    Parameters
    ----------
    found : sequence of Item
        Each table and figure is the result of an action, whose description is the command. Figures lie
        outside the crate's folder: they are images with an address, and not files of the crate.
    files : iterable of path
        The files of the crate.
    record : mapping
        `provenance`. The crate's date is that of the commit, so that it is the same whenever it is made.
    path : path
        ``results/<scale>/ro-crate-metadata.json``.
    """
    folder = Path(path).parent
    date = datetime.fromtimestamp(int(str(record["commit_time"] or 0)), UTC).isoformat()
    crate = ROCrate(version="1.1")
    crate.name = f"gpcmc, results at scale {record['scale']}"
    crate.description = (
        "A New Monte Carlo Based Algorithm for the Gaussian Process Classification Problem, re-run from raw data and "
        "audited cell by cell. provenance.json says what it was made with, values.json where each number comes from, "
        "MANIFEST.sha256 has the checksums."
    )
    crate.datePublished = date
    crate.license = "https://spdx.org/licenses/BSD-3-Clause"

    def context(name: str, /, **properties: object) -> ContextEntity:
        return crate.add(ContextEntity(crate, name, properties))

    crate.creator = context(
        "#gpcmc-developers", **{"@type": "Organization", "name": "The gpcmc developers"}
    )
    crate.publisher = crate.creator
    crate.isBasedOn = context(
        "https://arxiv.org/abs/1302.7220",
        **{
            "@type": "ScholarlyArticle",
            "name": "A New Monte Carlo Based Algorithm for the Gaussian Process Classification Problem",
        },
    )
    software: dict[str, object] = {
        "@type": "SoftwareSourceCode",
        "name": "gpcmc",
        "version": record["commit"] or "unknown",
    }
    if record.get("remote"):
        software["codeRepository"] = record["remote"]
    engine = context("#gpcmc", **software)
    crate.root_dataset["mainEntity"] = engine
    entities = {}
    for name in sorted(str(file) for file in files):
        inside = Path(name).relative_to(folder).as_posix()
        properties = {"name": inside}
        if suffix := _FORMATS.get(Path(name).suffix):
            properties["encodingFormat"] = suffix
        entities[name] = crate.add_file(dest_path=inside, properties=properties)
    for item in found:
        if item.kind == "statement":
            continue
        results = []
        for file in item.files:
            if file not in entities:
                address = Path(*[".."] * len(folder.parts), file).as_posix()
                image = {"@type": "ImageObject", "name": item.title, "contentUrl": address}
                image["encodingFormat"] = _FORMATS[Path(file).suffix]
                entities[file] = context(f"#{file}", **image)
            results.append(entities[file])
        action = {"name": item.title, "description": item.command}
        if item.verdict:
            action["disambiguatingDescription"] = item.verdict
        crate.add_action(engine, f"#make/{item.files[0]}", result=results, properties=action)
    graph = crate.metadata.generate()
    Path(path).write_text(json.dumps(graph, indent=1, sort_keys=True) + "\n", encoding="utf-8")

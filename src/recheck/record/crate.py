"""A Workflow Run RO-Crate: one file that says in a public vocabulary what a run read, ran and wrote.

Profiles: Process Run Crate and Workflow Run Crate 0.5, on Workflow RO-Crate 1.0 (Leo et al., 2024, PLOS ONE
19, e0309210).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

#: What the crate conforms to.
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}


def run_crate(
    about: Mapping[str, str],
    record: Mapping[str, Any],
    sources: Iterable[str],
    raw: Iterable[Mapping[str, str]],
    results: Iterable[str],
) -> ROCrate:
    """Describe a run; paths are relative to the folder of the project, which is at work.

    Parameters
    ----------
    about : dict
        ``name``, ``description``, ``authors``, ``license`` by its SPDX identifier, and the workflow's ``language``.
    record : dict
        The run's provenance (`recheck.record.provenance`): commit, packages, configuration, start and end.
    sources : iterable of str
        Files that the run read: the first is the workflow. All are packed.
    raw : iterable of dict
        ``name``, ``address``, ``sha256`` and ``licence`` of raw files, which stay where they are.
    results : iterable of str
        Files that the run wrote. All are packed.
    """
    crate = ROCrate(version="1.1")
    crate.name, crate.description = about["name"], about["description"]
    crate.license = f"https://spdx.org/licenses/{about['license']}"
    crate.root_dataset["conformsTo"] = [
        _add(crate, address, "CreativeWork", name=name, version=version)
        for address, (name, version) in PROFILES.items()
    ]
    authors = _add(crate, "#authors", "Organization", name=about["authors"])
    crate.root_dataset["author"] = authors
    first, *others = sources
    workflow = crate.add_workflow(
        first,
        first,
        main=True,
        lang=about["language"],
        lang_version=record["packages"].get(about["language"]),
        properties={"name": about["name"], "version": record["commit"] or "not under git"},
    )
    read = [crate.add_file(path, path, properties={"name": path}) for path in others]
    read += [
        crate.add_file(
            one["address"],
            properties={
                "name": one["name"],
                "sha256": one["sha256"],
                "conditionsOfAccess": one["licence"],
            },
        )
        for one in raw
    ]
    for key in ("scale", "seed", "config_sha256"):
        read.append(_add(crate, f"#{key}", "PropertyValue", name=key, value=str(record[key])))
    written = [crate.add_file(path, path, properties={"name": path}) for path in results]
    crate.add_action(
        workflow,
        identifier=f"#run-{record['scale']}",
        object=read,
        result=written,
        properties={
            "name": f"A run at the scale {record['scale']}",
            "description": f"{record['cpu_hours']} CPU hours on {record['cpu']}, {record['system']}",
            "startTime": record["start"],
            "endTime": record["end"],
            "actionStatus": "http://schema.org/CompletedActionStatus",
        },
    )["agent"] = authors
    return crate


def _add(crate: ROCrate, identifier: str, kind: str, **properties: str) -> ContextEntity:
    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))

"""What a checked configuration asks for: rows, the blocks that jobs run, what these read, parts of measures, targets.

Each study says in its module ``study`` what its experiments and measures read, and which targets it has (`Study`).
Everything else follows from that and from the plans of the experiments. The rules of the workflow ask a `Plan`, and so
do the tests. This module imports nothing heavy: the workflow reads it before any job starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from studies.common.blocks import Input
from studies.common.code import digest, digest_of_rows
from studies.common.rows import SECONDS, Line, Row

_SOURCE = Path(__file__).resolve().parents[1]
#: Megabytes of a job whose rows do not say that they need more.
MEGABYTES = 2400


@dataclass(frozen=True)
class From:
    """Rows of another experiment that a row reads: which experiment, and the names of its rows."""

    experiment: str
    names: Callable[[Row], Sequence[str]]


@dataclass(frozen=True)
class Study:
    """What the experiments and the measures of a study read, and its targets.

    Attributes
    ----------
    experiments : mapping
        Of each experiment, what its rows read, by the name that `run` knows it by: patterns (a name with fields of the
        row, as in ``experiment4/problem{problem}``; empty: the row reads none), or rows of another experiment.
    measures : mapping
        Of each part of the measures, the experiments that it reads.
    targets : mapping
        Names of targets, and the experiments whose tables they make.
    whole : str
        The name of the target that makes all tables and figures; empty: there is none.
    raw : mapping
        Data sets that the registry has under another name.
    apart : sequence of str
        Experiments that ``all`` does not run and that are not kept as others are.
    """

    experiments: Mapping[str, Mapping[str, str | From]]
    measures: Mapping[str, Sequence[str]]
    targets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    whole: str = ""
    raw: Mapping[str, str] = field(default_factory=dict)
    apart: Sequence[str] = ()


class Block(NamedTuple):
    """Rows that one job runs, each with its experiment."""

    study: str
    name: str
    rows: list[tuple[str, Line]]

    @property
    def seconds(self) -> float:
        """About how many CPU seconds they take."""
        return sum(seconds_of(row) for _, row in self.rows)

    @property
    def megabytes(self) -> int:
        """How much memory the job needs."""
        return max(MEGABYTES, *(row.get("megabytes", 0) for _, row in self.rows))

    @property
    def minutes(self) -> int:
        """How long a scheduler lets the job run: estimates of seconds are right within a factor of three."""
        return 10 + int(self.seconds / 60) * 3

    @property
    def code(self) -> str:
        """A digest of the code that its rows rest on."""
        by: dict[str, list[Line]] = {}
        for experiment, row in self.rows:
            by.setdefault(experiment, []).append(row)
        found = [digest_of_rows(self.study, experiment, rows) for experiment, rows in by.items()]
        return found[0] if len(found) == 1 else "-".join(one[:8] for one in found)


def seconds_of(row: Row) -> float:
    """Return about how many CPU seconds a row takes."""
    return float(row.get("seconds", SECONDS))


def studies() -> list[str]:
    """Return the names of all studies: the packages of `studies` that have a module ``study``."""
    return sorted(path.parent.name for path in _SOURCE.glob("*/study.py"))


def declared(study: str) -> Study:
    """Return what a study says of itself."""
    found: Study = import_module(f"studies.{study}.study").STUDY
    return found


class Plan:
    """What a configuration asks for.

    Parameters
    ----------
    config : mapping
        The complete configuration (`studies.common.configuration.read_config`).

    Raises
    ------
    ValueError
        With a line for each problem: key, value given, what is allowed.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        every = studies()
        self.checked = {
            name: import_module(f"studies.{name}.config").check(config) for name in every
        }
        self.general = self.checked[every[0]]
        first = self.general.paper.study
        if first not in every:
            raise ValueError(
                f"The configuration is refused:\n  paper.study: given {first!r}; allowed is one of {every}"
            )
        #: The study that the paper is about comes first; names of the others have the study in front.
        self.studies = [first, *(name for name in every if name != first)]
        self.results = f"results/{self.general.scale}"
        self._rows: dict[tuple[str, str], list[Line]] = {}
        self._blocks: dict[str, dict[str, Block]] = {}
        self._places: dict[str, dict[tuple[str, str], str]] = {}

    # ----- rows and blocks

    def kept(self, study: str) -> list[str]:
        """The experiments that a run of everything has, and that are kept, in alphabetical order."""
        known = declared(study)
        return sorted(name for name in known.experiments if name not in known.apart)

    def rows(self, study: str, experiment: str) -> list[Line]:
        """All rows of an experiment."""
        if (study, experiment) not in self._rows:
            module = _experiment(study, experiment)
            self._rows[study, experiment] = module.plan(self.checked[study])
        return self._rows[study, experiment]

    def plans(self, study: str) -> dict[str, list[Line]]:
        """The rows of all experiments that are kept."""
        return {name: self.rows(study, name) for name in self.kept(study)}

    def blocks(self, study: str) -> dict[str, Block]:
        """The blocks of a study by name: rows in their order, packed by seconds.

        Rows that others read come before them, so that a block reads earlier ones, or itself.
        """
        if study not in self._blocks:
            together = self.general.pack.across == "study"
            groups: dict[str, list[tuple[str, Line]]] = {}
            for experiment in _in_order(declared(study)):
                apart = experiment in declared(study).apart
                name = "rows" if together and not apart else experiment
                rows = self.rows(study, experiment)
                groups.setdefault(name, []).extend((experiment, row) for row in rows)
            self._blocks[study] = {
                f"{name}-{k}": Block(study, f"{name}-{k}", rows)
                for name, every in groups.items()
                for k, rows in enumerate(_packed(every, self.general.pack.seconds))
            }
        return self._blocks[study]

    def path(self, block: Block) -> str:
        """The file that a block is written to."""
        return f"{self.results}/{block.study}/rows/{block.name}.npz"

    def files(self, study: str, experiments: Iterable[str]) -> list[str]:
        """The blocks that have rows of some experiments."""
        wanted = set(experiments)
        return [
            self.path(block)
            for block in self.blocks(study).values()
            if any(experiment in wanted for experiment, _ in block.rows)
        ]

    def tables(self, study: str, experiments: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """What tables of experiments are written from: their blocks, and the order of their rows."""
        names = list(experiments)
        return {
            "files": {name: self.files(study, [name]) for name in names},
            "order": {name: [row["row"] for row in self.rows(study, name)] for name in names},
        }

    # ----- what rows read

    def inputs(self, study: str, experiment: str, row: Row) -> dict[str, Input]:
        """Where the arrays are that a row reads, by name."""

        def files(other: str, names: Iterable[str]) -> list[str]:
            return sorted({self._place(study, other, one) for one in names})

        return self._inputs(study, experiment, row, files)

    def _inputs(
        self,
        study: str,
        experiment: str,
        row: Row,
        files: Callable[[str, Sequence[str]], list[str]],
    ) -> dict[str, Input]:
        """What a row reads; `files` says where rows of another experiment are."""
        found = {}
        for name, source in declared(study).experiments[experiment].items():
            if isinstance(source, From):
                names = list(source.names(row))
                found[name] = Input(files(source.experiment, names), source.experiment, names)
            elif source.format_map(row):
                found[name] = Input([self._patterns_file(study, source, row)])
        return found

    def inputs_of(self, block: Block) -> list[str]:
        """The files that a block reads, but for itself."""
        found = {
            path
            for experiment, row in block.rows
            for given in self.inputs(block.study, experiment, row).values()
            for path in given.files
        }
        return sorted(found - {self.path(block)})

    def _place(self, study: str, experiment: str, row: str) -> str:
        """The file of the block that has a row."""
        if study not in self._places:
            self._places[study] = {
                (experiment, row["row"]): self.path(block)
                for block in self.blocks(study).values()
                for experiment, row in block.rows
            }
        if (experiment, row) not in self._places[study]:
            raise ValueError(f"{study}, {experiment}: there is no row {row}")
        return self._places[study][experiment, row]

    def _patterns_file(self, study: str, template: str, row: Row) -> str:
        return f"{self.results}/{study}/{template.format_map(row)}.npz"

    def patterns(self, study: str) -> dict[str, list[str]]:
        """Names of patterns by the job that makes them: those of a folder, or at small scales all of a study."""
        groups: dict[str, list[str]] = {}
        together, seen = self.general.pack.across == "study", set()
        apart = declared(study).apart
        # what is apart comes last, so that what it shares with others is made for them
        for experiment in sorted(declared(study).experiments, key=lambda name: name in apart):
            for name in self._patterns(study, experiment):
                folder = "data" if together else name.partition("/")[0]
                if name not in seen:
                    groups.setdefault("apart" if experiment in apart else folder, []).append(name)
                    seen.add(name)
        return groups

    def _patterns(self, study: str, experiment: str) -> Iterator[str]:
        sources = declared(study).experiments[experiment].values()
        templates = [one for one in sources if not isinstance(one, From)]
        rows = self.rows(study, experiment) if templates else []
        names = dict.fromkeys(one.format_map(row) for one in templates for row in rows)
        yield from filter(None, names)

    def raw(self, study: str, names: Iterable[str]) -> list[str]:
        """Names of the data sets in the registry that patterns are made from, if they are real."""
        known = declared(study).raw
        return [known.get(one, one) for one in (name.rpartition("/")[2] for name in names)]

    # ----- measures and targets

    def measured(self, study: str, parts: Iterable[str] | None = None) -> list[str]:
        """The files that parts of the measures read; all parts, if none are named."""
        known = declared(study).measures
        experiments = {name for part in (known if parts is None else parts) for name in known[part]}
        patterns = [
            f"{self.results}/{study}/{name}.npz"
            for experiment in sorted(experiments)
            for name in self._patterns(study, experiment)
        ]
        return [*self.files(study, experiments), *dict.fromkeys(patterns)]

    def experiments_of(self, study: str, parts: Iterable[str]) -> list[str]:
        """The experiments that parts of the measures read."""
        known = declared(study).measures
        return list(dict.fromkeys(name for part in parts for name in known[part]))

    @cached_property
    def targets(self) -> dict[str, tuple[str, list[str]]]:
        """Names of targets that make tables of rows: of each, the study and the experiments."""
        return {
            target: (study, list(experiments))
            for study in self.studies
            for target, experiments in declared(study).targets.items()
        }

    def parts_of(self, study: str, item: Mapping[str, Any]) -> list[str]:
        """The parts of the measures that a table or a figure reads, as its layout says."""
        known = declared(study).measures
        return [part for part in known if part in item["reads"]]

    # ----- rows that are kept

    def job_of(self, study: str, experiment: str, row: Row) -> dict[str, Any]:
        """A kept row with all that running it again needs: patterns, and kept rows of other experiments."""

        def files(other: str, names: Iterable[str]) -> list[str]:
            return [f"data/reference/{study}/{other}.csv"]

        inputs = self._inputs(study, experiment, row, files)
        return {"study": study, "experiment": experiment, "row": row, "inputs": inputs}

    def chosen(self, names: Mapping[str, Mapping[str, Sequence[str]]]) -> list[dict[str, Any]]:
        """Rows whose names are given by study and experiment, as `job_of` has them."""
        found = []
        for study, experiments in names.items():
            for experiment, own in experiments.items():
                wanted = set(own)
                rows = (row for row in self.rows(study, experiment) if row["row"] in wanted)
                found += [self.job_of(study, experiment, row) for row in rows]
        return found


def code_of(study: str, parts: Iterable[str], *more: str) -> str:
    """Return the digest of the code of parts of a study's measures."""
    return digest([*(f"studies.{study}.measures.{part}" for part in parts), *more])


def _experiment(study: str, name: str) -> ModuleType:
    return import_module(f"studies.{study}.experiments.{name}")


def _in_order(study: Study) -> list[str]:
    """The experiments, those that others read first."""
    read = {
        source.experiment
        for sources in study.experiments.values()
        for source in sources.values()
        if isinstance(source, From)
    }
    return sorted(study.experiments, key=lambda name: name not in read)


def _packed(rows: Iterable[tuple[str, Line]], limit: float) -> Iterator[list[tuple[str, Line]]]:
    """Rows in their order, in packs of no more than so many seconds, or of one row."""
    pack, spent = list[tuple[str, Line]](), 0.0
    for one in rows:
        seconds = seconds_of(one[1])
        if pack and spent + seconds > limit:
            yield pack
            pack, spent = [], 0.0
        pack.append(one)
        spent += seconds
    if pack:
        yield pack

"""How long the published scale takes on a cluster, from the kept timings and the graph of its jobs.

The CPU seconds of a job are the sum of those of its kept pieces. Jobs go to one of so many cores, in the workflow's
order, as soon as what they read is there. Jobs below a threshold share an allocation, one after the other. Every
allocation waits in a queue, and every job starts an interpreter. What follows the runs (measures, verdicts, tables,
PDF) is one allocation more. The ideal is the sum of all CPU seconds, without these costs, over the number of cores.

Jobs longer than `--cut` are also shown divided into equal parts, at their pieces: no part is taken to be shorter than
the longest piece.

Run with ``python benchmarks/makespan.py``; writes docs/makespan.csv and docs/makespan.png.
"""

import argparse
import heapq
import io
import json
import math
import re
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "data/reference/atiya2021/kept/pieces"
#: Kinds of jobs that are no part of `snakemake all`.
APART = ("reference", "reference_truths", "calibrate")
CORES = (2, 8, 64, 256)


@dataclass(frozen=True)
class Task:
    """A job: its CPU seconds, those of its longest piece, and the tasks that make what it reads."""

    name: str
    seconds: float
    longest_piece: float = 0.0
    needs: tuple[str, ...] = ()


def cpu_seconds(archive):
    """CPU seconds of each piece of a job."""
    found = []
    with zipfile.ZipFile(archive) as pieces:
        for entry in pieces.namelist():
            if entry.endswith(".npz"):
                with np.load(io.BytesIO(pieces.read(entry))) as stored:
                    _, timing = json.loads(str(stored["rows"]))
                rows = [v for row in timing for k, v in row.items() if k.endswith("cpu_seconds")]
                found.append(sum(float(value) for value in rows if value is not None))
    return found


def published_tasks(unknown):
    """The jobs of the published scale in the workflow's order, and the names of those without timings."""
    sys.path.insert(0, str(ROOT / "src"))
    from studies.atiya2021.jobs import jobs

    config = yaml.safe_load((ROOT / "config/published.yaml").read_text(encoding="utf-8"))
    found = [job for job in jobs(config).values() if job.kind not in APART]
    makers = {file: job.name for job in found for file in job.outputs.values()}
    tasks = []
    for job in found:
        archive = KEPT / f"{job.name}.zip"
        pieces = cpu_seconds(archive) if archive.exists() else []
        timed = sum(pieces) > 0
        needs = tuple(sorted({makers[file] for file in job.inputs.values() if file in makers}))
        seconds, longest = (sum(pieces), max(pieces)) if timed else (unknown, 0.0)
        tasks.append(
            (not re.match("experiment2/", job.name), timed, Task(job.name, seconds, longest, needs))
        )
    tasks.sort(key=lambda entry: entry[0])  # workflow/rules/atiya2021.smk starts Experiment 2 first
    return [task for *_, task in tasks], [task.name for _, timed, task in tasks if not timed]


def cut(tasks, limit):
    """Divide tasks longer than `limit` into equal parts, where their pieces allow it."""
    parts, names = [], {}
    for task in tasks:
        count = max(1, math.ceil(task.seconds / max(limit, task.longest_piece)))
        names[task.name] = tuple(f"{task.name}#{k}" for k in range(count))
        parts += [
            replace(task, name=name, seconds=task.seconds / count) for name in names[task.name]
        ]
    return [replace(part, needs=sum((names[need] for need in part.needs), ())) for part in parts]


def allocations(tasks, short, together):
    """Lists of tasks that share an allocation: short ones of a level, as long as they last `together` at most."""
    level = {}
    for task in tasks:  # what a task reads comes before it
        level[task.name] = 1 + max((level.get(need, 0) for need in task.needs), default=0)
    found, open_ = [], {}
    for task in tasks:
        if task.seconds >= short:
            found.append([task])
            continue
        group = open_.get(level[task.name])
        if group is None or sum(t.seconds for t in group) + task.seconds > together:
            group = open_[level[task.name]] = []
            found.append(group)
        group.append(task)
    return found


def makespan(groups, cores, startup, queue):
    """Seconds until all groups are done, each on one core, in their order among those that are ready."""
    home = {task.name: k for k, group in enumerate(groups) for task in group}
    needs = [
        {home[n] for task in group for n in task.needs} - {k} for k, group in enumerate(groups)
    ]
    waiting = [len(need) for need in needs]
    readers = [[k for k, need in enumerate(needs) if j in need] for j in range(len(groups))]
    ready, running, now = [k for k, count in enumerate(waiting) if count == 0], [], 0.0
    heapq.heapify(ready)
    while ready or running:
        while ready and len(running) < cores:
            k = heapq.heappop(ready)
            seconds = queue + sum(task.seconds + startup for task in groups[k])
            heapq.heappush(running, (now + seconds, k))
        now, done = heapq.heappop(running)
        for k in readers[done]:
            waiting[k] -= 1
            if waiting[k] == 0:
                heapq.heappush(ready, k)
    return now


def table(tasks, given):
    """Makespan and ideal by number of cores: of the jobs as they are; cut; and the longest of these first."""
    report = Task("report", given.report, needs=tuple(task.name for task in tasks))
    parts = cut([*tasks, report], given.cut)
    divided = f"cut at {given.cut / 60:g} min"
    plans = {
        "as they are": [*tasks, report],
        divided: parts,
        f"{divided}, longest first": sorted(
            parts, key=lambda task: (bool(task.needs), -task.seconds)
        ),
    }
    total = sum(task.seconds for task in tasks) + given.report
    rows = []
    for how, plan in plans.items():
        groups = allocations(plan, given.short, given.together)
        for cores in CORES:
            found = makespan(groups, cores, given.startup, given.queue)
            rows.append(
                {
                    "jobs": how,
                    "cores": cores,
                    "allocations": len(groups),
                    "minutes": round(found / 60, 1),
                    "ideal": round(total / cores / 60, 1),
                    "ratio": round(found * cores / total, 2),
                }
            )
    return pd.DataFrame(rows)


def picture(found, path):
    """Makespan and ideal against cores."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for (how, rows), marker in zip(found.groupby("jobs", sort=False), "os^", strict=True):
        axes.loglog(rows["cores"], rows["minutes"], f"{marker}-", label=f"jobs {how}")
    axes.loglog(rows["cores"], rows["ideal"], "k--", label="ideal")
    axes.set_xticks(CORES, CORES, minor=False)
    axes.set(xlabel="cores", ylabel="minutes from submission to PDF")
    axes.legend()
    figure.savefig(path, dpi=150, metadata={"Software": None})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    option = {
        "startup": (4.0, "seconds that a job takes to start"),
        "queue": (30.0, "seconds that an allocation waits"),
        "short": (60.0, "jobs below so many seconds share an allocation"),
        "together": (300.0, "seconds of work in a shared allocation, at most"),
        "cut": (600.0, "seconds of a part, where long jobs are divided"),
        "report": (300.0, "seconds of all that follows the runs"),
        "unknown": (20.0, "seconds of a job whose pieces keep no timings"),
    }
    for name, (default, meaning) in option.items():
        parser.add_argument(
            f"--{name}", type=float, default=default, help=f"{meaning} ({default:g})"
        )
    return parser.parse_args()


def main():
    given = arguments()
    tasks, untimed = published_tasks(given.unknown)
    found = table(tasks, given)
    found.to_csv(ROOT / "docs/makespan.csv", index=False)
    picture(found, ROOT / "docs/makespan.png")
    print(found.to_string(index=False))
    kinds = Counter(name.split("/")[0] for name in untimed)
    print(f"{len(tasks)} jobs, {sum(task.seconds for task in tasks) / 3600:.1f} CPU hours")
    print(
        f"{len(untimed)} without kept timings: " + ", ".join(f"{k} {n}" for k, n in kinds.items())
    )
    for what, seconds in (("jobs", "seconds"), ("pieces", "longest_piece")):
        long = {t.name: getattr(t, seconds) / 60 for t in tasks if getattr(t, seconds) > given.cut}
        long = sorted(long.items(), key=lambda entry: -entry[1])
        print(
            f"{what} over {given.cut / 60:g} minutes: " + ", ".join(f"{k} {m:.0f}" for k, m in long)
        )


if __name__ == "__main__":
    main()

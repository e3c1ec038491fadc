"""How long the published scale takes on a cluster, from the kept timings and the graph of its jobs.

The CPU seconds of a job are the sum of those of its kept pieces. Long jobs are divided into slices
(`studies.common.slices`). Jobs go to one of so many cores, in the workflow's order, as soon as what they read is there.
Short ones share allocations as in profiles/slurm. Every allocation waits in a queue, and every job starts an
interpreter. What follows the runs (measures, verdicts, tables, PDF) is one allocation more. The ideal is the sum of all
CPU seconds, without these costs, over the number of cores.

Run with ``python benchmarks/makespan.py``; writes docs/makespan.csv, docs/makespan.png, and the plans of slices that
the workflow follows, data/reference/<study>/kept/slices.json: run it after `make keep SCALE=published`.
"""

import argparse
import heapq
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
from studies.common.kept import read_store  # noqa: E402
from studies.common.pieces import cpu_seconds, unverified  # noqa: E402
from studies.common.running import PATTERNS  # noqa: E402
from studies.common.slices import LIMIT, plan, seconds_of  # noqa: E402

STORES = {path.parent.name: path for path in sorted(ROOT.glob("data/reference/*/kept"))}
#: Kinds of jobs that are no part of `snakemake all`.
APART = ("reference", "reference_truths", "calibrate")
CORES = (2, 8, 64, 256)
FIRST = ("atiya2021/experiment2/", "atiya2021/experiment5/")


@dataclass(frozen=True)
class Task:
    """A job or a slice: CPU seconds, whose allocation it shares (its own if empty), and what makes what it reads."""

    name: str
    seconds: float
    group: str = ""
    needs: tuple[str, ...] = ()


def published_tasks(kept, given):
    """The jobs of the published scale in the workflow's order, and the names of those without timings."""
    config = yaml.safe_load((ROOT / "config/published.yaml").read_text(encoding="utf-8"))
    profile = yaml.safe_load((ROOT / "profiles/slurm/profile.yaml").read_text(encoding="utf-8"))
    rules = (ROOT / "workflow/rules/atiya2021.smk").read_text(encoding="utf-8")
    short = re.search(r'use rule run as run_short with:.*?run="(.*?)"', rules, re.S)[1]
    tasks = []
    for study in STORES:
        jobs = import_module(f"studies.{study}.jobs").jobs(config).values()
        found = [job for job in jobs if job.kind not in APART]
        makers = {file: f"{study}/{job.name}" for job in found for file in job.outputs.values()}
        for job in found:
            run = f"{study}/" + next(iter(job.outputs.values())).rpartition(".")[0]
            rule = "run_short" if re.fullmatch(short, run) else "run"
            group = profile["groups"].get("patterns" if job.kind == PATTERNS else rule, "")
            needs = tuple(sorted({makers[file] for file in job.inputs.values() if file in makers}))
            other = given.patterns if job.kind == PATTERNS else given.unknown
            name = f"{study}/{job.name}"
            tasks.append(Task(name, kept.get(name) or other, group, needs))
    # workflow/rules/atiya2021.smk starts these first
    tasks.sort(key=lambda task: not task.name.startswith(FIRST))
    return tasks, profile["group-components"], [t.name for t in tasks if not kept.get(t.name)]


def divided(tasks, slices, seconds):
    """The tasks with slices of the long ones; seconds by job and slice."""
    first, second, rest = [], [], []
    for task in tasks:
        names = tuple(f"{task.name} slice {k}" for k in range(len(slices.get(task.name, ()))))
        own = [seconds[task.name][k] for k in range(len(names))]
        # workflow/rules/atiya2021.smk starts control variables before all others
        where = first if "control-variables" in task.name else second
        where += [Task(n, s, "", task.needs) for n, s in zip(names, own, strict=True)]
        left = max(task.seconds - sum(own), 0.0)
        rest.append(replace(task, seconds=left, needs=(*task.needs, *names)) if names else task)
    early = [task for task in rest if task.name.startswith(FIRST[1])]
    return first + early + second + [task for task in rest if task not in early]


def allocations(tasks, together):
    """Lists of tasks that share an allocation: those of a group, so many at a time."""
    found, open_ = [], {}
    for task in tasks:
        if not task.group:
            found.append([task])
            continue
        shared = open_.get(task.group)
        if shared is None or len(shared) == together.get(task.group, len(tasks)):
            shared = open_[task.group] = []
            found.append(shared)
        shared.append(task)
    return found


def makespan(groups, cores, startup, queue):
    """Seconds until all groups are done, each on one core, in their order among those that have queued.

    All that can be submitted is, so that a group queues while others run.
    """
    home = {task.name: k for k, group in enumerate(groups) for task in group}
    needs = [
        {home[n] for task in group for n in task.needs} - {k} for k, group in enumerate(groups)
    ]
    waiting = [len(need) for need in needs]
    readers = [[k for k, need in enumerate(needs) if j in need] for j in range(len(groups))]
    events = [(queue, k, "queued") for k, count in enumerate(waiting) if count == 0]
    heapq.heapify(events)
    ready, free, now = [], cores, 0.0
    while events:
        now, k, what = heapq.heappop(events)
        if what == "queued":
            heapq.heappush(ready, k)
        else:
            free += 1
            for reader in readers[k]:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    heapq.heappush(events, (now + queue, reader, "queued"))
        while ready and free:
            k = heapq.heappop(ready)
            seconds = sum(task.seconds + startup for task in groups[k])
            heapq.heappush(events, (now + seconds, k, "done"))
            free -= 1
    return now


def table(plans, together, given):
    """Makespan and ideal by number of cores: of whole jobs, and in slices."""
    rows = []
    for how, tasks in plans.items():
        report = Task("report", given.report, needs=tuple(task.name for task in tasks))
        groups = allocations([*tasks, report], together)
        total = sum(task.seconds for group in groups for task in group)
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
                    "longest": round(max(task.seconds for task in tasks) / 60, 1),
                }
            )
    return pd.DataFrame(rows)


def picture(found, path):
    """Makespan and ideal against cores."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for (how, rows), marker in zip(found.groupby("jobs", sort=False), "os", strict=True):
        axes.loglog(rows["cores"], rows["minutes"], f"{marker}-", label=how)
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
        "report": (90.0, "seconds of all that follows the runs"),
        "patterns": (3.0, "seconds to make the patterns of a problem"),
        "unknown": (20.0, "seconds of another job whose pieces keep no timings"),
    }
    for name, (default, meaning) in option.items():
        parser.add_argument(
            f"--{name}", type=float, default=default, help=f"{meaning} ({default:g})"
        )
    return parser.parse_args()


def main():
    given = arguments()
    pieces = {
        f"{study}/{archive.job}": {
            name: unverified(one)[0] for (name, _), one in archive.pieces.items()
        }
        for study, store in STORES.items()
        for archive in read_store(store / "pieces")
    }
    kept = {job: sum(map(cpu_seconds, found.values())) for job, found in pieces.items()}
    tasks, together, untimed = published_tasks(kept, given)
    slices = {}
    for study, store in STORES.items():
        if own := plan(store / "pieces"):
            (store / "slices.json").write_text(json.dumps(own, indent=1) + "\n", encoding="utf-8")
        slices |= {f"{study}/{job}": found for job, found in own.items()}
    seconds = {
        job: [seconds_of(one, pieces[job]) for one in found] for job, found in slices.items()
    }
    parts = divided(tasks, slices, seconds)
    found = table({"whole jobs": tasks, "long jobs in slices": parts}, together, given)
    found.to_csv(ROOT / "docs/makespan.csv", index=False)
    picture(found, ROOT / "docs/makespan.png")
    print(found.to_string(index=False))
    kinds = Counter("/".join(name.split("/")[:2]) for name in untimed)
    print(f"{len(tasks)} jobs, {sum(task.seconds for task in tasks) / 3600:.1f} CPU hours")
    print(f"{len(slices)} longer than {LIMIT:g} s: {sum(map(len, slices.values()))} slices")
    print(
        f"{len(untimed)} without kept timings: " + ", ".join(f"{k} {n}" for k, n in kinds.items())
    )
    for how, plan_of in (("whole", tasks), ("in slices", parts)):
        name, longest = max(((t.name, t.seconds / 60) for t in plan_of), key=lambda one: one[1])
        print(f"the longest job, {how}: {name}, {longest:.1f} minutes")


if __name__ == "__main__":
    main()

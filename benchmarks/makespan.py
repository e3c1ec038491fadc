"""How long the published scale takes on a cluster, from the CPU seconds of kept rows and the plans of the experiments.

``snakemake jobs --config scale=published`` lists the jobs that the plans make, with the CPU seconds of their kept rows.
Here they go to one of so many cores, the longest first, as soon as what they read is there. Every allocation waits in a
queue, and every job starts an interpreter. What follows the rows (measures, verdicts, tables, PDF) is one allocation
more. The ideal is the sum of all CPU seconds, without these costs, over the number of cores.

Run with ``python benchmarks/makespan.py``; writes docs/makespan.csv and docs/makespan.png.
"""

import argparse
import heapq
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
CORES = (2, 8, 64, 256)
#: Jobs shorter than this share an allocation, so many at a time (profiles/slurm).
SHORT, TOGETHER = 20.0, 12


@dataclass(frozen=True)
class Task:
    """A job: what it writes and reads, and its CPU seconds."""

    name: str
    seconds: float
    needs: tuple[str, ...] = ()


def published_tasks(startup):
    """The jobs of the published scale, the longest first, and how many rows of each experiment have no timings."""
    command = ["snakemake", "jobs", "--cores", "1", "--quiet", "all"]
    subprocess.run([*command, "--config", "scale=published"], cwd=ROOT, check=True)
    jobs = pd.read_csv(ROOT / "results/published/jobs.csv", keep_default_na=False)
    tasks = []
    for job in jobs.itertuples():
        arrays = job.file.removesuffix(".csv") + ".npz"
        tasks.append(Task(arrays, job.cpu_seconds + startup, tuple(job.reads.split())))
    # whoever reads a whole experiment waits for all of its blocks
    blocks = {task.name: [task.name] for task in tasks}
    for job in jobs.itertuples():
        whole = f"results/published/{job.study}/{job.experiment}.npz"
        blocks.setdefault(whole, []).append(job.file.removesuffix(".csv") + ".npz")
    tasks = [
        Task(t.name, t.seconds, tuple(one for n in t.needs for one in blocks.get(n, ())))
        for t in tasks
    ]
    untimed = Counter()
    for job in jobs[jobs["untimed"] > 0].itertuples():
        untimed[f"{job.study}/{job.experiment}"] += job.untimed
    return sorted(tasks, key=lambda task: -task.seconds), untimed


def allocations(tasks):
    """Lists of tasks that share an allocation: short ones that read no other's rows, so many at a time.

    Those that others read come first, as the priorities of their rules say; then the longest.
    """
    read = {name for task in tasks for name in task.needs}
    short = [
        task for task in tasks if task.seconds < SHORT and not task.needs and task.name not in read
    ]
    groups = [short[k : k + TOGETHER] for k in range(0, len(short), TOGETHER)]
    groups += [[task] for task in tasks if task not in short]
    return sorted(groups, key=lambda g: (g[0].name not in read, -sum(task.seconds for task in g)))


def makespan(groups, cores, queue):
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
            heapq.heappush(events, (now + sum(t.seconds for t in groups[k]), k, "done"))
            free -= 1
    return now


def table(tasks, given):
    """Makespan and ideal by number of cores."""
    report = Task("report", given.report, tuple(task.name for task in tasks))
    groups, rows = [*allocations(tasks), [report]], []
    total = sum(task.seconds - given.startup for task in tasks)
    for cores in CORES:
        found = makespan(groups, cores, given.queue)
        rows.append(
            {
                "cores": cores,
                "jobs": len(tasks),
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
    axes.loglog(found["cores"], found["minutes"], "o-", label="computed from kept seconds")
    axes.loglog(found["cores"], found["ideal"], "k--", label="ideal")
    axes.set_xticks(CORES, CORES, minor=False)
    axes.set(xlabel="cores", ylabel="minutes from submission to PDF")
    axes.legend()
    figure.savefig(path, dpi=150, metadata={"Software": None})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    option = {
        "startup": (4.0, "seconds that a job takes to start"),
        "queue": (30.0, "seconds that an allocation waits"),
        "report": (90.0, "seconds of all that follows the rows"),
    }
    for name, (default, meaning) in option.items():
        text = f"{meaning} ({default:g})"
        parser.add_argument(f"--{name}", type=float, default=default, help=text)
    return parser.parse_args()


def main():
    given = arguments()
    tasks, untimed = published_tasks(given.startup)
    found = table(tasks, given)
    found.to_csv(ROOT / "docs/makespan.csv", index=False)
    picture(found, ROOT / "docs/makespan.png")
    print(found.to_string(index=False))
    longest = tasks[0]
    print(f"the longest job: {longest.name}, {longest.seconds / 60:.1f} minutes")
    if untimed:
        print("rows without kept timings:", ", ".join(f"{k} {n}" for k, n in untimed.items()))
    return int(longest.seconds > 600 or found.set_index("cores").loc[64, "ratio"] > 1.3)


if __name__ == "__main__":
    sys.exit(main())

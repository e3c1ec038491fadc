"""One run at a time in a folder, without files that a killed run leaves in the way.

A run locks one file for as long as it lives, and each of its jobs another one. The system gives a lock back when the
process that holds it ends, however it ends. (Snakemake's own lock is a file; a killed run does not remove it.)
"""

import fcntl
import os
import time
from pathlib import Path

RUN = Path(".snakemake", "run.lock")
JOBS = Path(".snakemake", "jobs")
#: Names the run to its jobs.
VARIABLE = "RECHECK_RUN"

_held: list[int] = []  # open files, which keep their locks until this process ends


class InUseError(RuntimeError):
    """Another run, or a job that it left behind, is at work in this folder."""


def _lock(path: Path, text: str) -> str | None:
    """Lock a file and write a text to it; None if that succeeded, else the text of whoever holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(file, 100).decode().strip()
        os.close(file)
        return holder or "unknown"
    os.ftruncate(file, 0)
    os.write(file, text.encode())
    _held.append(file)
    return None


def hold_folder() -> None:
    """Lock the folder for this run.

    Raises
    ------
    InUseError
        Another run is at work, or a job of a run that was killed alone. The message names the process.
    """
    name = f"{os.getpid()} {time.time_ns()}"
    if holder := _lock(RUN, name):
        raise InUseError(
            f"Another run is at work in this folder (process {holder.split()[0]}): wait until it has ended, or end it."
        )
    for path in sorted(JOBS.glob("*")):
        if holder := _lock(path, ""):
            raise InUseError(
                f"A job that another run left behind is at work in this folder (process {holder}): wait until it has "
                "ended, or end it."
            )
        path.unlink()
        os.close(_held.pop())
    os.environ[VARIABLE] = name


def hold_job() -> None:
    """Say that a job is at work in this folder, for as long as this process lives.

    Raises
    ------
    InUseError
        The run that started this job has ended, and another one may be at work.
    """
    _lock(JOBS / f"{os.uname().nodename}-{os.getpid()}", f"{os.getpid()}")
    run = os.environ.get(VARIABLE)
    if run is not None and run != RUN.read_text():
        raise InUseError("The run that started this job has ended.")

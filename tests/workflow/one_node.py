"""A throw-away SLURM cluster of one node on this machine, with its own key, ports and folders."""

import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
PACKAGES = ("slurm-wlm", "munge")
#: Steps of a job look here: the executor takes SLURM_CONF from their environment.
PLACE = Path("/etc/slurm/slurm.conf")
CONFIGURATION = """\
ClusterName=throwaway
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
AccountingStorageType=accounting_storage/none
# Without control groups it is SLURM that looks how much memory a job has, once a second.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={megabytes} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class CannotSetUpError(RuntimeError):
    """This machine cannot have a SLURM cluster; the message says why."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def install():
    """Install SLURM with apt where it is missing and we may."""
    if all(shutil.which(program) for program in PROGRAMS):
        return
    if platform.system() != "Linux" or os.geteuid() != 0 or not shutil.which("apt-get"):
        raise CannotSetUpError("SLURM is not installed, and only root on Debian can install it")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-qq", "-y", "-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300"]
    for command in (["update"], ["install", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run([*apt, *command], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise CannotSetUpError(f"apt-get {command[0]} failed: {done.stderr.strip()[-300:]}")


class Cluster:
    """The daemons of one node, in the foreground, as children of this process."""

    def __init__(self):
        if os.geteuid() != 0:
            raise CannotSetUpError("only root can start the daemons of SLURM")
        install()
        if PLACE.exists():
            raise CannotSetUpError(f"this machine has a SLURM of its own ({PLACE})")
        # munge wants a short path to its socket, and folders that only root can write to
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.folder.chmod(0o755)
        for name in ("state", "spool"):
            (self.folder / name).mkdir(mode=0o755)
        self.host = platform.node().split(".")[0]
        pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=self.host,
                folder=self.folder,
                controller_port=free_port(),
                node_port=free_port(),
                cpus=os.cpu_count(),
                megabytes=pages // 2**20 * 9 // 10,
            )
        )
        #: For every command that talks to the cluster.
        self.variables = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self._running = {}

    def start(self):
        """Start munge, the controller and the node, and wait until the node is idle."""
        PLACE.parent.mkdir(parents=True, exist_ok=True)
        PLACE.unlink(missing_ok=True)  # a link to a cluster that is gone
        PLACE.symlink_to(self.folder / "slurm.conf")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self._run(
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={self.folder}/munge.socket",
            *(f"--{name}-file={self.folder}/munged.{name}" for name in ("pid", "log", "seed")),
        )
        self._wait(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.start_controller()
        self._run("slurmd", "-D", "-N", self.host)
        self._wait(lambda: self.ask("sinfo", "--noheader", "--format=%t") == "idle", "slurmd")

    def start_controller(self):
        """Start the controller, and wait until it answers."""
        self._run("slurmctld", "-D")
        self._wait(lambda: "UP" in self.ask("scontrol", "ping"), "slurmctld")

    def stop_controller(self):
        """End the controller as a service manager does, so that it saves its state; its jobs go on."""
        daemon = self._running.pop("slurmctld")
        daemon.terminate()
        daemon.wait(timeout=60)

    def ask(self, *command):
        """What a SLURM command prints; empty where it fails."""
        done = subprocess.run(
            command, env=os.environ | self.variables, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def running(self):
        """The numbers of running jobs."""
        return self.ask("squeue", "--noheader", "--states=RUNNING", "--format=%A").split()

    def close(self):
        """End all jobs, then the daemons, and remove the folder."""
        if "slurmctld" in self._running:
            self.ask("scancel", "--full", "--signal=KILL", "--user=root")
            self.ask("scancel", "--user=root")
            time.sleep(2)
        for name in ("slurmd", "slurmctld", "munged"):
            if daemon := self._running.pop(name, None):
                daemon.terminate()
                try:
                    daemon.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        PLACE.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, name, *arguments):
        with open(self.folder / f"{name}.out", "ab") as log:
            self._running[name] = subprocess.Popen(
                [shutil.which(name) or f"/usr/sbin/{name}", *arguments],
                env=os.environ | self.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _wait(self, condition, name, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                said = (self.folder / f"{name}.out").read_text()[-1000:]
                self.close()
                raise CannotSetUpError(f"{name} did not start: {said}")
            time.sleep(0.2)

"""A laboratory (lab.py) whose hosts are a Slurm cluster of Debian's packages: slurmctld on the last one, slurmd on the others."""

import os
import pathlib
import shutil
import subprocess
import time

import lab

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "srun")
ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY")
CONFIG = """ClusterName=lab
SlurmctldHost={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir=/tmp/slurmd
SlurmctldPidFile=/tmp/slurmctld.pid
SlurmdPidFile=/tmp/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SchedulerParameters=sched_interval=1,batch_sched_delay=0,requeue_delay=0
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
MinJobAge=600
KillWait=10
CompleteWait=0
JobRequeue=1
NodeName={nodes} CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    path = os.environ["PATH"] + ":/usr/sbin"
    return [program for program in PROGRAMS if not shutil.which(program, path=path)]


class SlurmLab(lab.Lab):
    """`with SlurmLab("h1", "h2") as lab:` nodes that are idle; the controller is on h5."""

    CONTROLLER = "h5"

    def __init__(self, *nodes):
        super().__init__(*nodes, self.CONTROLLER)
        try:
            self.set_up(nodes)
        except BaseException:
            self.down()
            raise

    def set_up(self, nodes):
        folder = self.folder
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(CONFIG.format(controller=self.CONTROLLER, folder=folder, nodes=",".join(nodes)))
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
        self.daemon("munged", "--foreground", "--force", *(f"--{what}-file={folder}/munge.{what}" for what in ("key", "pid", "log", "seed")),
                    f"--socket={folder}/munge.sock")
        self.wait_for((folder / "munge.sock").exists, "munged", self.processes[-1])
        self.daemon("slurmctld", "-D", host=self.CONTROLLER)
        for node in nodes:
            self.daemon("slurmd", "-D", "-N", node, host=node)
        self.wait_until(lambda: self.ask("sinfo", "-h", "-o", "%T").split() == ["idle"], 30, "the nodes to be idle")

    def daemon(self, program, *arguments, host=None):
        command = [*(self.inside(host) if host else []), f"/usr/sbin/{program}", *arguments]
        self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                               start_new_session=True))

    def ask(self, *command):
        return self.on(self.CONTROLLER, *command).stdout

    def wait_until(self, condition, timeout_s, what):
        end = time.monotonic() + timeout_s
        while not (value := condition()):
            if time.monotonic() > end:
                raise AssertionError(f"waited in vain for {what}: {self.ask('sinfo')}{self.ask('squeue')}{self.output()}")
            time.sleep(0.1)
        return value

    def submit(self, *words, variables):
        """Number of the job that `sbatch WORDS` makes."""
        command = ["env", *(f"{name}={value}" for name, value in variables.items()), "sbatch", "--parsable", "--chdir=/", "--requeue",
                   f"--output={self.folder}/job.out", "--open-mode=append", "--cpus-per-task=1", *words]
        return self.ask(*command).strip()

    def job(self, number):
        """What scontrol shows of it."""
        text = self.ask("scontrol", "show", "job", "-o", number)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def output(self):
        path = pathlib.Path(self.folder, "job.out")
        return path.read_text() if path.exists() else ""

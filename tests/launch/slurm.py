"""Tests Slurm: real munged, slurmctld and two slurmd on loopback, in a temporary directory, each with its own host name.
slurm.py FAKE_RUN MEGALITH"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

from launching import BINARY, folders, processes, run_cases, skip, wait_for

MEGALITH = pathlib.Path(sys.argv[2]).resolve()
DAEMONS = ("munged", "slurmctld", "slurmd")
SETTINGS = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
AuthInfo=socket={root}/munge.socket
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool-%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
KillWait=5
NodeName=n1 NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4
NodeName=n2 NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4
PartitionName=main Nodes=ALL Default=YES State=UP
"""


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Cluster:
    """A Slurm cluster of two nodes on this host."""

    def __init__(self, space):
        self.space = space
        self.root = pathlib.Path("/tmp") / f"megalith-slurm-{os.getpid()}"
        self.pids = []

    def __enter__(self):
        self.root.mkdir(mode=0o711)  # munged requires that all users can reach its socket
        try:
            self.start()
        except Exception:
            self.__exit__()
            raise
        return self

    def start(self):
        root = self.root
        (root / "key").write_bytes(os.urandom(128))
        (root / "key").chmod(0o600)
        for folder in ("state", "spool-n1", "spool-n2"):
            (root / folder).mkdir()
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        settings = SETTINGS.format(host=socket.gethostname(), user=user, root=root, ports=free_ports(3))
        (root / "slurm.conf").write_text(settings)
        self.environment = {**os.environ, "SLURM_CONF": str(root / "slurm.conf")}
        names = {"key": "key-file", "munge.socket": "socket", "munged.pid": "pid-file", "munged.log": "log-file"}
        self.daemon("munged", *(f"--{option}={root / file}" for file, option in names.items()), f"--seed-file={root}/seed")
        self.daemon("slurmctld")
        for node in ("n1", "n2"):
            self.daemon("slurmd", "-N", node, before=["unshare", "--uts", "sh", "-c", f'hostname {node}; exec "$0" "$@"'])
        wait_for(lambda: self.ask("sinfo", "-h", "-o", "%D %t") == "2 idle", "two idle nodes", 30)

    def daemon(self, name, *words, before=()):
        done = subprocess.run([*before, program(name), *words], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr}")
        file = self.root / (f"slurmd-{words[1]}.pid" if name == "slurmd" else f"{name}.pid")
        wait_for(lambda: file.exists() and file.read_text().strip(), f"{name} to start", 20)
        self.pids.append(int(file.read_text()))

    def __exit__(self, *_):
        for pid in reversed(self.pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in self.pids:
            wait_for(lambda: gone(pid), f"the end of {pid}", 20)
        shutil.rmtree(self.root, ignore_errors=True)

    def ask(self, *words, expect=0, **options):
        done = subprocess.run(
            [str(w) for w in words], cwd=self.space.root, env=self.environment, capture_output=True, text=True, timeout=120, **options
        )
        assert done.returncode == expect, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.strip() if expect == 0 else done.stderr.strip()

    def script(self, *arguments, nodes=2):
        """The script of `submit`, but with fake_run instead of megalith train."""
        self.space.yaml("run")
        self.ask(MEGALITH, "submit", "run.yaml", "--nodes", nodes, "--ranks-per-node", 2, "--dry-run")
        file = self.space / "runs/run/submit.sh"
        text = file.read_text()
        command = f"exec '{MEGALITH}' 'train' 'run.yaml' --ranks {2 * nodes}\n"
        assert text.endswith(command), text
        words = " ".join(["exec", str(BINARY), "--dir", str(self.space / "d"), *map(str, arguments)])
        file.write_text(text.replace(command, f"{words} --ranks {2 * nodes}\n"))
        return file

    def state(self, job):
        fields = dict(w.split("=", 1) for w in self.ask("scontrol", "show", "job", job).split() if "=" in w)
        return fields["JobState"], fields["ExitCode"]

    def wait(self, job):
        wait_for(lambda: self.state(job)[0] not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"), f"job {job}", 120)
        wait_for(lambda: not processes(f"--dir {self.space / 'd'} "), "the ranks' end", 20)
        return self.state(job)[1]

    def said(self, job):
        return (self.space / f"runs/run/slurm-{job}.txt").read_text()


def steps(space):
    file = space / "d/steps"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def without_slurm_it_says_so(space):
    space.yaml("run")
    environment = {**os.environ, "PATH": "/nonexistent"}
    words = [str(MEGALITH), "submit", "run.yaml", "--nodes", "2", "--ranks-per-node", "4"]
    done = subprocess.run(words, cwd=space.root, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "sbatch: expected Slurm's sbatch in PATH" in done.stderr, done.stderr
    assert "or submit " in done.stderr and "runs/run/submit.sh" in done.stderr, done.stderr


def the_script_says_what_was_asked_for(space):
    space.yaml("run")
    words = ["submit", "run.yaml", "train.lr=0.5", "run.dir=it's here", "--nodes", "2", "--ranks-per-node", "4", "--time", "1:00:00"]
    words += ["--partition", "p", "--account", "x", "--sbatch=--constraint=avx512", "--dry-run"]
    done = subprocess.run([str(MEGALITH), *words], cwd=space.root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (space / "it's here/submit.sh").read_text()
    for line in (
        "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=4", "#SBATCH --time=1:00:00", "#SBATCH --partition=p",
        "#SBATCH --account=x", "#SBATCH --constraint=avx512", "#SBATCH --signal=B:TERM@120",
    ):  # fmt: skip
        assert f"\n{line}\n" in text, text
    # The shell parses the script into exactly the same words.
    last = subprocess.run(["sh", "-c", text.splitlines()[-1].replace("exec", "printf '%s\\n'", 1)], capture_output=True, text=True)
    assert last.stdout.splitlines() == [str(MEGALITH), "train", "run.yaml", "train.lr=0.5", "run.dir=it's here", "--ranks", "8"]


def a_line_break_is_no_way_into_the_script(space):
    space.yaml("run")
    words = [str(MEGALITH), "submit", "run.yaml", "--nodes", "1", "--ranks-per-node", "1", "--dry-run"]
    for more in (["--partition", "p\ntouch hacked"], ["run.dir=runs/x\ntouch hacked"]):
        done = subprocess.run([*words, *more], cwd=space.root, capture_output=True, text=True)
        assert done.returncode == 2 and "without control characters" in done.stderr, done.stderr
        assert not list(space.root.glob("**/submit.sh")), "a script was written"


def a_job_on_two_nodes(space):
    with Cluster(space) as cluster:
        script = cluster.script("--steps", 20)
        job = cluster.ask("sbatch", "--parsable", script)
        assert cluster.wait(job) == "0:0", cluster.said(job)
        assert "beginning at step 0 on 4 ranks" in cluster.said(job), cluster.said(job)
        assert steps(space)[-1] == 20

        # A rank dies: the ranks are restarted inside the job.
        shutil.rmtree(space / "d")
        job = cluster.ask("sbatch", "--parsable", cluster.script("--steps", 40, "--fault", "3:12:kill"))
        assert cluster.wait(job) == "0:0", cluster.said(job)
        assert "was killed by signal 9" in cluster.said(job) and "(restart 1 of 3)" in cluster.said(job), cluster.said(job)
        assert steps(space)[-1] == 40

        # The signal before the time limit: the run saves, and the next job resumes it.
        shutil.rmtree(space / "d")
        job = cluster.ask("sbatch", "--parsable", cluster.script("--steps", 100000, "--every", 1000000))
        wait_for(lambda: len(steps(space)) >= 3, "three steps")
        cluster.ask("scancel", "--batch", "--signal=TERM", job)
        assert cluster.wait(job) == "130:0", cluster.said(job)
        assert int((space / "d/checkpoint").read_text()) == steps(space)[-1]

        # scancel: the run ends, even if ranks do not react.
        job = cluster.ask("sbatch", "--parsable", cluster.script("--steps", 100000, "--every", 1000000))
        done = len(steps(space))
        wait_for(lambda: len(steps(space)) > done + 3, "more steps")
        supervisor = next(pid for pid, line in processes(f"--dir {space / 'd'} ").items() if line.startswith(str(BINARY)))
        cluster.ask("scancel", job)
        cluster.wait(job)
        wait_for(lambda: not folders(supervisor), "the run's folder to go", 20)


def srun_joins(space):
    with Cluster(space) as cluster:
        out = cluster.ask("srun", "--mpi=pmix", "--nodes=1", "--ntasks=2", BINARY, "--dir", space / "d")
        assert out == '{"steps": 20}', out
        assert "rank 1 is here" in (space / "d/log-1.txt").read_text()


def submit_hands_it_in(space):
    with Cluster(space) as cluster:
        space.yaml("run")
        out = cluster.ask(MEGALITH, "--json", "submit", "run.yaml", "--nodes", 2, "--ranks-per-node", 1)
        job = out.split('"job":"')[1].split('"')[0]
        assert int(job) > 0
        assert cluster.wait(job) == "0:0", cluster.said(job)
        assert "done: 12 steps" in cluster.said(job), cluster.said(job)
        refused = cluster.ask(MEGALITH, "submit", "run.yaml", "--nodes", 2, "--ranks-per-node", 1, "--partition", "none", expect=2)
        assert "invalid partition" in refused, refused


CASES = [without_slurm_it_says_so, the_script_says_what_was_asked_for, a_line_break_is_no_way_into_the_script]
missing = [name for name in (*DAEMONS, "sbatch", "srun") if not program(name)]
if not missing and os.geteuid() == 0:
    run_cases([*CASES, a_job_on_two_nodes, srun_joins, submit_hands_it_in])
else:
    run_cases(CASES)
    skip("jobs, as host names need root" if not missing else f"jobs, as there is no {', '.join(missing)} (Debian: apt install munge slurm-wlm)")

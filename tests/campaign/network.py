"""Cuts the network between two hosts, for some time or permanently. The run must end undisturbed, or stop and name the lost
host. When the network is back, the same command must resume to the result of the undisturbed run."""

import pathlib
import sys
import time

from campaign import Case, Skipped
from kills import of_run, wait_until
from program import processes_with
from rules import FAULTS, Failed, OUR_BUGS, require
from small_runs import copy_of, prepare_run, same_run

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
import two_hosts  # noqa: E402

STEPS = 60
WORDS = ["train", "run.yaml", "run.dir=runs/run", "--ranks", 2, "--hosts", "a:1,b:1"]


def environment(hosts):
    return {"OMPI_MCA_plm_rsh_agent": str(hosts.agent)}


def cut(program, begin, whole, seconds):
    """Cuts the network for `seconds`, or until the run has ended (None)."""
    def attack(folder, chance):
        space = copy_of(begin, folder / "space")
        with two_hosts.Hosts(space) as hosts:
            with open(space / "said.txt", "wb") as out:
                process = program.start(*WORDS, cwd=space, environment=environment(hosts), before=hosts.on("a"), out=out)
                lines = space / "runs/run/metrics.jsonl"
                wait_until(lambda: (lines.exists() and lines.stat().st_size) or process.poll() is not None, 60)
                time.sleep(chance.uniform(0, 0.5))
                hosts.cut()
                if seconds is not None:
                    time.sleep(seconds)
                    hosts.join()
                ended = wait_until(lambda: process.poll() is not None, 150)
            said = (space / "said.txt").read_text(errors="replace")
            if not ended:
                process.kill()
                raise Failed(f"hang: runs 150 s after the cut\n{said[-2000:]}")
            hosts.join()
            judge_cut(process.returncode, said)
            gone = wait_until(lambda: not processes_with(str(space)) and not of_run(space), 60)
            require(gone, f"processes stay: {of_run(space)}")
            again = program.run(*WORDS, cwd=space, seconds=180, environment=environment(hosts), before=hosts.on("a"))
            require(again.code == 0, f"does not resume\n{said[-1500:]}\n{again}")
        same_run(space / "runs/run", whole / "runs/run", f"{said[-1500:]}\n{again}")

    return attack


def judge_cut(code, said):
    require(code in {0, *FAULTS}, f"exit code {code}\n{said[-2000:]}")
    require(not any(words in said for words in OUR_BUGS), said[-2000:])
    require(code == 0 or "host b" in said or "on b" in said, f"does not name the host\n{said[-2000:]}")


def cases(setup):
    try:
        two_hosts.check_rights()
        begin = prepare_run(setup.program, setup.folder / "begin", "tensor 2", steps=STEPS, every=5)
        whole = copy_of(begin, setup.folder / "whole")
        with two_hosts.Hosts(whole) as hosts:
            ended = setup.program.run(*WORDS, cwd=whole, seconds=180, environment=environment(hosts), before=hosts.on("a"))
        require(ended.code == 0, str(ended))
    except two_hosts.NoHosts as why:
        raise Skipped(why) from why
    return [Case(f"cut {'permanently' if s is None else f'for {s} s'}, {n}", cut(setup.program, begin, whole, s))
            for n in range(3) for s in (0.5, 3, None)]

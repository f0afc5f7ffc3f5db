"""Tests training on two ranks that are killed, stopped and interrupted: the numbers equal those of an undisturbed run.
training.py MEGALITH [--long]"""

import contextlib
import json
import os
import pathlib
import pty
import random
import re
import resource
import select
import signal
import subprocess
import time

from launching import LONG, folders, processes, run_cases, wait_for
from support import assert_same_run, lines_of, metrics, prepare_small_llama

STEPS = 60
SETTINGS = f"{{steps: {STEPS}, batch: 4, lr: 0.003, warmup: 2, eval_every: 0, threads: 1}}"


def ranks_of(directory):
    """Process ids of the ranks, by rank: processes below mpirun with a rank in their environment."""
    found = {}
    for pid in processes(f"run.dir={directory} "):
        try:
            words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for word in words:
            if word.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(word.split(b"=")[1])] = pid
    return found


def start(space, directory, *words):
    return space.start("train", "run.yaml", f"run.dir={directory}", "--ranks", 2, *words)


def steps_done(directory):
    return lines_of(directory / "metrics.jsonl")


def end(process, directory, expect):
    assert process.wait(120) == expect, f"exit code {process.returncode}, expected {expect}"
    wait_for(lambda: not processes(f"run.dir={directory} "), "the end of all processes", 10)
    wait_for(lambda: not folders(process.pid), "the run's folder to go", 10)


def open_file(pid, name):
    """A file that a process has open, even if the file has been unlinked."""
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed in the meantime
            if name in os.readlink(descriptor):
                return descriptor
    raise AssertionError(f"{name} is not open")


def undisturbed(space):
    space.yaml("run", every=10, train=SETTINGS)
    said = space.run("train", "run.yaml", "run.dir=runs/whole", "--ranks", 2).stderr
    assert said.count("training gpt2") == 1, f"one line for all ranks:\n{said}"
    assert (space / "runs/whole/log-1.txt").exists()
    return space / "runs/whole"


def killed_at_any_moment_it_recovers(space):
    whole = undisturbed(space)
    chance = random.Random(7)
    kills = 20 if LONG else 3
    for i in range(kills):
        directory = space / f"runs/killed{i}"
        process = start(space, directory)
        after = chance.randrange(STEPS - 5)
        wait_for(lambda: steps_done(directory) >= after or process.poll() is not None, f"step {after}")
        victim = chance.randrange(2)
        wait_for(lambda: victim in ranks_of(directory) or process.poll() is not None, "the ranks")
        os.kill(ranks_of(directory)[victim], signal.SIGKILL)
        end(process, directory, 0)
        log = (directory / "log.txt").read_text()
        assert f"rank {victim} on " in log and "(restart 1 of 3)" in log, log
        assert_same_run(directory, whole, f"rank {victim} killed after {after} steps")
    return f"{kills} kills"


def interrupted_it_goes_on(space):
    whole = undisturbed(space)
    directory = space / "runs/stopped"
    process = start(space, directory)
    wait_for(lambda: steps_done(directory) >= 5 or process.poll() is not None, "steps")
    for pid in ranks_of(directory).values():  # small models on a busy machine: see docs/notes/machine.md
        assert b"GOMP_SPINCOUNT=2000" in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"), pid
    process.send_signal(signal.SIGHUP)
    end(process, directory, 130)
    last = metrics(directory)[-1]["step"]
    assert last < STEPS, "it was too late to interrupt"
    log = (directory / "log.txt").read_text()
    assert "interrupted by SIGHUP: stopping" in log and f"interrupted after step {last}\n" in log, log
    said = (space / "started.txt").read_text()
    assert said.count("stopping after this step; saving a checkpoint") == 1, said
    end(start(space, directory), directory, 0)
    assert_same_run(directory, whole, "interrupted")


def a_stopped_rank_is_named_with_its_op(space):
    undisturbed(space)
    directory = space / "runs/hung"
    process = start(space, directory, "run.watchdog=3", "train.steps=100000")
    wait_for(lambda: steps_done(directory) >= 12 or process.poll() is not None, "steps")
    victim = ranks_of(directory)[1]
    os.kill(victim, signal.SIGSTOP)
    end(process, directory, 3)
    said = (space / "started.txt").read_text()
    assert f"rank 1 on {os.uname().nodename} (pid {victim}) is stopped" in said, said[-2000:]
    rows = [line for line in said.splitlines() if line.startswith("0  ")]
    assert len(rows) == 1 and "rank 1" in rows[0] and " over " in rows[0], said[-2000:]
    assert "run the same command again to resume from" in said


def a_rank_that_fails_leaves_the_summary(space):
    """Only rank 1 fails: its spilled state disappears. Rank 0 waits for it until the supervisor ends rank 0."""
    prepare_small_llama(space)
    said = space.run("train", "run.yaml", "memory.ram=1MiB", "memory.spill=spill", "--ranks", 2, expect=2).stderr
    least = float(re.search(r"at least ([\d.]+) MiB", said).group(1))
    directory = space / "runs/failed"
    directory.mkdir(parents=True)
    (directory / "summary.json").write_text('{"state": "finished", "steps": 99}')  # written by an earlier process
    words = (f"memory.ram={int(least) + 24}MiB", "memory.spill=spill", "train.steps=100000", "checkpoint.every=never")
    process = start(space, directory, *words)
    wait_for(lambda: steps_done(directory) >= 2 or process.poll() is not None, "steps")
    assert not (directory / "summary.json").exists(), "a stale summary"
    os.truncate(open_file(ranks_of(directory)[1], "parameters.megalith-spill"), 0)
    end(process, directory, 4)
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["state"] == "failed" and summary["rank"] == 1 and "spill" in summary["error"], summary
    assert summary["steps"] >= 2, summary
    assert '"state":"failed"' in (directory / "report.html").read_text()
    assert not list(directory.glob("*.tmp")), "a temporary file was left"


def on_a_terminal_there_is_one_live_line_and_ctrl_c_is_typed(space):
    space.yaml("run", every=0, train=SETTINGS)
    directory = space / "runs/typed"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(space.root)
        environment = {**space.environment, "TERM": "xterm"}
        words = space.command("train", "run.yaml", f"run.dir={directory}", "train.steps=1000000", "--ranks", 2)
        os.execve(words[0], words, environment)
    said = b""

    def read_until(condition):
        nonlocal said
        end = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < end, said[-2000:]
            try:
                if select.select([terminal], [], [], 1)[0]:
                    said += os.read(terminal, 65536)
            except OSError:  # closed: all processes that had it open have ended
                return

    read_until(lambda: said.count(b"\x1b[") > 3 and steps_done(directory) > 20)
    os.write(terminal, b"\x03")
    read_until(lambda: False)
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 130, f"exit code {code}\n{said[-2000:]}"
    text = said.decode(errors="replace")
    assert "run the same command again to resume from" in text and "mpirun" not in text, text[-2000:]
    assert text.count("\n") < 20, f"lines instead of one line:\n{text[-2000:]}"
    wait_for(lambda: not folders(pid), "the run's folder to go", 10)


def what_ranks_cannot_start_with_is_said(space):
    space.yaml("run", train=SETTINGS)
    (space / "runs/taken/log.txt").mkdir(parents=True)  # stands for a folder that cannot be written
    said = space.run("train", "run.yaml", "run.dir=runs/taken", "--ranks", 2, expect=2).stderr
    assert said == "megalith: runs/taken/log.txt: cannot write: Is a directory\n", said
    few = resource.RLIMIT_NOFILE, (32, 32)
    done = subprocess.run(space.command("train", "run.yaml", "--ranks", 2), cwd=space.root, env=space.environment, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(*few), capture_output=True, text=True)
    assert done.returncode == 2 and "at least 44 open files for 2 ranks, got 32; raise it with ulimit -n" in done.stderr, done


def a_users_mistake_is_said_once(space):
    space.yaml("run", train=SETTINGS.replace("batch: 4", "batch: 3"))
    said = space.run("train", "run.yaml", "--ranks", 2, expect=2).stderr
    assert said.count("train.batch") == 1, said
    # An error that only the ranks find: the data does not exist.
    space.yaml("run", train=SETTINGS, data="{train: none.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 32}")
    said = space.run("train", "run.yaml", "--ranks", 2, expect=2).stderr
    assert said.count("none.txt") == 1 and "restarting on" not in said, said


run_cases(
    [
        killed_at_any_moment_it_recovers,
        interrupted_it_goes_on,
        a_stopped_rank_is_named_with_its_op,
        a_rank_that_fails_leaves_the_summary,
        on_a_terminal_there_is_one_live_line_and_ctrl_c_is_typed,
        what_ranks_cannot_start_with_is_said,
        a_users_mistake_is_said_once,
    ]
)

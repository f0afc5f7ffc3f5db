"""Ctrl-C, SIGTERM, a closed terminal and a broken pipe finish the step, save and exit with 130; a second Ctrl-C or SIGTERM
stops at once. In both cases the same command resumes and gives the same numbers.  signals.py BINARY"""

import os
import pathlib
import re
import signal
import subprocess

from support import BINARY, assert_same_run, checkpoints, lines_of, metrics, run_cases, wait_for

# Validation only at the end: an interrupted run does not stop to validate.
SETTINGS = "{steps: 300, batch: 4, lr: 0.003, warmup: 2, eval_every: 0, threads: 1}"


def interrupted_by(space, which):
    space.yaml("whole", every=50, train=SETTINGS)
    space.train("whole")
    for after in (1, 120):
        directory = space / f"runs/stopped{after}"
        process = space.start("train", "whole.yaml", f"run.dir={directory}")
        wait_for(
            lambda: lines_of(directory / "metrics.jsonl") >= after or process.poll() is not None, "steps"
        )
        process.send_signal(which)
        assert process.wait(60) == 130, f"exit code {process.returncode}"
        said = (space / "started.txt").read_text()
        steps = metrics(directory)[-1]["step"]
        assert steps < 300, "it was too late to interrupt"
        assert (
            checkpoints(directory)[-1] == f"step-{steps:08}"
        ), f"{steps} steps, checkpoints {checkpoints(directory)}"
        space.run("checkpoint", "verify", directory / "checkpoints" / checkpoints(directory)[-1])
        assert "stopping after this step; saving a checkpoint" in said, said
        assert f"interrupted after step {steps}; run the same command again to resume from" in said, said[-400:]
        log = (directory / "log.txt").read_text()
        assert f"info interrupted by {signal.Signals(which).name} after step {steps}\n" in log, log
        assert f"info step {steps}/300  loss " in log, "log.txt does not have the steps"
        assert f"resuming at step {steps}" in space.train("whole", f"run.dir={directory}").stderr
        assert_same_run(directory, space / "runs/whole", f"interrupted after {steps} steps")


def ctrl_c_saves(space):
    interrupted_by(space, signal.SIGINT)


def sigterm_saves(space):
    interrupted_by(space, signal.SIGTERM)


def popen(space, directory, before, *words, **streams):
    """Trains in a process that calls `before` first."""
    command = space.command("train", "run.yaml", f"run.dir={directory}", *words)
    return subprocess.Popen(command, cwd=space.root, env=space.environment, preexec_fn=before, **streams)


def saved_by(directory, process, code, which):
    assert process.wait(60) == code, f"exit code {process.returncode}, expected {code}"
    steps = metrics(directory)[-1]["step"]
    assert checkpoints(directory)[-1] == f"step-{steps:08}", (steps, checkpoints(directory))
    assert f"interrupted by {which} after step {steps}\n" in (directory / "log.txt").read_text()


def a_closed_terminal_saves_unless_nohup_is_given(space):
    space.yaml("run", every=0, train=SETTINGS)
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for before, directory, steps in ((None, space / "runs/closed", 100000), (ignore, space / "runs/nohup", 1000)):
        words = (f"train.steps={steps}",)
        process = popen(space, directory, before, *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: lines_of(directory / "metrics.jsonl") >= 1 or process.poll() is not None, "a step")
        assert process.poll() is None, "it was too late"
        for _ in range(2):  # a shell repeats it
            process.send_signal(signal.SIGHUP)
        if before is None:
            saved_by(directory, process, 130, "SIGHUP")
            continue
        assert process.wait(60) == 0, f"exit code {process.returncode}"
        assert metrics(directory)[-1]["step"] == steps


def a_broken_pipe_saves_and_says_nothing(space):
    """Tests `megalith train ... 2>&1 | head -3`, and `megalith generate ... | head -1` for a result."""
    space.yaml("run", every=0, train=SETTINGS)
    directory = space / "runs/piped"
    process = popen(space, directory, None, "train.steps=100000", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not process.stderr.readline().startswith(b"step "):
        assert process.poll() is None
    process.stderr.close()
    saved_by(directory, process, 130, "SIGPIPE")
    for restored in (True, False):  # also if the parent ignores SIGPIPE
        command = space.command("generate", directory, "--prompt", "Ba\n", "--tokens", 200)
        with open(space / "said.txt", "wb") as said:
            process = subprocess.Popen(command, cwd=space.root, env=space.environment, stdout=subprocess.PIPE, stderr=said,
                                       restore_signals=restored)
            process.stdout.readline()
            process.stdout.close()
            assert process.wait(60) == -signal.SIGPIPE, f"exit code {process.returncode}"
        assert (space / "said.txt").read_text() == "", (space / "said.txt").read_text()


def closed_standard_streams_leave_files_clean(space):
    """Otherwise a file of the run would get the descriptor of stdout or stderr, and messages would be written into it."""
    space.yaml("run", train="{steps: 2, batch: 4, eval_every: 0, threads: 1}")
    for program in (BINARY, BINARY.parent / "megalith-engine"):
        directory = space / f"runs/{program.name}"
        command = [str(program), "train", "run.yaml", f"run.dir={directory}"]
        process = subprocess.Popen(command, cwd=space.root, env=space.environment, preexec_fn=lambda: os.closerange(0, 3))
        assert process.wait(60) == 0, f"exit code {process.returncode}"
        assert [m["step"] for m in metrics(directory)] == [1, 2]
        assert (directory / ".lock").read_bytes() == b""
        for line in (directory / "log.txt").read_text().splitlines():
            assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (info|warning) ", line), f"log.txt: {line}"


def threads_spin_briefly(space):
    """The engine starts with a limit on spinning, even if it is started directly. A value that the user sets stays."""
    space.yaml("run", every=0, train=SETTINGS)
    engine = BINARY.parent / "megalith-engine"
    environment = {k: v for k, v in space.environment.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    for program, set_by_user, expected in (
        (BINARY, {}, "2000"),
        (engine, {}, "2000"),
        (BINARY, {"GOMP_SPINCOUNT": "5"}, "5"),
        (BINARY, {"OMP_WAIT_POLICY": "passive"}, None),
    ):
        process = subprocess.Popen([str(program), "train", "run.yaml"], cwd=space.root, env={**environment, **set_by_user},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folder = pathlib.Path(f"/proc/{process.pid}")

        def limit():
            words = (folder / "environ").read_text().split("\0")
            return next((word.split("=")[1] for word in words if word.startswith("GOMP_SPINCOUNT=")), None)

        try:
            wait_for(lambda: os.readlink(folder / "exe") == str(engine) and limit() == expected, f"{set_by_user} to be kept", 20)
        finally:
            process.kill()
            process.wait()


def a_second_one_stops_at_once(space):
    """With long steps: the process ends before its step is done, and earlier checkpoints are valid."""
    slow = "{steps: 4, batch: 1024, micro_batch: 4, lr: 0.003, eval_every: 0, threads: 1}"
    space.yaml(
        "slow",
        every=1,
        train=slow,
        data="{train: long.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 32}",
    )
    content = (space / "text.txt").read_text()
    space.write("long.txt", content * 3)
    space.train("slow")
    directory = space / "runs/stopped"
    process = space.start("train", "slow.yaml", f"run.dir={directory}")
    wait_for(lambda: lines_of(directory / "metrics.jsonl") >= 2 or process.poll() is not None, "two steps")
    process.send_signal(signal.SIGINT)
    wait_for(
        lambda: "Press Ctrl-C again to stop now" in (space / "started.txt").read_text(),
        "the first signal to be seen",
    )
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, f"exit code {process.returncode}"
    assert lines_of(directory / "metrics.jsonl") == 2, "it went on to the end of the step"
    assert checkpoints(directory), "nothing was saved before"
    for name in checkpoints(directory):
        space.run("checkpoint", "verify", directory / "checkpoints" / name)
    space.train("slow", f"run.dir={directory}")
    assert_same_run(directory, space / "runs/slow", "stopped at once")


def without_checkpoints_it_says_what_is_lost(space):
    space.yaml("never", train=SETTINGS, checkpoint="{every: never}")
    process = space.start("train", "never.yaml")
    wait_for(
        lambda: lines_of(space / "runs/never/metrics.jsonl") >= 1 or process.poll() is not None, "a step"
    )
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, f"exit code {process.returncode}"
    said = (space / "started.txt").read_text()
    assert "to resume from" not in said and "nothing was saved" in said, said[-400:]
    assert checkpoints(space / "runs/never") == []


run_cases(
    [
        ctrl_c_saves,
        sigterm_saves,
        a_closed_terminal_saves_unless_nohup_is_given,
        a_broken_pipe_saves_and_says_nothing,
        closed_standard_streams_leave_files_clean,
        threads_spin_briefly,
        a_second_one_stops_at_once,
        without_checkpoints_it_says_what_is_lost,
    ]
)

"""Ctrl-C and SIGTERM finish the step, save and exit with 130; a second one stops at once. Either way the
same command goes on to the same numbers.  signals.py BINARY"""

import signal

from support import assert_same_run, checkpoints, lines_of, metrics, run_cases, wait_for

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
        assert "stopping after this step and saving" in said, said
        assert f"interrupted after step {steps}; the same command goes on" in said, said[-400:]
        assert f"resuming at step {steps}" in space.train("whole", f"run.dir={directory}").stderr
        assert_same_run(directory, space / "runs/whole", f"interrupted after {steps} steps")


def ctrl_c_saves(space):
    interrupted_by(space, signal.SIGINT)


def sigterm_saves(space):
    interrupted_by(space, signal.SIGTERM)


def a_second_one_stops_at_once(space):
    """With steps that take long: the process is gone before its step is done, and what was saved before
    is whole."""
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
        lambda: "once more stops at once" in (space / "started.txt").read_text(),
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
    assert "goes on from" not in said and "nothing was saved" in said, said[-400:]
    assert checkpoints(space / "runs/never") == []


run_cases([ctrl_c_saves, sigterm_saves, a_second_one_stops_at_once, without_checkpoints_it_says_what_is_lost])

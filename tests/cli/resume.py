"""Kills runs with kill -9 at random moments and resumes them. Every loss and every tensor of the last checkpoint must equal
those of an uninterrupted run, bit by bit.  resume.py BINARY [--long]"""

import random
import shutil
import signal
import time

from support import LONG, assert_same_run, checkpoints, lines_of, metrics, run_cases, wait_for

STEPS = 40


def reference_run(space, **options):
    """Trains an uninterrupted run that saves often. Returns its duration in seconds."""
    space.yaml("whole", "llama", steps=STEPS, every=3, **options)
    space.train("whole")  # measures the machine as well, which later runs do not repeat
    began = time.monotonic()
    space.train("whole", "run.dir=runs/again")
    return time.monotonic() - began


def a_wsd_run_is_extended_before_its_decay(space):
    """A run that is extended from a checkpoint before its decay equals a run that was longer from the start."""
    space.yaml("short", steps=10, every=6, train="{steps: 10, batch: 4, lr: 0.003, warmup: 2, decay: wsd, eval_every: 5, threads: 1}")
    space.train("short")
    space.train("short", "train.steps=16", "run.dir=runs/long", "checkpoint.every=6")
    rates = [m["lr"] for m in metrics(space / "runs/short")]
    assert rates[2:8] == [0.003] * 6 and 0.0003 < rates[8] < 0.003 and abs(rates[9] - 0.0003) < 1e-12, rates
    shutil.rmtree(space / "runs/short/checkpoints/step-00000010")
    said = space.train("short", "train.steps=16").stderr
    assert "resuming at step 6" in said and "the learning rate jumps" not in said, said
    assert_same_run(space / "runs/short", space / "runs/long", "extended")


def rerun_is_identical(space):
    reference_run(space)
    assert_same_run(space / "runs/again", space / "runs/whole", "the same command in another directory")
    space.train("whole", "run.dir=runs/other", "run.seed=2")
    assert (
        metrics(space / "runs/other")[0]["loss"] != metrics(space / "runs/whole")[0]["loss"]
    ), "the seed has no effect"


def kill_and_resume(space, kills, seed):
    """Kills runs at moments spread over their duration, including start-up and saves, until `kills` runs were killed."""
    # With samples and, in the long variant, with two threads and two micro-batches.
    more = "threads: 2, micro_batch: 2" if LONG else "threads: 1"
    duration = reference_run(
        space,
        train=f"{{steps: {STEPS}, batch: 4, lr: 0.003, warmup: 2, eval_every: 5, eval_batches: 2, "
        f"sample_tokens: 5, {more}}}",
    )
    chance = random.Random(seed)
    hit, in_save, runs, started_at = 0, 0, 0, []
    while hit < kills:
        runs += 1
        directory = f"runs/killed{runs}"
        while hit < kills:
            process = space.start("train", "whole.yaml", f"run.dir={directory}")
            time.sleep(chance.uniform(0, 1.05 * duration))
            finished = process.poll() is not None
            if not finished:
                process.send_signal(signal.SIGKILL)
                process.wait()
                hit += 1
                folder = space / directory / "checkpoints"
                in_save += folder.exists() and any(".tmp-" in p.name for p in folder.iterdir())
                started_at.append(lines_of(space / directory / "metrics.jsonl"))
                continue
            assert process.returncode == 0, (space / "started.txt").read_text()
            break
        space.run("train", "whole.yaml", f"run.dir={directory}")
        assert_same_run(space / directory, space / "runs/whole", f"run {runs}")
    return (
        f"{hit} kills after {sorted(started_at)} of {STEPS} steps, {in_save} within a save; "
        f"{runs} run(s), all as the whole one"
    )


def kills_at_random_moments(space):
    return kill_and_resume(space, 20 if LONG else 4, seed=7 if LONG else 5)


def kills_within_saves(space):
    """Kills runs while a checkpoint is being written under its temporary name."""
    reference_run(space)
    hits = 0
    for attempt in range(5 if LONG else 2):
        directory = space / f"runs/save{attempt}"
        folder = directory / "checkpoints"
        process = space.start("train", "whole.yaml", f"run.dir={directory}")
        unfinished = lambda: process.poll() is not None or (
            folder.exists() and any(".tmp-" in p.name for p in folder.iterdir())
        )
        for _ in range(attempt % 3):  # also a later save than the first
            done = len(checkpoints(directory))
            wait_for(lambda: process.poll() is not None or len(checkpoints(directory)) > done, "a checkpoint")
        wait_for(unfinished, "a save")
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        hits += any(".tmp-" in p.name for p in folder.iterdir())
        space.run("train", "whole.yaml", f"run.dir={directory}")
        assert_same_run(directory, space / "runs/whole", f"killed within save, attempt {attempt}")
        assert not any(".tmp-" in p.name for p in folder.iterdir()), "the unfinished checkpoint stayed"
    return f"{hits} of {attempt + 1} kills left an unfinished checkpoint"


def a_finished_run_stays_finished(space):
    space.yaml("done", steps=4)
    space.train("done")
    before = metrics(space / "runs/done")
    said = space.train("done")
    assert "already done" in said.stderr and "raise train.steps" in said.stderr, said.stderr
    assert metrics(space / "runs/done") == before
    space.train("done", "train.steps=6")
    assert [m["step"] for m in metrics(space / "runs/done")] == [1, 2, 3, 4, 5, 6]


run_cases(
    [kills_at_random_moments, kills_within_saves]
    if LONG
    else [
        rerun_is_identical,
        a_finished_run_stays_finished,
        a_wsd_run_is_extended_before_its_decay,
        kills_at_random_moments,
        kills_within_saves,
    ]
)

"""Signals at random moments. The run is resumed until it ends. It must then equal the undisturbed run, bit by bit."""

import os
import signal
import time

from campaign import Case
from program import processes_with
from rules import Failed, require, sound
from small_runs import LAYOUTS, begin_and_reference, copy_of, same_run, train_words, undisturbed

KILLS = 15  # for each layout
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# A signal before the program handles it ends the process as the system does.
STOPPED = {signal.SIGKILL: {-9}, signal.SIGTERM: {0, 130, -15}, signal.SIGINT: {0, 130, -2}}


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def stopped_once(program, folder, layout, moment, which, what):
    """Starts the run and sends a signal at `moment`: seconds after the start, or after the first step. Returns the exit code."""
    lines = folder / "runs/run/metrics.jsonl"
    with open(folder / "said.txt", "ab") as out:
        process = program.start(*train_words(layout), cwd=folder, out=out)
        if what == "step":
            wait_until(lambda: lines.exists() and lines.stat().st_size or process.poll() is not None, 60)
        time.sleep(moment)
        process.send_signal(which)
        try:
            return process.wait(60)
        except Exception as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"{which.name} does not end the run within 60 s") from error


def kill(program, reference, layout, duration):
    def attack(folder, chance):
        space = folder / "space"
        copy_of(reference, space)
        which = chance.choice(SIGNALS)
        stops = []
        for _ in range(chance.choice((1, 1, 2))):
            what = chance.choice(("start", "step"))
            moment = chance.uniform(0, duration) if what == "start" else chance.uniform(0, 0.3)
            code = stopped_once(program, space, layout, moment, which, what)
            stops.append(f"{which.name} {moment:.3f} s after the {what}: {code}")
            said = (space / "said.txt").read_text(errors="replace")
            require(code in {0, *STOPPED[which]}, f"{stops}\n{said[-1500:]}")
            require("bug of ours" not in said, said[-1500:])
            gone = wait_until(lambda: not processes_with(str(space)) and not of_run(space), 20)
            require(gone, f"{stops}: processes stay: {of_run(space)}")
        ended = program.run(*train_words(layout), cwd=space, seconds=180)
        sound(ended, {0})
        same_run(space / "runs/run", reference.parent / "whole/runs/run", f"{stops}\n{ended}")
        left = [p.name for p in (space / "runs/run").rglob("*.tmp*")]
        require(not left, f"{stops}: leftovers {left}")

    return attack


def of_run(space):
    """Returns the processes that work in the folder of a case."""
    found = []
    for pid in processes_with("megalith"):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(space):
                found.append(pid)
        except OSError:
            pass
    return found


def cases(setup):
    made = []
    for layout in LAYOUTS:
        begin, whole = begin_and_reference(setup, layout)
        again = copy_of(begin, begin.with_name("again"))
        duration = undisturbed(setup.program, again, layout)
        same_run(again / "runs/run", whole / "runs/run", layout)
        for n in range(KILLS):
            made.append(Case(f"{layout}, kill {n}", kill(setup.program, begin, layout, duration)))
    return made

"""Every call that changes a file of a run fails once. Randomly chosen allocations fail, too. The run must end with a message
that names the path, or succeed with a warning. The same command must then resume to the result of the undisturbed run, and no
valid checkpoint may be lost. fail_calls.c makes the calls fail."""

import re
import shutil
from dataclasses import dataclass

from campaign import Case
from rules import FAULTS, OUR_BUGS, names_one_of, require, sound
from small_runs import copy_of, prepare_run, same_run, train_words, undisturbed
from support import checkpoints

SHORT = ("write", "pwrite", "writev", "pwritev")
TRIED_AGAIN = ("fopen",)  # the log file: its library opens it again
# These calls only reserve space. The writes that follow fail if the disk is full.
RESERVE = ("fallocate", "posix_fallocate")
REMOVE = ("unlink", "unlinkat", "remove", "rmdir")
ALLOCATIONS = 200


@dataclass
class Call:
    number: int
    name: str
    path: str


def calls_of(log):
    lines = [line.split(" ", 2) for line in log.read_text().splitlines()] if log.exists() else []
    return [Call(int(number), name, path) for number, name, path in lines]


def environment(program, folder, **changes):
    under = ":".join(str(folder / name) for name in ("runs", "spill", "cache"))
    return {"LD_PRELOAD": str(program.preload), "CAMPAIGN_UNDER": under, "CAMPAIGN_COUNT": str(folder / "calls.txt"),
            "XDG_CACHE_HOME": str(folder / "cache"), "CAMPAIGN_PROGRAM": "megalith-engine", **changes}


def known_names(path):
    """Returns the names that a message may use for a path: the path in the case's folder without the endings of unfinished
    files, and its last part or its checkpoint if these are more than a word."""
    inside = re.sub(r"^.*?/space/", "/", path)
    clean = re.sub(r"(\.[0-9a-f]+\.tmp|\.tmp-[0-9a-f]+|\.partial|\.tmp)(?=/|$)", "", inside)
    parts = [part for part in clean.split("/") if part.startswith("step-")] + [clean.split("/")[-1]]
    folder = ["/spill"] if clean.startswith("/spill/") else []
    if clean.count("/") == 1:  # a message may name what was to be in it
        folder.append(f"{clean[1:]}/")
    return [clean, clean[1:] if clean.count("/") > 1 else clean, *folder, *(part for part in parts if re.search(r"[.-]", part))]


def verified(program, space):
    """Returns the names of the checkpoints whose bytes are unchanged."""
    run = space / "runs/run"
    return [name for name in checkpoints(run) if program.run("checkpoint", "verify", run / "checkpoints" / name, cwd=space).code == 0]


def fail_once(program, begin, whole, number, kind, memory=False):
    def attack(folder, _):
        space = copy_of(begin, folder / "space")
        more = {"CAMPAIGN_MEMORY": "1"} if memory else {}
        ended = program.run(*train_words(), cwd=space, environment=environment(program, space, CAMPAIGN_FAIL=f"{number}:{kind}", **more))
        # The user chose the disk of the spill folder. If it is full, the program refuses the setting.
        sound(ended, {0, *FAULTS} | ({2} if kind == "ENOSPC" and "memory.spill: expected a disk with room" in ended.stderr else set()))
        call = next((c for c in calls_of(space / "calls.txt") if c.number == number), None)
        require(call, f"call {number} was not made\n{ended}")
        what = f"{call.name} {call.path}: {kind}"
        named = ["memory"] if memory else known_names(call.path)
        if ended.code != 0 or not (kind == "short" or call.name in (*RESERVE, *TRIED_AGAIN)):
            require(names_one_of(ended.stderr, named), f"{what}: names none of {named}\n{ended}")
        before = verified(program, space)
        (space / "calls.txt").unlink()
        again = program.run(*train_words(), cwd=space)
        sound(again, {0})
        same_run(space / "runs/run", whole / "runs/run", f"{what}\n{ended}\n{again}")
        lost = set(before) - set(verified(program, space))
        require(not lost, f"{what}: lost {sorted(lost)}\n{ended}\n{again}")
        # A file whose removal failed may stay: the warning named it.
        left = [p.name for p in space.rglob("*")
                if re.search(r"\.tmp|\.partial", p.name) and not (call.name in REMOVE and str(p) == call.path)]
        require(not left, f"{what}: leftovers {left}")
        require(not any(words in again.stderr for words in OUR_BUGS), str(again))

    return attack


def counted(program, begin, folder, **changes):
    """Returns the calls of an undisturbed run from a copy of `begin`."""
    space = copy_of(begin, folder / "space")
    sound(program.run(*train_words(), cwd=space, environment=environment(program, space, **changes)), {0})
    return calls_of(space / "calls.txt")


# First all calls of a run on a machine that is already measured, then those calls that only other runs make.
RUNS = {
    "1 rank": ("1 rank", lambda path: True),
    "spill": ("spill", lambda path: "/space/spill" in path),
    "unmeasured": ("1 rank", lambda path: "/space/cache" in path or ".megalith-disk" in path),
}


def file_cases(setup, name):
    layout, chosen = RUNS[name]
    program, folder = setup.program, setup.folder / name.replace(" ", "-")
    begin = prepare_run(program, folder / "begin", layout, every=3)
    whole = copy_of(begin, folder / "whole")
    undisturbed(program, whole, layout)
    if name != "unmeasured":
        shutil.copytree(program.environment["XDG_CACHE_HOME"], begin / "cache")
    calls = [call for call in counted(program, begin, folder / "counted") if chosen(call.path)]
    require(calls, f"{name}: no calls to fail")
    for call in calls:
        for kind in ("EIO" if call.number % 2 else "ENOSPC", *(["short"] if call.name in SHORT else [])):
            path = re.sub(r"^.*?/space/", "", call.path)
            yield Case(f"{name}: {kind} of {call.name} {path}", fail_once(program, begin, whole, call.number, kind))


def allocation_cases(setup):
    begin, whole = setup.folder / "1-rank/begin", setup.folder / "1-rank/whole"
    calls = counted(setup.program, begin, setup.folder / "allocations", CAMPAIGN_MEMORY="1")
    for number in sorted(setup.chance().sample(range(1, len(calls) + 1), min(ALLOCATIONS, len(calls)))):
        yield Case(f"allocation {number}", fail_once(setup.program, begin, whole, number, "ENOMEM", memory=True))


def cases(setup):
    return [*(case for name in RUNS for case in file_cases(setup, name)), *allocation_cases(setup)]

"""Sets the wall clock of a run back while it trains. The preloaded library does this, so the clock of the machine does not
change. No number may change, and no measured time may be negative."""

import json

from campaign import Case
from rules import require, sound
from small_runs import copy_of, prepare_run, same_run, train_words, undisturbed
from support import metrics

CASES = 20
BACK = (1, 60, 3600, 86400, 365 * 86400)  # seconds


def numbers_of(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers_of(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from numbers_of(inner, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def set_back(program, begin, whole):
    def attack(folder, chance):
        space = copy_of(begin, folder / "space")
        back, after = chance.choice(BACK), chance.randrange(0, 800)
        ended = program.run(*train_words(), cwd=space, environment={"LD_PRELOAD": str(program.preload), "CAMPAIGN_CLOCK": f"{after}:{back}"})
        sound(ended, {0})
        same_run(space / "runs/run", whole / "runs/run", str(ended))
        summary = json.loads((space / "runs/run/summary.json").read_text())
        for path, value in numbers_of({"metrics": metrics(space / "runs/run"), "summary": summary}):
            require(value >= 0, f"clock set back by {back} s: {path} is {value}\n{ended}")
        again = program.run(*train_words(), "train.steps=6", cwd=space)  # everything on disk is from the future now
        sound(again, {0})
        require("resuming at step 5" in again.stderr, f"does not resume\n{again}")

    return attack


def cases(setup):
    begin = prepare_run(setup.program, setup.folder / "begin")
    whole = copy_of(begin, setup.folder / "whole")
    undisturbed(setup.program, whole)
    return [Case(f"set back, {n}", set_back(setup.program, begin, whole)) for n in range(CASES)]

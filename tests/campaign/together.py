"""Starts two or three runs in one folder at once. One trains as if it were alone. The others are refused by name, or find the
run done."""

import time

from campaign import Case
from rules import OUR_BUGS, require, sound
from small_runs import begin_and_reference, copy_of, same_run, train_words

CASES = 10  # for each layout
LAYOUTS = ("1 rank", "data 2")


def at_once(program, layout, begin, whole):
    def attack(folder, chance):
        space = copy_of(begin, folder / "space")
        started = []
        for n in range(chance.choice((2, 3))):
            with open(space / f"said-{n}.txt", "wb") as out:
                started.append(program.start(*train_words(layout), cwd=space, out=out))
            time.sleep(chance.choice((0, chance.uniform(0, 1))))
        codes = [process.wait(120) for process in started]
        said = [(space / f"said-{n}.txt").read_text(errors="replace") for n in range(len(started))]
        shown = "\n".join(f"--- {n}: exit code {code}\n{text[-800:]}" for n, (code, text) in enumerate(zip(codes, said)))
        require(0 in codes, f"none of them trained\n{shown}")
        for code, text in zip(codes, said):
            require(code in {0, 2}, shown)
            require(code == 0 or "runs/run" in text, f"does not name the folder\n{shown}")
            require(not any(words in text for words in OUR_BUGS), shown)
        same_run(space / "runs/run", whole / "runs/run", shown)
        again = program.run(*train_words(layout), cwd=space)
        sound(again, {0})
        require("already done" in again.stderr, str(again))

    return attack


def cases(setup):
    made = []
    for layout in LAYOUTS:
        begin, whole = begin_and_reference(setup, layout)
        made += [Case(f"{layout}, {n}", at_once(setup.program, layout, begin, whole)) for n in range(CASES)]
    return made

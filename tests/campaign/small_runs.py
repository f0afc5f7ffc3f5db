"""The smallest runs that cover the layouts, and undisturbed runs to compare with."""

import pathlib
import re
import shutil

from rules import Failed, require, sound
from support import assert_same_run, text

STEPS = 5
DENSE = "{arch: gpt2, layers: 2, hidden: 32, heads: 2, context: 32}"
WIDE = "{arch: gpt2, layers: 4, hidden: 256, heads: 2, context: 32}"  # 50 MiB of state
EXPERTS = "{arch: llama, layers: 1, hidden: 32, heads: 2, context: 32, experts: {count: 4}}"

# name: model, further sections, ranks
LAYOUTS = {
    "1 rank": (DENSE, {}, 1),
    "data 2": (DENSE, {"parallel": "{data: 2}"}, 2),
    "tensor 2": (DENSE, {"parallel": "{tensor: 2}"}, 2),
    "pipeline 2": (DENSE, {"parallel": "{pipeline: 2}"}, 2),
    "ZeRO": (DENSE, {"parallel": "{data: 2, zero: 2}"}, 2),
    "spill": (WIDE, {}, 1),
    "experts": (EXPERTS, {"parallel": "{expert: 2}"}, 2),
}


def write_run(folder, layout="1 rank", steps=STEPS, every=1):
    """Writes run.yaml and its text to a folder."""
    model, sections, _ = LAYOUTS[layout]
    lines = {
        "model": model,
        "data": "{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 32}",
        "train": f"{{steps: {steps}, batch: 4, micro_batch: 2, lr: 0.003, warmup: 2, eval_every: {steps}, eval_batches: 2, threads: 1}}",
        "checkpoint": f"{{every: {every}, keep: 9}}",
        **sections,
    }
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_text(text(4000))
    (folder / "run.yaml").write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))
    return folder


def train_words(layout="1 rank", directory="runs/run"):
    ranks = LAYOUTS[layout][2]
    return ["train", "run.yaml", f"run.dir={directory}", *(["--ranks", ranks] if ranks > 1 else [])]


def prepare_run(program, folder, layout="1 rank", **options):
    """Writes run.yaml and its text to a folder. The layout `spill` gets a budget that is too small for its state. It is a little
    more than the program asks for when it refuses an impossible budget."""
    folder = write_run(folder, layout, **options)
    if layout == "spill":
        ended = program.run("train", "run.yaml", "run.dir=runs/refused", "memory.ram=1MiB", "memory.spill=spill", cwd=folder)
        sound(ended, {2})
        least = re.search(r"at least ([\d.]+) MiB", ended.stderr)
        require(least, f"no least budget\n{ended}")
        shutil.rmtree(folder / "runs", ignore_errors=True)  # with several ranks, the supervisor has created the folder
        with open(folder / "run.yaml", "a") as out:
            out.write(f"memory: {{spill: spill, ram: {int(float(least[1])) + 4}MiB}}\n")
    return folder


def undisturbed(program, folder, layout="1 rank"):
    """Trains the run that was prepared in a folder to its end, in FOLDER/runs/run. Returns its duration in seconds."""
    ended = program.run(*train_words(layout), cwd=folder, seconds=180)
    sound(ended, {0})
    require(layout != "spill" or "of state in spill" in ended.stderr, f"the run does not spill\n{ended}")
    return ended.seconds


def begin_and_reference(setup, layout):
    """Returns the folder of a prepared run that has not started, and a folder in which it ran undisturbed to its end."""
    folder = setup.folder / layout.replace(" ", "-")
    begin = prepare_run(setup.program, folder / "begin", layout)
    whole = copy_of(begin, folder / "whole")
    undisturbed(setup.program, whole, layout)  # measures the machine, which later runs do not repeat
    return begin, whole


def same_run(run, reference, what):
    try:
        assert_same_run(run, reference, what)
    except Exception as error:  # also a file that is absent or cannot be read
        raise Failed(f"{type(error).__name__}: {error}") from error


def copy_of(folder, to):
    require(not pathlib.Path(to).exists(), f"{to} exists")
    shutil.copytree(folder, to, symlinks=True)
    return pathlib.Path(to)

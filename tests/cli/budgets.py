"""Compares what `memory` predicts with what `train` does, for thirty budgets from 100 MiB to 1 GiB.  budgets.py BINARY [--table FILE]

Ten models have three budgets each: the least that fits in memory, one MiB less, and one that needs the disk tier. Both commands
must give one verdict, and no run may take more than its budget. In memory the bound must be at most 10% or 12 MiB above the
peak. Every run validates and saves. The peak is measured by the kernel, not by the program."""

import argparse
import json
import pathlib
import shutil
import sys

ARGUMENTS = argparse.ArgumentParser()
ARGUMENTS.add_argument("binary")
ARGUMENTS.add_argument("--table", type=pathlib.Path)
ARGUMENTS.add_argument("--hidden", type=int, nargs="*", default=[128, 192, 256, 320, 384, 512, 640, 768, 896, 1088])
ARGUMENTS = ARGUMENTS.parse_args()

from peak_memory import run_and_watch
from support import workspace

MIB = 1 << 20
IN_MEMORY, SPILLED = ["memory.recompute=none"], ["memory.spill=spill"]

HEAD = """# Memory bounds
Written by `tests/cli/budgets.py --table`; do not edit. For each budget: what `memory` says, what `train` does, and the peak that
the kernel measured. Each run trains three steps, validates and saves, with one thread. All numbers are MiB. "Beyond" is the
bound minus the peak. The last columns say where that room is: what tensors may take minus what they took, and the rest (gaps,
buffers of a save, disk tier, small blocks, rounding).

| hidden | settings | budget | `memory` | bound | `train` | peak | beyond | tensors | rest |
|---|---|---|---|---|---|---|---|---|---|
"""


def needs(space, *settings):
    return space.run("memory", "run.yaml", *settings, "--json", expect=None).json


def write_run(space, hidden):
    space.yaml(
        "run",
        model=f"{{arch: llama, layers: 4, hidden: {hidden}, heads: 4, context: 64}}",
        data="{train: text.txt, tokenizer: {train: bpe, vocab: 500}, sequence: 64}",
        train="{steps: 3, batch: 2, micro_batch: 1, warmup: 1, eval_every: 2, eval_batches: 2, sample_tokens: 4, threads: 1}",
        checkpoint="{every: 2}",
    )


def budgets(space):
    """Returns pairs of settings and budget in MiB."""
    whole = needs(space, *IN_MEMORY, "memory.ram=1MiB")["most_bytes"]
    least = needs(space, *SPILLED, "memory.ram=1MiB")["most_bytes"]
    fits = -(-whole // MIB)
    return [(IN_MEMORY, fits), (IN_MEMORY, fits - 1), (SPILLED, -(-int(least + 0.4 * max(0, whole - least)) // MIB))]


def trial(space, hidden, settings, budget):
    """Returns a row of the table, and what is wrong with it."""
    settings = [*settings, f"memory.ram={budget}MiB"]
    shutil.rmtree(space / "runs", ignore_errors=True)
    foreseen = needs(space, *settings)
    code, said, peak = run_and_watch(space, "train", "run.yaml", *settings)
    bound, admitted = foreseen["most_bytes"], code == 0
    name = f"hidden {hidden}, {' '.join(settings)}"
    row = f"| {hidden} | {'in memory' if settings[0] in IN_MEMORY else 'spill'} | {budget} "
    row += f"| {'fits' if foreseen['fits'] else 'refused'} | {bound / MIB:.1f} | {'ran' if admitted else 'refused'} "
    wrong = []
    if foreseen["fits"] != admitted or (not admitted and (code != 2 or "memory.ram" not in said)):
        wrong.append(f"{name}: memory says {foreseen['fits']}, train ends with {code}: {said[-300:]}")
    if not admitted:
        return row + "| – | – | – | – |\n", wrong
    took = json.loads((space / "runs/run/summary.json").read_text())["measured"]
    tensors = took["peak_bytes"] - took["memory"]["process"]
    plan = foreseen["planned_bytes"] - foreseen["planned"]["process"] + foreseen["beyond_peak"]["parallel lanes, save"]
    beyond = bound - peak
    if peak > budget * MIB or beyond < 0:
        wrong.append(f"{name}: peak {peak / MIB:.1f} MiB, bound {bound / MIB:.1f} MiB")
    if settings[0] in IN_MEMORY and beyond > max(0.1 * peak, 12 * MIB):
        wrong.append(f"{name}: the bound is {beyond / MIB:.1f} MiB above the peak of {peak / MIB:.1f} MiB")
    row += f"| {peak / MIB:.1f} | {beyond / MIB:.1f} | {(plan - tensors) / MIB:.1f} | {(beyond - plan + tensors) / MIB:.1f} |\n"
    return row, wrong


def main():
    rows, wrong = [], []
    with workspace() as space:
        for hidden in ARGUMENTS.hidden:
            shutil.rmtree(space / "runs", ignore_errors=True)  # of another model
            write_run(space, hidden)
            space.run("simulate", "run.yaml", *SPILLED)  # measures the machine, which takes memory of its own
            for settings, budget in budgets(space):
                row, faults = trial(space, hidden, settings, budget)
                print(row.strip(), *faults, flush=True)
                rows.append(row)
                wrong += faults
    if ARGUMENTS.table:
        ARGUMENTS.table.write_text(HEAD + "".join(rows))
    if wrong:
        sys.exit(f"{len(wrong)} of {len(rows)} rows are wrong: " + "; ".join(wrong))


main()

"""Compares the step times of two builds of Megalith on one machine: gpt2-124m with 4×256 tokens a step, in memory, spilled
and on two ranks. Also says whether their losses are equal bit by bit.

compare_builds.py BASE NEW [--only WORD] [--rounds N] [--steps N] [--out FILE]     BASE and NEW are build/megalith of each

In a round each build runs every case once, the other build first in every second round. The first step of a run does not
count. The ratio is the median step of BASE divided by the median step of NEW: above 1 means that NEW is faster."""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

CASES = {
    "in memory": ([], []),
    "spilled": (["memory.ram=1800MiB"], []),
    "two ranks": (["parallel.data=2", "train.threads=1"], ["--ranks", "2"]),
}
YAML = """\
model: {{preset: gpt2-124m, context: 256}}
data: {{train: [{folder}/text.txt], tokenizer: {{train: bpe, vocab: 1000}}, sequence: 256, valid_fraction: 0, cache: {folder}/data}}
train: {{steps: {steps}, batch: 4, micro_batch: {micro}, lr: 0.0003, warmup: 0, eval_every: 0, sample_tokens: 0}}
checkpoint: {{every: never}}
"""


def steps_of(program, folder, case, steps):
    """Starts a new run. Returns the losses and the seconds of its steps."""
    settings, ranks = CASES[case]
    with tempfile.TemporaryDirectory(dir=folder) as home:
        micro = 2 if ranks else 4
        yaml = Path(home) / "run.yaml"
        yaml.write_text(YAML.format(folder=folder, steps=steps, micro=micro))
        command = [program, "train", yaml, f"run.dir={home}/run", f"memory.spill={home}/spill", *settings, *ranks]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": f"{folder}/calibration"})
        if done.returncode != 0:
            raise SystemExit(f"{program}, {case}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        lines = [json.loads(line) for line in (Path(home) / "run/metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines], [line["step_s"] for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("new")
    parser.add_argument("--only", default="", help="cases whose names contain this word")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5, help="measured steps of a run")
    parser.add_argument("--out", help="write all times as JSON")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only in case]
    times = {case: {"base": [], "new": []} for case in cases}
    losses = {case: {} for case in cases}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        chance = random.Random(3)
        words = [chr(97 + i % 26) + chr(97 + i // 26 % 26) + chr(97 + i // 5 % 26) for i in range(900)]
        Path(folder, "text.txt").write_text(".\n".join(" ".join(chance.choice(words) for _ in range(12)) for _ in range(20000)))
        for number in range(arguments.rounds):
            for case in cases:
                for build in ("base", "new")[:: -1 if number % 2 else 1]:
                    losses[case][build], seconds = steps_of(getattr(arguments, build), folder, case, arguments.steps + 1)
                    times[case][build] += seconds[1:]
                last = {build: statistics.median(times[case][build][-arguments.steps :]) for build in times[case]}
                print(f"round {number + 1}: {case:10} base {last['base']:.3f} s, new {last['new']:.3f} s", flush=True)
    for case in cases:
        base, new = (statistics.median(times[case][build]) for build in ("base", "new"))
        equal = "equal" if losses[case]["base"] == losses[case]["new"] else "DIFFERENT"
        print(f"{case:10} {len(times[case]['base'])} steps each: base {base:.3f} s, new {new:.3f} s, ratio {base / new:.3f}; losses {equal}")
    if arguments.out:
        Path(arguments.out).write_text(json.dumps({"times": times, "losses": losses}, indent=1) + "\n")


if __name__ == "__main__":
    main()

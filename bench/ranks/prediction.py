"""Compares predicted and measured step times of two ranks with one thread each, on one machine. No coefficient of the
prediction was fitted to these layouts: the ranks measure the machine when they start.

prediction.py [--program build/megalith] [--only WORD] [--rounds N] [--steps N] [--ops] [--out FILE]

Every round starts each run again, in turns, with an empty cache, so that it measures the machine again for its prediction.
A run reports the median of its steps after the first. The table has the medians of the rounds. The error is the median of
measured / predicted - 1. --ops adds the seconds of every kind of op, predicted and measured on rank 0. --out writes all
results as JSON. Takes about eight minutes."""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITHIN = 0.1  # of the prediction

MODELS = {
    "gpt2": "{arch: gpt2, layers: 8, hidden: 512, heads: 8, context: 256, vocab: 4096}",
    "llama": "{arch: llama, layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1408, context: 512, vocab: 4096}",
    "experts": "{arch: llama, layers: 6, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, context: 256, vocab: 4096, "
    "experts: {count: 4}}",
}


@dataclass(frozen=True)
class Run:
    model: str
    batch: int
    micro: int
    parallel: dict = field(default_factory=dict)
    sequence: int = 256
    memory: dict = field(default_factory=dict)
    ranks: int = 2


RUNS = {
    "one rank": Run("llama", 4, 2, ranks=1),
    "data 2": Run("llama", 8, 2, {"data": 2}),
    "data 2, ZeRO 3": Run("llama", 8, 2, {"data": 2, "zero": 3}),
    "tensor 2": Run("llama", 8, 4, {"tensor": 2}),
    "tensor 2, recomputed": Run("gpt2", 8, 4, {"tensor": 2}, memory={"recompute": "full"}),
    "context 2, ring": Run("llama", 4, 2, {"context": 2}, sequence=512),
    "context 2, ulysses": Run("llama", 4, 2, {"context": 2, "context_form": "ulysses"}, sequence=512),
    "data 2, expert 2": Run("experts", 8, 2, {"data": 2, "expert": 2}),
    "pipeline 2": Run("gpt2", 8, 1, {"pipeline": 2}),
    "pipeline 2, zero bubble": Run("llama", 8, 1, {"pipeline": 2, "schedule": "zero_bubble"}),
}


def corpus(folder):
    chance = random.Random(3)
    words = [chr(97 + i % 26) + chr(97 + i // 26 % 26) + chr(97 + i // 5 % 26) for i in range(900)]
    lines = (" ".join(chance.choice(words) for _ in range(12)) for _ in range(40000))
    (folder / "text.txt").write_text(".\n".join(lines))


def train(program, folder, run, steps):
    """(plan.json, summary.json, seconds of the steps after the first)."""
    home = folder / f"run-{time.monotonic_ns()}"
    yaml = folder / "run.yaml"
    yaml.write_text(
        f"run: {{dir: {home}}}\nmodel: {MODELS[run.model]}\n"
        f"data: {{train: [{folder}/text.txt], tokenizer: {{train: bpe, vocab: 1000}}, sequence: {run.sequence}, "
        f"valid_fraction: 0, cache: {folder}/data}}\n"
        f"train: {{steps: {steps + 1}, batch: {run.batch}, micro_batch: {run.micro}, threads: 1, lr: 0.0003, warmup: 0, "
        f"eval_every: 0, sample_tokens: 0}}\n"
        f"checkpoint: {{every: never}}\nparallel: {json.dumps(run.parallel)}\nmemory: {json.dumps(run.memory)}\n"
    )
    command = [program, "train", str(yaml)] + (["--ranks", str(run.ranks)] if run.ranks > 1 else [])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(home) + "-cache"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{run}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    plan, summary = (json.loads((home / name).read_text()) for name in ("plan.json", "summary.json"))
    seconds = [json.loads(line)["step_s"] for line in (home / "metrics.jsonl").read_text().splitlines()]
    return plan, summary, seconds[1:]


def ops_of(summary):
    """{kind: [predicted, measured]}, seconds a step."""
    kinds = {}
    for op in summary["ops"]:
        sums = kinds.setdefault(op["op"], [0.0, 0.0])
        sums[0] += op["predicted_s"]
        sums[1] += op.get("measured_s", 0)
    return kinds


def show(names, results):
    print(f"{'run':26} {'predicted':>10} {'measured':>10} {'off by':>8}   rounds")
    for name in names:
        rounds = results[name]
        predicted, measured = (statistics.median(r[key] for r in rounds) for key in ("predicted_s", "measured_s"))
        each = [r["measured_s"] / r["predicted_s"] - 1 for r in rounds]
        off = statistics.median(each)
        print(f"{name:26} {predicted:8.3f} s {measured:8.3f} s {off:+8.1%}   {' '.join(f'{e:+.1%}' for e in each)}"
              f"{'' if abs(off) <= WITHIN else '   MORE THAN 10%'}")


def show_ops(names, results):
    for name in names:
        last = results[name][-1]
        print(f"\n{name}: links {json.dumps(last['links'])}, waits {last['waits_s']:.3f} s")
        for kind, (predicted, measured) in last["ops"].items():
            if max(predicted, measured) > 0.002 * last["measured_s"]:
                print(f"  {kind:26} {predicted:8.4f} {measured:8.4f}  {measured - predicted:+.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/megalith"))
    parser.add_argument("--only", default="", help="runs whose names contain this word")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=7, help="measured steps of a run")
    parser.add_argument("--ops", action="store_true")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    names = [name for name in RUNS if arguments.only in name]
    results = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        corpus(folder)
        for number in range(arguments.rounds):
            for name in names:
                plan, summary, seconds = train(arguments.program, folder, RUNS[name], arguments.steps)
                results[name].append({
                    "predicted_s": plan["predicted"]["step_s"],
                    "waits_s": plan["predicted"]["waits_for_ranks_s"],
                    "measured_s": statistics.median(seconds),
                    "steps_s": seconds,
                    "links": plan["machine"]["links"],
                    "ops": ops_of(summary),
                })
                last = results[name][-1]
                print(f"round {number + 1}: {name:26} predicted {last['predicted_s']:.3f} s, measured {last['measured_s']:.3f} s",
                      flush=True)
    print()
    show(names, results)
    if arguments.ops:
        show_ops(names, results)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

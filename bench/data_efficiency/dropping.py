"""Measures a step in which all layers except the first and the last drop half of their tokens: gpt2-124m with 1,024 tokens.

dropping.py [--rounds N] [--steps N]

Every round starts the run with dropping and the run without, in turns, for a warm-up step and --steps more. Ratios are
computed within a round; the result is their median. Also computes the theoretical ratio: the share of multiply-adds that
remains. Writes bench/results/dropping.json."""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results/dropping.json"
LAYERS, HIDDEN, VOCABULARY, LENGTH = 12, 768, 50257, 1024
KEPT = LENGTH // 2


def run(folder, drops, steps):
    """Returns the seconds of the steps after the first, and of the forward and backward of a middle layer."""
    home, yaml = folder / f"run-{time.monotonic_ns()}", folder / "run.yaml"
    yaml.write_text(
        f"run: {{dir: {home}}}\nmodel: {{preset: gpt2-124m}}\n"
        f"data: {{train: [{folder}/text.txt], tokenizer: {{train: bpe, vocab: 300}}, sequence: {LENGTH}, valid_fraction: 0, cache: {folder}/cache}}\n"
        f"train: {{steps: {steps + 1}, batch: 1, lr: 0.0003, eval_every: 0, warmup: 0}}\ncheckpoint: {{every: never}}\n"
        + (f"token_dropping: {{from: {KEPT}, to: {KEPT}, over: 1 steps}}\n" if drops else "")
    )
    subprocess.run([str(ROOT / "build/megalith"), "train", str(yaml)], check=True, capture_output=True)
    seconds = [json.loads(line)["step_s"] for line in (home / "metrics.jsonl").read_text().splitlines()]
    ops = json.loads((home / "summary.json").read_text())["ops"]
    middle = [f"layer {i}" for i in range(1, LAYERS - 1)]
    layers = sum(op["measured_s"] for op in ops if op.get("block") in middle and op["op"] in ("forward", "backward"))
    return statistics.median(seconds[1:]), layers / len(middle)


def multiply_adds(kept):
    """Multiply-adds of the forward of a sequence. The middle layers see only `kept` of the tokens."""
    def layer(tokens):
        return (12 * HIDDEN * HIDDEN + tokens * HIDDEN) * tokens  # causal: half of the scores and of their sums
    return 2 * layer(LENGTH) + (LAYERS - 2) * layer(kept) + HIDDEN * VOCABULARY * LENGTH


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    steps, layers = [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "text.txt").write_text("\n".join(f"Line {i} of many that stand here." for i in range(60000)))
        for number in range(arguments.rounds):
            without, whole_layer = run(folder, False, arguments.steps)
            dropping, cut_layer = run(folder, True, arguments.steps)
            steps.append(dropping / without)
            layers.append(cut_layer / whole_layer)
            print(f"  round {number + 1}: {without:.3f} s, with half of the tokens {dropping:.3f} s = {steps[-1]:.3f}; "
                  f"a layer {layers[-1]:.3f}", flush=True)
    result = {"date": time.strftime("%Y-%m-%d"), "rounds": arguments.rounds, "step": statistics.median(steps), "steps": steps,
              "layer": statistics.median(layers), "layers": layers,
              "step_by_arithmetic": multiply_adds(KEPT) / multiply_adds(LENGTH)}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(f"step {result['step']:.3f} (by arithmetic {result['step_by_arithmetic']:.3f}), layer {result['layer']:.3f}")


if __name__ == "__main__":
    main()

"""Runs gpt2-355m with 2,048 tokens per step in a memory cgroup of 1.25 GiB without swap, with memory.ram: 1GiB. Compares it
with the same binary and settings with all state in memory. There must be no kill, resident memory must stay within the
budget, and losses must be equal bit by bit. Reports the ratio of tokens per second.

budget.py [--spill FOLDER] [--steps N] [--recompute full] [--micro-batch 2]"""

import argparse
import tempfile
from pathlib import Path

from beside_memory import beside_memory, kept, told
from runs import GIB, GPT2_355M, ROOT, Gpt, Run, show, write_result

SEQUENCE = 256


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spill", default=str(ROOT), help="folder for temporary files")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--again", type=int, default=5, help="steps in memory after the spilled run")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--recompute", default="full")
    parser.add_argument("--micro-batch", type=int, default=2, help="sequences of 256 tokens")
    parser.add_argument("--limit", type=float, default=1.25, help="limit of the cgroup, GiB")
    parser.add_argument("--ram", type=float, default=1.0, help="memory.ram, GiB")
    parser.add_argument("--layers", type=int, default=GPT2_355M.layers, help="fewer for a quick test")
    a = parser.parse_args()
    model = Gpt(a.layers, GPT2_355M.hidden, GPT2_355M.heads, GPT2_355M.vocab)
    ram = int(a.ram * GIB)
    print(f"budget: {model.parameters() / 1e6:.0f}M parameters, state {16 * model.parameters() / 1e9:.2f} GB, "
          f"{a.tokens} tokens a step, limit {a.limit} GiB, memory.ram {a.ram} GiB", flush=True)
    with tempfile.TemporaryDirectory(dir=a.spill) as name:
        run = Run(folder=Path(name), model=model, batch=a.tokens // SEQUENCE, sequence=SEQUENCE, steps=a.steps,
                  train={"micro_batch": a.micro_batch}, memory={"recompute": a.recompute})
        result, rows = beside_memory(run, ram, int(a.limit * GIB), a.again)
    write_result("budget", {**result, "recompute": a.recompute, "micro_batch": a.micro_batch,
                            "losses": [row["loss"] for row in rows]})
    show([*told(result), ("share of the speed", f"{result['ratio']:.1%} (at least 95%)")])
    if not kept(result):
        raise SystemExit("budget: not kept")


if __name__ == "__main__":
    main()

"""Compares sparse models larger than memory with the same binary and settings with all state in memory, in a memory cgroup
without swap. The first model has a state of at least 8 times memory.ram and 2,048 tokens per step. If it has less than 90% of
the speed in memory, more tokens per step are tried. The second model has many experts and few tokens. Experts that no token
chose stay on disk, and its disk traffic is compared with a run that loads all experts. Losses must be equal bit by bit, and
resident memory must stay within the budget.

memory.py [--spill FOLDER] [--steps N] [--tokens N ...] [--layers N] [--ram GIB]

Writes bench/results/experts_memory.json."""

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spill"))
from beside_memory import beside_memory, kept, told  # noqa: E402
from runs import GIB, MIB, ROOT, Run, show, write_result  # noqa: E402

SEQUENCE, TARGET = 256, 0.9


@dataclass(frozen=True)
class Sparse:
    """A llama with experts in every layer."""

    layers: int
    hidden: int
    heads: int
    experts: int
    top_k: int
    width: int  # of an expert
    vocab: int

    def parameters(self):
        C = self.hidden
        layer = 4 * C * C + 2 * C + self.experts * (C + 3 * C * self.width)
        return self.vocab * C + self.layers * layer + C

    def yaml(self):
        return (
            f"{{arch: llama, layers: {self.layers}, hidden: {self.hidden}, heads: {self.heads}, vocab: {self.vocab}, "
            f"context: {SEQUENCE}, tied: true, ffn: {self.width}, "
            f"experts: {{count: {self.experts}, top_k: {self.top_k}, ffn: {self.width}}}}}"
        )


def compare(folder, model, tokens, micro_batch, steps, ram, limit):
    """Runs one model in memory, spilled, and in memory again."""
    sequence = min(SEQUENCE, tokens)
    run = Run(folder=folder, model=model, batch=tokens // sequence, sequence=sequence, steps=steps,
              train={"micro_batch": micro_batch}, memory={"recompute": "full"})
    result, rows = beside_memory(run, ram, limit, max(4, steps // 2))
    plan = json.loads((folder / "spilled/plan.json").read_text())
    for leftover in folder.glob("tokens.*"):  # the next comparison may need more
        leftover.unlink()
    return {
        **result, "experts": model.experts, "top_k": model.top_k, "layers": model.layers, "hidden": model.hidden,
        "width": model.width, "state_over_ram": 16 * model.parameters() / ram, "disk": moved(rows, plan),
    }


def moved(rows, plan):
    """Disk bytes per step, measured and planned. The plan counts every expert."""
    last = rows[len(rows) // 2:]
    keys = ("read_bytes", "written_bytes", "experts_called")
    mean = {key: sum(row["disk"][key] for row in last) / len(last) for key in keys}
    return {**mean, "planned_read_bytes": plan["strategy"]["disk_read_bytes"]}


def report(name, r):
    d = r["disk"]
    show([
        (name, f"{r['parameters'] / 1e6:.0f}M parameters, state {r['state_over_ram']:.1f} x memory.ram, "
               f"{r['tokens']} tokens a step"),
        *told(r),
        ("share of the speed", f"{r['ratio']:.1%}"),
        ("read a step", f"{d['read_bytes'] / 1e6:.0f} MB of {d['planned_read_bytes'] / 1e6:.0f} with all experts; "
                        f"{d['experts_called']:.1f} experts on demand"),
    ])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spill", default=str(ROOT), help="folder for temporary files")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2048, 4096, 8192])
    parser.add_argument("--layers", type=int, default=26)
    parser.add_argument("--ram", type=float, default=0.5, help="memory.ram, GiB")
    a = parser.parse_args()
    ram = int(a.ram * GIB)
    limit = ram + 256 * MIB
    many_tokens = Sparse(a.layers, 512, 8, 8, 2, 768, 4096)
    few_tokens = Sparse(6, 512, 8, 128, 2, 192, 4096)
    larger = []
    with tempfile.TemporaryDirectory(dir=a.spill) as name:
        for tokens in a.tokens:
            larger.append(compare(Path(name), many_tokens, tokens, 2, a.steps, ram, limit))
            report("larger than memory", larger[-1])
            if larger[-1]["ratio"] >= TARGET:
                break
        few = compare(Path(name), few_tokens, 16, 1, 30, 2 * ram, 2 * ram + 256 * MIB)
        report("many experts, few tokens", few)
    write_result("memory", {"larger": larger, "few": few, "target": TARGET}, "experts")
    if not all(kept(r) for r in [*larger, few]):
        raise SystemExit("memory: not kept")


if __name__ == "__main__":
    main()

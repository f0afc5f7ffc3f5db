"""gpt2-355m, 2,048 tokens a step, in a memory cgroup of 1.25 GiB without swap and with memory.ram: 1GiB, against the
same binary with all its state in memory and the same recompute and micro-batch: no kill, resident memory within the
budget, the same losses bit for bit, and the share of tokens a second.

budget.py [--spill FOLDER] [--steps N] [--recompute full] [--micro-batch 2]"""

import argparse
import struct
import tempfile
from pathlib import Path

from cgroup import MemoryCgroup
from runs import GIB, GPT2_355M, MIB, ROOT, Gpt, Run, show, step_seconds, train, write_result

SEQUENCE = 256


def bits(rows):
    """Losses as the numbers they are, not as they are printed."""
    return [struct.pack("<d", row["loss"]).hex() for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spill", default=str(ROOT), help="where the scratch folder is made")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--again", type=int, default=5, help="steps in memory after the spilled run")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--recompute", default="full")
    parser.add_argument("--micro-batch", type=int, default=2, help="sequences of 256 tokens")
    parser.add_argument("--limit", type=float, default=1.25, help="of the cgroup, GiB")
    parser.add_argument("--ram", type=float, default=1.0, help="memory.ram, GiB")
    parser.add_argument("--layers", type=int, default=GPT2_355M.layers, help="fewer for a try")
    a = parser.parse_args()
    model = Gpt(a.layers, GPT2_355M.hidden, GPT2_355M.heads, GPT2_355M.vocab)
    ram = int(a.ram * GIB)
    print(f"budget: {model.parameters() / 1e6:.0f}M parameters, state {16 * model.parameters() / 1e9:.2f} GB, "
          f"{a.tokens} tokens a step, limit {a.limit} GiB, memory.ram {a.ram} GiB", flush=True)
    with tempfile.TemporaryDirectory(dir=a.spill) as name:
        folder = Path(name)
        common = dict(folder=folder, model=model, batch=a.tokens // SEQUENCE, sequence=SEQUENCE, steps=a.steps,
                      train={"micro_batch": a.micro_batch})
        free = Run(**common, name="in_memory", memory={"recompute": a.recompute})
        tight = Run(**common, name="spilled", memory={
            "recompute": a.recompute, "ram": str(ram), "spill": str(folder / "spill")})
        inside = train(free)
        with MemoryCgroup(int(a.limit * GIB)) as group:
            spilled = train(tight, group)
        again = train(Run(**dict(common, steps=a.again), name="in_memory_again", memory={"recompute": a.recompute}))
    same = bits(inside["rows"]) == bits(spilled["rows"])
    # Before and after: a machine that became faster or slower in between does not pass for a difference.
    before, after, slow = (step_seconds(r["rows"]) for r in (inside, again, spilled))
    fast = (before + after) / 2
    peak = max(spilled["memory"]["peak_bytes"], spilled["memory"]["peak_bytes_by_page_tables"])
    result = {
        "parameters": model.parameters(), "tokens": a.tokens, "steps": a.steps, "limit_bytes": int(a.limit * GIB),
        "ram_bytes": ram, "recompute": a.recompute, "micro_batch": a.micro_batch,
        "in_memory": {"step_s": fast, "before_and_after_s": [before, after], "tokens_per_s": a.tokens / fast, "memory": inside["memory"]},
        "spilled": {"step_s": slow, "tokens_per_s": a.tokens / slow, "memory": spilled["memory"],
                    "oom_kills": spilled["oom_kills"], "times_at_limit": spilled["times_at_limit"],
                    "cgroup": spilled["cgroup"]},
        "ratio": fast / slow, "losses_identical": same, "within_budget": peak <= ram,
        "losses": [row["loss"] for row in spilled["rows"]],
    }
    write_result("budget", result)
    show([
        ("in memory", f"{a.tokens / fast:.1f} tokens/s (before {a.tokens / before:.1f}, after {a.tokens / after:.1f}), peak {inside['memory']['peak_bytes'] / MIB:.0f} MiB"),
        ("spilled", f"{a.tokens / slow:.1f} tokens/s, peak {peak / MIB:.0f} of {ram / MIB:.0f} MiB "
                    f"({spilled['memory']['samples']} samples)"),
        ("share of the speed", f"{fast / slow:.1%} (at least 95%)"),
        ("killed", f"{spilled['oom_kills']} times; {spilled['times_at_limit']} times at the cgroup's limit"),
        ("losses", f"{'bit-identical' if same else 'DIFFERENT'} over {a.steps} steps"),
    ])
    if not (same and peak <= ram and spilled["oom_kills"] == 0):
        raise SystemExit("budget: not kept")


if __name__ == "__main__":
    main()

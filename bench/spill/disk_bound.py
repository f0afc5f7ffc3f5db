"""Runs gpt2-355m with 128 tokens per step, so that the disk is the limit. Reports how close a step is to the time that fio's
mixed bandwidth allows for 36 bytes per parameter.

disk_bound.py [--spill FOLDER] [--steps N]"""

import argparse
import tempfile
from pathlib import Path

from cgroup import MemoryCgroup
from fio import mixed
from runs import GIB, GPT2_355M, MIB, ROOT, Gpt, Run, show, step_seconds, train, write_result

SEQUENCE = 128


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spill", default=str(ROOT), help="folder for temporary files")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--recompute", default="full")
    parser.add_argument("--limit", type=float, default=1.25, help="limit of the cgroup, GiB")
    parser.add_argument("--ram", type=float, default=1.0, help="memory.ram, GiB")
    parser.add_argument("--layers", type=int, default=GPT2_355M.layers, help="fewer for a quick test")
    parser.add_argument("--fio-seconds", type=int, default=10)
    a = parser.parse_args()
    model = Gpt(a.layers, GPT2_355M.hidden, GPT2_355M.heads, GPT2_355M.vocab)
    traffic = 36 * model.parameters()
    print(f"disk bound: {model.parameters() / 1e6:.0f}M parameters, {a.tokens} tokens a step, {traffic / 1e9:.1f} GB a "
          "step", flush=True)
    with tempfile.TemporaryDirectory(dir=a.spill) as name:
        folder = Path(name)
        before = mixed(folder, a.fio_seconds)
        run = Run(folder=folder, model=model, batch=a.tokens // SEQUENCE, sequence=SEQUENCE, steps=a.steps, train={},
                  name="spilled", memory={"recompute": a.recompute, "ram": str(int(a.ram * GIB)),
                                          "spill": str(folder / "spill")})
        with MemoryCgroup(int(a.limit * GIB)) as group:
            spilled = train(run, group)
        after = mixed(folder, a.fio_seconds)
    bandwidth = max(before["best"], after["best"])  # the harder of the two to reach
    step = step_seconds(spilled["rows"], skip=3)
    result = {
        "parameters": model.parameters(), "tokens": a.tokens, "steps": a.steps, "bytes_a_step": traffic, "step_s": step,
        "step_s_all": [row["step_s"] for row in spilled["rows"]], "fio_before": before, "fio_after": after,
        "share": traffic / bandwidth / step, "memory": spilled["memory"], "oom_kills": spilled["oom_kills"],
    }
    write_result("disk_bound", result)
    show([
        ("fio, mixed", f"{before['best'] / 1e9:.2f} GB/s before, {after['best'] / 1e9:.2f} after"),
        ("a step", f"{step:.2f} s; the disk alone {traffic / bandwidth:.2f} s"),
        ("share of the limit", f"{result['share']:.1%} (at least 85%)"),
        ("peak", f"{spilled['memory']['peak_bytes'] / MIB:.0f} MiB, killed {spilled['oom_kills']} times"),
    ])


if __name__ == "__main__":
    main()

"""Trains a large model in 2 GiB: a GPT with 3B parameters (hidden 2560, vocabulary 32,000), AdamW in fp32 with clipping,
1,024 tokens per step, three steps in a memory cgroup without swap. Its first loss is compared with a forward pass from the
same initial weights, by a program without engine or spilling. Then finds the largest GPT that a plain PyTorch loop trains in
the same cgroup, with recomputation of every layer. It tries several widths, and finds the number of layers by bisection.

largest.py [--spill FOLDER] [--only ours|torch] [--layers N]
--only measures one side again and takes the other from the last result."""

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from cgroup import MemoryCgroup
from runs import GIB, HERE, MIB, PYTHON, RESULTS, ROOT, THREADS, Gpt, Run, show, train, watched, write_result

SEQUENCE, BATCH, VOCAB = 256, 4, 32000
FIRST_LOSS = ROOT / "build/first_loss"


def ours(a):
    model = Gpt(a.layers, a.hidden, a.hidden // 128, VOCAB)
    state = 16 * model.parameters()
    if shutil.disk_usage(a.spill).free < 1.05 * state:
        raise SystemExit(f"{a.spill}: {state / 1e9:.0f} GB of spill files do not fit on this disk")
    print(f"largest: {model.parameters() / 1e9:.2f}B parameters, state {state / 1e9:.0f} GB, limit {a.limit} GiB", flush=True)
    with tempfile.TemporaryDirectory(dir=a.spill) as name:
        folder = Path(name)
        run = Run(
            folder=folder, model=model, batch=BATCH, sequence=SEQUENCE, steps=a.steps, name="spilled",
            memory={"recompute": a.recompute, "ram": str(int(a.ram * GIB)), "spill": str(folder / "spill")},
            train={"micro_batch": a.micro_batch, "precision": "fp32", "optimizer": "adamw", "clip": 1.0},
        )
        with MemoryCgroup(int(a.limit * GIB)) as group:
            result = train(run, group)
        first = json.loads(subprocess.run(
            [str(FIRST_LOSS), str(folder / "spilled.yaml"), str(a.micro_batch), f"run.dir={folder / 'forward'}",
             "memory.spill=", "memory.ram="],
            check=True, capture_output=True, text=True,
        ).stdout)["loss"]
    losses = [row["loss"] for row in result["rows"]]
    peak = max(result["memory"]["peak_bytes"], result["memory"]["peak_bytes_by_page_tables"])
    report = {
        "parameters": model.parameters(), "layers": model.layers, "hidden": model.hidden, "vocab": VOCAB,
        "tokens": BATCH * SEQUENCE, "limit_bytes": int(a.limit * GIB), "ram_bytes": int(a.ram * GIB),
        "step_s": [row["step_s"] for row in result["rows"]], "seconds": result["seconds"], "losses": losses,
        "first_loss_streamed": first, "first_loss_difference": abs(losses[0] - first) / first,
        "memory": result["memory"], "oom_kills": result["oom_kills"], "times_at_limit": result["times_at_limit"],
    }
    show([
        ("losses", " ".join(f"{loss:.6f}" for loss in losses)),
        ("first, streamed", f"{first:.6f}: {report['first_loss_difference']:.1e} apart"),
        ("steps", " ".join(f"{s:.0f} s" for s in report["step_s"])),
        ("peak", f"{peak / MIB:.0f} MiB, killed {result['oom_kills']} times"),
    ])
    # The first step fills every spill file. Only later steps are timed.
    if report["first_loss_difference"] > 1e-6 or result["oom_kills"] or peak > a.limit * GIB:
        raise SystemExit("largest: not kept")
    return report


def fits(model, limit, log):
    """True if PyTorch runs two steps (the second one has optimizer state from its start)."""
    with MemoryCgroup(int(limit * GIB)) as group:
        result = watched(
            [PYTHON, HERE / "torch_fits.py", *map(str, [
                model.layers, model.hidden, model.heads, model.vocab, BATCH, SEQUENCE, THREADS, 2])],
            group, log=log, timeout=1800,
        )
    answer = [line for line in Path(log).read_text().splitlines() if line.startswith("{")]
    return bool(result["exit"] == 0 and answer), result


def largest_layers(hidden, limit, log):
    """Finds by bisection the most layers that PyTorch trains at this width; 0 if one layer does not fit."""
    low, high = 0, 1
    while fits(Gpt(high, hidden, hidden // 64, VOCAB), limit, log)[0]:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if fits(Gpt(middle, hidden, hidden // 64, VOCAB), limit, log)[0]:
            low = middle
        else:
            high = middle
        print(f"  PyTorch, hidden {hidden}: {low} layers fit, {high} do not", flush=True)
    return low


def torch_largest(a):
    best, tried = None, []
    with tempfile.TemporaryDirectory() as folder:
        for hidden in a.widths:
            layers = largest_layers(hidden, a.limit, Path(folder) / "torch.log")
            model = Gpt(layers, hidden, hidden // 64, VOCAB)
            tried.append({"hidden": hidden, "layers": layers, "parameters": model.parameters() if layers else 0})
            if layers and (best is None or model.parameters() > best["parameters"]):
                best = tried[-1]
            print(f"  PyTorch, hidden {hidden}: {layers} layers, {tried[-1]['parameters'] / 1e6:.0f}M parameters", flush=True)
    return {"tried": tried, "best": best}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spill", default=str(ROOT), help="folder for temporary files")
    parser.add_argument("--only", choices=["ours", "torch"])
    parser.add_argument("--layers", type=int, default=38)
    parser.add_argument("--hidden", type=int, default=2560)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--recompute", default="full")
    parser.add_argument("--limit", type=float, default=2.0, help="limit of the cgroup, GiB")
    parser.add_argument("--ram", type=float, default=1.8, help="memory.ram, GiB")
    parser.add_argument("--widths", type=int, nargs="*", default=[512, 768, 1024])
    a = parser.parse_args()
    last = RESULTS / "spill_largest.json"
    before = json.loads(last.read_text()) if a.only and last.exists() else {}
    result = {side: before[side] for side in ("ours", "torch") if side in before}
    if a.only != "torch":
        result["ours"] = ours(a)
    if a.only != "ours":
        result["torch"] = torch_largest(a)
    if {"ours", "torch"} <= result.keys():
        result["ratio"] = result["ours"]["parameters"] / result["torch"]["best"]["parameters"]
        show([("against PyTorch", f"{result['ratio']:.1f} times as many parameters (at least 20)")])
    write_result("largest", result)


if __name__ == "__main__":
    main()

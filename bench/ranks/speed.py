"""Measures ranks that share a machine. Compares two ranks with one thread each with one process with two threads, and with
PyTorch's DDP and FSDP2 over gloo. Compares a pipeline with the bound of its split and bubble. gpt2-124m, AdamW, float32.

speed.py [--only data,tensor,pipeline] [--rounds N] [--steps N] [--without-peers]

Every round starts each program again, in turns, for a warm-up step and --steps more. Ratios are computed within a round; the
result is their median. Writes bench/results/ranks.json. Parts that are not measured stay unchanged there."""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-bench/bin/python"
RESULTS = ROOT / "bench/results/ranks.json"
SEQUENCE = 256
STAGES, MICROS = 2, 8


@dataclass(frozen=True)
class Run:
    """Of Megalith."""

    ranks: int
    batch: int
    micro: int
    threads: int = 1
    parallel: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """PyTorch on two ranks."""

    kind: str
    batch: int = 4


ONE = "one process, 2 threads"
ALONE = "one process, 1 thread"
PARTS = {
    "data": {
        ONE: Run(1, 4, 4, threads=2),
        "data 2": Run(2, 4, 2),
        "data 2, ZeRO 1": Run(2, 4, 2, parallel={"zero": 1}),
        "PyTorch DDP, gloo": Peer("ddp"),
        "PyTorch FSDP2, gloo": Peer("fsdp"),
    },
    "tensor": {
        ONE: Run(1, 4, 4, threads=2),
        "tensor 2": Run(2, 4, 4, parallel={"tensor": 2}),
    },
    "pipeline": {
        ALONE: Run(1, MICROS, 1),
        "pipeline 2": Run(2, MICROS, 1, parallel={"pipeline": STAGES}),
    },
}


def megalith(folder, run, steps):
    """Seconds of the steps after the first, and the run's summary."""
    home = folder / f"run-{time.monotonic_ns()}"
    yaml = folder / "run.yaml"
    yaml.write_text(
        f"run: {{dir: {home}}}\nmodel: {{preset: gpt2-124m}}\n"
        f"data: {{train: [{folder}/text.txt], tokenizer: {{train: bpe, vocab: 300}}, sequence: {SEQUENCE}, valid_fraction: 0, cache: {folder}/cache}}\n"
        f"train: {{steps: {steps + 1}, batch: {run.batch}, micro_batch: {run.micro}, threads: {run.threads}, lr: 0.0003, "
        f"eval_every: 0, sample_tokens: 0, warmup: 0}}\n"
        f"checkpoint: {{every: never}}\nparallel: {json.dumps(run.parallel)}\n"
    )
    command = [str(ROOT / "build/megalith"), "train", str(yaml)] + (["--ranks", str(run.ranks)] if run.ranks > 1 else [])
    subprocess.run(command, check=True, capture_output=True)
    seconds = [json.loads(line)["step_s"] for line in (home / "metrics.jsonl").read_text().splitlines()]
    return seconds[1:], json.loads((home / "summary.json").read_text())


def torch_ranks(folder, kind, steps):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script, file = str(ROOT / "bench/peers/torch_ranks.py"), folder / "seconds"
    both = [
        subprocess.Popen([str(PYTHON), script, kind, str(rank), str(port), str(steps), str(file)],
                         env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
        for rank in range(2)
    ]
    codes = [process.wait() for process in both]
    if codes != [0, 0]:
        raise SystemExit(f"{script} {kind}: exit codes {codes}")
    return json.loads(file.read_text())


def work_by_block(summary):
    """Seconds of a step that the compute lane spends on each block, and the rank that holds the block."""
    seconds = {}
    for op in summary["ops"]:
        if "block" in op and op["op"] in ("forward", "loss", "backward", "embedding gradient", "gradient norm",
                                             "optimizer step"):
            seconds[op["block"]] = seconds.get(op["block"], 0) + op["measured_s"]
    held = {op["block"] for op in summary["ops"] if op["op"] in ("forward", "loss")}
    return seconds, held


def pipeline_bound(alone, first_stage):
    """Lower bound of the seconds of a step, for a pipeline with this split. It is the work of the slower stage, by the times
    of one process with one thread, plus the wait of a stage for its first micro-batch: 1/m of that work."""
    seconds, _ = work_by_block(alone)
    _, held = work_by_block(first_stage)
    whole = sum(seconds.values())
    first = sum(s for block, s in seconds.items() if block in held) / whole
    share = max(first, 1 - first)
    step = alone["measured"]["step_s"]
    return {"first_stage": sorted(held), "share": share, "bound_s": step * share * (1 + (STAGES - 1) / MICROS)}


def measure(folder, runs, rounds, steps):
    """Returns, by program, the seconds of each round (medians of steps), and the last summaries."""
    seconds, summaries = {name: [] for name in runs}, {name: [] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            if isinstance(run, Peer):
                took = torch_ranks(folder, run.kind, steps)
            else:
                took, summary = megalith(folder, run, steps)
                summaries[name].append(summary)
            seconds[name].append(statistics.median(took))
            print(f"  round {number + 1}: {name:24} {seconds[name][-1]:.3f} s", flush=True)
    return seconds, summaries


def part(name, folder, arguments):
    runs = {k: r for k, r in PARTS[name].items() if not (arguments.without_peers and isinstance(r, Peer))}
    seconds, summaries = measure(folder, runs, arguments.rounds, arguments.steps)
    rows = {
        key: {"step_s": statistics.median(all_of), "rounds_s": all_of,
              "tokens_per_s": runs[key].batch * SEQUENCE / statistics.median(all_of)}
        for key, all_of in seconds.items()
    }

    def ratio(other, ours):  # how many times as fast as the other one we are
        return statistics.median(a / b for a, b in zip(seconds[other], seconds[ours]))

    result = {"date": time.strftime("%Y-%m-%d"), "processor": processor(), "rounds": arguments.rounds,
              "steps": arguments.steps, "programs": rows, "ratios": {}}
    if name == "pipeline":
        bounds = [pipeline_bound(a, b) for a, b in zip(summaries[ALONE], summaries["pipeline 2"])]
        result["bound"] = bounds[-1] | {"bound_s": statistics.median(b["bound_s"] for b in bounds)}
        result["ratios"]["pipeline 2 / bound"] = statistics.median(b["bound_s"] / s for b, s in zip(bounds, seconds["pipeline 2"]))
    else:
        ours = [key for key in runs if key.startswith(f"{name} 2")]
        result["ratios"] = {f"{key} / {other}": ratio(other, key) for key in ours for other in runs if other not in ours}
    for what, value in result["ratios"].items():
        print(f"{what}: {value:.3f}", flush=True)
    return result


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="measured steps of a program a round")
    parser.add_argument("--without-peers", action="store_true")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if unknown := set(wanted) - set(PARTS):
        raise SystemExit(f"unknown parts: {', '.join(unknown)}; use {', '.join(PARTS)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "text.txt").write_text("\n".join(f"Line {i} of many that stand here." for i in range(60000)))
        for name in wanted:
            results[name] = part(name, folder, arguments)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

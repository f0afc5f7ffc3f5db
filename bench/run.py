"""Measures Megalith and its peers side by side on the same work and writes bench/results/*.json.

All programs of a workload are started together and make their steps in turn, A B A B ..., so that a noisy machine
hits all alike. What counts is the ratio of medians within one run.

run.py step|memory|startup [--workload NAME ...] [--rounds N] [--peers a,b]"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from workloads import WORKLOADS

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILD = ROOT / "build"
VENV = ROOT / ".venv-bench/bin/python"
THREADS = len(os.sched_getaffinity(0))
RESULTS = BENCH / "results"


def command(program, work):
    peer = {
        "PyTorch eager": ["torch_step.py", work.name, str(THREADS), "eager"],
        "torch.compile": ["torch_step.py", work.name, str(THREADS), "compile"],
        "transformers": ["transformers_step.py", work.name, str(THREADS)],
        "DeepSpeed": ["deepspeed_step.py", work.name, str(THREADS)],
    }
    if program in peer:
        script, *rest = peer[program]
        return [VENV, BENCH / "peers" / script, *rest]
    numbers = [work.layers, work.hidden, work.heads, work.ffn, work.vocab, work.batch, work.sequence, work.context]
    if program == "machine":
        return [BUILD / "bench_machine", *map(str, [work.hidden, work.ffn, work.vocab, work.tokens, THREADS])]
    return [BUILD / "bench_step", work.arch, *map(str, numbers), str(THREADS)]


class Worker:
    """A measured process: asked for steps over its input, it answers with JSON lines."""

    def __init__(self, program, work):
        self.program = program
        environment = dict(os.environ, OMP_NUM_THREADS=str(THREADS))
        RESULTS.mkdir(exist_ok=True)
        self.log = open(RESULTS / f"{program.replace(' ', '_')}.log", "w")
        self.process = subprocess.Popen(
            [str(c) for c in command(program, work)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            text=True, env=environment, cwd=ROOT,
        )
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.program} ended; see {self.log.name}")
        return json.loads(line)

    def ask(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        last = self.process.stdout.readline()
        self.process.wait()
        self.log.close()
        return json.loads(last) if last else {}


def spread(values):
    """Median and half the distance between the quartiles."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return {"median": statistics.median(ordered), "spread": (ordered[-1 - quarter] - ordered[quarter]) / 2}


def start(programs, work):
    workers, missing = [], {}
    for program in programs:
        try:
            workers.append(Worker(program, work))
        except (OSError, RuntimeError) as error:
            print(f"  {program}: not measured: {error}", file=sys.stderr)
            missing[program] = str(error).split(";")[0]
    return workers, missing


def measure(work, programs, rounds):
    print(f"{work.name}: {work.parameters() / 1e6:.1f}M parameters, {work.tokens} tokens a step", flush=True)
    workers, missing = start(["machine", *programs], work)
    machine, *rest = workers
    steps = {w.program: [] for w in rest}
    losses, speeds = {}, []
    for worker in rest:
        worker.ask(2)  # warm up: allocators, compilers
    for _ in range(rounds):
        speeds.append(machine.ask(1))
        for worker in rest:
            answer = worker.ask(1 if work.tokens > 256 else 3)
            steps[worker.program] += answer["seconds"]
            losses[worker.program] = answer["loss"]
    memory = {w.program: w.end() for w in rest}
    machine.end()
    state = 16 * work.parameters()
    rows = {}
    for program, seconds in steps.items():
        time_ = spread(seconds)
        used = memory[program]
        rows[program] = {
            "step_s": time_,
            "tokens_per_s": work.tokens / time_["median"],
            "flops": work.flop() / time_["median"],
            "loss": losses[program],
            "peak_bytes": used.get("peak_bytes"),
            "base_bytes": used.get("base_bytes"),
            "above_state_bytes": used["peak_bytes"] - used["base_bytes"] - state if used else None,
        }
    result = {
        "workload": work.name,
        "parameters": work.parameters(),
        "tokens": work.tokens,
        "rounds": rounds,
        "machine": {k: max(s[k] for s in speeds) for k in speeds[0]},
        "programs": rows,
        "missing": missing,
    }
    show(result)
    return result


def show(result):
    ours = result["programs"]["Megalith"]
    for program, row in sorted(result["programs"].items(), key=lambda item: item[1]["step_s"]["median"]):
        above = row["above_state_bytes"]
        print(
            f"  {program:14} {row['step_s']['median'] * 1e3:8.1f} ms ±{row['step_s']['spread'] * 1e3:5.1f}  "
            f"{row['tokens_per_s']:8.0f} tokens/s  {row['flops'] / 1e9:6.1f} GFLOP/s  "
            f"x{row['step_s']['median'] / ours['step_s']['median']:.2f}  above state {above / 2**20:7.0f} MiB  "
            f"loss {row['loss']:.3f}",
            flush=True,
        )
    m = result["machine"]
    print(
        f"  machine: peak {m['peak_flops'] / 1e9:.0f}, products {m['product_flops'] / 1e9:.0f} GFLOP/s, "
        f"memory {m['bandwidth'] / 1e9:.1f} GB/s; Megalith at {ours['flops'] / m['product_flops']:.0%} of products",
        flush=True,
    )


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", choices=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", default="PyTorch eager,torch.compile,transformers,DeepSpeed")
    arguments = parser.parse_args()
    peers = [p for p in arguments.peers.split(",") if p]
    results = []
    for name in arguments.workload or WORKLOADS:
        results.append(measure(WORKLOADS[name], ["Megalith", *peers], arguments.rounds))
    RESULTS.mkdir(exist_ok=True)
    document = {
        "date": time.strftime("%Y-%m-%d"), "processor": processor(), "threads": THREADS, "workloads": results,
    }
    (RESULTS / "step.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Measures Megalith and its peers side by side on the same work and writes bench/results/*.json.

All programs of a workload start together and run their steps in turn, A B A B ..., so that a noisy machine slows all of
them equally. The result is the ratio of medians within one run.

run.py step|startup|save [--workload NAME ...] [--rounds N] [--peers a,b]"""

import argparse
import json
import mmap
import os
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from workloads import WORKLOADS

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILD = ROOT / "build"
VENV = ROOT / ".venv-bench/bin/python"
STEPS = 3  # in a turn; as in real training, most steps follow a step of the same program
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
    """A measured process. It reads how many steps to run from its input, and answers with JSON lines."""

    def __init__(self, program, work):
        self.program = program
        environment = dict(os.environ, OMP_NUM_THREADS=str(THREADS))
        RESULTS.mkdir(exist_ok=True)
        self.log = open(RESULTS / f"{program.replace(' ', '_')}.log", "w")
        self.process = subprocess.Popen(
            [str(c) for c in command(program, work)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            text=True, env=environment, cwd=ROOT,
        )
        parameters = self.answer().get("parameters", work.parameters())
        if parameters != work.parameters():
            raise RuntimeError(f"{program} has {parameters} parameters, the other programs have {work.parameters()}")

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
    """Returns the median, and half the distance between the quartiles."""
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
            answer = worker.ask(STEPS)
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


def write_tokens(prefix, vocab, tokens):
    """Writes token shards for runs of the command line: one document of ids."""
    ids = [(i * 7919 + i // 13) % vocab for i in range(tokens)]
    Path(f"{prefix}.bin").write_bytes(struct.pack(f"<{tokens}H", *ids))
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2)
    Path(f"{prefix}.idx").write_bytes(header + struct.pack("<i", tokens) + struct.pack("<q", 0) + struct.pack("<qq", 0, 1))


def config_of(work, folder, steps, every, keep=1):
    shape = (
        f"{{arch: {work.arch}, layers: {work.layers}, hidden: {work.hidden}, heads: {work.heads}, ffn: {work.ffn}, "
        f"vocab: {work.vocab}, context: {work.context}, tied: true}}"
    )
    path = Path(folder) / "run.yaml"
    path.write_text(
        f"run: {{dir: {folder}/run}}\nmodel: {shape}\ndata: {{train: [{folder}/tokens], sequence: {work.sequence}, "
        f"valid_fraction: 0}}\ntrain: {{steps: {steps}, batch: {work.batch}, eval_every: 0}}\n"
        f"checkpoint: {{every: {every}, keep: {keep}}}\n"
    )
    return path


def startup(arguments):
    """Measures the time from the start of the process to the end of the first step, for the small model. For Megalith it is
    the whole command: its metrics file exists when the first step is done. Then it writes its report and ends."""
    work = WORKLOADS["llama-10m 16x128"]
    programs = ["Megalith", "PyTorch eager", "transformers"]
    times = {program: [] for program in programs}
    whole = []
    with tempfile.TemporaryDirectory() as folder:
        write_tokens(f"{folder}/tokens", work.vocab, 4 * work.tokens + 2)
        run = [str(BUILD / "megalith"), "train", str(config_of(work, folder, 1, "never"))]
        subprocess.run(run, check=True, capture_output=True)  # once, so that the calibration is stored
        for _ in range(arguments.rounds):
            for program in programs:
                if program == "Megalith":
                    shutil.rmtree(f"{folder}/run", ignore_errors=True)
                    begin = time.time()  # the same clock as file times
                    subprocess.run(run, check=True, capture_output=True)
                    whole.append(time.time() - begin)
                    times[program].append(Path(f"{folder}/run/metrics.jsonl").stat().st_mtime - begin)
                else:
                    begin = time.perf_counter()
                    worker = Worker(program, work)
                    worker.ask(1)
                    times[program].append(time.perf_counter() - begin)
                    worker.end()
    result = {program: spread(seconds) for program, seconds in times.items()}
    for program, row in result.items():
        print(f"  start to first step: {program:14} {row['median']:.2f} s ±{row['spread']:.2f}", flush=True)
    print(f"  Megalith's whole command: {spread(whole)['median']:.2f} s", flush=True)
    return {"workload": work.name, "programs": result, "whole_command": spread(whole)}


def disk_speed(folder, size):
    """Returns the bytes per second that are written durably, in pieces of 4 MiB: with or without the page cache, whichever is
    faster."""
    piece = mmap.mmap(-1, 4 << 20)  # aligned, which direct writes need
    piece.write(os.urandom(len(piece)))
    path = Path(folder) / "disk"

    def speed(flags):
        begin = time.perf_counter()
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags)
        for _ in range(size // len(piece)):
            os.write(file, piece)
        os.fsync(file)
        seconds = time.perf_counter() - begin
        os.close(file)
        path.unlink()
        return size / seconds

    speeds = [speed(0)]
    try:
        speeds.append(speed(os.O_DIRECT))
    except OSError:  # this file system has no direct I/O
        path.unlink(missing_ok=True)
    return max(speeds)


def seconds_of_writing(checkpoint):
    """Returns the seconds from the creation of its directory to the rename that completes it."""
    born, renamed = subprocess.run(
        ["stat", "-c", "%.9W %.9Z", checkpoint], check=True, capture_output=True, text=True
    ).stdout.split()
    return float(renamed) - float(born)


def save(arguments):
    """Measures how much a checkpoint of gpt2-124m delays the step during which it is written, and how long one takes when
    nothing else runs. Measures the disk in between."""
    work = WORKLOADS["gpt2-124m 4x256"]
    every, saves = 3, max(2, arguments.rounds // 2)
    alone, disk, plain, saving, meanwhile = [], [], [], [], []
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:  # on the disk that runs use
        write_tokens(f"{folder}/tokens", work.vocab, 64 * work.tokens)
        for part in range(3):
            shutil.rmtree(f"{folder}/run", ignore_errors=True)
            steps = 3 + every * saves
            run = [str(BUILD / "megalith"), "train", str(config_of(work, folder, steps, every, keep=saves + 1))]
            subprocess.run(run, check=True, capture_output=True)
            rows = [json.loads(line) for line in Path(f"{folder}/run/metrics.jsonl").read_text().splitlines()]
            plain += [r["step_s"] for r in rows[2:] if "save_s" not in r]  # a save without delay has save_s 0
            saving += [r["step_s"] for r in rows[2:] if "save_s" in r]
            *during, last = sorted(Path(f"{folder}/run/checkpoints").iterdir())
            meanwhile += [seconds_of_writing(checkpoint) for checkpoint in during]
            alone.append(seconds_of_writing(last))  # after the last step, when nothing else runs
            size = sum(f.stat().st_size for f in last.iterdir())
            disk.append(disk_speed(folder, size))
    usual, with_save, speed = spread(plain), spread(saving), statistics.median(disk)
    delay = with_save["median"] - usual["median"]
    result = {
        "workload": work.name, "bytes": size, "disk_write": speed, "step_s": usual, "step_with_save_s": with_save,
        "delay_s": delay, "alone_s": statistics.median(alone), "while_training_s": statistics.median(meanwhile),
        "share_of_200_steps": delay / (200 * usual["median"]), "saves": len(saving),
    }
    print(
        f"  a checkpoint of {size / 1e9:.2f} GB: its step takes {delay:.2f} s longer than {usual['median']:.2f} s, "
        f"{result['share_of_200_steps']:.2%} of 200 steps; the disk alone would take {size / speed:.2f} s; written after the "
        f"last step {result['alone_s']:.2f} s: {size / result['alone_s'] / speed:.0%} of the disk's speed; while training "
        f"{result['while_training_s']:.2f} s: {size / result['while_training_s'] / speed:.0%}",
        flush=True,
    )
    return result


def steps(arguments):
    """Writes the row of each workload as soon as it is measured, so workloads can be measured one at a time."""
    peers = [p for p in arguments.peers.split(",") if p]
    rows = []
    for name in arguments.workload or WORKLOADS:
        rows.append(measure(WORKLOADS[name], ["Megalith", *peers], arguments.rounds))
        if not arguments.least:
            write("step", with_rows_of_other_workloads(rows))
    return with_rows_of_other_workloads(rows) if not arguments.least else rows


def with_rows_of_other_workloads(rows):
    path = RESULTS / "step.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    before = known.get("step", []) if known.get("processor") == processor() else []
    by_name = {row["workload"]: row for row in before + rows}
    return [by_name[name] for name in WORKLOADS if name in by_name]


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def write(what, result):
    RESULTS.mkdir(exist_ok=True)
    document = {"date": time.strftime("%Y-%m-%d"), "processor": processor(), "threads": THREADS, what: result}
    (RESULTS / f"{what}.json").write_text(json.dumps(document, indent=1) + "\n")


def main():
    kinds = {"step": steps, "startup": startup, "save": save}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=kinds)
    parser.add_argument("--workload", action="append", choices=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", default="PyTorch eager,torch.compile,transformers,DeepSpeed")
    parser.add_argument("--least", type=float, help="fail if Megalith is not this many times as fast as the best peer")
    arguments = parser.parse_args()
    result = kinds[arguments.what](arguments)
    if arguments.least:
        for row in result:
            seconds = {program: r["step_s"]["median"] for program, r in row["programs"].items()}
            ratio = min(s for program, s in seconds.items() if program != "Megalith") / seconds["Megalith"]
            if ratio < arguments.least:
                sys.exit(f"{row['workload']}: {ratio:.2f} times the best peer, expected at least {arguments.least}")
        return
    write(arguments.what, result)


if __name__ == "__main__":
    main()

"""Two ranks with one thread each against one process with two threads, and against PyTorch's DDP and FSDP2 over gloo:
gpt2-124m, AdamW with clipping, float32.  speed.py [--rounds N] [--steps N]

Every round runs each program anew, in turns; a run is the median of its steps, the table the median of the rounds.
Writes bench/results/ranks.json."""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = {
    "one process, 2 threads": (1, {}, 4),
    "data 2": (2, {}, 4),
    "ZeRO 1, data 2": (2, {"zero": 1}, 4),
    "tensor 2": (2, {"tensor": 2}, 4),
    "one process, 2 threads, 8 micro-batches": (1, {}, 8),
    "pipeline 2, 8 micro-batches": (2, {"pipeline": 2}, 8),
}


def megalith(folder, name, ranks, parallel, batch, steps):
    run = folder / f"{name.replace(' ', '-').replace(',', '')}-{time.monotonic_ns()}"
    micro = 1 if batch == 8 else batch // parallel.get("data", 2 if ranks == 2 and "tensor" not in parallel else 1)
    yaml = folder / "run.yaml"
    yaml.write_text(
        f"run: {{dir: {run}}}\nmodel: {{preset: gpt2-124m}}\n"
        f"data: {{train: [{folder}/text.txt], tokenizer: {{train: bpe, vocab: 300}}, sequence: 256, cache: {folder}/cache}}\n"
        f"train: {{steps: {steps}, batch: {batch}, micro_batch: {micro}, lr: 0.0003, eval_every: 0, sample_tokens: 0, warmup: 0}}\n"
        f"checkpoint: {{every: never}}\nparallel: {json.dumps(parallel)}\n"
    )
    command = [str(ROOT / "build/megalith"), "train", str(yaml)] + (["--ranks", str(ranks)] if ranks > 1 else [])
    subprocess.run(command, check=True, capture_output=True)
    seconds = [json.loads(line)["step_s"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(seconds[1:])


def torch_ranks(folder, kind, steps):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [
        subprocess.Popen([sys.executable, str(ROOT / "bench/peers/torch_ranks.py"), kind, str(rank), str(port), str(steps), str(folder / "seconds")],
                         env={**os.environ, "OMP_NUM_THREADS": "1"})
        for rank in range(2)
    ]
    codes = [process.wait() for process in both]
    return json.loads((folder / "seconds").read_text()) if codes == [0, 0] else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    arguments = parser.parse_args()
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "text.txt").write_text("\n".join(f"Line {i} of many that stand here." for i in range(60000)))
        for _ in range(arguments.rounds):
            for name, (ranks, parallel, batch) in RUNS.items():
                seconds.setdefault(name, []).append(megalith(folder, name, ranks, parallel, batch, arguments.steps))
            for kind in ("ddp", "fsdp"):
                if (took := torch_ranks(folder, kind, arguments.steps - 1)) is not None:
                    seconds.setdefault({"ddp": "PyTorch DDP, gloo", "fsdp": "PyTorch FSDP2, gloo"}[kind], []).append(took)
    rows = {}
    for name, all_of in seconds.items():
        batch = 8 if "8 micro" in name else 4
        rows[name] = {"step_s": statistics.median(all_of), "tokens_per_s": batch * 256 / statistics.median(all_of), "batch": batch}
        print(f"{name:42} {rows[name]['step_s']:.3f} s  {rows[name]['tokens_per_s']:.0f} tokens/s", flush=True)
    cpu = next((l.split(":", 1)[1].strip() for l in Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name")), platform.processor())
    out = {"date": time.strftime("%Y-%m-%d"), "processor": cpu, "rounds": arguments.rounds, "ranks": rows}
    (ROOT / "bench/results/ranks.json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Runs `megalith train` like a user does, with or without a memory cgroup, and watches it from outside."""

import json
import os
import platform
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from resident import Watch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = HERE.parent / "results"
MEGALITH = ROOT / "build/megalith"
PYTHON = ROOT / ".venv-bench/bin/python"
THREADS = len(os.sched_getaffinity(0))
MIB, GIB = 1 << 20, 1 << 30

sys.path.insert(0, str(HERE.parent))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that children, cgroups and temporary folders are removed, too


@dataclass(frozen=True)
class Gpt:
    """A GPT-2 of any size."""

    layers: int
    hidden: int
    heads: int
    vocab: int
    context: int = 1024

    def parameters(self):
        C, L = self.hidden, self.layers
        return self.vocab * C + self.context * C + L * (12 * C * C + 13 * C) + 2 * C

    def yaml(self):
        return (
            f"{{arch: gpt2, layers: {self.layers}, hidden: {self.hidden}, heads: {self.heads}, vocab: {self.vocab}, "
            f"context: {self.context}}}"
        )


GPT2_124M = Gpt(12, 768, 12, 50257)
GPT2_355M = Gpt(24, 1024, 16, 50257)


def write_tokens(prefix, vocab, tokens):
    """Writes a token shard that a model can learn: each id follows from the previous one, with noise."""
    ids, state, at = [], 12345, 1
    for _ in range(tokens):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        noise = state >> 33
        at = noise % vocab if noise % 5 == 0 else (at * 31 + 7) % vocab
        ids.append(at)
    code, kind = ("H", 8) if vocab <= 65536 else ("i", 4)
    Path(f"{prefix}.bin").write_bytes(struct.pack(f"<{tokens}{code}", *ids))
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, kind, 1, 2)
    lengths = struct.pack("<i", tokens) + struct.pack("<q", 0) + struct.pack("<qq", 0, 1)
    Path(f"{prefix}.idx").write_bytes(header + lengths)


@dataclass
class Run:
    """Settings of one run. The same settings give the same numbers, wherever the state is."""

    folder: Path
    model: Gpt
    batch: int
    sequence: int
    steps: int
    memory: dict  # memory.* keys
    train: dict  # more train.* keys
    name: str = "run"

    def config(self):
        tokens = self.folder / "tokens"
        if not tokens.with_suffix(".idx").exists():
            write_tokens(tokens, self.model.vocab, (self.steps + 2) * self.batch * (self.sequence + 1))
        shutil.rmtree(self.folder / self.name, ignore_errors=True)
        train = {"steps": self.steps, "batch": self.batch, "eval_every": 0, "threads": THREADS, **self.train}
        path = self.folder / f"{self.name}.yaml"
        path.write_text(
            f"run: {{dir: {self.folder / self.name}}}\nmodel: {self.model.yaml()}\n"
            f"data: {{train: [{tokens}], sequence: {self.sequence}, valid_fraction: 0}}\n"
            f"train: {json.dumps(train)}\nmemory: {json.dumps(self.memory)}\ncheckpoint: {{every: never}}\n"
        )
        return path

    def rows(self):
        path = self.folder / self.name / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def watched(command, group=None, log=None, timeout=None, **options):
    """Runs a command to its end, inside the cgroup if there is one. Returns its code, memory and time."""
    with open(log or os.devnull, "w") as out:
        options = dict(stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, **options)
        begin = time.monotonic()
        process = group.start(command, **options) if group else subprocess.Popen([str(c) for c in command], **options)
        watch = Watch(process.pid)
        try:
            code = process.wait(timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            memory = watch.stop()
    result = {"exit": code, "seconds": time.monotonic() - begin, "memory": memory}
    if group:
        result |= {"oom_kills": group.oom_kills(), "times_at_limit": group.times_at_limit(), "cgroup": group.version}
    return result


def train(run, group=None):
    """Returns the metrics of the run, with the results of `watched`. Ends the program if the run fails."""
    log = run.folder / f"{run.name}.log"
    result = watched([MEGALITH, "train", run.config()], group, log)
    result["rows"] = run.rows()
    if result["exit"] != 0 or len(result["rows"]) != run.steps:
        tail = "\n".join(log.read_text().splitlines()[-20:])
        sys.exit(f"{run.name} ended with {result['exit']} after {len(result['rows'])} of {run.steps} steps:\n{tail}")
    return result


def step_seconds(rows, skip=2):
    """Returns the median step, without the first steps, which warm up."""
    return statistics.median(row["step_s"] for row in rows[min(skip, len(rows) - 1):])


def need(tool, package):
    if not shutil.which(tool):
        sys.exit(f"{tool} is missing; install it: apt-get install {package}")


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def write_result(name, result, about="spill"):
    RESULTS.mkdir(exist_ok=True)
    document = {"date": time.strftime("%Y-%m-%d"), "processor": processor(), "threads": THREADS, **result}
    (RESULTS / f"{about}_{name}.json").write_text(json.dumps(document, indent=1) + "\n")


def show(rows):
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"  {name:{width}}  {value}", flush=True)

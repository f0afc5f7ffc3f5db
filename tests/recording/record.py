"""Records what a build computes: small training runs, the files they leave, and the data behind them (recording_dump).

record.py --program MEGALITH --dump RECORDING_DUMP --out DIR [--only WORD] [--jobs N]
Two recordings of one commit on one machine are equal; compare.py compares them. See README.md."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
import collect  # noqa: E402
import runs  # noqa: E402
import support  # noqa: E402
from calibration import Calibration  # noqa: E402

MIB = 1 << 20
BUFFERS = 2  # MiB that calibration.py says the matrix library keeps
UNCOUNTED = 24  # MiB that plans reserve for memory that no schedule counts
MARGIN = 2  # MiB: the memory of the process differs from start to start
RAM = "memory.ram=6GiB"


class Recorder:
    def __init__(self, root, calibration):
        self.space, self.calibration = support.Workspace(root), calibration
        words = support.text(6000, seed=5).split()
        cuts = [0]
        while cuts[-1] < len(words):
            cuts.append(cuts[-1] + (3, 40, 9, 17)[len(cuts) % 4])
        documents = [" ".join(words[a:b]) for a, b in zip(cuts, cuts[1:])]
        self.space.write("docs.jsonl", "".join(json.dumps({"text": d}) + "\n" for d in documents))
        self.space.write("other.txt", support.text(5000, seed=9))
        self.space.environment["OMP_NUM_THREADS"] = "1"

    def command(self, *words, expect=0):
        return self.space.run(*words, expect=expect, timeout=600)

    def calibrated(self, work, folder=None):
        """Returns the result of `work` with fixed speeds. If `work` measures new speeds, replaces them and repeats `work`."""
        before = self.space / "before"
        for _ in range(5):
            shutil.rmtree(before, ignore_errors=True)
            if folder and folder.exists():
                shutil.copytree(folder, before)
            result = work()
            if not self.calibration.fix():
                return result
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
            if before.exists():
                shutil.copytree(before, folder)
        raise AssertionError("every start measures something new")

    def write_yaml(self, run):
        train = runs.TRAIN | run.train
        if "tokens" in train:
            del train["steps"]
        sections = dict(data=runs.DATA, checkpoint="{every: 3, keep: 9}") | run.sections
        text = "".join(f"{k}: {v}\n" for k, v in dict(sections, model=run.model, train=json.dumps(train)).items())
        self.space.write(f"{run.name}.yaml", text)

    def memory_settings(self, run, words):
        """memory.device and memory.ram: as little as the run must have, or enough for everything."""
        ranks = ["--ranks", run.ranks] if run.ranks > 1 else []
        settings = []
        if run.device:
            table = self.command("--json", "memory", *words, RAM, "memory.device=1MiB", expect=2).json
            settings.append(f"memory.device={(table['device_most_bytes'] >> 20) + 3}MiB")
        if run.room is None:
            return settings + [RAM]
        table = self.command("--json", "memory", *words, *settings, f"memory.ram={run.ranks}MiB", *ranks, expect=2).json
        own = table["planned"]["process"]
        least, whole = table["most_bytes"] - own, table["unadapted_bytes"] - own + UNCOUNTED * MIB
        refused = self.command("train", *words, *settings, f"memory.ram={run.ranks}MiB", *ranks, "run.dir=runs/refused", expect=2)
        process = re.search(r"process ([0-9.]+) MiB", refused.stderr)
        assert process, refused.stderr
        mib = float(process[1]) + BUFFERS + MARGIN + (least + run.room * max(0, whole - least)) / MIB
        return settings + [f"memory.ram={int(run.ranks * mib * 1024)}KiB"]

    def record(self, run):
        self.write_yaml(run)
        folder = self.space / "runs" / run.name
        words = [f"{run.name}.yaml", *run.settings]
        memory = self.memory_settings(run, words)
        words += memory
        start = ["train", *words, *(["--ranks", run.ranks] if run.ranks > 1 else [])]
        self.calibrated(lambda: self.command(*start), folder)
        items = collect.run_items(folder, ram_is_fixed=run.room is None)
        if run.away:
            strategy = json.loads((folder / "plan.json").read_text())["strategy"]
            assert strategy[run.away] > 0, f"{run.name} does not spill: {strategy} in {memory}"
        if run.then is not None:
            ranks = run.then_ranks or run.ranks
            again = ["train", *words, *run.then, *(["--ranks", ranks] if ranks > 1 else [])]
            self.calibrated(lambda: self.command(*again), folder)
            items |= {f"resumed {key}": value for key, value in collect.run_items(folder, run.room is None).items()}
        if run.outlook:
            items |= self.outlook(run, words)
        return items

    def outlook(self, run, words):
        words = [*words, *(["--ranks", run.ranks] if run.ranks > 1 else []), "run.dir=runs/none"]
        simulated = self.calibrated(lambda: self.command("--json", "simulate", *words).json)
        table = self.command("--json", "memory", *words, expect=None).json
        fixed = run.room is None
        return {"simulate": collect.plan_item(simulated, fixed), "memory": collect.memory_item(table, fixed)}

    def commands(self):
        """generate, eval, export, import, upcycle and analyze, on models that are trained here."""
        items = {}

        def train(name, model, **more):
            run = runs.run(name, model, dict(steps=20, micro_batch=4), **more)
            self.write_yaml(run)
            self.calibrated(lambda: self.command("train", f"{name}.yaml", *run.settings, RAM), self.space / "runs" / name)

        def say(name, *words):
            items[name] = collect.command_item(self.command("--json", *words).json)

        train("spoken-gpt2", runs.GPT2 % "")
        train("spoken-llama", runs.LLAMA % "")
        train("spoken-experts", runs.LLAMA % ", experts: {count: 4}")
        train("spoken-bert", runs.BERT % "", sections=dict(objective="masked"))
        questions = [{"context": "Ba", "choices": ["la la", "no", "re"], "answer": i % 3} for i in range(3)]
        self.space.write("choices.jsonl", "".join(json.dumps(q) + "\n" for q in questions))
        for arch in ("gpt2", "llama", "experts"):
            model = f"runs/spoken-{arch}"
            say(f"greedy {arch}", "generate", model, "--prompt", "Ba la", "--tokens", 40, "--temperature", 0)
            say(f"sampled {arch}", "generate", model, "--prompt", "Ba", "--prompt", "no re mi", "--tokens", 15, "--seed", 7,
                "--top-k", 30, "--top-p", 0.9, "--repetition-penalty", 1.2)
            say(f"eval {arch}", "eval", model, "--data", "other.txt", "--choices", "choices.jsonl")
            say(f"eval stride {arch}", "eval", model, "--data", "other.txt", "--window", 16, "--stride", 5)
        for arch in ("gpt2", "llama", "experts", "bert"):
            for dtype in ("fp32", "bf16", "fp16"):
                self.command("export", f"runs/spoken-{arch}", "--out", f"out/{arch}-{dtype}", "--dtype", dtype)
                items |= collect.folder_items(self.space / f"out/{arch}-{dtype}", f"export {arch} {dtype}")
            self.command("import", f"out/{arch}-bf16", "--out", f"out/{arch}-in", "--dtype", "fp32")
            items |= collect.folder_items(self.space / f"out/{arch}-in", f"import {arch}")
        self.command("import", "out/llama-fp32", "--out", "out/upcycled", "--upcycle", 4)
        items |= collect.folder_items(self.space / "out/upcycled", "upcycled")
        train("on-upcycled", "{from: out/upcycled}")
        items |= {f"on upcycled {k}": v for k, v in collect.run_items(self.space / "runs/on-upcycled").items()}
        rule = "{metric: loss, checkpoint: runs/spoken-gpt2, unit: percentile, from: 30, to: 100, over: 10 steps}"
        train("by-loss", runs.GPT2 % "", sections=dict(curriculum=f"[{rule}]"))
        items |= {f"by loss {k}": v for k, v in collect.run_items(self.space / "runs/by-loss").items()}
        self.command("analyze", "by-loss.yaml", "run.dir=runs/analyzed", RAM)
        items |= collect.folder_items(self.space / "runs/analyzed/analysis", "analyze")
        for words in (["presets"], ["config"]):
            items[" ".join(words)] = self.command(*words).stdout.splitlines()
        return items


def record_dump(program, out):
    for section in subprocess.run([program], check=True, capture_output=True, text=True).stdout.split():
        done = subprocess.run([program, section], capture_output=True, text=True)
        assert done.returncode == 0, f"recording_dump {section}: {done.stderr}"
        (out / "dump" / f"{section}.txt").write_text(done.stdout)


def processor():
    """Returns the processor's name and vector instructions: virtual machines give different processors one name."""
    facts = dict(line.split(":", 1) for line in open("/proc/cpuinfo") if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    vectors = [flag for flag in facts.get("flags", "").split() if flag.startswith(("avx", "fma", "f16c", "amx"))]
    return " ".join([facts.get("model name", "unknown"), *sorted(vectors)])


def record_one(name, work, root, cache, out):
    """Returns what went wrong, or nothing."""
    began = time.monotonic()
    folder = tempfile.mkdtemp(dir=root)
    try:
        calibration = Calibration(cache, pathlib.Path(folder))
        items = work(Recorder(folder, calibration))
        (out / "runs" / f"{name}.json").write_text(json.dumps(items, indent=0) + "\n")
        print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)
        return None
    except Exception as error:  # the other runs are worth seeing too
        print(f"FAILED    {name}: {error}", flush=True)
        return name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--dump", help="build/recording_dump; without it, only runs are recorded")
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", default="", help="runs whose names contain this word; dump: no run")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "megalith-recording.json"
    parser.add_argument("--calibration", default=cache, help="where names of measurements are kept between recordings")
    arguments = parser.parse_args()
    support.BINARY = pathlib.Path(arguments.program).resolve()
    out = pathlib.Path(arguments.out)
    for part in ("runs", "dump"):
        (out / part).mkdir(parents=True, exist_ok=True)
    facts = dict(processor=processor(), program=hashlib.sha256(support.BINARY.read_bytes()).hexdigest())
    (out / "about.json").write_text(json.dumps(facts, indent=1) + "\n")
    began = time.monotonic()
    works = {"commands": Recorder.commands}  # the longest first
    works |= {run.name: (lambda recorder, run=run: recorder.record(run)) for run in runs.all_runs()}
    with tempfile.TemporaryDirectory(prefix="recording-") as root, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        if arguments.dump and arguments.only in "dump":
            record_dump(arguments.dump, out)
        failed = [name for name in pool.map(
            lambda item: record_one(*item, root, pathlib.Path(arguments.calibration), out),
            [item for item in works.items() if arguments.only in item[0]]) if name]
    print(f"{time.monotonic() - began:.0f} s, {len(failed)} failed: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Compares DeepSpeed ZeRO-3 on the CPU with Megalith, both with state on the same disk. DeepSpeed has optimizer state on disk,
and parameters if that works. Megalith runs in 1 GiB and in a fifth of the memory of DeepSpeed. The model and the tokens per
step are equal. Reports tokens per second and resident memory.

deepspeed_nvme.py [--model gpt2-355m|gpt2-124m] [--tokens N] [--spill FOLDER] [--only ours|deepspeed] [--rounds N]
--only measures one side again and takes the other from the last result. Every model keeps its last result."""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from cgroup import MemoryCgroup
from resident import Watch
from runs import GIB, GPT2_124M, GPT2_355M, HERE, MIB, PYTHON, RESULTS, ROOT, THREADS, Run, processor, show, step_seconds, train, write_result

SEQUENCE = 256
MODELS = {"gpt2-355m": GPT2_355M, "gpt2-124m": GPT2_124M}
FIFTH = "Megalith in a fifth of their memory"


def deepspeed(a, model, folder, what):
    """Measures the steps of one DeepSpeed process. Returns the reason if it fails."""
    command = [PYTHON, HERE / "deepspeed_nvme_step.py", model.layers, model.hidden, model.heads, model.vocab,
               a.tokens // SEQUENCE, SEQUENCE, THREADS, folder, what]
    RESULTS.mkdir(exist_ok=True)
    log_path = RESULTS / f"deepspeed_{what}.log"
    # Compiles the extensions again: an interrupted compiler leaves a lock that others would wait for.
    environment = dict(os.environ, OMP_NUM_THREADS=str(THREADS), MAX_JOBS=str(THREADS),
                       TORCH_EXTENSIONS_DIR=str(folder.parent / "extensions"))
    with open(log_path, "w") as log:
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                   text=True, env=environment)
        watch = Watch(process.pid)

        def answer(question=None):
            if question:
                process.stdin.write(f"{question}\n")
                process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                log.flush()
                raise RuntimeError((log_path.read_text().strip().splitlines() or ["ended without an error message"])[-1])
            return json.loads(line)

        try:
            answer()  # ready
            answer(1)  # warm up
            last = answer(a.rounds)
            process.stdin.close()
            process.wait()
        except (RuntimeError, BrokenPipeError) as error:
            return {"missing": str(error)}
        finally:
            process.kill()  # nothing where it has ended
            process.wait()
            memory = watch.stop()
    step = statistics.median(last["seconds"])
    return {"step_s": step, "tokens_per_s": a.tokens / step, "loss": last["loss"], "memory": memory}


def say(program, row):
    show([(program, f"not measured: {row['missing']}" if "missing" in row else
           f"{row['tokens_per_s']:.1f} tokens/s, {row['memory']['peak_bytes'] / MIB:.0f} MiB resident")])
    return row


def ours(a, model, folder, ram):
    """The planner chooses recomputation: the fastest choice that fits the budget."""
    run = Run(
        folder=folder, model=model, batch=a.tokens // SEQUENCE, sequence=SEQUENCE, steps=a.rounds + 2, name="spilled",
        memory={"ram": str(int(ram)), "spill": str(folder / "spill")}, train={"micro_batch": a.micro_batch},
    )
    with MemoryCgroup(int(1.25 * ram)) as group:
        result = train(run, group)
    step = step_seconds(result["rows"])
    return {"step_s": step, "tokens_per_s": a.tokens / step, "memory": result["memory"], "oom_kills": result["oom_kills"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spill", default=str(ROOT), help="folder for temporary files")
    parser.add_argument("--only", choices=["ours", "deepspeed"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--model", choices=MODELS, default="gpt2-355m")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--micro-batch", default="auto")
    a = parser.parse_args()
    model, work = MODELS[a.model], f"{a.model}, {a.tokens} tokens a step"
    print(f"DeepSpeed on disk: {work}", flush=True)
    last = RESULTS / "spill_deepspeed.json"
    works = json.loads(last.read_text())["works"] if last.exists() else {}
    rows = works[work]["programs"] if a.only and work in works else {}
    with tempfile.TemporaryDirectory(dir=a.spill) as name:
        folder = Path(name)
        if a.only != "ours":
            for what in ("optimizer", "parameters"):
                (folder / what).mkdir()
                program = f"DeepSpeed, {'optimizer and ' if what == 'parameters' else ''}{what} on disk"
                rows[program] = say(program, deepspeed(a, model, folder / what, what))
        peers = [row for program, row in rows.items() if program.startswith("DeepSpeed") and "missing" not in row]
        theirs = min((row["memory"]["peak_bytes"] for row in peers), default=0)
        if a.only != "deepspeed":
            rows["Megalith in 1 GiB"] = say("Megalith in 1 GiB", ours(a, model, folder, GIB))
            if theirs:
                rows[FIFTH] = say(FIFTH, ours(a, model, folder, theirs / 5))
    result = {"date": time.strftime("%Y-%m-%d"), "processor": processor(), "programs": rows}
    if FIFTH in rows:
        result["times_as_fast"] = rows[FIFTH]["tokens_per_s"] / max(row["tokens_per_s"] for row in peers)
        result["share_of_memory"] = rows[FIFTH]["memory"]["peak_bytes"] / theirs
        show([("Megalith", f"{result['times_as_fast']:.2f} times as fast (at least 1.9), "
                           f"{result['share_of_memory']:.2f} of the memory (at most 0.2)")])
    write_result("deepspeed", {"works": works | {work: result}})


if __name__ == "__main__":
    main()

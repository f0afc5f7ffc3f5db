"""A model whose state is larger than its memory trains to the same numbers, and faults of the disk are reported.
  spill.py BINARY"""

import json
import os
import random
import re
import shutil
import signal
import time

from support import assert_same_run, metrics, prepare_small_llama, run_cases, wait_for


def tight(space, folder="spill", more=0):
    """Returns a budget in which only the smallest part of the state stays in memory. It is a little more than the program asks
    for when it refuses an impossible budget."""
    said = space.train("run", "run.dir=runs/refused", "memory.ram=1MiB", f"memory.spill={folder}", expect=2).stderr
    assert not (space / "runs/refused/plan.json").exists()
    least, unit = re.search(r"at least ([\d.]+) (MiB|GiB)", said).groups()
    mib = float(least) * (1024 if unit == "GiB" else 1)
    return f"memory.ram={int(mib) + 12 + more}MiB"


MODES = {
    "tiny budget": ["memory.spill=spill"],
    "window 1, full recompute": ["memory.spill=spill", "memory.window=1", "memory.recompute=full"],
    "window 3, chains of two": ["memory.spill=spill", "memory.window=3", "memory.recompute=every 2"],
    "through the page cache": ["memory.spill={shm}"],
}


def every_mode_is_as_in_memory(space):
    prepare_small_llama(space)
    shm = f"/dev/shm/megalith-spill-{os.getpid()}"
    said = []
    for name, options in MODES.items():
        run = f"runs/{name.split(',')[0].replace(' ', '-')}"
        options = [o.format(shm=shm) for o in options]
        # Larger windows and less recomputation need more than the smallest budget.
        budget = tight(space, more=24 if "3" in name else 0)
        result = space.train("run", f"run.dir={run}", budget, *options)
        assert "on disk" in result.stderr, result.stderr
        assert_same_run(space / run, space / "runs/memory", name)
        assert not (space / "spill").exists(), "the folder that the run made stayed"
        peak = max(m["mem_peak_bytes"] for m in metrics(space / run))
        assert peak <= int(re.search(r"=(\d+)MiB", budget).group(1)) << 20, f"{name}: {peak} bytes of {budget}"
        said.append(budget.removeprefix("memory.ram="))
    assert not os.path.exists(shm)
    for what in ("selective", "full"):
        space.train("run", f"run.dir=runs/{what}", f"memory.recompute={what}")
        assert_same_run(space / f"runs/{what}", space / "runs/memory", f"recomputed in memory: {what}")
    return ", ".join(said)


def kills_while_spilling(space):
    prepare_small_llama(space, steps=20, every=4)
    budget = tight(space)
    began = time.monotonic()
    space.train("run", "run.dir=runs/whole", budget, "memory.spill=spill")
    duration = time.monotonic() - began
    assert_same_run(space / "runs/whole", space / "runs/memory", "spilled")
    chance, hits = random.Random(3), 0
    for _ in range(4):
        process = space.start("train", "run.yaml", "run.dir=runs/killed", budget, "memory.spill=spill")
        time.sleep(chance.uniform(0.3, 0.6) * duration)
        hits += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    # Resumes in memory after the last kill: a resumed run may place its state elsewhere.
    space.train("run", "run.dir=runs/killed", "memory.ram=auto")
    assert_same_run(space / "runs/killed", space / "runs/memory", f"after {hits} kills")
    return f"{hits} kills"


def inputs_that_must_park(space):
    """Many layers on many tokens: the inputs that they keep for recomputation are most of the memory of a step. A smaller budget
    moves these inputs to disk."""
    space.yaml(
        "run",
        model="{arch: llama, layers: 24, hidden: 64, heads: 4, ffn: 192, context: 512}",
        data="{train: text.txt, tokenizer: {train: bpe, vocab: 500}, sequence: 512}",
        train="{steps: 4, batch: 16, micro_batch: 16, lr: 0.001, warmup: 2, eval_every: 2, eval_batches: 1, threads: 1}",
        checkpoint="{every: 2}",
    )
    space.train("run", "run.dir=runs/memory")
    said = []
    for name, options in {"auto": [], "full": ["memory.recompute=full", "memory.window=1"]}.items():
        budget = tight(space)
        result = space.train("run", f"run.dir=runs/{name}", budget, "memory.spill=spill", *options)
        away = json.loads((space / f"runs/{name}/plan.json").read_text())["strategy"]["layers_with_inputs_away"]
        assert away > 0 and f"inputs of {away} layers on disk" in result.stderr, result.stderr
        assert_same_run(space / f"runs/{name}", space / "runs/memory", f"inputs of {away} layers on disk")
        peak = max(m["mem_peak_bytes"] for m in metrics(space / f"runs/{name}"))
        assert peak <= int(re.search(r"=(\d+)MiB", budget).group(1)) << 20, f"{name}: {peak} bytes of {budget}"
        said.append(f"{away} layers in {budget.removeprefix('memory.ram=')}")
    # It also resumes from a checkpoint after it was killed.
    process = space.start("train", "run.yaml", "run.dir=runs/killed", tight(space), "memory.spill=spill")
    file = space / "runs/killed/metrics.jsonl"
    wait_for(lambda: file.exists() and file.read_text().count("\n") > 2, "a checkpoint")
    process.send_signal(signal.SIGKILL)
    process.wait()
    space.train("run", "run.dir=runs/killed", tight(space), "memory.spill=spill")
    assert_same_run(space / "runs/killed", space / "runs/memory", "killed")
    return ", ".join(said)


def moments_in_fewer_bytes(space):
    """Packed optimizer state is streamed from disk, saved and resumed as in memory."""
    prepare_small_llama(space)
    sizes = {}
    for form in ("bf16", "int8"):
        option = f"train.optimizer_state={form}"
        space.train("run", f"run.dir=runs/{form}", option)
        process = space.start("train", "run.yaml", "run.dir=runs/killed", option, tight(space, more=12), "memory.spill=spill")
        file = space / "runs/killed/metrics.jsonl"
        wait_for(lambda: file.exists() and file.read_text().count("\n") > 4, "a checkpoint")
        process.send_signal(signal.SIGKILL)
        process.wait()
        said = space.train("run", "run.dir=runs/killed", "train.optimizer_state=fp32", expect=2).stderr
        assert "train.optimizer_state" in said, said
        said = space.train("run", "run.dir=runs/killed", option, tight(space, more=12), "memory.spill=spill").stderr
        assert "on disk" in said and "resuming at step" in said, said
        assert_same_run(space / "runs/killed", space / f"runs/{form}", form)
        shutil.rmtree(space / "runs/killed")
        files = (space / f"runs/{form}/checkpoints").rglob("optimizer-*.safetensors")
        sizes[form] = sum(f.stat().st_size for f in files)
    whole = sum(f.stat().st_size for f in (space / "runs/memory/checkpoints").rglob("optimizer-*.safetensors"))
    assert sizes["bf16"] < 0.51 * whole and sizes["int8"] < 0.27 * whole, (sizes, whole)
    said = space.train("run", "run.dir=runs/no", "train.optimizer=adafactor", "train.optimizer_state=int8", expect=2).stderr
    assert "train.optimizer_state" in said and "adafactor" in said, said
    return f"{sizes} of {whole}"


def experts_that_nobody_chose(space):
    """Many experts, few tokens: experts that no token chose stay on disk, also during saves and validations and after a kill."""
    space.yaml(
        "run",
        model="{arch: llama, layers: 5, hidden: 192, heads: 4, ffn: 64, context: 16, experts: {count: 64, router: noisy}}",
        data="{train: text.txt, tokenizer: {train: bpe, vocab: 500}, sequence: 8}",
        train="{steps: 24, batch: 2, micro_batch: 1, lr: 0.001, warmup: 6, weight_decay: 0.1, clip: 0.5, eval_every: 7, "
        "eval_batches: 1, threads: 1}",
        checkpoint="{every: 9}",
    )
    space.train("run", "run.dir=runs/memory")
    budget = tight(space)
    process = space.start("train", "run.yaml", "run.dir=runs/killed", budget, "memory.spill=spill")
    file = space / "runs/killed/metrics.jsonl"
    wait_for(lambda: file.exists() and file.read_text().count("\n") > 11, "a checkpoint")
    process.send_signal(signal.SIGKILL)
    process.wait()
    said = space.train("run", "run.dir=runs/killed", budget, "memory.spill=spill").stderr
    assert "on disk" in said and "resuming at step" in said, said
    assert_same_run(space / "runs/killed", space / "runs/memory", "killed")
    rows = metrics(space / "runs/killed")
    peak = max(m["mem_peak_bytes"] for m in rows)
    assert peak <= int(re.search(r"=(\d+)MiB", budget).group(1)) << 20, f"{peak} bytes of {budget}"
    planned = json.loads((space / "runs/killed/plan.json").read_text())["strategy"]
    usual = [m for m in rows if "save_s" not in m][2:]
    read, called = (sum(m["disk"][key] for m in usual) / len(usual) for key in ("read_bytes", "experts_called"))
    share = read / planned["disk_read_bytes"]
    assert share < 0.8 and called > 0, (share, called)
    return f"{share:.0%} of the reads, {called:.1f} experts on demand"


def spill_files_of(pid):
    """Returns the open files of a process with our suffix. They are already unlinked."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if ".megalith-spill" in os.readlink(path):
                found.append(path)
        except OSError:
            pass
    return found


def a_flipped_bit_is_caught(space):
    prepare_small_llama(space, steps=8, every=5)
    process = space.start("train", "run.yaml", "run.dir=runs/flipped", "train.steps=4000", tight(space), "memory.spill=spill")
    metrics_file = space / "runs/flipped/metrics.jsonl"
    wait_for(lambda: metrics_file.exists() and metrics_file.read_text().count("\n") > 7, "a few steps")
    # Changes one byte in every chunk, so also in those that are read next.
    process.send_signal(signal.SIGSTOP)
    for path in spill_files_of(process.pid):
        with open(path, "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            for offset in range(4096, size, 1 << 20):
                byte = os.pread(file.fileno(), 1, offset)
                os.pwrite(file.fileno(), bytes([byte[0] ^ 4]), offset)
    process.send_signal(signal.SIGCONT)
    code = process.wait(timeout=120)
    said = (space / "started.txt").read_text()
    assert code == 3, f"exit code {code}\n{said}"
    assert "the data read differs from the data written" in said and "to resume from" in said, said
    return said.strip().splitlines()[-1][:160]


def refusals(space):
    prepare_small_llama(space)
    said = space.train("run", "run.dir=runs/small", "memory.ram=100MiB", "memory.spill=spill", expect=2).stderr
    assert "memory.ram" in said and "at least" in said and "parameters" in said and "process" in said, said
    said = space.train("run", "run.dir=runs/small", "memory.ram=130MiB", expect=2).stderr
    assert "to make it fit" in said and "memory.spill" in said, said
    said = space.train("run", "run.dir=runs/window", "memory.window=2", expect=2).stderr
    assert "memory.window" in said and "memory.spill or memory.device is given" in said, said
    said = space.train("run", "run.dir=runs/word", "memory.recompute=some", expect=2).stderr
    assert "memory.recompute" in said and "got some" in said, said
    # Two runs, one folder.
    budget = tight(space)
    process = space.start("train", "run.yaml", "run.dir=runs/first", "train.steps=4000", budget, "memory.spill=spill")
    wait_for(lambda: (space / "runs/first/metrics.jsonl").exists(), "the first run's steps")
    said = space.train("run", "run.dir=runs/second", budget, "memory.spill=spill", expect=2).stderr
    assert "memory.spill" in said and "another run" in said, said
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    space.write("file", "not a folder")
    for folder, why in (("file", "file: a file;"), ("file/spill", "/file is a file")):  # whether anything spills or not
        said = space.train("run", "run.dir=runs/third", f"memory.spill={folder}", expect=2).stderr
        assert f"memory.spill: expected a folder, got {folder}: " in said and why in said, said
        assert "tokenizer" not in said and not (space / "runs/third").exists(), said  # before anything takes time


run_cases([every_mode_is_as_in_memory, kills_while_spilling, inputs_that_must_park, moments_in_fewer_bytes,
           experts_that_nobody_chose, a_flipped_bit_is_caught, refusals])

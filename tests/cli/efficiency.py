"""Curricula, token dropping and analysis from the command line: shorter steps at first, samples admitted by difficulty,
bit-identical resumption, DeepSpeed's files.  efficiency.py BINARY"""

import json
import random
import shutil
import signal
import struct
import time

from support import assert_same_run, lines_of, metrics, run_cases, wait_for

CURRICULUM = (
    "[{metric: length, apply: truncate, from: 8, to: 32, step: 4, over: 12 steps}, "
    "{metric: rarity, unit: percentile, from: 10, to: 100, over: 1200 tokens, pacing: root 2}]"
)
DROPPING = "{from: 8, to: 32, step: 4, over: 20 steps, layers: [1]}"


def lengths_and_rates(space):
    """What metrics say of every step follows from the settings."""
    space.yaml("a", steps=20, curriculum=CURRICULUM, token_dropping=DROPPING)
    space.train("a")
    rows, tokens, layer_tokens = metrics(space / "runs/a"), 0, 0.0
    assert len(rows) == 20
    for step, row in enumerate(rows):
        length = 32 if step >= 12 else max(8, int((8 + 24 * (step / 12)) // 4 * 4))
        kept = min(length, max(8, int((8 + 24 * (step / 20)) // 4 * 4)))
        percentile = min(100, int(10 + 90 * min(1, tokens / 1200) ** 0.5))
        assert row["length"] == length == row["difficulty"]["length"], (step, row)
        assert row["kept"] == kept and abs(row["difficulty"]["rarity"] - percentile) < 1e-9, (step, row, percentile)
        tokens += 4 * length
        layer_tokens += 4 * (length + kept) / 2  # one of two layers drops
        assert row["tokens"] == tokens and abs(row["layer_tokens"] - layer_tokens) < 1e-6, (step, row)

    space.train("a", "run.dir=runs/t", "train.tokens=1280", "train.schedule_by=")  # the budget is what was read
    rows = metrics(space / "runs/t")
    assert rows[-1]["tokens"] >= 1280 > rows[-2]["tokens"] and len(rows) > 10, rows[-1]
    past = [0, *(row["tokens"] // (5 * 4 * 32) for row in rows)]  # how often five full batches were read
    looks = [step for step, row in enumerate(rows, 1) if "valid_loss" in row]
    assert looks == [step for step in range(1, len(past)) if past[step] > past[step - 1]] and len(looks) == 2, looks
    space.train("a", "run.dir=runs/l", "train.steps=10", "train.schedule_by=layer_tokens")
    longer = metrics(space / "runs/l")
    assert longer[-1]["layer_tokens"] >= 1280 > longer[-2]["layer_tokens"] and len(longer) > len(rows), longer[-1]
    assert longer[0]["lr"] > 0 and longer[-1]["lr"] < longer[3]["lr"], "the rate falls with what was seen"


def resumes_exactly(space):
    """kill -9 anywhere, with both techniques and blended sets."""
    more = dict(
        data="{train: [{path: text.txt, weight: 2}, {path: other.txt, weight: 1}], tokenizer: {train: bpe, vocab: 300}, "
        "sequence: 32}",
        train="{steps: 40, batch: 4, micro_batch: 2, lr: 0.003, eval_every: 7, eval_batches: 2, threads: 1}",
        curriculum=CURRICULUM.replace("truncate", "truncate, hold: tokens"),
        token_dropping=DROPPING,
    )
    space.write("other.txt", (space / "text.txt").read_text()[::-1])
    space.yaml("whole", "llama", every=3, **more)
    space.train("whole")  # measures the machine as well, which later runs do not repeat
    began = time.monotonic()
    space.train("whole", "run.dir=runs/again")
    duration = time.monotonic() - began
    chance, kills, runs = random.Random(3), [], 0
    while len(kills) < 4:
        runs += 1
        directory = f"runs/killed{runs}"
        for _ in range(3):
            process = space.start("train", "whole.yaml", f"run.dir={directory}")
            time.sleep(chance.uniform(0, duration))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills.append(lines_of(space / directory / "metrics.jsonl"))
        space.train("whole", f"run.dir={directory}")
        assert_same_run(space / directory, space / "runs/whole", f"run {runs}")
    return f"killed after steps {kills}"


def every_objective(space):
    for arch, objective in (("gpt2", "prefix"), ("bert", "masked"), ("llama", "causal")):
        space.yaml(arch, arch, steps=6, objective=objective, token_dropping="{from: 8, to: 16, over: 4 steps, layers: [0, 1]}",
                   curriculum="[{metric: length, apply: reshape, from: 12, to: 32, over: 5 steps}]")
        if arch == "bert":
            space.run("train", f"{arch}.yaml", "token_dropping.keep_special=true")
        else:
            space.train(arch)
        rows = metrics(space / "runs" / arch)
        assert [r["kept"] for r in rows][-1] == 16 and rows[0]["kept"] == 8 and rows[0]["length"] == 12, rows


def analysis(space):
    """Values against what Python computes from the shard; the page; interrupted and gone on."""
    space.yaml("a")
    said = space.run("analyze", "a.yaml", "--deepspeed", "a.yaml", expect=2)
    assert "a.yaml: --deepspeed: expected a folder, got a file" in said.stderr and not (space / "runs/a").exists(), said.stderr
    out = space.run("--json", "analyze", "a.yaml", "--deepspeed", "ds").json
    assert set(out["metrics"]) == {"length", "rarity", "length_rarity", "compression"}, out["metrics"].keys()
    prefix = next((space / "runs/a/data").glob("*.bin"))
    ids = list(struct.unpack(f"<{prefix.stat().st_size // 2}H", prefix.read_bytes()))
    samples = out["metrics"]["rarity"]["samples"]
    import collections
    import math

    used = ids[: samples * 32]
    counts = collections.Counter(used)
    rarity = [sum(-math.log(counts[i] / len(used)) for i in used[s * 32 : s * 32 + 32]) for s in range(samples)]
    raw = (space / "runs/a/analysis/rarity.metric").read_bytes().split(b"\n", 1)[1]
    ours = struct.unpack(f"<{samples}d", raw)
    assert max(abs(a - b) for a, b in zip(ours, rarity)) < 1e-9 * max(rarity)
    ends = [i + 1 for i, t in enumerate(ids) if t == ids[-1]]  # one document: a file
    assert set(struct.unpack(f"<{samples}d", (space / "runs/a/analysis/length.metric").read_bytes().split(b"\n", 1)[1])) == {32.0}, ends
    page = (space / "runs/a/analysis/analysis.html").read_text()
    assert "rarity" in page and "<svg" in page and out["metrics"]["rarity"]["hardest"][0]["text"][:5] in page
    # Their layout, written out: header, type, counts, lengths, offsets, documents.
    index = (space / "ds/length_sample_to_metric.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0" and struct.unpack("<QBQQ", index[9:34]) == (1, 5, samples, samples + 1)

    # Theirs are used by us, and a file of other data is refused by name.
    rule = "{metric: mine, file: ds/rarity_sample_to_metric, unit: percentile, from: 10, to: 100, over: 5 steps}"
    space.yaml("theirs", steps=6, curriculum=f"[{rule}]")
    space.train("theirs")
    space.yaml("ours", steps=6, curriculum="[" + rule.replace("mine", "rarity").replace(", file: ds/rarity_sample_to_metric", "") + "]")
    space.train("ours")
    losses = [[r["loss"] for r in metrics(space / "runs" / name)] for name in ("theirs", "ours")]
    assert losses[0] == losses[1], "the same values give the same batches"
    space.write("short.txt", "1\n2\n")
    said = space.run("train", "theirs.yaml", "run.dir=runs/x", f"curriculum=[{rule.replace('ds/rarity_sample_to_metric', 'short.txt')}]", expect=2)
    assert "short.txt" in said.stderr and f"{samples} training samples, got 2" in said.stderr, said.stderr
    said = space.run("train", "theirs.yaml", "run.dir=runs/x", f"curriculum=[{rule.replace('ds/', 'no/')}]", expect=2)
    assert "no/rarity_sample_to_metric: curriculum[0].file: expected a file" in said.stderr, said.stderr
    assert "tokenized" not in said.stderr, "nothing long before it is told"
    said = space.run("train", "a.yaml", "run.dir=runs/y", "curriculum=[{metric: colour, from: 1, to: 2, over: 3 steps}]", expect=2)
    assert "colour" in said.stderr and "compression" in said.stderr, said.stderr

    # A user's own metric is analysed like ours.
    out = space.run("--json", "analyze", "theirs.yaml").json["metrics"]
    assert set(out) == {"mine"} and out["mine"]["samples"] == samples and "hardest" in out["mine"], out
    said = space.run("analyze", "theirs.yaml", "--checkpoint", "runs/ours", expect=2)
    assert "--checkpoint: expected metric loss beside it" in said.stderr, said.stderr


def loss_of_a_model(space):
    """Values under a model belong to its weights; a run that goes on keeps those that it began with."""
    space.yaml("a")
    space.train("a", "run.dir=runs/model", "train.steps=6")

    def mean(*more):
        return space.run("--json", "analyze", "a.yaml", "--metric", "loss", *more).json["metrics"]["loss"]["mean"]

    first = mean("--checkpoint", "runs/model")
    rule = "{metric: loss, checkpoint: runs/model, unit: percentile, from: 30, to: 100, over: 8 steps}"
    assert mean(f"curriculum=[{rule}]") == first and 1 < first < 7, "the curriculum's checkpoint"
    space.yaml("filtered", steps=9, every=3, curriculum=f"[{rule}]")
    space.train("filtered")
    space.train("filtered", "run.dir=runs/goes_on", "train.steps=9", "checkpoint.every=3")
    shutil.rmtree(space / "runs/goes_on/checkpoints/step-00000009")  # as if it had been stopped
    space.train("a", "run.dir=runs/model", "train.steps=20")  # other weights
    assert mean("--checkpoint", "runs/model") < first - 0.05, "of the weights as they are now"
    space.train("filtered", "run.dir=runs/goes_on", "train.steps=9", "checkpoint.every=3")
    losses = [[r["loss"] for r in metrics(space / "runs" / name)] for name in ("filtered", "goes_on")]
    assert losses[0] == losses[1], losses

    # Other values than the run began with are refused, and nothing is lost.
    space.write("mine.txt", "\n".join(str(i * 7919 % 997) for i in range(2000)))
    samples = int(space.run("analyze", "a.yaml", "run.dir=runs/n", "curriculum=[{metric: m, file: mine.txt, from: 1, to: 2, over: 3 steps}]",
                            expect=2).stderr.split("each of the ")[1].split()[0])
    values = [i * 7919 % 997 for i in range(samples)]
    space.write("mine.txt", "\n".join(map(str, values)))
    mine = "curriculum=[{metric: m, file: mine.txt, unit: percentile, from: 30, to: 100, over: 8 steps}]"
    space.train("a", "run.dir=runs/mine", "train.steps=4", mine)
    space.write("mine.txt", "\n".join(map(str, reversed(values))))
    said = space.run("train", "a.yaml", "run.dir=runs/mine", "train.steps=8", mine, expect=2)
    assert "curriculum: expected the difficulties that the run began with, got others" in said.stderr, said.stderr
    space.write("mine.txt", "\n".join(map(str, values)))
    space.train("a", "run.dir=runs/mine", "train.steps=8", mine)

    # A model of another tokenizer, or of another objective.
    space.train("a", "run.dir=runs/other", "data.tokenizer={train: bpe, vocab: 400}", "train.steps=2")
    said = space.run("analyze", "a.yaml", "run.dir=runs/z", "--metric", "loss", "--checkpoint", "runs/other", expect=2)
    assert "metric loss: expected a model of the run's tokenizer" in said.stderr, said.stderr
    space.yaml("b", "bert", steps=3, objective="masked")
    space.train("b")
    said = space.run("analyze", "a.yaml", "run.dir=runs/z", "--metric", "loss", "--checkpoint", "runs/b", expect=2)
    assert "expected a model that predicts the next token, got bert" in said.stderr, said.stderr
    masked = space.run("--json", "analyze", "b.yaml", "--metric", "loss", "--checkpoint", "runs/b").json["metrics"]["loss"]
    assert 1 < masked["mean"] < 7, masked
    said = space.run("analyze", "a.yaml", "run.dir=runs/z", "--metric", "loss", "--checkpoint", "runs/nothing", expect=2)
    assert "runs/nothing" in said.stderr and "nothing of that name" in said.stderr and "tokenized" not in said.stderr, said.stderr


def forecasts(space):
    """What the shorter steps need is told before anything runs, and is in the plan."""
    space.yaml("a", steps=20, curriculum=CURRICULUM, token_dropping=DROPPING)
    shapes = space.run("--json", "memory", "a.yaml").json["shapes"]
    assert [shapes[0][k] for k in ("first_step", "length", "kept")] == [1, 8, 8] and shapes[-1]["length"] == 32, shapes
    assert all(a["peak_bytes"] <= b["peak_bytes"] for a, b in zip(shapes, shapes[1:])) and \
        shapes[0]["peak_bytes"] < shapes[-1]["peak_bytes"], shapes
    said = space.run("memory", "a.yaml").stdout
    assert "from step" in said and "kept" in said, said
    said = space.run("memory", "a.yaml", "curriculum=[{metric: raritty, from: 1, to: 2, over: 3 steps}]", expect=2)
    assert "did you mean rarity?" in said.stderr, said.stderr
    space.train("a")
    assert json.loads((space / "runs/a/plan.json").read_text())["shapes"][0]["length"] == 8


def limits_are_told_apart(space):
    """Two entries of one metric are both in the metrics; a filter that admits nothing is named."""
    space.yaml("a", steps=4, curriculum="[{metric: length, apply: truncate, from: 8, to: 32, step: 8, over: 3 steps}, "
               "{metric: length, from: 40, to: 64, over: 3 steps}, {metric: rarity, unit: percentile, from: 50, to: 100, over: 3 steps}]")
    space.train("a")
    row = metrics(space / "runs/a")[0]
    assert row["difficulty"] == {"length": 8, "length filter": 40, "rarity": 50} and row["layer_tokens"] == row["tokens"], row
    said = space.run("train", "a.yaml", "run.dir=runs/x", "curriculum=[{metric: rarity, unit: percentile, from: 10, to: 100, over: 3 steps}, "
                     "{metric: compression, from: 0.01, to: 1, over: 3 steps}]", expect=2)
    assert "(compression, from: 0.01)" in said.stderr and "the easiest has compression" in said.stderr, said.stderr


def interrupted_analysis(space):
    space.yaml("a")
    space.write("big.txt", (space / "text.txt").read_text() * 40)
    space.run("tokenize", "--help")
    data = "data.train=big.txt"
    space.run("analyze", "a.yaml", data, "run.dir=runs/whole", "--metric", "compression")
    process = space.start("analyze", "a.yaml", data, "run.dir=runs/cut", "--metric", "compression")
    part = space / "runs/cut/analysis/compression.metric.part"
    wait_for(lambda: process.poll() is not None or (part.exists() and part.stat().st_size > 20000), "values")
    process.send_signal(signal.SIGKILL)
    process.wait()
    space.run("analyze", "a.yaml", data, "run.dir=runs/cut", "--metric", "compression")
    name = "analysis/compression.metric"
    assert (space / "runs/cut" / name).read_bytes() == (space / "runs/whole" / name).read_bytes()
    assert not part.exists()


run_cases([lengths_and_rates, resumes_exactly, every_objective, analysis, loss_of_a_model, forecasts, limits_are_told_apart,
           interrupted_analysis])

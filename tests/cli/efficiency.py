"""Curricula, token dropping and analysis from the command line: shorter steps at first, samples admitted by difficulty,
bit-identical resumption, DeepSpeed's files.  efficiency.py BINARY"""

import collections
import ctypes
import json
import math
import random
import re
import shutil
import signal
import struct
import subprocess
import time

from support import assert_same_run, checkpoints, lines_of, metrics, run_cases, text, wait_for

CURRICULUM = (
    "[{metric: length, apply: truncate, from: 8, to: 32, step: 4, over: 12 steps}, "
    "{metric: rarity, unit: percentile, from: 10, to: 100, over: 1200 tokens, pacing: root 2}]"
)
DROPPING = "{from: 8, to: 32, step: 4, over: 20 steps, layers: [1]}"


def lengths_and_rates(space):
    """The metrics of every step follow from the settings."""
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

    space.train("a", "run.dir=runs/t", "train.tokens=1280", "train.schedule_by=null")  # the budget is what was read
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
    """Kills runs at random moments, with both techniques and blended data sets."""
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
    chance, kills, between, runs = random.Random(3), [], 0, 0
    while len(kills) < 4 or not between:  # the first checkpoint and the end
        runs += 1
        assert runs <= 10, f"killed after steps {kills}, never between the first checkpoint and the end"
        directory = f"runs/killed{runs}"
        for _ in range(3):
            process = space.start("train", "whole.yaml", f"run.dir={directory}")
            time.sleep(chance.uniform(0, duration))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills.append(lines_of(space / directory / "metrics.jsonl"))
                between += kills[-1] < 40 and len(checkpoints(space / directory)) > 0
        space.train("whole", f"run.dir={directory}")
        assert_same_run(space / directory, space / "runs/whole", f"run {runs}")
    return f"killed after steps {kills}, {between} of them between checkpoints"


def every_objective(space):
    for arch, objective in (("gpt2", "prefix"), ("bert", "masked"), ("llama", "causal")):
        space.yaml(arch, arch, steps=6, objective=objective,
                   token_dropping="{from: 8, to: 16, over: 4 steps, layers: [0, 1]}",
                   curriculum="[{metric: length, apply: reshape, from: 12, to: 32, over: 5 steps}]")
        if arch == "bert":
            space.run("train", f"{arch}.yaml", "token_dropping.keep_special=true")
        else:
            space.train(arch)
        rows = metrics(space / "runs" / arch)
        assert [r["kept"] for r in rows][-1] == 16 and rows[0]["kept"] == 8 and rows[0]["length"] == 12, rows


def values_in(path):
    """Returns the values in a .metric file of ours."""
    raw = path.read_bytes().split(b"\n", 1)[1]
    return struct.unpack(f"<{len(raw) // 8}d", raw)


def shard_in(folder):
    """Returns the tokens of the only shard in the folder, and the length of each document."""
    binary = next(folder.glob("*.bin"))
    ids = struct.unpack(f"<{binary.stat().st_size // 2}H", binary.read_bytes())
    index = binary.with_suffix(".idx").read_bytes()
    (count,) = struct.unpack("<Q", index[18:26])
    return ids, struct.unpack(f"<{count}i", index[34 : 34 + 4 * count])


def zstd_size(content):
    """Returns the number of bytes after compression with the zstd library at level 3."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    room = library.ZSTD_compressBound(ctypes.c_size_t(len(content)))
    return library.ZSTD_compress(ctypes.create_string_buffer(room), ctypes.c_size_t(room), content,
                                 ctypes.c_size_t(len(content)), 3)


def values_of_tokens(space):
    """Compares all token metrics with values that Python computes from the shard. Documents end inside samples."""
    words, chance = text(9000, seed=5).split(), random.Random(5)
    with open(space / "docs.jsonl", "w") as out:
        while words:
            count = chance.choice((2, 5, 10, 40))
            out.write(json.dumps({"text": " ".join(words[:count])}) + "\n")
            words = words[count:]
    space.yaml("a")
    space.run("analyze", "a.yaml", "data.train=docs.jsonl", "train.threads=2")
    ids, lengths = shard_in(space / "runs/a/data")
    document = [number for number, length in enumerate(lengths) for _ in range(length)]
    assert len(document) == len(ids) and len(lengths) > 100
    got = {name: values_in(space / f"runs/a/analysis/{name}.metric") for name in
           ("length", "rarity", "length_rarity", "compression")}
    samples = len(got["length"])
    used = ids[: samples * 32]
    counts = collections.Counter(used)
    for s in range(samples):
        part = slice(s * 32, s * 32 + 32)
        length = max(collections.Counter(document[part]).values())
        rarity = sum(-math.log(counts[i] / len(used)) for i in ids[part])
        compression = zstd_size(struct.pack("<32H", *ids[part])) / 64
        expected = {"length": length, "rarity": rarity, "length_rarity": length * rarity, "compression": compression}
        for name, value in expected.items():
            assert math.isclose(got[name][s], value, rel_tol=1e-12), (name, s, got[name][s], value)
    assert len(set(got["length"])) > 5 and len(set(got["compression"])) > 5

    # The same tokens in other documents are other data.
    prefix = next((space / "runs/a/data").glob("*.idx")).with_suffix("")
    for ending in (".bin", ".idx"):
        shutil.copy(prefix.with_suffix(ending), space / f"same{ending}")
    shutil.copy(space / "runs/a/tokenizer.json", space / "tokenizer.json")
    settings = ("a.yaml", "run.dir=runs/b", "data.train=same.bin", "data.tokenizer=tokenizer.json", "--metric", "length")
    space.run("analyze", *settings)
    assert values_in(space / "runs/b/analysis/length.metric") == got["length"]
    index = (space / "same.idx").read_bytes()
    (space / "same.idx").write_bytes(index[:18] + struct.pack("<QQ", 1, 2) + struct.pack("<iqqq", len(ids), 0, 0, 1))
    space.run("analyze", *settings)
    assert set(values_in(space / "runs/b/analysis/length.metric")) == {32.0}, "of the documents as they are now"


def analysis(space):
    """Tests the page, DeepSpeed's files and refusals."""
    space.yaml("a")
    said = space.run("analyze", "a.yaml", "--deepspeed", "a.yaml", expect=2)
    assert "a.yaml: --deepspeed: expected a folder, got a file" in said.stderr, said.stderr
    assert not (space / "runs/a").exists(), "the error must come before the text is tokenized"
    out = space.run("--json", "analyze", "a.yaml", "--deepspeed", "ds").json
    assert set(out["metrics"]) == {"length", "rarity", "length_rarity", "compression"}, out["metrics"].keys()
    samples = out["metrics"]["rarity"]["samples"]
    assert set(values_in(space / "runs/a/analysis/length.metric")) == {32.0}, "one document: a file"
    page = (space / "runs/a/analysis/analysis.html").read_text()
    assert "rarity" in page and "<svg" in page and out["metrics"]["rarity"]["hardest"][0]["text"][:5] in page
    # Their layout, written out: header, type, counts, lengths, offsets, documents.
    index = (space / "ds/length_sample_to_metric.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0" and struct.unpack("<QBQQ", index[9:34]) == (1, 5, samples, samples + 1)

    # We can use DeepSpeed's files. A file of other data is refused by name.
    rule = "{metric: mine, file: ds/rarity_sample_to_metric, unit: percentile, from: 10, to: 100, over: 5 steps}"
    space.yaml("theirs", steps=6, curriculum=f"[{rule}]")
    space.train("theirs")
    computed = rule.replace("mine", "rarity").replace(", file: ds/rarity_sample_to_metric", "")
    space.yaml("ours", steps=6, curriculum=f"[{computed}]")
    space.train("ours")
    losses = [[r["loss"] for r in metrics(space / "runs" / name)] for name in ("theirs", "ours")]
    assert losses[0] == losses[1], "the same values give the same batches"
    space.write("short.txt", "1\n2\n")
    short = rule.replace("ds/rarity_sample_to_metric", "short.txt")
    said = space.run("train", "theirs.yaml", "run.dir=runs/x", f"curriculum=[{short}]", expect=2)
    assert "short.txt" in said.stderr and f"{samples} training samples, got 2" in said.stderr, said.stderr
    said = space.run("train", "theirs.yaml", "run.dir=runs/x", f"curriculum=[{rule.replace('ds/', 'no/')}]", expect=2)
    assert "command line: curriculum[0].file: expected a file, got no/rarity_sample_to_metric: no such file" in said.stderr, said.stderr
    assert "tokenized" not in said.stderr, "the error must come before the text is tokenized"
    unknown = "curriculum=[{metric: colour, from: 1, to: 2, over: 3 steps}]"
    said = space.run("train", "a.yaml", "run.dir=runs/y", unknown, expect=2)
    assert "colour" in said.stderr and "compression" in said.stderr, said.stderr

    # A user's own metric is analysed like ours.
    out = space.run("--json", "analyze", "theirs.yaml").json["metrics"]
    assert set(out) == {"mine"} and out["mine"]["samples"] == samples and "hardest" in out["mine"], out
    said = space.run("analyze", "theirs.yaml", "--checkpoint", "runs/ours", expect=2)
    assert "--checkpoint: expected metric loss (only it uses a checkpoint)" in said.stderr, said.stderr

    # Two metrics with the same name get different file names. A name must not be a path.
    space.write("falls.txt", "\n".join(str(-i) for i in range(samples)))
    other = rule.replace("ds/rarity_sample_to_metric", "falls.txt")
    out = space.run("--json", "analyze", "theirs.yaml", f"curriculum=[{rule}, {other}, {rule}]", "--deepspeed", "two").json
    assert set(out["metrics"]) == {"mine", "mine_2"} and out["metrics"]["mine_2"]["high"] == 0, out["metrics"].keys()
    assert (space / "two/mine_sample_to_metric.bin").read_bytes() != (space / "two/mine_2_sample_to_metric.bin").read_bytes()
    outside = f"curriculum=[{rule.replace('mine', '../out')}]"
    said = space.run("analyze", "theirs.yaml", outside, "--deepspeed", "two", expect=2)
    assert "expected a metric name without / (file names contain it), got ../out" in said.stderr, said.stderr
    assert not list(space.root.glob("out_*"))

    # A sample that begins inside a character is shown with U+FFFD in place of the incomplete bytes.
    chance = random.Random(1)
    space.write("signs.txt", "".join(chr(chance.randrange(0x4E00, 0x9F00)) for _ in range(3000)))
    space.run("analyze", "a.yaml", "run.dir=runs/signs", "data.train=signs.txt", "--metric", "rarity", "--examples", "50")
    assert "\ufffd" in (space / "runs/signs/analysis/analysis.html").read_text(encoding="utf-8", errors="strict")


def loss_of_a_model(space):
    """Losses of a model belong to its weights. A resumed run keeps the losses that it started with."""
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
    shutil.rmtree(space / "runs/goes_on/checkpoints/step-00000009")  # acts like a run that was stopped before step 9
    space.train("a", "run.dir=runs/model", "train.steps=20")  # other weights
    assert mean("--checkpoint", "runs/model") < first - 0.05, "of the weights as they are now"
    space.train("filtered", "run.dir=runs/goes_on", "train.steps=9", "checkpoint.every=3")
    losses = [[r["loss"] for r in metrics(space / "runs" / name)] for name in ("filtered", "goes_on")]
    assert losses[0] == losses[1], losses
    shutil.rmtree(space / "runs/goes_on/checkpoints/step-00000009")
    (space / "runs/model").rename(space / "runs/model_elsewhere")
    space.train("filtered", "run.dir=runs/goes_on", "train.steps=9", "checkpoint.every=3")
    assert [r["loss"] for r in metrics(space / "runs/goes_on")] == losses[0], "without the checkpoint"
    (space / "runs/model_elsewhere").rename(space / "runs/model")

    # Losses of two models are stored side by side. Other analyses in the run directory replace neither.
    space.train("a", "run.dir=runs/second", "train.steps=3", "run.seed=5")
    both = f"curriculum=[{rule}, {rule.replace('runs/model', 'runs/second')}]"
    out = space.run("--json", "analyze", "a.yaml", "run.dir=runs/both", both).json["metrics"]
    assert set(out) == {"loss", "loss_2"} and out["loss"]["mean"] < out["loss_2"]["mean"], out.keys()
    for run in ("both", "at_once"):
        space.train("a", f"run.dir=runs/{run}", "train.steps=9", both)
    shutil.rmtree(space / "runs/both/checkpoints/step-00000009")
    space.run("analyze", "a.yaml", "run.dir=runs/both", "--metric", "loss", "--checkpoint", "runs/filtered")
    space.run("analyze", "a.yaml", "run.dir=runs/both", "data.sequence=16", both)
    space.train("a", "run.dir=runs/both", "train.steps=9", both)
    assert_same_run(space / "runs/both", space / "runs/at_once", "two models")

    # A run with other values than at its start is refused, and nothing is lost.
    space.write("mine.txt", "\n".join(str(i * 7919 % 997) for i in range(2000)))
    wrong = "curriculum=[{metric: m, file: mine.txt, from: 1, to: 2, over: 3 steps}]"
    said = space.run("analyze", "a.yaml", "run.dir=runs/n", wrong, expect=2).stderr
    samples = int(said.split("each of the ")[1].split()[0])
    values = [i * 7919 % 997 for i in range(samples)]
    space.write("mine.txt", "\n".join(map(str, values)))
    mine = "curriculum=[{metric: m, file: mine.txt, unit: percentile, from: 30, to: 100, over: 8 steps}]"
    space.train("a", "run.dir=runs/mine", "train.steps=4", mine)
    space.write("mine.txt", "\n".join(map(str, reversed(values))))
    said = space.run("train", "a.yaml", "run.dir=runs/mine", "train.steps=8", mine, expect=2)
    assert "curriculum: expected the difficulties that the run started with, got different ones" in said.stderr, said.stderr
    space.write("mine.txt", "\n".join(map(str, values)))
    space.train("a", "run.dir=runs/mine", "train.steps=8", mine)

    # The same values in another file are accepted. Other changes are reported key by key.
    (space / "mine.txt").rename(space / "moved.txt")
    moved = mine.replace("mine.txt", "moved.txt")
    said = space.run("train", "a.yaml", "run.dir=runs/mine", "train.steps=9", moved.replace("from: 30", "from: 40"), expect=2)
    assert "started with curriculum[0].from 30; it cannot be resumed with curriculum[0].from 40; set it back" in said.stderr, said.stderr
    said = space.train("a", "run.dir=runs/mine", "train.steps=9", moved).stderr
    assert "resuming with curriculum[0].file changed from mine.txt to moved.txt" in said and "step 9/9" in said, said

    # A model of another tokenizer, or of another objective.
    space.train("a", "run.dir=runs/other", "data.tokenizer={train: bpe, vocab: 400}", "train.steps=2")
    said = space.run("analyze", "a.yaml", "run.dir=runs/z", "--metric", "loss", "--checkpoint", "runs/other", expect=2)
    assert "metric loss: expected a model with the tokenizer of the run" in said.stderr, said.stderr
    space.yaml("b", "bert", steps=3, objective="masked")
    space.train("b")
    said = space.run("analyze", "a.yaml", "run.dir=runs/z", "--metric", "loss", "--checkpoint", "runs/b", expect=2)
    assert "expected a model that predicts the next token, got bert" in said.stderr, said.stderr
    masked = space.run("--json", "analyze", "b.yaml", "--metric", "loss", "--checkpoint", "runs/b").json["metrics"]["loss"]
    assert 1 < masked["mean"] < 7, masked
    for more in ("mask_fraction: 0.4", "whole_words: true"):
        other = space.run("--json", "analyze", "b.yaml", f"objective={{kind: masked, {more}}}", "--metric", "loss",
                          "--checkpoint", "runs/b").json["metrics"]["loss"]
        assert other["mean"] != masked["mean"] and other["file"] != masked["file"], (more, other)
    said = space.run("analyze", "a.yaml", "run.dir=runs/z", "--metric", "loss", "--checkpoint", "runs/nothing", expect=2)
    assert "runs/nothing" in said.stderr and "no such folder" in said.stderr, said.stderr
    assert "tokenized" not in said.stderr, said.stderr


def forecasts(space):
    """The memory of shorter steps is reported before training starts, and is part of the plan."""
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


def every_step_fits(space):
    """The smallest accepted budget is enough for all steps: many short sequences that drop no tokens at first, long ones that
    drop nearly all tokens, and validations, which drop none."""
    space.yaml("a", steps=4, model="{arch: gpt2, layers: 6, hidden: 64, heads: 2, ffn: 1024, context: 256}", data="{train: text.txt, "
               "tokenizer: {train: bpe, vocab: 300}, sequence: 256, valid_fraction: 0.3}")
    space.write("text.txt", (space / "text.txt").read_text() * 6)
    short_first = "curriculum=[{metric: length, apply: reshape, from: 16, to: 256, step: 16, over: 3 steps}]"
    for name, more in (("short", [short_first]), ("again", [short_first, "memory.recompute=full"]),
                       ("validation", ["memory.recompute=full"])):
        layers = "[0, 1, 2, 3, 4, 5]" if name == "validation" else "middle"
        settings = [f"run.dir=runs/{name}", "train.batch=32", "train.micro_batch=32", "train.eval_every=2",
                    f"token_dropping={{from: 16, to: 16, over: 1 steps, layers: {layers}}}", *more]
        refused = space.run("train", "a.yaml", *settings, "memory.ram=70MiB", expect=2).stderr
        least = float(re.search(r"at least ([0-9.]+) MiB", refused)[1])
        space.run("train", "a.yaml", *settings, f"memory.ram={least + 4:.0f}MiB")


def short_sequences_fit(space):
    """Many short sequences have more targets than few long ones, because each has at least one. They also have more rows of
    experts, because experts take at least one row of every group."""
    space.yaml("masked", arch="bert", steps=2, model="{arch: bert, layers: 1, hidden: 64, heads: 2, ffn: 64, context: 64, vocab: 30000}",
               data="{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 64}")
    space.yaml("sparse", steps=2, model="{arch: llama, layers: 1, hidden: 32, heads: 2, context: 128, experts: {count: 8, top_k: 2, "
               "capacity: 0.25, ffn: 512}}", data="{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 128}")
    for name, batch, longest in (("masked", 8, 64), ("sparse", 32, 128)):
        settings = [f"train.batch={batch}", f"train.micro_batch={batch}", "train.eval_every=0", "memory.recompute=full",
                    f"curriculum=[{{metric: length, apply: reshape, from: 1, to: {longest}, step: 1, over: 1000 steps}}]"]
        refused = space.run("train", f"{name}.yaml", *settings, "memory.ram=70MiB", expect=2).stderr
        least = float(re.search(r"at least ([0-9.]+) MiB", refused)[1])
        space.run("train", f"{name}.yaml", *settings, f"memory.ram={least + 5:.0f}MiB")


def ends(space):
    """A run that ends before its curriculum says so. Measured times are compared with steps of the same size. Repeated after
    its end, the run shows its losses. A refused run leaves the settings in the run directory unchanged."""
    space.yaml("a", steps=6, curriculum="[{metric: length, apply: truncate, from: 8, to: 32, step: 8, over: 12 steps}, "
               "{metric: mine, file: mine.txt, unit: percentile, from: 50, to: 100, over: 3 steps}]")
    space.run("analyze", "a.yaml", "--metric", "rarity", "curriculum=null")
    samples = len(values_in(space / "runs/a/analysis/rarity.metric"))
    space.write("mine.txt", "\n".join(map(str, range(samples))))
    said = space.train("a").stderr
    assert "the run ends before curriculum[0] reaches 32: the last step starts after 5 of 12 steps, with the value 16" in said, said
    summary = json.loads((space / "runs/a/summary.json").read_text())
    assert summary["predicted"]["tokens_per_step"] == 4 * 16 and summary["predicted"]["step_s"] > 0, summary
    again = space.run("--json", "train", "a.yaml").json
    assert again["loss"] == summary["loss"] > 0 and again["valid_loss"] == summary["valid_loss"] > 0, again
    before = (space / "runs/a/config.yaml").read_text()
    space.write("mine.txt", "\n".join(map(str, reversed(range(samples)))))
    said = space.run("train", "a.yaml", "train.steps=8", expect=2).stderr
    assert "the difficulties that the run started with" in said, said
    assert (space / "runs/a/config.yaml").read_text() == before


def limits_are_told_apart(space):
    """Two entries with the same metric are both in the metrics. A filter that admits nothing is named."""
    space.yaml("a", steps=4, curriculum="[{metric: length, apply: truncate, from: 8, to: 32, step: 8, over: 3 steps}, "
               "{metric: length, from: 40, to: 64, over: 3 steps}, "
               "{metric: rarity, unit: percentile, from: 50, to: 100, over: 3 steps}]")
    space.train("a")
    row = metrics(space / "runs/a")[0]
    assert row["difficulty"] == {"length": 8, "length filter": 40, "rarity": 50}, row
    assert row["layer_tokens"] == row["tokens"], row
    said = space.run("train", "a.yaml", "run.dir=runs/x",
                     "curriculum=[{metric: rarity, unit: percentile, from: 10, to: 100, over: 3 steps}, "
                     "{metric: compression, from: 0.01, to: 1, over: 3 steps}]", expect=2)
    assert "(compression, from: 0.01)" in said.stderr and "the easiest has compression" in said.stderr, said.stderr


def samples_never_trained_on(space):
    """When a run starts, it counts the samples that stay above a limit until the end."""
    space.yaml("a", steps=2)
    space.run("analyze", "a.yaml", "--metric", "rarity")
    rarity = sorted(values_in(space / "runs/a/analysis/rarity.metric"))
    highest = rarity[len(rarity) * 2 // 3]
    rule = f"{{metric: rarity, from: {rarity[20]}, to: {highest}, over: 3 steps}}"
    said = space.train("a", f"curriculum=[{rule}]").stderr
    above = sum(value > highest for value in rarity)
    assert above > 100 and f"{above} of {len(rarity)} training samples stay above a limit of the curriculum" in said, said
    said = space.train("a", "run.dir=runs/b", f"curriculum=[{rule.replace(str(highest), str(rarity[-1] + 1))}]").stderr
    assert "never trains on them" not in said, said


def interrupted_analysis(space):
    """An analysis that was stopped by a signal or killed resumes, and writes the same file."""
    space.yaml("a")
    space.write("big.txt", (space / "text.txt").read_text() * 60)
    settings = ("a.yaml", "data.train=big.txt", "data.cache=tokens", "--metric", "compression")
    space.run("analyze", *settings, "run.dir=runs/whole")
    name, said = "analysis/compression.metric", []
    expected = (space / "runs/whole" / name).read_bytes()
    samples = len(values_in(space / "runs/whole" / name))
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        for attempt in range(10):  # until one is in time
            run = f"runs/{number.name}{attempt}"
            part = space / run / (name + ".part")
            process = space.start("analyze", *settings, f"run.dir={run}")
            wait_for(lambda: process.poll() is not None or (part.exists() and part.stat().st_size > 20000), "values")
            process.send_signal(number)
            if process.wait() == code:
                break
        assert process.returncode == code and part.exists(), (number, process.returncode)
        went_on = space.run("analyze", *settings, f"run.dir={run}").stderr
        after = re.search(r"compression: resuming after (\d+) of (\d+) samples", went_on)
        assert after and 0 < int(after[1]) < int(after[2]) == samples, went_on
        assert (space / run / name).read_bytes() == expected and not part.exists(), number
        said.append(f"{number.name} after {after[1]}")
    printed = (space / "started.txt").read_text()
    stopped = re.search(r"stopped after (\d+) of (\d+) samples; run the same command again to resume", printed)
    assert stopped and f"SIGINT after {stopped[1]}" == said[0], (stopped, said)
    return f"{', '.join(said)} of {samples} samples"


def difficulties_of_ranks(space):
    """Hosts that do not see the run directory get the values of rank 0. Ranks with different values do not train together."""
    mpirun = shutil.which("mpirun")
    if not mpirun:
        return "skipped: no mpirun"
    space.yaml("a", steps=4)
    for host in ("first", "second"):  # folders stand for hosts
        shutil.copytree(space.root, space / host, ignore=shutil.ignore_patterns("first", "cache"))
    environment = dict(space.environment, MEGALITH_PRETEND_RANKS_PER_HOST="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def train(curriculum):
        parts = [["-n", "1", "--wdir", str(space / host), *space.command("train", "a.yaml", f"curriculum=[{curriculum}]")]
                 for host in ("first", "second")]
        return subprocess.run([mpirun, "--oversubscribe", *parts[0], ":", *parts[1]], env=environment, capture_output=True,
                              text=True, timeout=120, cwd=space.root)

    space.train("a", "run.dir=first/model", "train.steps=3")
    filtered = "{metric: loss, checkpoint: model, unit: percentile, from: 30, to: 100, over: 8 steps}"
    done = train(filtered)
    assert done.returncode == 0 and len(metrics(space / "first/runs/a")) == 4, done.stderr
    names = [sorted(p.name for p in (space / host / "runs/a/analysis").iterdir()) for host in ("first", "second")]
    assert names[0] == names[1] and len(names[0]) == 2, names

    samples = len(values_in(next((space / "first/runs/a/analysis").glob("loss-*.metric"))))
    for host, step in (("first", 1), ("second", -1)):
        shutil.rmtree(space / host / "runs")
        space.write(f"{host}/mine.txt", "\n".join(str(i * step) for i in range(samples)))
    done = train("{metric: m, file: mine.txt, unit: percentile, from: 30, to: 100, over: 8 steps}")
    assert done.returncode == 2, done.stderr
    assert "curriculum: expected the same difficulties on all ranks, got different ones on rank 1 and rank 0" in done.stderr


run_cases([lengths_and_rates, resumes_exactly, every_objective, values_of_tokens, analysis, loss_of_a_model, forecasts,
           every_step_fits, short_sequences_fit, ends, limits_are_told_apart, samples_never_trained_on, interrupted_analysis, difficulties_of_ranks])

"""Models in and out: folders of transformers pass through `import`, `export` and training. Folders whose files contradict
each other are refused.  models.py BINARY"""

import json
import shutil
import struct
import subprocess
import sys

from support import metrics, run_cases, text

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2MoeConfig,
    Qwen2MoeForCausalLM,
)

torch.set_num_threads(1)

SIZES = dict(
    vocab_size=300,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=32,
)
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=500000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)


def kin():
    yield "mistral", MistralForCausalLM(MistralConfig(sliding_window=None, head_dim=16, **SIZES))
    yield "window", MistralForCausalLM(MistralConfig(sliding_window=32, **SIZES))
    yield "qwen2", Qwen2ForCausalLM(Qwen2Config(tie_word_embeddings=True, **SIZES))
    yield "biases", LlamaForCausalLM(LlamaConfig(attention_bias=True, **SIZES))
    yield "llama3", LlamaForCausalLM(LlamaConfig(head_dim=4, rope_parameters=LLAMA3, **SIZES))
    yield "mixtral", MixtralForCausalLM(MixtralConfig(num_local_experts=4, **SIZES))
    yield "qwen2-moe", Qwen2MoeForCausalLM(Qwen2MoeConfig(
        num_experts=4, num_experts_per_tok=2, moe_intermediate_size=20, shared_expert_intermediate_size=28,
        mlp_only_layers=[0], output_router_logits=True, **SIZES))


def weights(folder):
    out = {}
    for path in sorted(folder.glob("*.safetensors")):
        out.update(load_file(path))
    return out


def assert_same(got, expected, what):
    assert got.keys() == expected.keys(), f"{what}: {sorted(got.keys() ^ expected.keys())[:4]}"
    for name in expected:
        assert got[name].dtype == expected[name].dtype and torch.equal(got[name], expected[name]), f"{what}: {name}"


def theirs_come_back_as_they_were(space):
    """After import and export, transformers reads the same class, the same logits and the same bits."""
    ids = torch.randint(0, 300, (2, 20), generator=torch.Generator().manual_seed(1))
    said = []
    for name, model in kin():
        model.save_pretrained(space / name)
        space.run("import", name, "--out", f"{name}-in")
        space.run("export", f"{name}-in", "--out", f"{name}-out")
        for folder in (f"{name}-in", f"{name}-out"):
            assert_same(weights(space / folder), weights(space / name), folder)
        back = opened(space / f"{name}-out", AutoModelForCausalLM)
        assert type(back) is type(model), f"{name} comes back as {type(back).__name__}"
        with torch.no_grad():
            assert torch.equal(back(ids).logits, model(ids).logits), f"{name}: other logits"
        for key in ("head_dim", "sliding_window", "rope_parameters", "attention_bias", "tie_word_embeddings",
                    "num_experts_per_tok", "output_router_logits", "mlp_only_layers", "norm_topk_prob"):
            was, now = getattr(model.config, key, None), getattr(back.config, key, None)
            assert was == now, f"{name}: {key} was {was}, is {now}"
        said.append(type(back).__name__)
    return ", ".join(said)


def opened(folder, auto=AutoModelForMaskedLM):
    """Loads the model in a folder. The folder must contain exactly the tensors that the class expects."""
    model, info = auto.from_pretrained(folder, output_loading_info=True)
    wrong = {kind: names for kind, names in info.items() if names}
    assert not wrong, f"{folder}: {wrong}"
    return model


def berts_are_whole(space):
    """Tied and untied, from transformers and from us: no tensor is missing or newly initialised, and all logits are equal."""
    ids = torch.randint(0, 300, (2, 20), generator=torch.Generator().manual_seed(1))
    for name, tied in (("tied", True), ("untied", False)):
        torch.manual_seed(1)
        model = BertForMaskedLM(BertConfig(
            vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=32, tie_word_embeddings=tied)).eval()
        torch.nn.init.normal_(model.cls.predictions.bias)  # untied: nothing is computed with it
        torch.nn.init.normal_(model.cls.predictions.decoder.bias)
        model.save_pretrained(space / name)
        space.run("import", name, "--out", f"{name}-in")
        space.run("export", f"{name}-in", "--out", f"{name}-out")
        for folder in (f"{name}-in", f"{name}-out"):
            assert_same(weights(space / folder), weights(space / name), folder)
            with torch.no_grad():
                assert torch.equal(opened(space / folder)(ids).logits, model(ids).logits), f"{folder}: other logits"
        for run, shape in ((f"{name}-on", f"{{from: {name}}}"),
                           (f"{name}-new", f"{{arch: bert, layers: 1, hidden: 32, heads: 2, context: 32, tied: {str(tied).lower()}}}")):
            space.yaml(run, "bert", model=shape, steps=4, every=2)
            space.train(run)
            checkpoint = space / f"runs/{run}/checkpoints/step-00000004"
            trained = opened(checkpoint).eval()
            head = trained.cls.predictions
            assert head.decoder.bias.abs().max() > 0 and torch.equal(head.bias, head.decoder.bias), run
            space.run("export", checkpoint, "--out", f"{run}-out")
            assert_same(weights(space / f"{run}-out"), load_file(checkpoint / "model.safetensors"), run)
            with torch.no_grad():
                assert torch.equal(opened(space / f"{run}-out").eval()(ids).logits, trained(ids).logits), run
        space.train(f"{name}-new", "train.steps=6")  # loads its checkpoint


def stored_types_and_shards(space):
    model = next(m for n, m in kin() if n == "qwen2")
    for dtype, word in ((torch.bfloat16, "bf16"), (torch.float16, "fp16")):
        model.to(dtype).save_pretrained(space / word, max_shard_size="15KB")
        assert len(list((space / word).glob("model-*.safetensors"))) > 3
        expected = weights(space / word)
        space.run("import", word, "--out", f"{word}-stored")
        assert_same(weights(space / f"{word}-stored"), expected, word)
        assert json.loads((space / f"{word}-stored/config.json").read_text())["dtype"] == str(dtype)[6:]
        space.run("import", word, "--out", f"{word}-wide", "--dtype", "fp32")
        assert_same(weights(space / f"{word}-wide"), {k: v.float() for k, v in expected.items()}, f"{word} as fp32")
        space.run("export", f"{word}-wide", "--out", f"{word}-narrow", "--dtype", word)
        assert_same(weights(space / f"{word}-narrow"), expected, f"{word} after fp32")


def kin_can_be_trained(space):
    """We train weights of transformers, and transformers reads the checkpoint."""
    for name, model in kin():
        if name in ("mistral", "qwen2", "biases", "mixtral", "qwen2-moe"):
            model.save_pretrained(space / name)
            space.yaml(f"on-{name}", model=f"{{from: {name}}}", steps=6, every=0)
            space.train(f"on-{name}")
            losses = [m["loss"] for m in metrics(space / f"runs/on-{name}")]
            assert losses[-1] < losses[0], f"{name}: {losses}"
            back = AutoModelForCausalLM.from_pretrained(space / f"runs/on-{name}/checkpoints/step-00000006")
            assert type(back) is type(model)
    # From scratch, by keys of our own.
    shape = "{arch: llama, layers: 1, hidden: 24, heads: 4, kv_heads: 2, head_dim: 8, qkv_bias: true, ffn: 32, context: 32}"
    space.yaml("scratch", model=shape, steps=3, every=0)
    space.train("scratch")
    back = AutoModelForCausalLM.from_pretrained(space / "runs/scratch/checkpoints/step-00000003")
    assert type(back).__name__ == "Qwen2ForCausalLM" and back.config.head_dim == 8


def experts_from_scratch_are_theirs(space):
    """Routers that transformers has give the same results there. It refuses models with other routers."""
    ids = torch.randint(0, 300, (2, 20), generator=torch.Generator().manual_seed(1))
    shape = "{{arch: llama, layers: 2, hidden: 24, heads: 4, kv_heads: 2, ffn: 32, context: 32, experts: {{count: 4, {}}}}}"
    for i, (experts, wanted) in enumerate((
        ("router: softmax", "MixtralForCausalLM"),
        ("router: gshard, capacity: 1.25", "MixtralForCausalLM"),
        ("router: noisy", "MixtralForCausalLM"),
        ("router: switch, capacity: 1.25, jitter: 0.01", "Qwen2MoeForCausalLM"),
        ("every: 2, ffn: 16", "Qwen2MoeForCausalLM"),
        ("shared: 40, ffn: 16", "Qwen2MoeForCausalLM"),
        ("router: sigmoid", None),
        ("share_layers: true", None),
    )):
        space.yaml(f"sparse-{i}", model=shape.format(experts), steps=3, every=0)
        space.train(f"sparse-{i}")
        rows = metrics(space / f"runs/sparse-{i}")
        assert 1 <= rows[-1]["experts"]["load"] <= 4, rows[-1]
        folder = space / f"runs/sparse-{i}/checkpoints/step-00000003"
        if wanted is None:
            try:
                AutoModelForCausalLM.from_pretrained(folder)
            except (ValueError, KeyError):
                continue
            raise AssertionError("transformers opens what it cannot compute")
        back = AutoModelForCausalLM.from_pretrained(folder)
        assert type(back).__name__ == wanted, f"{experts}: {type(back).__name__}"
        with torch.no_grad():
            assert torch.isfinite(back(ids).logits).all()


def dense_models_are_upcycled(space):
    """A model with identical experts computes the same as the dense model."""
    ids = torch.randint(0, 300, (2, 20), generator=torch.Generator().manual_seed(1))
    for name, model in kin():
        if name not in ("window", "qwen2"):
            continue
        model.save_pretrained(space / name)
        space.run("import", name, "--out", f"{name}-sparse", "--upcycle", "4")
        back = AutoModelForCausalLM.from_pretrained(space / f"{name}-sparse")
        assert type(back).__name__ == ("MixtralForCausalLM" if name == "window" else "Qwen2MoeForCausalLM")
        with torch.no_grad():
            worst = (back(ids).logits - model(ids).logits).abs().max().item()
        assert worst < 1e-5, f"{name}: logits differ by {worst}"
        space.yaml(f"up-{name}", model=f"{{from: {name}-sparse}}", steps=4, every=0)
        space.train(f"up-{name}")
        losses = [m["loss"] for m in metrics(space / f"runs/up-{name}")]
        assert losses[-1] < losses[0], losses
    refused = [
        (("--upcycle", "2", "--top-k", "3"), "--top-k"),
        (("--top-k", "3"), "--upcycle"),
    ]
    for arguments, says in refused:
        done = subprocess.run([sys.argv[1], "import", space / "qwen2", "--out", space / "no", *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and says in done.stderr, done.stderr
    done = subprocess.run([sys.argv[1], "import", space / "qwen2-sparse", "--out", space / "no", "--upcycle", "2"], capture_output=True, text=True)
    assert done.returncode == 2 and "a dense model" in done.stderr, done.stderr


def a_missing_head_can_be_started(space):
    """The head begins like that of a fresh model, bit by bit, on any layout. The folder gives all other tensors."""
    sizes = dict(vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                 max_position_embeddings=32)
    torch.manual_seed(1)
    BertModel(BertConfig(**sizes), add_pooling_layer=False).save_pretrained(space / "encoder")
    BertForSequenceClassification(BertConfig(**sizes)).save_pretrained(space / "classifier")
    BertForMaskedLM(BertConfig(**sizes)).save_pretrained(space / "whole")
    LlamaModel(LlamaConfig(**SIZES)).save_pretrained(space / "base")
    shapes = {"bert": "{arch: bert, layers: 2, hidden: 32, heads: 4, ffn: 48, context: 32, vocab: 300}",
              "llama": "{arch: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn: 48, context: 32, vocab: 300}"}
    # A step that moves no weight: the checkpoint has what the run began with.
    still = "{steps: 1, batch: 4, micro_batch: 2, optimizer: sgd, lr: 1.0e-30, min_lr: 0, eval_every: 0, threads: 1}"

    def begun(run):
        return load_file(space / f"runs/{run}/checkpoints/step-00000001/model.safetensors")

    masked, causal = "masked-language head", "language-model head"
    for name, arch, head, layout in (("encoder", "bert", masked, "parallel.tensor=2"), ("base", "llama", causal, "parallel.tensor=2"),
                                     ("classifier", "bert", masked, "parallel.pipeline=2"), ("whole", "bert", masked, "parallel.zero=3")):
        space.yaml(f"fresh-{arch}", arch, model=shapes[arch], train=still, every=1)
        space.train(f"fresh-{arch}", "run.seed=5", f"run.dir=runs/fresh-{name}")
        space.yaml(name, arch, model=f"{{from: {name}}}", train=still, every=1)
        if name != "whole":
            for words in ((), ("--dry-run",)):
                said = space.train(name, *words, expect=2).stderr
                for part in (f"{name}.yaml:1: model.from: expected the ", f"got {name}: ",
                             f"; the folder has no {head}; set `model.new_head: true` to start one\n"):
                    assert part in said, said
            said = space.run("generate" if arch == "llama" else "export", name, *(["--out", "no"] if arch == "bert" else []),
                             expect=2).stderr
            assert f"the folder has no {head}; train from it with `model.new_head: true`" in said, said
        said = space.train(name, "model.new_head=true", "run.seed=5").stderr
        assert f"starting a new {head}" in said, said
        assert (f"the head in {name} is not used" in said) == (name in ("classifier", "whole")), said
        got, fresh, stored = begun(name), begun(f"fresh-{name}"), weights(space / name)
        heads = [n for n in got if n.startswith(("cls.", "lm_head."))]
        assert len(heads) == (5 if arch == "bert" else 1) and got.keys() == fresh.keys(), heads
        for tensor in got:
            bare = tensor if tensor in stored else tensor.split(".", 1)[1]
            expected = fresh[tensor] if tensor in heads else stored[bare]
            assert torch.allclose(got[tensor], expected, rtol=0, atol=1e-25), tensor
            if tensor in heads and expected.ndim == 2:
                assert torch.equal(got[tensor], expected) and expected.std() > 0.01, tensor
        space.train(name, "model.new_head=true", "run.seed=5", f"run.dir=runs/{name}-two", "--ranks", "2", layout)
        for tensor, value in begun(f"{name}-two").items():
            assert torch.allclose(value, got[tensor], rtol=0, atol=1e-25), (layout, tensor)
        said = space.train(name, "model.new_head=true", "run.seed=5", "train.steps=2").stderr
        assert "resuming at step 1" in said and "starting a new" not in said, said
    # Large enough that blocks go to disk.
    LlamaModel(LlamaConfig(**{**SIZES, "hidden_size": 320, "intermediate_size": 896, "num_hidden_layers": 6})).save_pretrained(
        space / "large")
    space.yaml("large", "llama", model="{from: large, new_head: true}", train=still, every=1)
    space.train("large")
    tight = ["run.dir=runs/disk", "memory.spill=spill", "memory.ram=1MiB"]
    tight[2] = f"memory.ram={int(space.run('--json', 'memory', 'large.yaml', *tight, expect=2).json['most_bytes'] * 1.02)}"
    said = space.train("large", *tight).stderr
    assert "of state in spill" in said, said
    for tensor, value in begun("disk").items():
        assert torch.allclose(value, begun("large")[tensor], rtol=0, atol=1e-25), (tensor, "spilled")
    LlamaForCausalLM(LlamaConfig(tie_word_embeddings=True, **SIZES)).save_pretrained(space / "tied")
    space.yaml("tied", "llama", model="{from: tied, new_head: true}")
    said = space.train("tied", expect=2).stderr
    assert "tied.yaml:1: model.new_head: expected false for a language-model head that is tied" in said, said


def a_window_bounds_the_sequence(space):
    model = MistralForCausalLM(MistralConfig(sliding_window=16, **SIZES))
    model.save_pretrained(space / "model")
    space.yaml("long", model="{from: model}", steps=2)
    refused = space.train("long", expect=2).stderr
    assert "data.sequence" in refused and "sliding_window (16)" in refused, refused
    space.train("long", "data.sequence=16")
    config = json.loads((space / "runs/long/checkpoints/step-00000002/config.json").read_text())
    assert config["sliding_window"] == 16 and config["max_position_embeddings"] == 32
    said = space.train("long", "data.sequence=16", "run.dir=runs/again").stderr
    assert "sliding_window is 16, shorter than its context of 32: " in said and "so data.sequence can be at most 16" in said, said


def what_a_window_shortens_is_said(space):
    """Sliding windows are not supported: every result that differs from transformers comes with a warning."""
    folder = space / "runs/window/checkpoints/step-00000002"
    MistralForCausalLM(MistralConfig(sliding_window=16, **SIZES)).save_pretrained(space / "model")
    space.yaml("window", model="{from: model}", steps=2, data="{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 16}")
    space.train("window")
    short = " ".join(text(400).split()[:300])
    space.write("short.txt", short)
    said = space.run("eval", folder, "--data", "short.txt")
    assert "the model's sliding_window (16) is shorter than its context (32)" in said.stderr, said.stderr
    quiet = space.run("eval", folder, "--data", "short.txt", "--window", 16)
    assert quiet.stdout == said.stdout and "sliding_window" not in quiet.stderr, quiet.stderr
    refused = space.run("eval", folder, "--data", "short.txt", "--window", 17, expect=2).stderr
    assert "--window: expected at most the model's sliding_window of 16, got 17" in refused, refused
    space.write("long.jsonl", json.dumps({"context": short[:300], "choices": ["ba", "de"], "answer": 0}) + "\n")
    refused = space.run("eval", folder, "--choices", "long.jsonl", expect=2).stderr
    assert "long.jsonl:1: context: expected at most the model's sliding_window of 16 tokens" in refused, refused
    refused = space.run("generate", folder, "--prompt", short[:300], expect=2).stderr
    assert "--prompt: expected at most the model's sliding_window of 16 tokens" in refused, refused
    said = space.run("generate", folder, "--prompt", "ba", "--tokens", 40).stderr
    assert "longer than the model's sliding_window of 16 tokens: generation continues from the last 8" in said, said
    # Within it, the text is transformers'.
    said = space.run("generate", folder, "--prompt", "ba", "--tokens", 8, "--temperature", 0)
    assert "sliding_window" not in said.stderr, said.stderr
    # A window that no sequence outgrows shortens nothing.
    MistralForCausalLM(MistralConfig(sliding_window=32, **SIZES)).save_pretrained(space / "wide")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (folder / name).exists():
            shutil.copy(folder / name, space / "wide" / name)
    assert "sliding_window" not in space.run("eval", "wide", "--data", "short.txt").stderr


def header_of(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def write_with_header(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def liars_are_refused(space):
    """The program prints one line that names the fault, and exits with code 2."""
    model = next(m for n, m in kin() if n == "qwen2")
    model.save_pretrained(space / "good")
    bias, norm = "model.layers.1.self_attn.k_proj.bias", "model.norm.weight"

    def broken(name, change):
        shutil.copytree(space / "good", space / name)
        change(space / name / "model.safetensors")
        return name

    def tensors(change):
        def apply(path):
            content = load_file(path)
            change(content)
            save_file(content, path)

        return apply

    def header(change):
        def apply(path):
            head, data = header_of(path)
            change(head)
            write_with_header(path, head, data)

        return apply

    def offsets(begin, end):
        return header(lambda h: h[bias].update(data_offsets=[begin, end]))

    cases = [
        ("misshapen", tensors(lambda t: t.update({bias: torch.zeros(17)})), [bias, "[17]", "[16]"]),
        ("missing", tensors(lambda t: t.pop(bias)), ["no tensor named", bias]),
        ("extra", tensors(lambda t: t.update({"model.layers.9.x": torch.zeros(2)})), ["model.layers.9.x"]),
        ("integers", tensors(lambda t: t.update({norm: torch.ones(32, dtype=torch.int64)})), [norm, "I64"]),
        ("beyond", offsets(10**9, 10**9 + 64), ["a gap before this tensor"]),
        ("overlapping", offsets(0, 64), ["overlaps"]),
        ("backwards", offsets(64, 0), [bias]),
        ("huge", offsets(2**63 - 64, 2**63), ["2^63"]),
        ("wide", header(lambda h: h[bias].update(shape=[2**62, 2**62])), [bias, "2^63"]),
        ("negative", header(lambda h: h[bias].update(shape=[-1])), [bias]),
        ("long header", lambda p: p.write_bytes(struct.pack("<Q", 2**63) + p.read_bytes()[8:]), ["header"]),
        ("no json", lambda p: p.write_bytes(struct.pack("<Q", 8) + b"{nonsens" + bytes(64)), ["JSON"]),
        ("short", lambda p: p.write_bytes(p.read_bytes()[:-1]), ["truncated"]),
        ("empty", lambda p: p.write_bytes(b""), ["8 bytes"]),
    ]
    for name, change, says in cases:
        folder = broken(name.replace(" ", "-"), change)
        commands = [("import", folder, "--out", "out")]
        if name in ("missing", "huge"):
            commands += [("export", folder, "--out", "out"), ("generate", folder)]
        for command in commands:
            done = space.run(*command, expect=2)
            lines = done.stderr.strip().splitlines()
            assert len(lines) == 1, f"{name}: {lines}"
            for words in says:
                assert words in lines[0], f"{name}: {words!r} not in {lines[0]!r}"
            assert not (space / "out").exists(), f"{name} left something behind"
    old = space / "old"
    shutil.copytree(space / "good", old)
    (old / "model.safetensors").rename(old / "pytorch_model.bin")
    said = space.run("import", "old", "--out", "out", expect=2).stderr
    assert "pytorch_model.bin" in said and "save_pretrained" in said, said
    index = space / "index"
    model.save_pretrained(index, max_shard_size="15KB")
    part = sorted(index.glob("model-*.safetensors"))[1]
    part.unlink()
    said = space.run("import", "index", "--out", "out", expect=2).stderr
    assert part.name in said, said
    (index / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../good/model.safetensors"}}')
    said = space.run("import", "index", "--out", "out", expect=2).stderr
    assert "weight_map" in said and len(said.strip().splitlines()) == 1, said
    return f"{len(cases)} kinds"


def damage_is_seen_where_there_is_a_manifest(space):
    space.yaml("run", steps=3)
    space.train("run")
    folder = space / "runs/run/checkpoints/step-00000003"
    space.run("generate", folder, "--tokens", 2)
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    for command in (("generate", folder), ("eval", folder, "--data", "text.txt"), ("export", folder, "--out", "out")):
        said = space.run(*command, expect=2).stderr
        assert "model.safetensors" in said and "manifest.json" in said, said
    (folder / "manifest.json").unlink()  # then it is a folder like any other
    space.run("generate", folder, "--tokens", 2)


def peak_memory(space, *arguments):
    """Returns the peak resident memory of a command in MB."""
    # Uses a small process in between, because the kernel's value of a child begins with that of its parent.
    watch = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", watch, *space.command(*arguments)],
        cwd=space.root, env=space.environment, check=True, capture_output=True, text=True,
    )
    return int(done.stdout) / 1024


def memory_does_not_grow_with_the_model(space):
    """120 MB of weights pass through `import` and `export` in the memory that 1 MB needs."""
    for name, size in (("small", 64), ("large", 1024)):
        config = GPT2Config(vocab_size=8000, n_positions=64, n_embd=size, n_layer=1 + size // 256, n_head=4)
        model = GPT2LMHeadModel(config).to(torch.bfloat16)
        model.save_pretrained(space / name, max_shard_size="30MB")
    total = sum(p.stat().st_size for p in (space / "large").glob("*.safetensors")) / 2**20
    assert total > 100, total
    grown = []
    for command in ("import", "export"):
        small = peak_memory(space, command, "small", "--out", f"small-{command}", "--dtype", "fp32")
        large = peak_memory(space, command, "large", "--out", f"large-{command}", "--dtype", "fp32")
        grown.append(large - small)
        assert large - small < 40, f"{command} of {total:.0f} MB takes {large:.0f} MB, of a small model {small:.0f} MB"
    return f"{total:.0f} MB in bf16: {small:.0f} and {large:.0f} MB, {grown[0]:+.0f} and {grown[1]:+.0f} MB"


run_cases(
    [
        theirs_come_back_as_they_were,
        berts_are_whole,
        stored_types_and_shards,
        kin_can_be_trained,
        experts_from_scratch_are_theirs,
        dense_models_are_upcycled,
        a_missing_head_can_be_started,
        a_window_bounds_the_sequence,
        what_a_window_shortens_is_said,
        liars_are_refused,
        damage_is_seen_where_there_is_a_manifest,
        memory_does_not_grow_with_the_model,
    ]
)

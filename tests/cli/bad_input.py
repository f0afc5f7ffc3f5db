"""What a user can get wrong: each is one line on stderr that says where, what was expected, what came and
what to do, and an exit code that says whose fault it is.  bad_input.py BINARY"""

import gzip
import json
import os
import subprocess
import sys

from support import lines_of, run_cases, wait_for

SHOW = "--show" in sys.argv  # prints every message, to be read aloud


def refused(space, *arguments, says, code=2, quiet=True):
    """The command is refused with one line that holds all of `says`. `quiet`: nothing else is printed
    before it."""
    result = space.run(*arguments, expect=None)
    lines = result.stderr.splitlines()
    what = f"{' '.join(map(str, arguments))}\n{result.stderr}"
    assert result.code == code, f"exit code {result.code}, expected {code}: {what}"
    assert sum(line.startswith("megalith: ") for line in lines) == 1 and lines[-1].startswith(
        "megalith: "
    ), f"not one line: {what}"
    assert not quiet or len(lines) == 1, f"more than the message: {what}"
    assert result.stdout == "", f"something on stdout: {result.stdout}"
    assert "bug of ours" not in lines[-1] and "terminate called" not in result.stderr, what
    if SHOW:
        print("   ", lines[-1].replace(str(space.root), ""))
    for part in says:
        assert part in lines[-1], f"does not say {part!r}: {what}"
    return lines[-1]


def unreadable_data(space):
    space.yaml("run")
    refused(
        space,
        "train",
        "run.yaml",
        "data.train=absent.txt",
        says=["absent.txt", "expected", "got"],
        quiet=False,
    )
    refused(
        space,
        "train",
        "run.yaml",
        "data.train=[text.txt, 'none-*.jsonl']",
        says=["none-*.jsonl"],
        quiet=False,
    )
    (space / "folder").mkdir()
    refused(space, "train", "run.yaml", "data.train=folder", says=["folder"], quiet=False)
    (space / "broken.txt.gz").write_bytes(gzip.compress(b"some text " * 1000)[:60])
    refused(space, "train", "run.yaml", "data.train=broken.txt.gz", says=["broken.txt.gz"], quiet=False)
    space.write("broken.jsonl", '{"text": "good line"}\n{"text": "bad\n')
    refused(space, "train", "run.yaml", "data.train=broken.jsonl", says=["broken.jsonl:2"], quiet=False)
    space.write("other.jsonl", '{"body": "good line"}\n')
    refused(
        space,
        "train",
        "run.yaml",
        "data.train=other.jsonl",
        says=["other.jsonl:1", "text", "data.text_field"],
        quiet=False,
    )
    (space / "wide.txt").write_bytes("some text ".encode("utf-16") * 500)
    refused(
        space,
        "train",
        "run.yaml",
        "data.train=wide.txt",
        says=["wide.txt", "UTF-8", "UTF-16", "iconv"],
        quiet=False,
    )


def empty_data(space):
    space.yaml("run")
    space.write("empty.txt", "")
    refused(
        space, "train", "run.yaml", "data.train=empty.txt", says=["empty.txt", "expected", "got"], quiet=False
    )
    refused(space, "train", "run.yaml", "data.train=[]", says=["data.train", "expected"])
    space.yaml("none", data="{sequence: 32}")
    refused(space, "train", "none.yaml", says=["data.train", "nothing", "my.txt"])


def too_little_data_for_one_batch(space):
    space.yaml(
        "run", data="{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 32, valid_fraction: 0}"
    )
    space.write("short.txt", "a few words only, by no means a batch of them")
    refused(
        space,
        "train",
        "run.yaml",
        "data.train=short.txt",
        "data.tokenizer.vocab=260",
        says=["short.txt", "train.batch", "expected", "got"],
        quiet=False,
    )


def a_text_with_few_words_is_no_mistake(space):
    """It makes a smaller tokenizer than was asked for; the model takes its size and the run resumes."""
    space.yaml("run", steps=2)
    space.write("few.txt", "ab cd " * 2000)
    space.train("run", "data.train=few.txt")
    assert "resuming at step 2" in space.train("run", "data.train=few.txt", "train.steps=3").stderr


def token_beyond_the_vocabulary(space):
    """Shards of a tokenizer with 400 tokens, a model with 300."""
    space.run("tokenizer", "train", "--vocab", 400, "--out", "tok", "text.txt")
    space.run("tokenize", "--tokenizer", "tok/tokenizer.json", "--out", "tokens/a", "text.txt")
    space.yaml(
        "shards",
        model="{arch: gpt2, layers: 2, hidden: 32, heads: 2, context: 32, vocab: 300}",
        data="{train: tokens/a, sequence: 32}",
    )
    refused(space, "train", "shards.yaml", says=["tokens/a", "300"], quiet=False)
    refused(
        space,
        "train",
        "shards.yaml",
        "data.tokenizer=tok/tokenizer.json",
        says=["model.vocab", "at least the tokenizer's 400 tokens", "300"],
        quiet=False,
    )


def model_shapes(space):
    space.yaml("run")
    refused(
        space,
        "train",
        "run.yaml",
        "model.heads=5",
        says=["model.heads", "divisor of model.hidden (32)", "got 5", "use"],
    )
    space.yaml("preset", model="{preset: gpt2-124}")
    refused(space, "train", "preset.yaml", says=["preset.yaml:1", "model.preset", "gpt2-124m"])
    refused(
        space,
        "train",
        "run.yaml",
        "data.sequence=64",
        says=["data.sequence", "at most model.context (32)", "got 64", "raise model.context"],
    )
    refused(space, "train", "run.yaml", "model.kv_heads=1", says=["model.kv_heads", "gpt2"])
    space.yaml("half", model="{arch: gpt2, layers: 2}")
    refused(space, "train", "half.yaml", says=["model.hidden", "nothing", "model.preset"])
    space.yaml("nothing", model="{layers: 2}")
    refused(space, "train", "nothing.yaml", says=["model", "preset", "arch", "from"])
    space.yaml("bert", arch="bert", objective=None)
    refused(space, "train", "bert.yaml", says=["objective", "masked", "bert", "causal"])
    refused(space, "train", "run.yaml", "objective=masked", says=["objective", "gpt2", "masked"])
    refused(
        space,
        "train",
        "run.yaml",
        "model.vocab=280",
        says=["data.tokenizer.vocab", "at most model.vocab (280)", "got 300"],
    )


def training_settings(space):
    space.yaml("run")
    refused(space, "train", "run.yaml", "train.lr=-1", says=["command line", "train.lr", "above 0", "got -1"])
    refused(
        space,
        "train",
        "run.yaml",
        "train.min_lr=1",
        says=["train.min_lr", "at most train.lr (0.003)", "got 1"],
    )
    refused(
        space,
        "train",
        "run.yaml",
        "train.micro_batch=3",
        says=["train.micro_batch", "divisor of train.batch (4)", "use"],
    )
    refused(space, "train", "run.yaml", "train.warmup=13", says=["train.warmup", "at most train.steps (12)"])
    refused(space, "train", "run.yaml", "train.steps=many", says=["train.steps", "many"])
    space.yaml("both", train="{steps: 3, tokens: 1k}")
    refused(
        space,
        "train",
        "both.yaml",
        says=["both.yaml:3", "either train.steps or train.tokens", "both", "remove one"],
    )
    refused(space, "train", "run.yaml", "train.optimizer=adam", says=["train.optimizer", "adamw", "got adam"])
    refused(space, "train", "run.yaml", "train.momentum=0.5", says=["train.momentum", "sgd"])
    refused(
        space,
        "train",
        "run.yaml",
        "memory.ram=1MiB",
        says=["memory.ram", "at least", "parameters", "got 1.00 MiB"],
        quiet=False,
    )


def experts_of_a_dense_model(space):
    space.yaml("run")
    refused(space, "train", "run.yaml", "--ranks", "2", "parallel.expert=2", says=["parallel.expert", "the model has no experts", "got 2"], quiet=False)


def one_rank_shares_nothing(space):
    space.yaml("run")
    refused(space, "train", "run.yaml", "parallel.expert=2", says=["parallel.expert", "a divisor of parallel.data (1)", "got 2"])
    assert not (space / "runs").exists(), "a refused run left a directory"


def layouts(space):
    space.yaml("run")
    for axis in ("data", "tensor", "pipeline", "context"):
        refused(space, "train", "run.yaml", f"parallel.{axis}=2", says=["parallel", "a layout of 1 rank", f"{axis} 2", "--ranks 2"])
    several = ("train", "run.yaml", "--ranks")
    refused(space, *several, "4", "parallel.tensor=3", says=["parallel", "a layout of 4 ranks", "data 4", "tensor 3 to a copy"], quiet=False)
    refused(space, *several, "3", "train.batch=8", says=["train.batch", "a multiple of parallel.data, 3", "got 8"], quiet=False)
    refused(
        space, *several, "2", "parallel.zero=1", "train.optimizer=adafactor",
        says=["train.optimizer", "parallel.zero", "got adafactor"], quiet=False,
    )
    refused(space, *several, "3", "parallel.tensor=3", "train.batch=6", says=["parallel.tensor", "got 3"], quiet=False)


def experts(space):
    space.yaml("sparse", model="{arch: llama, layers: 2, hidden: 32, heads: 4, context: 32, experts: {count: 4}}")
    several = ("train", "sparse.yaml", "--ranks", "2", "train.batch=8")
    refused(space, *several, "parallel.expert=2", "model.experts.count=5",
            says=["parallel.expert", "a divisor of model.experts.count (5)", "got 2", "use 1 or 5"], quiet=False)
    refused(space, *several, "parallel.expert=2", "parallel.tensor=2", says=["parallel.expert", "a divisor of parallel.data (1)", "got 2"], quiet=False)
    refused(space, *several, "parallel.expert=2", "train.optimizer=adafactor", says=["train.optimizer", "parallel.expert", "got adafactor"], quiet=False)
    refused(space, *several, "parallel.expert=2", "train.optimizer_state=int8", says=["train.optimizer_state", "parallel.expert", "got int8"], quiet=False)
    refused(space, *several, "parallel.tensor=2", "model.experts.ffn=33",
            says=["parallel.tensor", "a divisor of model.experts.ffn (33)", "got 2", "use 1"], quiet=False)
    refused(space, *several, "parallel.zero=2", "model.experts.share_layers=true", says=["model.experts.share_layers", "zero above 1"], quiet=False)
    refused(space, "train", "sparse.yaml", "model.experts.top_k=5", says=["model.experts.top_k", "at most", "got 5"])
    refused(space, "train", "sparse.yaml", "model.experts.capacity=0", says=["model.experts.capacity", "above 0", "got 0"])
    refused(space, "train", "sparse.yaml", "model.experts.router=expert_choice", says=["model.experts.router", "across"])


def yaml_mistakes(space):
    space.yaml("typo", train="{steps: 12, learning_rate: 0.1}")
    refused(space, "train", "typo.yaml", says=["typo.yaml:3", "train.learning_rate"])
    space.yaml("near", train="{steps: 12, weight_decy: 0.1}")
    refused(space, "train", "near.yaml", says=["near.yaml:3", "train.weight_decy", "train.weight_decay"])
    space.yaml("section", modle="{layers: 2}")
    refused(space, "train", "section.yaml", says=["section.yaml:5", "modle", "model"])
    space.yaml("type", train="{steps: [1, 2]}")
    refused(space, "train", "type.yaml", says=["type.yaml:3", "train.steps", "expected", "[1, 2]"])
    space.yaml("scalar", train="12")
    refused(
        space, "train", "scalar.yaml", says=["scalar.yaml:3", "train", "mapping", "megalith config train"]
    )
    space.write("malformed.yaml", "model: {arch: gpt2\ndata: ]\n")
    refused(space, "train", "malformed.yaml", says=["malformed.yaml:"])
    space.write("tabs.yaml", "model:\n\tarch: gpt2\n")
    refused(space, "train", "tabs.yaml", says=["tabs.yaml:2", "begins with a tab"])
    space.write("twice.yaml", "train: {steps: 1}\ntrain: {steps: 2}\n")
    refused(space, "train", "twice.yaml", says=["twice.yaml:2", "train"])
    space.write("blank.yaml", "")
    refused(space, "train", "blank.yaml", says=["blank.yaml", "model"])
    (space / "bytes.yaml").write_bytes(b"model: \xff\xfe\n")
    refused(space, "train", "bytes.yaml", says=["bytes.yaml"])
    refused(space, "train", "absent.yaml", says=["absent.yaml"])
    refused(space, "train", ".", says=["."])


def command_lines(space):
    space.yaml("run")
    refused(space, "train", "run.yaml", "train.lr", says=["command line", "key=value", "train.lr"])
    refused(space, "train", "run.yaml", "=3", says=["command line", "key=value"])
    refused(space, "train", "run.yaml", "train.lr=[", says=["command line"])
    refused(space, "train", "run.yaml", "train.stepz=3", says=["command line", "train.stepz", "train.steps"])
    refused(
        space,
        "trian",
        "run.yaml",
        says=["command line", "expected a command", "got trian", "did you mean train?"],
    )
    refused(space, "xyz", says=["command line", "expected a command", "got xyz", "--help"])
    refused(space, "train", says=["command line", "RUN.yaml"])
    refused(space, "train", "run.yaml", "--fast", says=["command line", "--fast"])
    refused(
        space,
        "generate",
        "x",
        "--tokens",
        "-3",
        says=["command line", "--tokens", "expected a number from 0, got -3"],
    )
    refused(space, "generate", "x", "--tokens", "few", says=["command line", "--tokens", "got few"])
    refused(space, "generate", "x", "--top-p", "2", says=["command line", "--top-p", "from 0 to 1, got 2"])
    refused(space, "export", "x", "--out", "y", "--dtype", "int8", says=["command line", "--dtype", "bf16"])
    refused(space, "tokenizer", says=["command line", "subcommand"])
    refused(space, "config", "train.stepz", says=["train.stepz", "train.steps"])


def folders_to_start_from(space):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = dict(vocab_size=300, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(GPT2Config(**sizes))
    model.save_pretrained(space / "good")
    space.yaml("run", model="{from: good}")
    refused(
        space,
        "train",
        "run.yaml",
        "model.from=absent",
        says=["absent: model.from: expected", "Hugging Face folder", "nothing of this name"],
    )
    (space / "bare").mkdir()
    refused(space, "train", "run.yaml", "model.from=bare", says=["bare", "without model.safetensors"])
    (space / "pickled").mkdir()
    (space / "pickled/config.json").write_text((space / "good/config.json").read_text())
    torch.save({}, space / "pickled/pytorch_model.bin")
    refused(
        space, "train", "run.yaml", "model.from=pickled", says=["pickled", "safetensors", "save_pretrained"]
    )
    refused(
        space,
        "train",
        "run.yaml",
        "model.layers=3",
        says=["model.from", "model.layers", "both", "config.json decides"],
    )

    from safetensors.torch import load_file, save_file

    weights = load_file(space / "good/model.safetensors")

    def folder(name, tensors=weights, **config):
        (space / name).mkdir()
        save_file(tensors, space / name / "model.safetensors", metadata={"format": "pt"})
        content = json.loads((space / "good/config.json").read_text())
        content.update(config)
        (space / name / "config.json").write_text(json.dumps(content))
        return f"model.from={name}"

    wrong = dict(weights)
    wrong["transformer.h.1.ln_1.weight"] = torch.ones(31)
    message = refused(
        space,
        "train",
        "run.yaml",
        folder("wrong", wrong),
        says=["wrong", "h.1.ln_1.weight", "31", "32"],
        quiet=False,
    )
    fewer = {k: v for k, v in weights.items() if "h.1.mlp" not in k}
    refused(space, "train", "run.yaml", folder("fewer", fewer), says=["fewer", "h.1.mlp"], quiet=False)
    refused(space, "train", "run.yaml", folder("deeper", n_layer=3), says=["deeper", "h.2"], quiet=False)
    refused(
        space,
        "train",
        "run.yaml",
        folder("foreign", model_type="t5"),
        says=["foreign", "t5", "gpt2"],
        quiet=False,
    )
    torn = folder("torn")
    content = (space / "torn/model.safetensors").read_bytes()
    (space / "torn/model.safetensors").write_bytes(content[: len(content) // 2])
    refused(space, "train", "run.yaml", torn, says=["torn/model.safetensors"], quiet=False)
    (space / "torn/model.safetensors").write_bytes(b"\xff" * 100)
    refused(space, "train", "run.yaml", torn, says=["torn/model.safetensors"], quiet=False)


def other_commands(space):
    from transformers import GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(
        GPT2Config(vocab_size=300, n_positions=32, n_embd=32, n_layer=1, n_head=2)
    ).save_pretrained(space / "model")
    refused(space, "generate", "model", says=["model", "tokenizer.json", "copy the tokenizer"])
    refused(space, "generate", "absent", says=["absent", "checkpoint"])
    space.run("tokenizer", "train", "--vocab", 300, "--out", "tok", "text.txt")
    (space / "model/tokenizer.json").write_text((space / "tok/tokenizer.json").read_text())
    space.write("empty.txt", "")
    refused(space, "eval", "model", "--data", "empty.txt", says=["empty.txt", "expected"])
    refused(space, "eval", "model", "--data", "absent.txt", says=["absent.txt"])
    refused(
        space,
        "eval",
        "model",
        "--data",
        "text.txt",
        "--window",
        64,
        says=["--window", "context of 32", "got 64"],
    )
    refused(
        space,
        "eval",
        "model",
        "--data",
        "text.txt",
        "--window",
        16,
        "--stride",
        20,
        says=["--stride", "16", "got 20"],
    )
    refused(space, "export", "model", "--out", "tok", says=["tok", "expected"])
    refused(space, "tokenizer", "train", "--vocab", 100, "--out", "t", "text.txt", says=["100", "257"])
    refused(space, "tokenize", "--tokenizer", "absent.json", "--out", "t", "text.txt", says=["absent.json"])
    space.write("junk.json", "{\"model\": 3}")
    refused(space, "tokenize", "--tokenizer", "junk.json", "--out", "t", "text.txt", says=["junk.json"])
    space.write("junk.bin", "no model")
    refused(space, "import", "junk.bin", "--out", "imported", says=["junk.bin"])
    refused(space, "import", "absent.bin", "--out", "imported", says=["absent.bin"])
    refused(space, "import", "absent", "--upcycle", "8", "--out", "imported", says=["a folder or a llama2.c file", "absent"])
    refused(space, "report", "absent", says=["absent"])
    (space / "model/tokenizer.json").write_text("{")
    refused(space, "generate", "model", says=["model/tokenizer.json"])


def a_run_that_changed(space):
    """Other shapes cannot go on and are listed; what is harmless goes on and is said."""
    space.yaml("run", steps=3)
    space.train("run")
    message = refused(
        space,
        "train",
        "run.yaml",
        "model.hidden=64",
        "model.layers=3",
        "train.steps=6",
        says=["runs/run", "model.hidden from 32 to 64", "model.layers from 2 to 3", "run.dir"],
    )
    assert "train.steps" not in message, message
    refused(
        space, "train", "run.yaml", "data.sequence=16", "train.steps=6", says=["data.sequence from 32 to 16"]
    )
    refused(space, "train", "run.yaml", "run.seed=9", "train.steps=6", says=["run.seed from 1 to 9"])
    refused(space, "train", "run.yaml", "train.batch=8", "train.steps=6", says=["train.batch from 4 to 8"])
    done = space.train("run", "train.steps=5", "train.lr=0.002", "memory.ram=4GiB", "checkpoint.keep=3")
    for change in (
        "train.steps from 3 to 5",
        "train.lr from 0.003 to 0.002",
        "memory.ram from auto to 4GiB",
        "checkpoint.keep from 2 to 3",
    ):
        assert f"continues with {change}" in done.stderr, done.stderr
        assert f"continues with {change}" in (space / "runs/run/log.txt").read_text()
    assert lines_of(space / "runs/run/metrics.jsonl") == 5


def run_directories(space):
    space.yaml("run", steps=100000)
    refused(
        space, "train", "run.yaml", "run.dir=text.txt/run", says=["run.dir", "text.txt/run", "can be written"]
    )
    refused(space, "train", "run.yaml", "run.dir=text.txt", says=["run.dir", "text.txt", "can be written"])
    first = space.start("train", "run.yaml")
    try:
        wait_for(
            lambda: lines_of(space / "runs/run/metrics.jsonl") > 0 or first.poll() is not None,
            "the first step",
        )
        refused(space, "train", "run.yaml", says=["run.dir", "runs/run", "another process is training there"])
        assert first.poll() is None, "the first process was disturbed"
    finally:
        first.kill()
        first.wait()


def json_says_it_too(space):
    space.yaml("run")
    result = space.run("--json", "train", "run.yaml", "train.lr=-1", expect=2)
    assert result.json["exit_code"] == 2 and "train.lr" in result.json["error"], result.stdout
    assert result.stderr.startswith("megalith: ") and result.json["error"] in result.stderr


def output_that_cannot_be_written(space):
    """A result that is lost is no success, and no error is lost with it."""
    with open("/dev/full", "wb") as full:
        for words, code, says in (
            (["presets"], 4, "standard output"),
            (["--json", "presets"], 4, "standard output"),
            (["--json", "train", "absent.yaml"], 2, "absent.yaml"),
        ):
            done = subprocess.run(space.command(*words), cwd=space.root, stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == code, (words, done.returncode, done.stderr)
            told = [line for line in done.stderr.splitlines() if line.startswith("megalith: ")]
            assert len(told) == 1 and says in told[0], done.stderr


def pipes_in_place_of_files(space):
    """They are refused, not waited for."""
    space.yaml("run")
    os.mkfifo(space / "pipe")
    mine = "curriculum=[{metric: mine, file: pipe, unit: percentile, from: 50, to: 100, over: 3 steps}]"
    refused(space, "train", "run.yaml", mine, says=["pipe: expected a file", "got a pipe or a device"], quiet=False)


run_cases(
    [
        unreadable_data,
        empty_data,
        too_little_data_for_one_batch,
        a_text_with_few_words_is_no_mistake,
        token_beyond_the_vocabulary,
        model_shapes,
        training_settings,
        one_rank_shares_nothing,
        experts_of_a_dense_model,
        layouts,
        experts,
        yaml_mistakes,
        command_lines,
        folders_to_start_from,
        other_commands,
        a_run_that_changed,
        run_directories,
        json_says_it_too,
        output_that_cannot_be_written,
        pipes_in_place_of_files,
    ]
)

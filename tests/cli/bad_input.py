"""Wrong data, models, run directories and outputs. The program must refuse each one and name it (refusals.py).
bad_input.py BINARY"""

import gzip
import json
import os
import shutil
import subprocess

from refusals import refused
from support import lines_of, metrics, run_cases, wait_for


def unreadable_data(space):
    space.yaml("run")
    refused(
        space,
        "train",
        "run.yaml",
        "data.train=absent.txt",
        says=["absent.txt", "expected", "got"],
    )
    refused(
        space,
        "train",
        "run.yaml",
        "data.train=[text.txt, 'none-*.jsonl']",
        says=["none-*.jsonl"],
    )
    for words in (("data.train=" + "x" * 100000,), ("run.dir=" + "x" * 100000,)):
        line = refused(space, "train", "run.yaml", *words, says=["xxx...xxx", "bytes)"], quiet=False)
        assert len(line) < 1000, f"{len(line)} characters"
    (space / "folder").mkdir()
    refused(space, "train", "run.yaml", "data.train=folder", says=["folder"])
    refused(space, "train", "run.yaml", "data.valid=absent.txt", says=["absent.txt", "expected"])
    assert not (space / "runs").exists(), "a refused run left a directory"
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


def similar_names(space):
    """A path that does not exist: the message names the key, its place and a similar file."""
    space.yaml("run", data="{train: [txt.txt, text.txt], valid: nothing, tokenizer: tok/tokenizer.jsn, sequence: 32}")
    space.run("tokenizer", "train", "--vocab", 300, "--out", "tok", "text.txt")
    refused(space, "train", "run.yaml", "data.cache=text.txt/x",
            says=["4 mistakes:", "run.yaml:2: data.train: expected a file, got txt.txt: no such file; did you mean text.txt?",
                  "run.yaml:2: data.valid: expected a file, got nothing: no such file; the current folder is /",
                  "command line: data.cache: expected a directory that can be written, got text.txt/x",
                  "run.yaml:2: data.tokenizer: expected a tokenizer.json", "did you mean tok/tokenizer.json?"])
    refused(space, "train", "run.yaml", "data=null", "data.train=text.txt", "data.tokenizer=gpt2", "data.sequence=32",
            says=["command line: data.tokenizer: ", "`hf download gpt2 --local-dir gpt2`, then repeat this command"])
    for both in ("text.txt other.txt", "text.txt,other.txt"):
        space.write("other.txt", "x")
        refused(space, "train", "run.yaml", "data=null", f"data.train={both}", "data.tokenizer=tok", "data.sequence=32",
                says=["write a list: [text.txt, other.txt]"])
    refused(space, "train", "rnu.yaml", says=["rnu.yaml: cannot read: No such file", "did you mean run.yaml?"])
    space.write("train.bin", "x")
    refused(space, "train", "run.yaml", "data=null", "data.train=train.bin", "data.tokenizer=tok", "data.sequence=32",
            says=["command line: data.train: expected token shards", "got train.bin: not both files", "megalith tokenize"])
    assert not (space / "runs").exists(), "a refused run left a directory"


def empty_data(space):
    space.yaml("run")
    space.write("empty.txt", "")
    refused(
        space, "train", "run.yaml", "data.train=empty.txt", says=["empty.txt", "expected", "got"], quiet=False
    )
    refused(space, "train", "run.yaml", "data.train=[]", says=["data.train", "expected"])
    space.yaml("no_tokenizer", data="{train: text.txt, sequence: 32}")
    refused(space, "train", "no_tokenizer.yaml",
            says=["no_tokenizer.yaml: data.tokenizer: expected a tokenizer for the text in data.train (text.txt)", "train one: tokenizer: {train: bpe"])
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
    """The tokenizer becomes smaller than requested. The model takes the size of the tokenizer, and the run can be resumed."""
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
        says=["command line: model.from: expected", "Hugging Face folder", "no such file or folder"],
    )
    (space / "bare").mkdir()
    refused(space, "train", "run.yaml", "model.from=bare", says=["bare", "without model.safetensors"])
    space.write("shapeless/model.safetensors", "")
    refused(space, "train", "run.yaml", "model.from=shapeless", says=["command line: model.from: ", "got shapeless: no config.json"])
    refused(space, "train", "run.yaml", "data.sequence=33", says=["at most model.context (32)", "the model has no more positions"])
    for name in ("gpt2", "Qwen/Qwen2-0.5B"):
        refused(space, "train", "run.yaml", f"model.from={name}",
                says=["command line: model.from: ", f"Megalith downloads nothing: if {name} is a model of Hugging Face, run "
                      f"`hf download {name} --local-dir {name}`, then repeat this command"])
    refused(space, "train", "run.yaml", "model=gpt2", says=["did you mean gpt2-124m?", "then write model: {from: gpt2}"])
    (space / "other").mkdir()
    (space / "other/config.json").write_text('{"model_type": "t5"}')
    (space / "other/pytorch_model.bin").write_text("")
    refused(space, "train", "run.yaml", "model.from=other",
            says=["other/config.json: model_type: expected gpt2", 'got "t5"; other families are not supported'])
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
        says=["model.from", "model.layers", "both", "config.json"],
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
    )
    fewer = {k: v for k, v in weights.items() if "h.1.mlp" not in k}
    refused(space, "train", "run.yaml", folder("fewer", fewer), says=["fewer", "h.1.mlp"])
    refused(space, "train", "run.yaml", folder("deeper", n_layer=3), says=["deeper", "h.2"])
    refused(
        space,
        "train",
        "run.yaml",
        folder("foreign", model_type="t5"),
        says=["foreign", "t5", "gpt2"],
    )
    torn = folder("torn")
    content = (space / "torn/model.safetensors").read_bytes()
    (space / "torn/model.safetensors").write_bytes(content[: len(content) // 2])
    refused(space, "train", "run.yaml", torn, says=["torn/model.safetensors"])
    (space / "torn/model.safetensors").write_bytes(b"\xff" * 100)
    refused(space, "train", "run.yaml", torn, says=["torn/model.safetensors"])
    integers = {k: v.int() if k == "transformer.h.1.ln_1.weight" else v for k, v in weights.items()}
    refused(space, "train", "run.yaml", folder("integers", integers), says=["integers", "h.1.ln_1.weight", "I32"])
    refused(space, "train", "run.yaml", "data.tokenizer.vocab=301", says=["data.tokenizer", "at most the 300 tokens of the model in good", "got 301", "the model was trained with"])
    assert not (space / "runs").exists(), "a refused run left a directory"


def rewrite_header(path, change):
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[begin:])


def headers_of_weights_to_start_from(space):
    """Headers are checked before a tokenizer is trained. A refused run leaves no run directory."""
    space.yaml("first", steps=2, every=2)
    space.train("first", "run.dir=first")
    space.yaml("run", model="{from: copy}")
    name = "transformer.h.1.mlp.c_fc.bias"

    def rename(header):
        header["transformer.h.1.other"] = header.pop(name)

    def reshape(header):
        header[name]["shape"] = [2, 64]

    def integers(header):
        header[name]["dtype"] = "I32"

    for change, says in ((rename, "no tensor named"), (reshape, "[2, 64] instead of [128]"), (integers, "of type I32")):
        space.run("export", "first", "--out", "copy")
        (space / "copy/manifest.json").unlink(missing_ok=True)
        rewrite_header(space / "copy/model.safetensors", change)
        refused(space, "train", "run.yaml", says=["copy", "h.1.mlp.c_fc.bias", says, "this config.json"])
        refused(space, "train", "run.yaml", "--dry-run", says=["copy", "h.1.mlp.c_fc.bias", says])
        shutil.rmtree(space / "copy")
    assert not (space / "runs").exists(), "a refused run left a directory"


def other_commands(space):
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

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
    refused(space, "report", "absent", says=["absent", "no such folder"])
    (space / "empty").mkdir()
    refused(space, "report", "empty", says=["empty: expected a run directory", "megalith train"])
    refused(space, "checkpoint", "verify", "absent", says=["absent: expected a checkpoint", "no such folder"])
    refused(space, "checkpoint", "verify", "empty", says=["empty: expected a checkpoint", "megalith train"])
    space.yaml("first")
    refused(space, "generate", "first.yaml", says=["got a file", "give the folder that has config.json"])
    refused(space, "generate", "model/config.json", says=["got a file", "give its folder: model"])
    refused(space, "generate", "model", "Once upon a time", says=['write --prompt "Once upon a time"'])
    refused(space, "eval", "model", "text.txt", says=["write --data text.txt"])
    refused(space, "export", "model", "there", says=["write --out there"])
    train_first = "train it first: `megalith train first.yaml`"
    refused(space, "generate", "runs/first", says=["runs/first", "no such file or folder", train_first])
    space.write("runs/first/log.txt", "")
    refused(space, "generate", "runs/first", says=["runs/first", "a run without a checkpoint", train_first])
    for path in ("first", "runs"):
        refused(space, "generate", path, says=["did you mean runs/first?"])
        refused(space, "report", path, says=["did you mean runs/first?"])
    refused(space, "shards", "text.txt", says=["text.txt: expected token shards", "megalith tokenize"])
    refused(space, "import", "gpt2", "--out", "imported", says=["SRC", "hf download gpt2"])
    refused(space, "config", "train.lr=3", says=["KEY", "write megalith config train.lr"])
    refused(space, "eval", "model", "--data", "text.txt", "--stride", 0, says=["--stride", "a whole number from 1, got 0"])
    refused(space, "tokenizer", "train", "--vocab", 300, "--out", "tok", "text.txt", says=["tok: expected a folder that does not exist yet"])
    BertForMaskedLM(BertConfig(vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
                               num_attention_heads=2)).save_pretrained(space / "bert")
    shutil.copy(space / "tok/tokenizer.json", space / "bert")
    refused(space, "generate", "bert", "--prompt", "Ba", says=["a model that predicts the next token", "bert"])
    (space / "model/tokenizer.json").write_text("{")
    refused(space, "generate", "model", says=["model/tokenizer.json"])


def another_tokenizer_than_the_models(space):
    space.yaml("first", steps=2, every=2)
    space.train("first")
    space.run("tokenizer", "train", "--vocab", 290, "--out", "small", "text.txt")
    space.write("other.txt", (space / "text.txt").read_text()[:20000][::-1])
    space.run("tokenizer", "train", "--vocab", 300, "--out", "other", "other.txt")
    space.yaml("run", model="{from: runs/first}", steps=2)
    data = "data={{train: text.txt, sequence: 32, tokenizer: {}}}"
    for tokenizer, says in (("small", "10 tokens of data.tokenizer differ"), ("other", " tokens of data.tokenizer differ"),
                            ("{train: bpe, vocab: 300}", "data.tokenizer trains new tokens"), ("runs/first", None), ("null", None)):
        said = space.train("run", "data=null", data.format(tokenizer), "--dry-run").stderr
        assert (says in said if says else "tokenizer" not in said), (tokenizer, said)
        assert not says or "remove data.tokenizer" in said, said
    (space / "runs/first/checkpoints/step-00000002/tokenizer.json").unlink()
    (space / "runs/first/checkpoints/step-00000002/manifest.json").unlink()
    said = space.train("run", "data=null", data.format("small"), "model.from=runs/first/checkpoints/step-00000002", "--dry-run").stderr
    assert "data.tokenizer has 290 tokens, but the model in runs/first" in said, said


def a_run_that_changed(space):
    """A run with other shapes cannot be resumed: the changes are listed. Harmless changes are reported, and the run resumes."""
    space.yaml("run", steps=3)
    space.train("run")
    message = refused(
        space,
        "train",
        "run.yaml",
        "model.hidden=64",
        "model.layers=3",
        "train.steps=6",
        says=["runs/run", "started with model.layers 2, model.hidden 32", "with model.layers 3, model.hidden 64", "run.dir"],
    )
    assert "train.steps" not in message, message
    refused(
        space, "train", "run.yaml", "data.sequence=16", "train.steps=6", says=["started with data.sequence 32;", "with data.sequence 16"]
    )
    refused(space, "train", "run.yaml", "run.seed=9", "train.steps=6", says=["started with run.seed 1;", "with run.seed 9"])
    refused(space, "train", "run.yaml", "train.batch=8", "train.steps=6", says=["started with train.batch 4;", "with train.batch 8"])
    done = space.train("run", "train.steps=5", "train.lr=0.002", "memory.ram=4GiB", "checkpoint.keep=3")
    for change in (
        "train.steps changed from 3 to 5",
        "train.lr changed from 0.003 to 0.002",
        "memory.ram changed from auto to 4GiB",
        "checkpoint.keep changed from 2 to 3",
    ):
        assert f"resuming with {change}" in done.stderr, done.stderr
        assert f"resuming with {change}" in (space / "runs/run/log.txt").read_text()
    assert lines_of(space / "runs/run/metrics.jsonl") == 5
    jump = "the learning rate jumps from 0.0003 (step 3) to 0.00065 (step 4)"
    assert jump in done.stderr and "set train.lr=0.0003 train.min_lr=0.0003" in done.stderr, done.stderr
    done = space.train("run", "train.steps=7", "train.lr=0.0002", "train.min_lr=0.0002")
    assert "learning rate" not in done.stderr, done.stderr
    assert [m["lr"] for m in metrics(space / "runs/run")][-3:] == [0.0002] * 3
    assert (space / "runs/run/log.txt").read_text().count("resuming with train.steps changed from 5 to 7") == 1
    before = (space / "text.txt").read_text()
    space.write("text.txt", before[::-1])
    refused(space, "train", "run.yaml", "train.steps=9", "train.lr=0.0002", "train.min_lr=0.0002", quiet=False,
            says=["data.train: expected the text that the run started with, got other text"])
    space.write("text.txt", before)
    space.train("run", "train.steps=9", "train.lr=0.0002", "train.min_lr=0.0002")
    assert lines_of(space / "runs/run/metrics.jsonl") == 9


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
        refused(space, "train", "run.yaml", says=["run.dir", "runs/run", "another process is training in this directory"])
        assert first.poll() is None, "the first process was disturbed"
    finally:
        first.kill()
        first.wait()


def output_that_cannot_be_written(space):
    """A lost result must not count as success, and its error must be reported."""
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
    """Pipes are refused: the program does not wait for them."""
    space.yaml("run")
    os.mkfifo(space / "pipe")
    mine = "curriculum=[{metric: mine, file: pipe, unit: percentile, from: 50, to: 100, over: 3 steps}]"
    refused(space, "train", "run.yaml", mine, says=["pipe: expected a regular file", "got a pipe or a device"], quiet=False)
    for path in ("pipe", "/dev/zero"):
        says = [f"{path}: ", "expected a regular file, got a pipe or a device; write its output to a file first"]
        refused(space, "train", path, says=says)
        refused(space, "train", "run.yaml", f"data.train={path}", says=says, quiet=False)
        refused(space, "tokenizer", "train", "--out", "tok", path, says=says)
        refused(space, "generate", "absent", "--prompts", path, says=says)
        refused(space, "eval", "absent", "--choices", path, says=says)
    (space / "vocab.txt").symlink_to(space / "pipe")
    refused(space, "train", "run.yaml", "data.tokenizer=vocab.txt", says=["vocab.txt", "got a pipe or a device"])


def files_nested_without_end(space):
    """Recursive readers would run out of stack."""
    space.yaml("run")
    deep = "[" * 30000
    parts = '{"type": "Sequence", "pretokenizers": [' * 30000 + "]}" * 30000
    space.write("deep.json", '{"pre_tokenizer": %s}' % parts)
    says = ["deep.json: expected JSON with at most 256 levels of nesting", "flatten"]
    refused(space, "train", "run.yaml", "data.tokenizer=deep.json", says=says)
    space.write("model/config.json", deep)
    space.write("model/model.safetensors", "")
    says = ["model/config.json: ", "at most 256 levels of nesting"]
    refused(space, "train", "run.yaml", "model=null", "model.from=model", says=says, quiet=False)
    space.write("prompts.jsonl", '{"prompt": ' + deep)
    refused(space, "generate", "absent", "--prompts", "prompts.jsonl", says=["prompts.jsonl:1: ", "at most 256 levels of nesting"])
    space.write("deep.yaml", "model: " + deep)
    refused(space, "train", "deep.yaml", says=["deep.yaml:1: ", "at most 16 levels of nesting", "bracket"])
    refused(space, "train", "run.yaml", f"train.betas={deep}", says=["command line: ", "at most 16 levels of nesting"])


def a_settings_file_from_a_shell(space):
    """<(command) of a shell is a pipe with a writer."""
    space.yaml("run")
    for redirection in ("<(cat run.yaml)", "/dev/stdin < run.yaml"):
        words = " ".join(space.command("memory", redirection))
        done = subprocess.run(["bash", "-c", words], cwd=space.root, env=space.environment, capture_output=True, text=True)
        assert done.returncode == 0 and "gpt2" in done.stdout, done.stderr


run_cases(
    [
        unreadable_data,
        similar_names,
        empty_data,
        too_little_data_for_one_batch,
        a_text_with_few_words_is_no_mistake,
        token_beyond_the_vocabulary,
        folders_to_start_from,
        headers_of_weights_to_start_from,
        other_commands,
        another_tokenizer_than_the_models,
        a_run_that_changed,
        run_directories,
        output_that_cannot_be_written,
        pipes_in_place_of_files,
        files_nested_without_end,
        a_settings_file_from_a_shell,
    ]
)

"""Tests that other programs read our files, and that we read their files: Hugging Face transformers in both
directions, TensorBoard, JSON.  share.py BINARY PROBE"""

import json
import re
import subprocess
import sys

from support import MODELS, metrics, run_cases

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
)

PROBE = sys.argv[2]
torch.set_num_threads(1)


def trained(space, arch):
    space.yaml(arch, arch, steps=30, every=0)
    space.train(arch)
    return space / f"runs/{arch}/checkpoints/step-00000030"


def perplexity_by_transformers(folder, text, window):
    """Mean loss over non-overlapping windows, as `eval` defines it."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text)["input_ids"] + [tokenizer.eos_token_id]
    total, count = 0.0, 0
    for begin in range(0, len(ids) - 1, window):
        part = torch.tensor(ids[begin : begin + window + 1])
        with torch.no_grad():
            logits = model(input_ids=part[None, :-1]).logits[0]
        total += torch.nn.functional.cross_entropy(logits, part[1:], reduction="sum").item()
        count += len(part) - 1
    return total / count, count


def decoders_agree(space, arch):
    folder = trained(space, arch)
    text = (space / "text.txt").read_text()[:4000]
    space.write("held.txt", text)
    ours = space.run("--json", "eval", folder, "--data", "held.txt").json
    loss, count = perplexity_by_transformers(folder, text, 32)
    assert ours["tokens"] == count, f"{ours['tokens']} tokens, transformers {count}"
    assert abs(ours["loss"] - loss) < 1e-5 * loss, f"loss {ours['loss']}, transformers {loss}"
    assert ours["bytes"] == len(text.encode())

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    prompt = " ".join(text.split()[:3])
    ids = tokenizer(prompt, return_tensors="pt")
    greedy = model.generate(**ids, max_new_tokens=20, do_sample=False, pad_token_id=0)[0]
    expected = tokenizer.decode(greedy, skip_special_tokens=True)
    said = space.run("generate", folder, "--prompt", prompt, "--tokens", 20, "--temperature", 0).stdout
    assert said == expected + "\n", f"{said!r}, transformers {expected!r}"
    # A run directory stands for its newest checkpoint.
    assert (
        space.run("generate", f"runs/{arch}", "--prompt", prompt, "--tokens", 20, "--temperature", 0).stdout
        == said
    )
    return f"loss {ours['loss']:.6f} and {loss:.6f}"


def gpt2_in_transformers(space):
    return decoders_agree(space, "gpt2")


def llama_in_transformers(space):
    return decoders_agree(space, "llama")


def bert_in_transformers(space):
    return bert_agrees(space, "bert", MODELS["bert"]) + "; untied " + bert_agrees(
        space, "untied", MODELS["bert"].replace("}", ", tied: false}"))


def bert_agrees(space, name, model):
    space.yaml(name, "bert", steps=30, every=0, model=model)
    space.train(name)
    folder = space / f"runs/{name}/checkpoints/step-00000030"
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float64)
    chance = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 300, (2, 32), generator=chance)
    space.write("batch.json", json.dumps({"ids": ids.tolist(), "targets": ids.tolist()}))
    subprocess.run([PROBE, folder, space / "batch.json", space / "out"], check=True, capture_output=True)
    from safetensors.torch import load_file

    ours = load_file(space / "out/out.safetensors")["logits"].double()
    with torch.no_grad():
        theirs = model(input_ids=ids).logits.reshape(-1, 300)
    difference = (ours - theirs).abs().max().item()
    assert difference <= 1e-4 * max(1.0, theirs.abs().max().item()), difference
    return f"logits within {difference:.1e}"


def theirs_to_start_from(space):
    """Starts from folders of save_pretrained: one file, many files, bf16. Only the values matter."""
    torch.manual_seed(3)
    sizes = dict(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
    )
    model = LlamaForCausalLM(LlamaConfig(**sizes)).to(torch.bfloat16)
    model.save_pretrained(space / "bf16")
    model.float().save_pretrained(space / "whole")  # the same values, as float32
    model.save_pretrained(space / "sharded", max_shard_size="20KB")
    files = list((space / "sharded").glob("model-*.safetensors"))
    assert len(files) > 3, "transformers did not split it"
    losses = {}
    for name in ("whole", "sharded", "bf16"):
        space.yaml(f"from-{name}", model=f"{{from: {name}}}", steps=20, every=0)
        space.train(f"from-{name}")
        losses[name] = [m["loss"] for m in metrics(space / f"runs/from-{name}")]
    assert losses["whole"] == losses["sharded"] == losses["bf16"], "the same weights train differently"
    assert losses["whole"][-1] < losses["whole"][0] - 0.1, losses["whole"]
    again = LlamaForCausalLM.from_pretrained(space / "runs/from-whole/checkpoints/step-00000020")
    assert not torch.equal(again.model.norm.weight, model.model.norm.weight), "nothing was trained"
    return f"{len(files)} files; loss {losses['whole'][0]:.3f} to {losses['whole'][-1]:.3f}"


def round_trips(space):
    """`export` in float32 keeps folders of transformers and our own bit by bit. In bf16 it rounds as torch does."""
    from safetensors.torch import load_file

    for arch in MODELS:
        folder = trained(space, arch)
        space.run("export", folder, "--out", f"{arch}-fp32")
        space.run("export", f"{arch}-fp32", "--out", f"{arch}-again")
        ours = load_file(folder / "model.safetensors")
        for name in (f"{arch}-fp32", f"{arch}-again"):
            got = load_file(space / name / "model.safetensors")
            assert got.keys() == ours.keys() and all(
                torch.equal(got[k], ours[k]) for k in ours
            ), f"{name} differs"
        auto = AutoModelForMaskedLM if arch == "bert" else AutoModelForCausalLM
        auto.from_pretrained(folder).save_pretrained(space / f"{arch}-theirs")
        space.run("export", f"{arch}-theirs", "--out", f"{arch}-back")
        got = load_file(space / f"{arch}-back" / "model.safetensors")
        assert got.keys() == ours.keys() and all(
            torch.equal(got[k], ours[k]) for k in ours
        ), f"{arch}: not the same after them"
        for dtype, kind in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
            space.run("export", folder, "--out", f"{arch}-{dtype}", "--dtype", dtype)
            got = load_file(space / f"{arch}-{dtype}" / "model.safetensors")
            assert all(
                v.dtype == kind and torch.equal(v, ours[k].to(kind)) for k, v in got.items()
            ), f"{dtype} differs"
            assert auto.from_pretrained(space / f"{arch}-{dtype}", dtype="auto").dtype == kind


def what_a_run_leaves(space):
    space.yaml(
        "run",
        "llama",
        steps=12,
        every=4,
        train="{steps: 12, batch: 4, lr: 0.003, eval_every: 5, sample_tokens: 5, threads: 1}",
    )
    summary = space.run("--json", "train", "run.yaml").json
    run = space / "runs/run"
    steps = metrics(run)
    assert [m["step"] for m in steps] == list(range(1, 13))
    for m in steps:
        assert {
            "loss",
            "lr",
            "grad_norm",
            "tokens",
            "step_s",
            "tokens_per_s",
            "mem_peak_bytes",
        } <= m.keys(), m
    assert [m["step"] for m in steps if "valid_loss" in m] == [5, 10, 12]
    assert json.loads((run / "summary.json").read_text()) == summary
    assert summary["state"] == "finished" and summary["steps"] == 12 and summary["loss"] == steps[-1]["loss"]
    assert summary["valid_loss"] == steps[-1]["valid_loss"]
    plan = json.loads((run / "plan.json").read_text())
    assert plan["predicted"]["step_s"] > 0 and plan["predicted"]["peak_bytes"] > 0
    trace = json.loads((run / "trace.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert any(e.get("ph") == "X" and e["dur"] >= 0 for e in events), "no events in trace.json"
    page = (run / "report.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?https?:""", page), "report.html is not self-contained"
    assert "runs/run" in (run / "config.yaml").read_text() and (run / "log.txt").stat().st_size > 0
    # The complete configuration can start the same run again.
    space.run("train", "runs/run/config.yaml", "run.dir=runs/again")
    assert [m["loss"] for m in metrics(space / "runs/again")] == [m["loss"] for m in steps]

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    tags = board.Tags()["scalars"]
    for tag, key in (
        ("loss/train", "loss"),
        ("loss/valid", "valid_loss"),
        ("lr", "lr"),
        ("grad_norm", "grad_norm"),
    ):
        assert tag in tags, tags
        got = [(e.step, e.value) for e in board.Scalars(tag)]
        expected = [(m["step"], torch.tensor(m[key], dtype=torch.float32).item()) for m in steps if key in m]
        assert got == expected, f"{tag}: TensorBoard reads {got[:2]}…, metrics.jsonl has {expected[:2]}…"
    return f"{len(tags)} TensorBoard curves"


def one_json_object_each(space):
    """With --json, before or after the command's name, every command prints one JSON object and nothing else to stdout."""
    space.yaml("run", steps=3)
    space.write("held.txt", (space / "text.txt").read_text()[:2000])
    for command, key in [
        (("train", "run.yaml"), "state"),
        (("report", "runs/run"), "report"),
        (("tokenizer", "train", "--vocab", 300, "--out", "tok", "text.txt"), "vocab"),
        (("tokenize", "--tokenizer", "tok/tokenizer.json", "--out", "tokens/a", "text.txt"), "tokens"),
        (("generate", "runs/run", "--prompt", "Ba", "--tokens", 4), "text"),
        # The hardly trained model generates bytes that are not UTF-8. JSON contains replacements for them.
        (("generate", "runs/run", "--prompt", "Ba", "--tokens", 60, "--temperature", 5), "text"),
        (("eval", "runs/run", "--data", "held.txt", "--window", 16, "--stride", 8), "perplexity"),
        (("export", "runs/run", "--out", "exported"), "folder"),
        (("checkpoint", "verify", "runs/run/checkpoints/step-00000003"), "ok"),
        (("config", "train.lr"), "text"),
        (("presets",), "presets"),
        (("doctor",), "cores"),
    ]:
        first, after = space.run("--json", *command), None
        assert first.stdout.count("\n") == 1 and key in first.json, f"{command}: {first.stdout}"
        if command[0] in ("generate", "config", "checkpoint"):
            after = space.run(*command, "--json")
            assert after.json == first.json, f"{command}: --json at the end differs"
        if command[0] not in ("train", "doctor"):  # these take long
            assert space.run(
                *(f"{c}2" if c in ("exported", "tok") else c for c in command)
            ).stdout, f"{command} prints nothing"
    space.yaml(
        "tokens",
        model=MODELS["gpt2"][:-1] + ", vocab: 300}",
        steps=3,
        data="{train: tokens/a, valid: tokens/a.bin, sequence: 32}",
    )
    assert space.run("--json", "train", "tokens.yaml").json["state"] == "finished", "training on token shards"


run_cases(
    [
        gpt2_in_transformers,
        llama_in_transformers,
        bert_in_transformers,
        theirs_to_start_from,
        round_trips,
        what_a_run_leaves,
        one_json_object_each,
    ]
)

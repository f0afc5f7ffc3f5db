"""Runs `generate` and `eval` as a user does, and compares them with Hugging Face transformers where possible.
generation.py BINARY"""

import json
import math
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import tempfile
import time

from support import run_cases

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

torch.set_num_threads(1)
CORPUS = pathlib.Path(
    os.environ.get("MEGALITH_CORPUS", pathlib.Path(__file__).resolve().parents[3] / "shared/corpus")
)


SHARED = tempfile.TemporaryDirectory(prefix="megalith-cli-")


def trained(space, arch="llama"):
    """Returns a small model that is trained once for all cases."""
    folder = pathlib.Path(SHARED.name) / arch
    if not folder.exists():
        space.yaml(arch, arch, steps=60, every=0)
        space.train(arch)
        shutil.copytree(space / f"runs/{arch}/checkpoints/step-00000060", folder)
    return folder


def each_prompt_as_if_alone(space):
    """Tests greedy search and sampling, with --prompt, with a file of lines and with JSON lines."""
    words = (space / "text.txt").read_text().split()
    prompts = [" ".join(words[i : i + n]) for i, n in ((5, 7), (0, 1), (90, 12))]
    greedy, sampled = ("--temperature", 0), ("--seed", 7, "--top-k", 30, "--repetition-penalty", 1.2)
    for arch, samplings in (("gpt2", [greedy]), ("llama", [sampled])):
        folder = trained(space, arch)
        space.write("prompts.txt", "\n".join(prompts) + "\n")
        space.write("prompts.jsonl", "".join(json.dumps({"prompt": p, "id": 1}) + "\n" for p in prompts))
        for sampling in samplings:
            common = ("--tokens", 15, *sampling)
            alone = [space.run("--json", "generate", folder, "--prompt", p, *common).json for p in prompts]
            together = space.run(
                "--json", "generate", folder, *(x for p in prompts for x in ("--prompt", p)), *common
            ).json
            assert together["results"] == alone, f"{arch} {sampling}: prompts together give other text than alone"
        space.write("prompts.json", json.dumps([prompts[0], *({"prompt": p} for p in prompts[1:])], indent=1))
        for name in ("prompts.jsonl", "prompts.json"):
            assert space.run("--json", "generate", folder, "--prompts", name, *common).json == together
        shown = space.run("generate", folder, "--prompts", "prompts.txt", *common).stdout
        for n, result in enumerate(alone, 1):
            assert f"==> {n} of 3 <==\n{result['text']}\n" in shown, shown
    space.write("bad.jsonl", '{"prompt": "a"}\n{"text": "b"}\n')
    assert "bad.jsonl:2: prompt" in space.run("generate", folder, "--prompts", "bad.jsonl", expect=2).stderr


def stop_strings_cut_the_text(space):
    folder = trained(space)
    settings = ("--prompt", "Ba", "--tokens", 60, "--temperature", 0)
    whole = space.run("--json", "generate", folder, *settings).json
    for stop in (whole["continuation"][7:12],):
        cut = space.run("--json", "generate", folder, *settings, "--stop", "never said", "--stop", stop).json
        expected = whole["continuation"][: whole["continuation"].index(stop)]
        assert cut["continuation"] == expected and cut["end"] == "stop string", (cut, stop)
        shown = space.run("generate", folder, *settings, "--stop", stop).stdout
        assert shown == "Ba" + expected + "\n", f"{shown!r} streamed with --stop {stop!r}"
    assert "--stop" in space.run("generate", folder, "--stop", "", expect=2).stderr


def a_full_context_slides_and_says_so(space):
    folder = trained(space)  # a context of 32
    done = space.run("--json", "generate", folder, "--prompt", "Ba", "--tokens", 50, "--temperature", 0)
    assert done.json["tokens"] == 50 and "context of 32 tokens is full" in done.stderr, done.stderr
    # The first half is as transformers says it; then the last 16 tokens are the whole past.
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("Ba")["input_ids"]
    past = list(ids)
    while len(ids) < done.json["tokens"] + len(tokenizer("Ba")["input_ids"]):
        if len(past) > 32:
            past = past[-16:]
        with torch.no_grad():
            best = model(torch.tensor([past])).logits[0, -1].argmax().item()
        ids.append(best)
        past.append(best)
    assert tokenizer.decode(ids) == done.json["text"]


def read_until(fd, text, seconds=60):
    got, end = b"", time.monotonic() + seconds
    while text not in got:
        assert time.monotonic() < end, f"no {text!r} after {got!r}"
        try:
            got += os.read(fd, 4096)
        except OSError:
            break
    return got


def lines_are_continued_one_by_one(space):
    folder = trained(space)
    common = ("--tokens", 10, "--temperature", 0)
    one = space.run("--json", "generate", folder, "--prompt", "Ba", *common).json["text"]
    two = space.run("--json", "generate", folder, "--prompt", "Do", *common).json["text"]
    more = space.run("--json", "generate", folder, "--prompt", two, *common).json["text"]
    done = subprocess.run(
        space.command("generate", folder, "-i", *common), input=b"Ba\nDo\n\n", capture_output=True, env=space.environment
    )
    assert done.returncode == 0 and done.stdout.decode() == f"{one}\n{two}\n{more}\n", done.stdout
    assert "-i" in space.run("generate", folder, "-i", "--prompt", "x", expect=2).stderr

    # On a terminal: Ctrl-C ends the answer, not the program; Ctrl-D ends it.
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        space.command("generate", folder, "-i", "--tokens", 100000000, "--temperature", 1),
        stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=space.environment, start_new_session=True,
    )
    os.close(theirs)
    read_until(ours, b"> ")
    for _ in range(2):
        os.write(ours, b"Ba\n")
        read_until(ours, b"\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        read_until(ours, b"> ")
        assert process.poll() is None, "Ctrl-C ended the program"
    os.write(ours, b"\x04")
    assert process.wait(timeout=60) == 0
    os.close(ours)


def text_of_stories(space):
    """Returns real weights if they exist on this machine, otherwise a small model of our own."""
    if (CORPUS / "stories260K.bin").exists():
        tokenizer = CORPUS / "stories260K_tok512.bin"
        space.run("import", CORPUS / "stories260K.bin", "--tokenizer", tokenizer, "--out", "stories")
        return space / "stories", json.loads((CORPUS / "stories260K_golden.json").read_text())["greedy_text"]
    return trained(space), (space / "text.txt").read_text()[:3000]


def perplexity_with_stride(space):
    folder, text = text_of_stories(space)
    space.write("held.txt", text * 3)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text * 3, add_special_tokens=False)["input_ids"]
    end = space.run("--json", "eval", folder, "--data", "held.txt").json["tokens"] + 1 - len(ids)
    ids += [2 if "stories" in str(folder) else tokenizer.eos_token_id] * end
    said = []
    for window, stride in ((32, 32), (32, 8), (20, 1)):
        ours = space.run("--json", "eval", folder, "--data", "held.txt", "--window", window, "--stride", stride).json
        total, done = 0.0, 1
        for begin in range(0, len(ids), stride):
            part = torch.tensor(ids[begin : begin + window + 1])
            with torch.no_grad():
                logits = model(part[None, :-1]).logits[0]
            losses = torch.nn.functional.cross_entropy(logits, part[1:], reduction="none")
            total += losses[done - 1 - begin :].sum().item()
            done = begin + len(part)
            if done >= len(ids):
                break
        expected = math.exp(total / (len(ids) - 1))
        assert abs(ours["perplexity"] / expected - 1) < 1e-4, (window, stride, ours, expected)
        bits = total / math.log(2) / len((text * 3).encode())
        assert abs(ours["bits_per_byte"] / bits - 1) < 1e-4, (ours, bits)
        said.append(f"{ours['perplexity']:.4f} and {expected:.4f}")
    return "; ".join(said)


def multiple_choice(space):
    folder, text = text_of_stories(space)
    words = text.split()
    questions = []
    for n in range(12):
        at = 7 * n % (len(words) - 30)
        right, wrong = " ".join(words[at + 9 : at + 12]), " ".join(reversed(words[at + 12 : at + 14 + n % 3]))
        choices = [right, wrong, words[at + 20]]
        choices = choices[n % 3 :] + choices[: n % 3]
        few = 9 if "stories" in str(folder) else 4  # of a small context, which must hold context and choice
        context = "" if n == 5 else " ".join(words[at + 9 - few : at + 9]) + (" " if n == 6 else "")
        questions.append({"context": context, "choices": choices, "answer": choices.index(right), "id": n})
    space.write("q.jsonl", "".join(json.dumps(q) + "\n" for q in questions) + "\n")
    ours = space.run("--json", "eval", folder, "--choices", "q.jsonl").json

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    begins = tokenizer("a")["input_ids"][0] if "stories" in str(folder) else tokenizer.eos_token_id
    worst, right = 0.0, [0, 0]
    for question, got in zip(questions, ours["log_likelihoods"]):
        scores = []
        for choice in question["choices"]:
            context = question["context"].rstrip()
            joined = context + (" " if context else "") + choice
            whole, before = tokenizer(joined)["input_ids"], len(tokenizer(context)["input_ids"]) if context else 0
            if "stories" in str(folder) and not context:
                before = 1  # the tokenizer itself begins a text
            elif not before:
                whole, before = [begins] + whole, 1
            with torch.no_grad():
                logits = model(torch.tensor([whole[:-1]])).logits[0]
            part = logits[before - 1 :].log_softmax(-1)
            scores.append(part.gather(1, torch.tensor(whole[before:])[:, None]).sum().item())
        worst = max(worst, *(abs(a - b) for a, b in zip(scores, got)))
        for i, lengths in enumerate(([1] * 3, [len(c.encode()) for c in question["choices"]])):
            best = max(range(3), key=lambda c: scores[c] / lengths[c])
            right[i] += best == question["answer"]
    assert worst < 1e-3, f"log-likelihoods differ by {worst}"
    assert ours["accuracy"] == right[0] / 12 and ours["accuracy_per_byte"] == right[1] / 12, (ours, right)
    assert "accuracy" in space.run("eval", folder, "--choices", "q.jsonl").stdout

    for line, says in (
        ("{", "expected JSON"),
        ('{"choices": ["a"], "answer": 0}', "context"),
        ('{"context": "a", "choices": ["b", ""], "answer": 0}', "choices"),
        ('{"context": "a", "choices": ["b"], "answer": 1}', "answer"),
    ):
        space.write("bad.jsonl", json.dumps(questions[0]) + "\n\n" + line + "\n")
        said = space.run("eval", folder, "--choices", "bad.jsonl", expect=2).stderr
        assert "bad.jsonl:3" in said and says in said and len(said.splitlines()) == 1, said
    assert "--data or --choices" in space.run("eval", folder, expect=2).stderr
    return f"log-likelihoods within {worst:.1e}, {100 * ours['accuracy']:.0f}% right"


run_cases(
    [
        each_prompt_as_if_alone,
        stop_strings_cut_the_text,
        a_full_context_slides_and_says_so,
        lines_are_continued_one_by_one,
        perplexity_with_stride,
        multiple_choice,
    ]
)

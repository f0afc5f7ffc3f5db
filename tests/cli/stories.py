"""Imports real weights (llama2.c's stories260K). The model must generate its story byte for byte, and transformers
must agree on the imported folder.  stories.py BINARY PROBE"""

import json
import os
import pathlib
import subprocess
import sys

from support import metrics, run_cases, skip

PROBE = sys.argv[2]
CORPUS = pathlib.Path(
    os.environ.get("MEGALITH_CORPUS", pathlib.Path(__file__).resolve().parents[3] / "shared/corpus")
)
if not (CORPUS / "stories260K.bin").exists():
    skip(
        "the weights stories260K.bin are not at hand (in ../shared/corpus or the folder MEGALITH_CORPUS)"
    )
GOLDEN = json.loads((CORPUS / "stories260K_golden.json").read_text())


def imported(space):
    space.run(
        "import",
        CORPUS / "stories260K.bin",
        "--tokenizer",
        CORPUS / "stories260K_tok512.bin",
        "--out",
        "stories",
    )
    return space / "stories"


def the_story_byte_for_byte(space):
    folder = imported(space)
    steps = len(GOLDEN["greedy_tokens"]) - 1
    said = space.run("generate", folder, "--temperature", 0, "--tokens", steps).stdout
    assert said == GOLDEN["greedy_text"] + "\n", f"{said!r}\nexpected {GOLDEN['greedy_text']!r}"
    # With the first words of the golden text as prompt, `generate` gives the rest of that text.
    prompt = "Once upon a time, there was a little girl"
    assert GOLDEN["greedy_text"].startswith(prompt)
    said = space.run(
        "generate", folder, "--prompt", prompt, "--temperature", 0, "--tokens", 100
    ).stdout.rstrip("\n")
    assert len(said) > 200 and GOLDEN["greedy_text"].startswith(said[:-1]), said
    return f"{len(GOLDEN['greedy_text'])} bytes"


def losses_of_every_position(space):
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = imported(space)
    tokens = GOLDEN["greedy_tokens"]
    space.write("batch.json", json.dumps({"ids": [tokens[:-1]], "targets": [tokens[1:]]}))
    subprocess.run([PROBE, folder, space / "batch.json", space / "out"], check=True, capture_output=True)
    logits = load_file(space / "out/out.safetensors")["logits"].double()
    nll = torch.nn.functional.cross_entropy(logits, torch.tensor(tokens[1:]), reduction="none")
    golden = torch.tensor(GOLDEN["nll_per_position"], dtype=torch.float64)
    worst = (nll - golden).abs().max().item()
    assert worst < 1e-4, f"losses differ by {worst}"
    first = (logits[0] - torch.tensor(GOLDEN["logits_pos0"], dtype=torch.float64)).abs().max().item()
    assert first < 1e-3, f"logits of the first position differ by {first}"

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    with torch.no_grad():
        theirs = model(input_ids=torch.tensor([tokens[:-1]])).logits[0]
    difference = (theirs - logits).abs().max().item()
    assert difference <= 1e-4 * max(1.0, theirs.abs().max().item()), f"transformers differs by {difference}"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert (
        tokenizer(GOLDEN["greedy_text"])["input_ids"]
        == tokens[: len(tokenizer(GOLDEN["greedy_text"])["input_ids"])]
    ), "transformers reads the tokenizer differently"
    return f"losses within {worst:.1e}, transformers' logits within {difference:.1e}"


def it_can_be_trained_further(space):
    imported(space)
    space.write("story.txt", GOLDEN["greedy_text"] * 40)
    space.yaml("further", model="{from: stories}", steps=5, data="{train: story.txt, sequence: 32}", every=0)
    space.train("further")
    first = metrics(space / "runs/further")[0]["loss"]
    assert first < 1.5, f"loss {first}: the weights were not taken over"


run_cases([the_story_byte_for_byte, losses_of_every_position, it_can_be_trained_further])

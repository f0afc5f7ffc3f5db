"""Measures generation in tokens per second, Megalith against Hugging Face transformers: GPT-2 124M with random weights,
greedy, one sequence, a prompt of 32 tokens, 128 new tokens, float32, 2 threads. Both run in turn, so that a busy machine
slows both. The result is the ratio of medians.   bench/generation.py [build/generation_probe] [rounds]"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", OMP_NUM_THREADS="2")
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel

HERE = pathlib.Path(__file__).resolve().parent
PROBE = sys.argv[1] if len(sys.argv) > 1 else str(HERE.parent / "build/generation_probe")
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
PROMPT, TOKENS, THREADS = 32, 128, 2


def cpu():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def main():
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)).eval()
    for parameter in model.parameters():  # with its initial weights it repeats one token
        parameter.data += 0.02 * torch.randn_like(parameter)
    ids = torch.randint(0, 50257, (1, PROMPT))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        ours = subprocess.Popen([PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def megalith():
            job = {"folder": folder, "ids": ids.tolist(), "tokens": TOKENS, "threads": THREADS}
            ours.stdin.write(json.dumps({"greedy": job}) + "\n")
            ours.stdin.flush()
            run = json.loads(ours.stdout.readline())[0]
            return run["prompt_seconds"] + run["seconds"], run["ids"][0]

        def theirs():
            began = time.perf_counter()
            with torch.no_grad():
                said = model.generate(
                    ids, max_new_tokens=TOKENS, do_sample=False, pad_token_id=0, eos_token_id=None,
                    attention_mask=torch.ones_like(ids),
                )
            return time.perf_counter() - began, said[0, PROMPT:].tolist()

        times = {"megalith": [], "transformers": []}
        load = os.getloadavg()[0]
        for n in range(ROUNDS + 1):  # the first of each only warms up
            for name, run in (("megalith", megalith), ("transformers", theirs)):
                seconds, said = run()
                if n > 0:
                    times[name].append(seconds)
                if name == "megalith":
                    expected = said
            assert said == expected, "Megalith and transformers generate different tokens"
        ours.stdin.close()
        ours.wait()

    median = {name: statistics.median(t) for name, t in times.items()}
    ratio = median["transformers"] / median["megalith"]
    print(f"GPT-2 124M, float32, greedy, prompt {PROMPT}, {TOKENS} new tokens, {THREADS} threads, {cpu()}")
    print(f"{'':14} {'tokens/s':>9} {'median s':>9} {'least s':>9}")
    for name, t in times.items():
        print(f"{name:14} {TOKENS / median[name]:9.1f} {median[name]:9.3f} {min(t):9.3f}")
    print(f"ratio of medians: {ratio:.2f}")
    result = {
        "what": "generation, gpt2-124m, float32, greedy",
        "prompt": PROMPT,
        "tokens": TOKENS,
        "threads": THREADS,
        "cpu": cpu(),
        "load_before": load,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "seconds": times,
        "tokens_per_s": {name: TOKENS / m for name, m in median.items()},
        "ratio": ratio,
    }
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results/generation.json").write_text(json.dumps(result, indent=2) + "\n")


main()

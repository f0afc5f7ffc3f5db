"""What the plan says before the run against what the run measures: peak memory within 20%, step time
within 30%. Time is judged only in the long variant, on a machine with nothing else to do.  prediction.py
BINARY [--long]"""

import json
import shutil
import statistics

from support import LONG, run_cases

# Large enough that the model counts beside the process itself (about 100 MiB).
SETTINGS = {
    "gpt2": ("{arch: gpt2, layers: 4, hidden: 256, heads: 4, context: 128}", "causal", 8, 128),
    "llama": ("{arch: llama, layers: 4, hidden: 256, heads: 8, kv_heads: 4, context: 256}", "causal", 4, 256),
    "bert": ("{arch: bert, layers: 4, hidden: 256, heads: 4, context: 128}", "masked", 16, 64),
}


def compare(space, arch, *overrides):
    model, objective, batch, sequence = SETTINGS[arch]
    name = f"{arch}{len(overrides)}"
    # A vocabulary larger than the text's makes the head as heavy as in real models.
    space.yaml(
        name,
        arch,
        model=model[:-1] + ", vocab: 4096}",
        objective=objective,
        data=f"{{train: text.txt, tokenizer: {{train: bpe, vocab: 300}}, sequence: {sequence}}}",
        train=f"{{steps: {40 if LONG else 5}, batch: {batch}, eval_every: 0}}",
        checkpoint="{every: never}",
    )
    # Machines are noisy: each trial calibrates anew, and the typical one counts.
    trials = [trial(space, name, overrides, number) for number in range(3 if LONG else 1)]
    memory, time = (statistics.median(t[i] for t in trials) for i in (0, 1))
    predicted = trials[0][2]
    said = (
        f"{arch} {' '.join(overrides)} memory {predicted['peak_bytes'] >> 20} MiB {memory:+.1%}, "
        f"step {predicted['step_s']:.3f} s {time:+.1%}"
    )
    assert abs(memory) <= 0.2, said
    if LONG:
        assert abs(time) <= 0.3, said
    return said


def trial(space, name, overrides, number):
    """One run with its own measurements of the machine: (memory off by, time off by, what was predicted)."""
    shutil.rmtree(space / "cache", ignore_errors=True)
    run = space / f"runs/{name}-{number}"
    space.train(name, f"run.dir={run}", *overrides, timeout=600)
    predicted = json.loads((run / "plan.json").read_text())["predicted"]
    measured = json.loads((run / "summary.json").read_text())["measured"]
    return (
        measured["peak_bytes"] / predicted["peak_bytes"] - 1,
        measured["step_s"] / predicted["step_s"] - 1,
        predicted,
    )


def gpt2(space):
    return compare(space, "gpt2") + "; " + compare(space, "gpt2", "train.micro_batch=2")


def llama(space):
    return (
        compare(space, "llama")
        + "; "
        + compare(space, "llama", "train.micro_batch=1", "train.optimizer=lion")
    )


def bert(space):
    return compare(space, "bert") + "; " + compare(space, "bert", "train.micro_batch=4")


run_cases([gpt2, llama, bert])

"""Tests that every layout trains the same model. Compares losses of all steps and the gradients of the first with one rank.

layouts.py MEGALITH [--all [--table FILE]] [--only WORD]: without --all, the first eleven. The contract: the first loss within
1e-6 relative, every gradient |d| <= 1e-4 max(|g|, 1e-6 |all|), losses of all steps within 1e-3. A few layouts run 50 steps."""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

STEPS = 6
QUICK = 11
MODELS = {
    "gpt2": "model: {arch: gpt2, layers: 5, hidden: 48, heads: 4, context: 32, dropout: {embedding: 0.1, residual: 0.1, attention: 0.1}}",
    "gpt2 untied": "model: {arch: gpt2, layers: 4, hidden: 48, heads: 4, context: 32, tied: false}",
    "llama": "model: {arch: llama, layers: 4, hidden: 64, heads: 8, kv_heads: 4, ffn: 96, context: 32}",
    "wide llama": "model: {arch: llama, layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn: 1536, context: 32}",
    "wide gpt2": "model: {arch: gpt2, layers: 4, hidden: 512, heads: 4, context: 32}",
    "experts": "model: {arch: llama, layers: 4, hidden: 64, heads: 8, kv_heads: 4, ffn: 64, context: 32, experts: {count: 4}}",
    "wide experts": "model: {arch: llama, layers: 4, hidden: 384, heads: 8, ffn: 384, context: 32, experts: {count: 4, router: noisy}}",
    "few experts": "model: {arch: llama, layers: 4, hidden: 64, heads: 8, ffn: 64, context: 32, experts: {count: 4, router: sigmoid, every: 2, shared: 32, capacity: 1.5}}",
    "three experts": "model: {arch: llama, layers: 4, hidden: 64, heads: 8, ffn: 64, context: 32, experts: {count: 6, router: gshard}}",
    "switch": "model: {arch: llama, layers: 4, hidden: 64, heads: 8, ffn: 64, context: 32, experts: {count: 4, router: switch, capacity: 1.25, group: 8, jitter: 0.01}}",
    "shared layers": "model: {arch: llama, layers: 4, hidden: 64, heads: 8, ffn: 64, context: 32, experts: {count: 4, share_layers: true}}",
    "bert": "model: {arch: bert, layers: 4, hidden: 48, heads: 4, ffn: 96, context: 32}\nobjective: masked",
}
# Curricula of sample length and rare words, and layers that drop tokens: each step has another shape than the previous one.
# If samples are truncated, a step has fewer tokens. If they are split, it has more sequences.
RARE_LATER = "{metric: rarity, unit: percentile, from: 30, to: 100, over: 5 steps, pacing: root 2}"
EFFICIENT = {
    apply: f"curriculum: [{{metric: length, apply: {apply}, from: 8, to: 32, step: {step}, over: 5 steps, hold: {hold}}}, {RARE_LATER}]\n"
    "token_dropping: {from: 6, to: 32, step: 2, over: 8 steps}\n"
    for apply, step, hold in (("truncate", 4, "sequences"), ("reshape", 8, "tokens"))
}


def layout(ranks, model="gpt2", **settings):
    return ranks, model, settings


# `make test` runs only the first QUICK of these layouts.
LAYOUTS = [
    layout(2, zero=1),
    layout(2, "llama", tensor=2),
    layout(2, pipeline=2, schedule="zero_bubble", micro_batch=1),
    layout(2, "llama", context=2),
    layout(4, "bert", tensor=2, zero=2),
    layout(4, pipeline=2, zero=3),
    layout(4, "gpt2", pipeline=2, schedule="interleaved", interleave=2, tensor=2),
    layout(8, "wide llama", pipeline=2, tensor=2, zero=3, spill=True),
    layout(4, "bert", pipeline=2, context=2, efficient="truncate"),
    layout(2, "experts", expert=2),
    layout(4, "few experts", expert=2, zero=3),
    layout(2),
    layout(3, batch=12),
    layout(4),
    layout(8, batch=16),
    layout(2, zero=2),
    layout(2, zero=3),
    layout(4, "llama", zero=3),
    layout(2, "gpt2 untied", tensor=2),
    layout(4, "llama", tensor=4),
    layout(2, "bert", tensor=2),
    layout(2, pipeline=2, schedule="gpipe"),
    layout(3, pipeline=3),
    layout(4, "llama", pipeline=4),
    layout(3, "bert", pipeline=3, micro_batch=1),
    layout(2, pipeline=2, schedule="interleaved", interleave=3, micro_batch=1),
    layout(2, "gpt2 untied", pipeline=2, schedule="interleaved", interleave=2),
    layout(2, pipeline=2),
    layout(4, "llama", pipeline=4, schedule="zero_bubble", micro_batch=1),
    layout(3, "bert", pipeline=3, schedule="zero_bubble"),
    layout(4, pipeline=2, schedule="zero_bubble", zero=2),
    layout(4, "llama", pipeline=2, schedule="zero_bubble", tensor=2, recompute="full"),
    layout(4, pipeline=2, schedule="zero_bubble", context=2, recompute="selective"),
    layout(4, "wide gpt2", pipeline=2, schedule="zero_bubble", zero=3, spill=True),
    layout(2, context=2),
    layout(4, "llama", context=4),
    layout(2, context=2, context_form="ulysses"),
    layout(4, "llama", context=2, tensor=2, context_form="ulysses"),
    layout(4, "bert", context=4, context_form="ulysses", zero=1),
    layout(2, "bert", context=2),
    layout(4, context=2, zero=3),
    layout(4, "llama", tensor=2, context=2),
    layout(4, tensor=2, pipeline=2),
    layout(4, "bert", pipeline=2, context=2),
    layout(4, "gpt2 untied", pipeline=2, zero=1),
    layout(4, pipeline=2, zero=2),
    layout(6, "llama", pipeline=3, zero=1),
    layout(8, tensor=2, pipeline=2, context=2),
    layout(8, "llama", tensor=2, context=2, zero=2),
    layout(8, "bert", pipeline=2, tensor=2, zero=1),
    layout(8, pipeline=2, context=2, zero=3),
    layout(2, "wide gpt2", spill=True),
    layout(2, "wide gpt2", zero=1, spill=True),
    layout(2, "wide llama", zero=2, spill=True),
    layout(4, "wide gpt2", pipeline=2, zero=3, spill=True),
    layout(2, "wide llama", tensor=2, spill=True),
    layout(4, "wide gpt2", pipeline=2, tensor=2, spill=True, recompute="full"),
    layout(4, "llama", zero=3, recompute="full"),
    layout(4, "gpt2", pipeline=2, zero=1, recompute="2"),
    layout(2, pipeline=2, efficient="truncate"),
    layout(2, "llama", tensor=2, efficient="truncate"),
    layout(2, "llama", context=2, efficient="truncate"),
    layout(2, zero=3, efficient="truncate"),
    layout(3, "llama", batch=12, efficient="truncate"),
    layout(2, "bert", tensor=2, efficient="truncate"),
    layout(8, pipeline=2, tensor=2, context=2, efficient="truncate"),
    layout(2, "wide gpt2", zero=3, spill=True, efficient="truncate"),
    layout(8, "wide llama", pipeline=2, tensor=2, zero=3, spill=True, efficient="truncate"),
    layout(4, pipeline=2, efficient="reshape"),
    layout(4, "llama", tensor=2, context=2, efficient="reshape"),
    layout(3, "llama", batch=12, efficient="reshape"),
    layout(2, "wide gpt2", zero=3, spill=True, efficient="reshape"),
    layout(2, pipeline=2, schedule="zero_bubble", micro_batch=1, efficient="truncate"),
    layout(4, pipeline=2, schedule="interleaved", interleave=2, recompute="full", efficient="truncate"),
    layout(4, "llama", context=2, context_form="ulysses", recompute="selective", efficient="reshape"),
    layout(4, "experts", pipeline=2, expert=2, efficient="reshape"),
    layout(2, "experts"),
    layout(4, "experts", pipeline=2, zero=1),
    layout(2, "few experts", zero=2, recompute="full"),
    layout(2, "few experts", zero=3),
    layout(2, "wide experts", zero=1, spill=True),
    layout(4, "experts", expert=4),
    layout(4, "experts", expert=2, zero=1),
    layout(4, "few experts", expert=4, zero=2),
    layout(2, "experts", expert=2, zero=3),
    layout(8, "experts", expert=4, zero=3, batch=16),
    layout(6, "three experts", expert=3, zero=1, batch=12),
    layout(4, "experts", pipeline=2, expert=2),
    layout(4, "few experts", pipeline=2, schedule="gpipe", expert=2, zero=1),
    layout(8, "experts", pipeline=2, schedule="interleaved", interleave=2, expert=2, zero=2, micro_batch=1),
    layout(4, "experts", pipeline=2, expert=2, zero=3),
    layout(2, "experts", pipeline=2, schedule="zero_bubble", micro_batch=1),
    layout(4, "few experts", pipeline=2, schedule="zero_bubble", expert=2),
    layout(4, "wide experts", pipeline=2, schedule="zero_bubble", expert=2, recompute="full"),
    layout(2, "wide experts", expert=2, spill=True),
    layout(4, "wide experts", expert=2, zero=1, spill=True),
    layout(4, "wide experts", expert=2, zero=3, spill=True),
    layout(4, "wide experts", pipeline=2, expert=2, spill=True, recompute="full"),
    layout(2, "experts", expert=2, recompute="full"),
    layout(4, "few experts", expert=2, zero=2, recompute="selective"),
    layout(2, "switch", expert=2),
    layout(2, "shared layers", expert=2),
    layout(2, "few experts", expert=2, efficient="truncate"),
    layout(2, "experts", zero=1, precision="bf16"),
    layout(2, "wide experts", zero=3, spill=True, precision="bf16"),
    layout(2, "experts", tensor=2),
    layout(4, "few experts", tensor=2, expert=2),
    layout(4, "wide experts", tensor=2, expert=2, zero=1, spill=True),
    layout(4, "shared layers", tensor=2, context=2),
    layout(2, "few experts", context=2),
    layout(2, "switch", context=2, context_form="ulysses"),
    layout(4, "experts", context=2, expert=2, zero=3),
    layout(8, "few experts", tensor=2, context=2, expert=2),
    layout(8, "experts", pipeline=2, tensor=2, expert=2, zero=1, recompute="full"),
    layout(4, "few experts", tensor=2, context=2, efficient="truncate"),
]


# Losses of 50 steps, in the campaign.
LONG_STEPS = 50
LONG = [
    layout(2, zero=2),
    layout(2, "llama", tensor=2),
    layout(2, "llama", context=2),
    layout(4, pipeline=2, schedule="zero_bubble", zero=1),
    layout(4, "bert", tensor=2, zero=3),
    layout(8, "llama", pipeline=2, tensor=2, zero=3),
    layout(4, "experts", expert=2, zero=2),
]


def corpus(folder):
    words = "the small stone stands on a hill and nobody knows who put it there or why it is so heavy".split()
    random = np.random.default_rng(3)
    lines = [" ".join(random.choice(words, size=12)) + "." for _ in range(1500)]
    (folder / "text.txt").write_text("\n".join(lines))


def least_of_a_rank(said):
    """MiB per rank that a run needs, from its message that it does not fit."""
    return re.search(r"([0-9.]+) MiB each", said) or re.search(r"at least ([0-9.]+) MiB", said)


class Bench:
    def __init__(self, program, folder):
        self.program, self.folder, self.alone = program, folder, {}
        corpus(folder)

    def train(self, name, ranks, model, batch=8, micro_batch=2, spill=False, recompute="none", steps=STEPS, every=1,
              efficient=None, precision="fp32", **parallel):
        run = self.folder / name
        yaml = self.folder / f"{name}.yaml"
        memory = {"recompute": recompute}
        command = [self.program, "train", str(yaml)] + (["--ranks", str(ranks)] if ranks > 1 else [])
        if spill:
            memory |= {"spill": str(self.folder / f"spill-{name}")}
        # Without clipping, a tenth of the first gradient is AdamW's first moment after one step.
        text = (
            f"run: {{dir: {run}}}\n{MODELS[model]}\n"
            f"data: {{train: [{self.folder}/text.txt], tokenizer: {{train: bpe, vocab: 321}}, sequence: 32, cache: {self.folder}/cache}}\n"
            f"train: {{steps: {steps}, batch: {batch}, micro_batch: {micro_batch}, precision: {precision}, lr: 0.001, clip: 0, threads: 1, eval_every: 3, sample_tokens: 0, warmup: 0, decay: constant}}\n"
            f"checkpoint: {{every: {every}, keep: {STEPS}}}\n"
            f"parallel: {json.dumps(parallel)}\n" + (EFFICIENT[efficient] if efficient else "")
        )
        if spill:  # as little memory as the run says that it can do with: nearly everything is on disk
            yaml.write_text(text + f"memory: {json.dumps(memory | {'ram': '8MiB'})}\n")
            refused = subprocess.run(command, capture_output=True, text=True, timeout=300)
            least = least_of_a_rank(refused.stderr)
            assert refused.returncode == 2 and least, f"{name}: exit {refused.returncode}\n{refused.stderr[-2000:]}"
            return self.train_on_disk(run, yaml, text, memory, command, ranks * int(float(least[1])), ranks)
        yaml.write_text(text + f"memory: {json.dumps(memory)}\n")
        self.run(command)
        return run

    def train_on_disk(self, run, yaml, text, memory, command, least, ranks):
        """The memory of the process itself differs between starts. Lowers the budget until something spills, or raises it if
        the run refuses."""
        before = self.folder / "before"
        if run.exists():
            shutil.copytree(run, before)
        mib, strategy = least + 3 * ranks, {}
        for _ in range(14):
            yaml.write_text(text + f"memory: {json.dumps(memory | {'ram': f'{mib}MiB'})}\n")
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if more := least_of_a_rank(done.stderr) if done.returncode == 2 else None:
                mib = ranks * (int(float(more[1])) + 1)
                continue
            self.succeeded(command, done)
            strategy = json.loads((run / "plan.json").read_text())["strategy"]
            if strategy["blocks_away"] + strategy["blocks_with_moments_away"] > 0:
                shutil.rmtree(before, ignore_errors=True)
                return run
            mib -= ranks
            shutil.rmtree(run)
            if before.exists():
                shutil.copytree(before, run)
        raise AssertionError(f"{yaml.name} never spills: {strategy}")

    def run(self, command):
        self.succeeded(command, subprocess.run(command, capture_output=True, text=True, timeout=300))

    @staticmethod
    def succeeded(command, done):
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")

    def compare(self, ranks, model, settings):
        shape = {k: settings[k] for k in ("batch", "micro_batch", "efficient", "precision") if k in settings}
        key = (model, *sorted(shape.items()))
        if key not in self.alone:
            self.alone[key] = self.train(f"alone-{len(self.alone)}", 1, model, **shape)
        name = f"{ranks}-{model}-" + "-".join(f"{k}{v}" for k, v in settings.items())
        return differences(self.alone[key], self.train(name.replace(" ", "_"), ranks, model, **settings))

    def compare_long(self, ranks, model, settings):
        key = (model, "long")
        if key not in self.alone:
            self.alone[key] = self.train(f"alone-long-{model}", 1, model, steps=LONG_STEPS, every=0)
        name = f"long-{ranks}-{model}-" + "-".join(f"{k}{v}" for k, v in settings.items())
        run = self.train(name, ranks, model, steps=LONG_STEPS, every=0, **settings)
        a, b = metrics(self.alone[key]), metrics(run)
        assert len(a) == len(b) == LONG_STEPS, (len(a), len(b))
        return max(abs(x["loss"] - y["loss"]) / x["loss"] for x, y in zip(a, b)), a[-1]["loss"] / a[0]["loss"]


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def first_gradients(run):
    state = {}
    for file in sorted((run / "checkpoints" / "step-00000001").glob("optimizer-*.safetensors")):
        state |= {k[: -len(".exp_avg")]: v for k, v in load_file(file).items() if k.endswith(".exp_avg")}
    return state


def differences(one, several):
    a, b = metrics(one), metrics(several)
    assert len(a) == len(b) == STEPS, (len(a), len(b))
    relative = [abs(x["loss"] - y["loss"]) / x["loss"] for x, y in zip(a, b)]
    relative += [abs(x["valid_loss"] - y["valid_loss"]) / x["valid_loss"] for x, y in zip(a, b) if "valid_loss" in x]
    g, h = first_gradients(one), first_gradients(several)
    assert g.keys() == h.keys(), g.keys() ^ h.keys()
    whole = np.sqrt(sum(float(np.square(v, dtype=np.float64).sum()) for v in g.values()))
    worst = 0.0
    for name in g:
        norm = np.linalg.norm(g[name].astype(np.float64))
        # BERT's key biases have a gradient of zero, except for rounding (docs/architecture/exactness.md).
        if name.endswith("attention.self.key.bias"):
            assert np.linalg.norm(h[name]) <= 1e-5 * whole, name
            continue
        worst = max(worst, float(np.linalg.norm(g[name].astype(np.float64) - h[name]) / max(norm, 1e-6 * whole)))
    return relative[0], max(relative), worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--table", help="where the table goes, as a page")
    parser.add_argument("--only", default="", help="layouts in whose row of the table this stands")
    arguments = parser.parse_args()
    rows, long_rows, failed = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.program, Path(folder))
        for ranks, model, settings in LAYOUTS if arguments.all else LAYOUTS[:QUICK]:
            what = ", ".join(f"{k} {v}" if v is not True else k for k, v in settings.items()) or "data"
            if arguments.only not in f"| {ranks} | {model} | {what} |":
                continue
            first, losses, gradient = bench.compare(ranks, model, settings)
            good = first <= 1e-6 and losses <= 1e-3 and gradient <= 1e-4
            failed += not good
            rows.append(f"| {ranks} | {model} | {what} | {first:.1e} | {losses:.1e} | {gradient:.1e} | {'yes' if good else 'NO'} |")
            print(rows[-1], flush=True)
        for ranks, model, settings in LONG if arguments.all else []:
            what = ", ".join(f"{k} {v}" for k, v in settings.items())
            if arguments.only not in f"| {ranks} | {model} | {what} | {LONG_STEPS} steps":
                continue
            losses, learned = bench.compare_long(ranks, model, settings)
            good = losses <= 1e-3 and learned < 0.9
            failed += not good
            long_rows.append(f"| {ranks} | {model} | {what} | {losses:.1e} | {'yes' if good else 'NO'} |")
            print(long_rows[-1], flush=True)
    if arguments.table:
        head = (
            "# Layouts\nWritten by `make test-long` (tests/ranks/layouts.py): each layout against one rank, same seed. Relative "
            f"differences of the first loss, of all {STEPS} losses and of the worst gradient of the first step.\n\n"
            "| ranks | model | layout | first loss | losses | gradients | within |\n|---|---|---|---|---|---|---|\n"
        )
        tail = (
            f"\nLosses of {LONG_STEPS} steps.\n\n| ranks | model | layout | losses | within |\n|---|---|---|---|---|\n" + "\n".join(long_rows)
        )
        Path(arguments.table).write_text(head + "\n".join(rows) + "\n" + tail + "\n")
    if failed:
        sys.exit(f"{failed} of {len(rows) + len(long_rows)} layouts are outside of the contract")
    print(f"{len(rows) + len(long_rows)} passed, 0 failed")


if __name__ == "__main__":
    main()

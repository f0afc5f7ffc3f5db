"""The runs of a recording. Micro-batch, threads and window are fixed in every run, because `auto` chooses them from the current
memory and speed. memory.ram is fixed, too. A run that must spill gets `room` bytes for tensors instead, in addition to
the memory of the process itself: another build may need a few MiB more."""

import dataclasses

GPT2 = "{arch: gpt2, layers: 3, hidden: 32, heads: 2, context: 32%s}"
LLAMA = "{arch: llama, layers: 3, hidden: 32, heads: 4, kv_heads: 2, ffn: 64, context: 32%s}"
BERT = "{arch: bert, layers: 3, hidden: 32, heads: 2, ffn: 64, context: 32%s}"
RANKED_GPT2 = "{arch: gpt2, layers: 5, hidden: 48, heads: 4, context: 32, dropout: {embedding: 0.1, residual: 0.1, attention: 0.1}}"
RANKED_LLAMA = "{arch: llama, layers: 4, hidden: 64, heads: 8, kv_heads: 4, ffn: 96, context: 32%s}"
RANKED_BERT = "{arch: bert, layers: 4, hidden: 48, heads: 4, ffn: 96, context: 32}"
WIDE_GPT2 = "{arch: gpt2, layers: 4, hidden: 320, heads: 4, context: 32}"
WIDEST_GPT2 = "{arch: gpt2, layers: 4, hidden: 512, heads: 4, context: 32}"
WIDE_LLAMA = "{arch: llama, layers: 4, hidden: 320, heads: 4, ffn: 896, context: 32}"
WIDE_EXPERTS = "{arch: llama, layers: 4, hidden: 256, heads: 4, ffn: 256, context: 32, experts: {count: 4, router: noisy}}"
MANY_EXPERTS = "{arch: llama, layers: 5, hidden: 192, heads: 4, ffn: 64, context: 16, experts: {count: 64, router: noisy}}"
DEEP = "{arch: llama, layers: 12, hidden: 128, heads: 4, ffn: 256, context: 256}"
DROPOUT = ", dropout: {embedding: 0.1, residual: 0.1, attention: 0.1}"
DATA = "{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 32}"
LENGTHS = "{metric: length, apply: %s, from: 8, to: 32, step: 8, over: 6 steps%s}"
RARITY = "{metric: rarity, unit: percentile, from: 30, to: 100, over: 6 steps, pacing: root 2}"
DROPPING = "{from: 8, to: 32, step: 4, over: 12 steps, layers: [1]}"
SKIPS = dict(precision="fp16", optimizer="sgd", momentum=0, lr=300, clip=0, warmup=0, max_bad_steps=50, steps=7)  # steps that overflow
DEVICE = ("memory.simulated_device.bandwidth=8GB",)
SPILL = "memory.spill=spill"


@dataclasses.dataclass
class Run:
    """`train`: the section's keys that differ from TRAIN. `room`: where between the least and the whole a run's memory is,
    0 to 1. `then`: settings of a second start, which resumes the first. `outlook`: what `memory` and `simulate` say, too."""

    name: str
    model: str
    train: dict = dataclasses.field(default_factory=dict)
    sections: dict = dataclasses.field(default_factory=dict)
    settings: tuple = ()
    ranks: int = 1
    room: float = None
    away: str = None  # key of plan.json's strategy that must be above 0: this run is worth nothing if nothing spills
    device: bool = False
    then: tuple = None
    then_ranks: int = None
    outlook: bool = False


TRAIN = dict(steps=8, batch=4, micro_batch=2, lr=0.003, warmup=2, eval_every=4, eval_batches=2, threads=1)


def run(name, model, train=None, settings=(), sections=None, **more):
    return Run(name, model, train or {}, sections or {}, tuple(settings), **more)


def alone():
    yield run("gpt2", GPT2 % "", outlook=True)
    yield run("gpt2-untied", GPT2 % ", tied: false")
    yield run("llama", LLAMA % "", dict(sample_tokens=6))
    yield run("llama-tied-biases", LLAMA % ", tied: true, qkv_bias: true, head_dim: 16")
    yield run("bert", BERT % "", sections=dict(objective="masked"))
    yield run("bert-words", BERT % "", sections=dict(objective="{kind: masked, whole_words: true, mask_fraction: 0.2}"))
    yield run("prefix", GPT2 % "", sections=dict(objective="prefix"))
    documents = "{train: docs.jsonl, tokenizer: {train: bpe, vocab: 300}, sequence: 32, attention: document}"
    yield run("documents", LLAMA % "", sections=dict(data=documents))
    blended = "{train: [{path: text.txt, weight: 2}, {path: other.txt, weight: 1}], valid: other.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 32}"
    yield run("blended", GPT2 % "", sections=dict(data=blended))
    yield run("two-threads", LLAMA % "", dict(threads=2, micro_batch=4))
    yield run("one-micro", GPT2 % "", dict(micro_batch=1, clip=0.1))
    for decay in ("linear", "inverse_sqrt", "constant"):
        yield run(f"decay-{decay}", GPT2 % "", dict(decay=decay, steps=4, clip=0))
    for arch, model in (("gpt2", GPT2), ("llama", LLAMA), ("bert", BERT)):
        sections = dict(objective="masked") if arch == "bert" else {}
        for precision in ("bf16", "fp16"):
            yield run(f"{precision}-{arch}", model % "", dict(precision=precision), sections=sections)
        yield run(f"dropout-{arch}", model % DROPOUT, sections=sections)
        for recompute in ("selective", "full", "2"):
            yield run(f"recompute-{recompute}-{arch}", model % DROPOUT, dict(steps=4), [f"memory.recompute={recompute}"], sections)
        for packing in ("bf16", "int8"):
            yield run(f"packed-{packing}-{arch}", model % "", dict(steps=4), [f"memory.activations={packing}"], sections)
    yield run("skips", LLAMA % "", SKIPS)
    yield run("packed-full", LLAMA % "", dict(steps=4), ["memory.activations=int8", "memory.recompute=full"])
    yield run("sgd", GPT2 % "", dict(optimizer="sgd", momentum=0.9))
    yield run("sgd-plain", GPT2 % "", dict(optimizer="sgd", momentum=0))
    yield run("lion", LLAMA % "", dict(optimizer="lion"))
    yield run("adafactor", LLAMA % "", dict(optimizer="adafactor"))
    yield run("adafactor-bf16", GPT2 % "", dict(optimizer="adafactor", precision="bf16"))
    for optimizer, state in (("adamw", "bf16"), ("adamw", "int8"), ("lion", "int8"), ("sgd", "bf16")):
        yield run(f"state-{optimizer}-{state}", LLAMA % "", dict(optimizer=optimizer, optimizer_state=state))


def efficient():
    yield run("dropping-gpt2", GPT2 % DROPOUT, sections=dict(token_dropping=DROPPING))
    yield run("dropping-llama-full", LLAMA % "", {}, ["memory.recompute=full"], dict(token_dropping=DROPPING))
    yield run("dropping-bert", BERT % "", sections=dict(objective="masked", token_dropping=DROPPING[:-1] + ", keep_special: true}"))
    for apply, more in (("truncate", ""), ("reshape", ""), ("truncate", ", hold: tokens"), ("reshape", ", hold: tokens")):
        name = f"curriculum-{apply}{'-tokens' if more else ''}"
        yield run(name, GPT2 % "", dict(micro_batch=1), sections=dict(curriculum=f"[{LENGTHS % (apply, more)}, {RARITY}]"), outlook=not more)
    both = dict(curriculum=f"[{LENGTHS % ('truncate', '')}, {RARITY}]", token_dropping=DROPPING)
    yield run("efficient", LLAMA % "", dict(tokens=700, schedule_by="tokens"), sections=both, then=("train.tokens=1100",), outlook=True)
    yield run("efficient-layer-tokens", GPT2 % "", dict(schedule_by="layer_tokens"), sections=both)


ROUTERS = {
    "softmax": "count: 4",
    "noisy": "count: 4, router: noisy",
    "switch": "count: 4, router: switch, capacity: 1.25, group: 8, jitter: 0.01",
    "gshard": "count: 4, router: gshard, capacity: 1.5",
    "expert_choice": "count: 4, router: expert_choice, across: 2, capacity: 1",
    "sigmoid": "count: 4, router: sigmoid, every: 2, shared: 32, capacity: 1.5",
    "shared-layers": "count: 4, share_layers: true",
}


def experts():
    for name, given in ROUTERS.items():
        yield run(f"experts-{name}", LLAMA % f", experts: {{{given}}}")
    four = LLAMA % ", experts: {count: 4, router: noisy}"
    yield run("experts-bf16", four, dict(precision="bf16"))
    yield run("experts-full", four, {}, ["memory.recompute=full"])
    yield run("experts-selective", four, {}, ["memory.recompute=selective"])
    yield run("experts-int8", four, {}, ["memory.activations=int8"])
    yield run("experts-dropping", four, sections=dict(token_dropping=DROPPING))


def spilled():
    short = dict(steps=5, eval_every=3)
    window = ["memory.window=2", SPILL, "memory.recompute=full"]
    moments, away = "blocks_with_moments_away", "blocks_away"
    yield run("spill-partly", WIDE_LLAMA, short, ["memory.window=2", SPILL, "memory.recompute=none"], room=0.85, away=moments, outlook=True)
    yield run("spill-mostly", WIDE_GPT2, short, ["memory.window=2", SPILL, "memory.recompute=none"], room=0.3, away=away)
    yield run("spill-wholly", WIDE_LLAMA, short, ["memory.window=1", SPILL, "memory.recompute=full"], room=0, away=away, outlook=True)
    yield run("spill-window-3", WIDE_GPT2, short, ["memory.window=3", SPILL, "memory.recompute=2"], room=0, away=away)
    for precision in ("bf16", "fp16"):
        yield run(f"spill-{precision}", WIDE_LLAMA, short | dict(precision=precision, batch=2, micro_batch=1), window, room=0, away=away)
    yield run("spill-skips", WIDE_LLAMA, SKIPS | dict(batch=2, micro_batch=1), window, room=0, away=away)
    yield run("spill-int8", WIDE_LLAMA, short | dict(optimizer_state="int8"), window, room=0, away=away)
    yield run("spill-adafactor", WIDE_LLAMA, short | dict(optimizer="adafactor"), window, room=0, away=away)
    yield run("spill-dropping", WIDE_LLAMA, short, window, dict(token_dropping=DROPPING), room=0, away=away)
    long = "{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 256}"
    park = dict(steps=3, eval_every=2, batch=16, micro_batch=16)
    yield run("spill-inputs", DEEP, park, ["memory.window=1", SPILL, "memory.recompute=full"], dict(data=long), room=0,
              away="layers_with_inputs_away")
    few = "{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 8}"
    yield run("spill-lazy-experts", MANY_EXPERTS, dict(steps=12, batch=2, micro_batch=1, clip=0.5), window,
              dict(data=few, checkpoint="{every: 7}"), room=0, away=away, then=("train.steps=16",))
    yield run("spill-resumed", WIDE_GPT2, short, window, room=0, away=away, then=("train.steps=8",))
    yield run("device", WIDE_LLAMA, short, ["memory.window=2", "memory.recompute=none", *DEVICE], device=True, outlook=True)
    yield run("device-full", WIDE_GPT2, short, ["memory.window=1", "memory.recompute=full", *DEVICE], device=True)
    yield run("device-spill", WIDE_LLAMA, short, ["memory.window=2", SPILL, "memory.recompute=full", *DEVICE], device=True, room=0, away=away)


def ranked(name, ranks, model, settings, **more):
    settings = [word if "=" in word and "." in word else f"parallel.{word}" for word in settings.split()]
    train = dict(steps=6, batch=8, eval_every=3) | more.pop("train", {})
    return run(name, model, train, settings, more.pop("sections", {}), ranks=ranks, **more)


def several():
    gpt2, llama, masked = RANKED_GPT2, RANKED_LLAMA % "", dict(objective="masked")
    four = RANKED_LLAMA % ", experts: {count: 4}"
    few = RANKED_LLAMA % ", experts: {count: 4, router: sigmoid, every: 2, shared: 32, capacity: 1.5}"
    both = dict(curriculum=f"[{LENGTHS % ('truncate', '')}, {RARITY}]", token_dropping=DROPPING)
    yield ranked("data-2", 2, gpt2, "", outlook=True)
    yield ranked("data-4-bf16", 4, llama, "", train=dict(precision="bf16"))
    yield ranked("data-2-sampled", 2, llama, "", train=dict(sample_tokens=4))
    for zero in (1, 2, 3):
        yield ranked(f"zero-{zero}", 2, gpt2, f"zero={zero}", outlook=zero == 3)
    yield ranked("zero-1-fp16", 2, llama, "zero=1", train=dict(precision="fp16"))
    yield ranked("zero-2-skips", 2, llama, "zero=2", train=SKIPS)
    yield ranked("zero-3-4-full", 4, llama, "zero=3 memory.recompute=full")
    yield ranked("zero-2-lion", 2, llama, "zero=2", train=dict(optimizer="lion", optimizer_state="bf16"))
    yield ranked("tensor-2", 2, llama, "tensor=2", outlook=True)
    yield ranked("tensor-2-gpt2", 2, gpt2, "tensor=2")
    yield ranked("tensor-2-bert-zero-2", 4, RANKED_BERT, "tensor=2 zero=2", sections=masked)
    yield ranked("tensor-4", 4, llama, "tensor=4")
    yield ranked("context-2", 2, llama, "context=2", outlook=True)
    yield ranked("context-2-ulysses", 2, gpt2, "context=2 context_form=ulysses")
    yield ranked("context-4-ulysses-bert", 4, RANKED_BERT, "context=4 context_form=ulysses zero=1", sections=masked)
    yield ranked("context-tensor", 4, llama, "context=2 tensor=2")
    yield ranked("context-zero-3", 4, gpt2, "context=2 zero=3")
    yield ranked("gpipe", 2, gpt2, "pipeline=2 schedule=gpipe")
    yield ranked("1f1b", 2, gpt2, "pipeline=2", outlook=True)
    yield ranked("1f1b-4", 4, llama, "pipeline=4", train=dict(micro_batch=1))
    yield ranked("interleaved", 2, gpt2, "pipeline=2 schedule=interleaved interleave=3", train=dict(micro_batch=1))
    yield ranked("zero-bubble", 2, gpt2, "pipeline=2 schedule=zero_bubble", train=dict(micro_batch=1), outlook=True)
    yield ranked("zero-bubble-4", 4, llama, "pipeline=2 schedule=zero_bubble tensor=2 memory.recompute=full")
    yield ranked("pipeline-zero-3", 4, gpt2, "pipeline=2 zero=3")
    yield ranked("pipeline-zero-1", 4, gpt2, "pipeline=2 zero=1 memory.recompute=2")
    yield ranked("pipeline-tensor", 4, gpt2, "pipeline=2 tensor=2 schedule=interleaved interleave=2")
    yield ranked("pipeline-context-bert", 4, RANKED_BERT, "pipeline=2 context=2", sections=masked | both)
    yield ranked("efficient-2", 2, gpt2, "pipeline=2", sections=both)
    yield ranked("expert-2", 2, four, "expert=2", outlook=True)
    yield ranked("expert-2-zero-3", 4, few, "expert=2 zero=3")
    yield ranked("expert-tensor", 4, few, "expert=2 tensor=2")
    yield ranked("expert-context", 4, four, "expert=2 context=2 zero=1")
    yield ranked("expert-pipeline", 4, few, "expert=2 pipeline=2 schedule=zero_bubble")
    yield ranked("expert-full", 2, four, "expert=2 memory.recompute=full")
    on_disk = f"memory.window=2 memory.recompute=full {SPILL}"
    yield ranked("zero-3-spill", 2, WIDEST_GPT2, f"zero=3 {on_disk}", room=0, away="blocks_away", train=dict(steps=4))
    yield ranked("zero-1-spill", 2, WIDE_LLAMA, f"zero=1 {on_disk}", room=0, away="blocks_away", train=dict(steps=4))
    yield ranked("tensor-spill", 2, WIDE_LLAMA, f"tensor=2 {on_disk}", room=0, away="blocks_away", train=dict(steps=4))
    yield ranked("expert-spill", 2, WIDE_EXPERTS, f"expert=2 {on_disk}", room=0, away="blocks_away", train=dict(steps=4))
    yield ranked("pipeline-zero-3-spill", 4, WIDEST_GPT2, f"pipeline=2 zero=3 {on_disk}", room=0, away="blocks_away", train=dict(steps=4))


def resumed():
    more = ("train.steps=8",)
    yield run("resumed", GPT2 % DROPOUT, dict(steps=4), then=more)
    yield run("resumed-fp16", LLAMA % "", dict(steps=4, precision="fp16"), then=more)
    yield run("resumed-int8", LLAMA % "", dict(steps=4, optimizer_state="int8"), then=more)
    yield ranked("resumed-2", 2, RANKED_GPT2, "zero=1", train=dict(steps=4), then=more)
    yield ranked("resumed-2-to-1", 2, RANKED_LLAMA % "", "tensor=2", train=dict(steps=4), then=(*more, "parallel.tensor=1"), then_ranks=1)
    yield ranked("resumed-1-to-4", 1, RANKED_GPT2, "", train=dict(steps=4), then=(*more, "parallel.pipeline=2", "parallel.tensor=2"), then_ranks=4)
    yield ranked("resumed-4-to-2", 4, RANKED_GPT2, "pipeline=2 zero=3", train=dict(steps=4),
                 then=(*more, "parallel.pipeline=1", "parallel.zero=0", "parallel.context=2"), then_ranks=2)
    yield ranked("resumed-experts", 2, RANKED_LLAMA % ", experts: {count: 4}", "expert=2", train=dict(steps=4),
                 then=(*more, "parallel.expert=4", "parallel.zero=1"), then_ranks=4)


def all_runs():
    for group in (several, spilled, resumed, alone, efficient, experts):  # the longest first
        yield from group()

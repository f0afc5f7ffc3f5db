"""Compares the contrastive objective with PyTorch: losses, every gradient, vectors of texts. Also with itself: micro-batches,
ranks, spilling, resume.  contrastive.py BINARY"""

import json
import random

import numpy
import torch
import transformers
from safetensors.torch import load_file

from support import assert_same_run, metrics, run_cases, text

COLUMNS = ["anchor", "positive", "no"]


def sentences(count, seed):
    chance, words = random.Random(seed), text(3000, seed).replace(".", "").split()
    return [" ".join(chance.sample(words, chance.randint(2, 12))) for _ in range(count)]


def write_pairs(space, count=8, name="pairs.jsonl"):
    """Writes rows of three texts. Two pairs share an anchor, and one positive occurs as a negative of another pair."""
    texts = sentences(3 * count, 5)
    rows = [dict(zip(COLUMNS, texts[3 * i : 3 * i + 3])) for i in range(count)]
    rows[1]["anchor"] = rows[0]["anchor"]
    rows[2]["no"] = rows[3]["positive"]
    space.write(name, "".join(json.dumps(row) + "\n" for row in rows))
    return rows


def write_model(space, family):
    """Writes a folder of transformers with random weights, and returns model and tokenizer."""
    torch.manual_seed(3)
    words = sorted({w for sentence in sentences(200, 5) for w in sentence.split()} | set(text(3000, 5).replace(".", "").split()))
    vocab = space.write("vocab.txt", "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    tokenizer = transformers.BertTokenizer(vocab=str(vocab), do_lower_case=False)
    sizes = dict(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                 intermediate_size=48, max_position_embeddings=32)
    if family == "bert":
        config = transformers.BertConfig(**sizes, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
        model = transformers.BertModel(config, add_pooling_layer=False)
    else:
        config = transformers.LlamaConfig(**sizes, num_key_value_heads=2)
        model = transformers.LlamaModel(config)
    # Larger than the usual initial values, so that texts have different vectors.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(4)
    model.save_pretrained(space / "model")
    tokenizer.save_pretrained(space / "model")
    return model.eval(), tokenizer


def vectors(model, tokenizer, texts, pooling, longest):
    batch = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
    mask = batch["attention_mask"]
    out = model(input_ids=batch["input_ids"], attention_mask=mask).last_hidden_state
    if pooling == "cls":
        return out[:, 0]
    if pooling == "last":
        return out[torch.arange(len(texts)), mask.sum(1) - 1]
    return (out * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def info_nce(vectors_of_column, texts_of_column, temperature, symmetric):
    """The mean loss, by its definition. Candidates with the text of the anchor or of the positive are no negatives."""
    unit = [torch.nn.functional.normalize(v, dim=1) for v in vectors_of_column]

    def direction(queries, query_texts, candidates, candidate_texts):
        scores = torch.cat(queries) @ torch.cat(candidates).T / temperature
        for i, query in enumerate(query_texts):
            for j, candidate in enumerate(candidate_texts):
                if j != i and candidate in (query, candidate_texts[i]):
                    scores[i, j] = -torch.inf
        return torch.nn.functional.cross_entropy(scores, torch.arange(len(query_texts)))

    flat = [t for texts in texts_of_column[1:] for t in texts]
    loss = direction(unit[:1], texts_of_column[0], unit[1:], flat)
    if symmetric:
        loss = (loss + direction(unit[1:2], texts_of_column[1], unit[:1], texts_of_column[0])) / 2
    return loss


def settings(space, name="run", steps=1, train="", objective="", more=""):
    space.write(f"{name}.yaml", f"""
model: {{from: model}}
objective: {{kind: contrastive, temperature: 0.1, pairs: columns, negative_columns: [no]{objective}}}
data: {{train: pairs.jsonl, tokenizer: model, sequence: 16, valid_fraction: 0}}
train: {{steps: {steps}, batch: 8, lr: 0.5, decay: constant, optimizer: sgd, momentum: 0, weight_decay: 0, clip: 0, threads: 1{train}}}
{more}
""")


def gradients(space, run, before):
    """One step of SGD without momentum moves each weight by its gradient times the rate."""
    [checkpoint] = (space / f"runs/{run}/checkpoints").iterdir()
    after = load_file(checkpoint / "model.safetensors")
    return {name: (before[name] - value) / 0.5 for name, value in after.items()}


def agrees_with_pytorch(space):
    said = []
    for family, pooling, symmetric in ("bert", "mean", False), ("bert", "cls", True), ("llama", "last", False):
        model, tokenizer = write_model(space, family)
        rows = write_pairs(space)
        prefix = {"bert": "bert.", "llama": "model."}[family]
        before = {prefix + n: p.detach().clone() for n, p in model.named_parameters()}
        texts = [[row[c] for row in rows] for c in COLUMNS]
        model.zero_grad()
        loss = info_nce([vectors(model, tokenizer, t, pooling, 16) for t in texts], texts, 0.1, symmetric)
        loss.backward()
        name = f"{family}_{pooling}"
        settings(space, name, objective=f", pooling: {pooling}, symmetric: {str(symmetric).lower()}")
        space.train(name)
        got = metrics(space / f"runs/{name}")[0]["loss"]
        assert abs(got - loss.item()) < 1e-5, f"{name}: loss {got}, PyTorch {loss.item()}"
        worst = 0
        for parameter, gradient in gradients(space, name, before).items():
            wanted = dict(model.named_parameters())[parameter.removeprefix(prefix)].grad
            wanted = torch.zeros_like(gradient) if wanted is None else wanted
            worst = max(worst, (gradient - wanted).abs().max().item())
        assert worst < 1e-5, f"{name}: a gradient is off by {worst}"
        said.append(f"{name} {worst:.0e}")
        # Vectors of texts, also of one that is cut off, and of an empty one.
        lines = [*sentences(9, 6), " ".join(sentences(4, 7)), ""]
        space.write("lines.txt", "\n".join(lines) + "\n")
        space.run("embed", f"runs/{name}", "lines.txt", "--out", f"{name}.npy")
        space.run("embed", f"runs/{name}", "lines.txt", "--out", f"{name}.safetensors")
        trained = type(model).from_pretrained(next((space / f"runs/{name}/checkpoints").iterdir())).eval()
        with torch.no_grad():
            expected = vectors(trained, tokenizer, lines, pooling, 16).numpy()
        found = numpy.load(space / f"{name}.npy")
        assert numpy.abs(found - expected).max() < 1e-5, f"{name}: vectors are off by {numpy.abs(found - expected).max()}"
        assert (load_file(space / f"{name}.safetensors")["embeddings"].numpy() == found).all()
    return ", ".join(said)


def does_not_depend_on_the_layout(space):
    model, _ = write_model(space, "bert")
    write_pairs(space)
    before = {"bert." + n: p.detach().clone() for n, p in model.named_parameters()}
    settings(space, "whole", train=", micro_batch: 24")
    space.train("whole")
    expected, loss = gradients(space, "whole", before), metrics(space / "runs/whole")[0]["loss"]
    layouts = {
        "micro3": ("train.micro_batch=3",), "micro1": ("train.micro_batch=1",),
        "full": ("train.micro_batch=6", "memory.recompute=full"), "disk": ("train.micro_batch=4", "memory.ram=92MiB", "memory.spill=spill"),
        "data2": ("--ranks", 2, "train.micro_batch=4"), "data3": ("--ranks", 3, "train.micro_batch=8"),
        "data4": ("--ranks", 4, "parallel.zero=3", "train.micro_batch=3"),
        "tensor2": ("--ranks", 2, "parallel.tensor=2", "train.micro_batch=4"),
        "context2": ("--ranks", 2, "parallel.context=2", "train.micro_batch=4"),
        "stages2": ("--ranks", 2, "parallel.pipeline=2", "train.micro_batch=4"),
        "mixed4": ("--ranks", 4, "parallel.pipeline=2", "train.micro_batch=3", "parallel.zero=1"),
    }
    worst = 0
    for name, arguments in layouts.items():
        settings(space, name, train=", micro_batch: 24")
        space.train(name, *arguments)
        got = metrics(space / f"runs/{name}")[0]["loss"]
        assert abs(got - loss) < 1e-5, f"{name}: loss {got}, in one micro-batch {loss}"
        for parameter, gradient in gradients(space, name, before).items():
            off = (gradient - expected[parameter]).abs().max().item()
            assert off < 1e-5, f"{name}: the gradient of {parameter} is off by {off}"
            worst = max(worst, off)
    return f"{len(layouts)} layouts, largest difference {worst:.0e}"


def resumes_exactly(space):
    """Pairs of equal texts with dropout; a resume in the middle gives the same bits."""
    space.yaml("long", steps=8, every=4, objective="contrastive",
               model="{arch: gpt2, layers: 2, hidden: 32, heads: 2, context: 32, dropout: {residual: 0.2}}")
    same = ("train.decay=constant", "train.eval_every=4", "train.eval_batches=0")
    space.train("long", *same, "run.dir=runs/whole")
    space.train("long", *same, "train.steps=4", "run.dir=runs/cut")
    space.train("long", *same, "run.dir=runs/cut")
    assert_same_run(space / "runs/cut", space / "runs/whole", "resumed")
    losses = [m["loss"] for m in metrics(space / "runs/whole")]
    assert all(loss > 0 for loss in losses), losses
    assert "perplexity" not in space.train("long", "run.dir=runs/again").stderr


def bad_input(space):
    write_model(space, "bert")
    rows = write_pairs(space)
    settings(space, "bad")

    def refused(words, *overrides):
        result = space.train("bad", *overrides, expect=2)
        for word in words:
            assert word in result.stderr, f"{words}: {result.stderr}"

    refused(["pairs.jsonl:1", "objective.columns", '"hard"'], "objective.negative_columns=[hard]")
    refused(["train.batch", "at least 2 pairs"], "train.batch=1")
    refused(["objective.columns", "two fields"], "objective.columns=[anchor]")
    refused(["train.micro_batch", "24 sequences"], "train.micro_batch=5")
    refused(["at least 9 rows"], "train.batch=9")
    refused(["objective.pairs", "dropout in the model"], "objective.pairs=dropout", "objective.negative_columns=null")
    refused(["model.new_head", "no head is read"], "model.new_head=true")
    rows[4]["no"] = ""
    space.write("pairs.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    refused(["pairs.jsonl:5", "no", "an empty text"], "run.dir=runs/empty")
    space.write("text.txt", "some text\n")
    refused(["text.txt", "JSON lines"], "data.train=text.txt", "run.dir=runs/text")


if __name__ == "__main__":
    run_cases([agrees_with_pytorch, does_not_depend_on_the_layout, resumes_exactly, bad_input])

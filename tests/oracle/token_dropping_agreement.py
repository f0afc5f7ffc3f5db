"""Compares layers that drop tokens in Megalith and in transformers. Plain PyTorch wraps each such layer of transformers: it
gathers the kept tokens, runs the layer with their true positions and mask, and scatters the result. The test compares loss and
every gradient in float64, also with documents, with prefixes and with tokens that are always kept.

    token_dropping_agreement.py gpt2|llama|bert PROBE
"""
import copy
import inspect
import json
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file

from transformers_agreement import models


def layers_of(model):
    for path in ("transformer.h", "model.layers", "bert.encoder.layer"):
        try:
            return model.get_submodule(path)
        except AttributeError:
            pass
    raise SystemExit("no layers found")


def sights(arch, length, begin_BT, prefix_B):
    """Returns which positions each position may see: [B, T, T]."""
    t = torch.arange(length)
    allowed = torch.ones(length, length, dtype=bool) if arch == "bert" else t[:, None] >= t[None]
    allowed = allowed | (t[None, None] < prefix_B[:, None, None])
    return allowed & (begin_BT[:, :, None] == begin_BT[:, None])


def additive(allowed_BTT):
    return torch.zeros(allowed_BTT.shape, dtype=torch.float64).masked_fill(~allowed_BTT, float("-inf")).unsqueeze(1)


def drop(layer, rows_BK, allowed_BTT):
    """Makes a layer see only the tokens of rows_BK, which hold positions inside each sequence."""
    whole = layer.forward
    kept, length = rows_BK.shape[1], allowed_BTT.shape[-1]
    mask = additive(allowed_BTT.gather(1, rows_BK[:, :, None].expand(-1, -1, length)).gather(2, rows_BK[:, None].expand(-1, kept, -1)))

    def forward(hidden_BTC, *args, **kwargs):
        index = rows_BK.unsqueeze(-1)
        call = inspect.signature(whole).bind(hidden_BTC.gather(1, index.expand(-1, -1, hidden_BTC.shape[-1])), *args, **kwargs)
        call.arguments["attention_mask"] = mask
        for name in (call.arguments, call.arguments.get("kwargs", {})):
            if name.get("position_embeddings") is not None:  # cosines and sines, of the true positions
                name["position_embeddings"] = tuple(
                    table.expand(rows_BK.shape[0], -1, -1).gather(1, index.expand(-1, -1, table.shape[-1]))
                    for table in name["position_embeddings"])
        out = whole(*call.args, **call.kwargs)
        y = out[0] if isinstance(out, tuple) else out
        result = hidden_BTC.scatter(1, index.expand(-1, -1, y.shape[-1]), y)
        return (result, *out[1:]) if isinstance(out, tuple) else result

    layer.forward = forward


def check(arch, label, model, length, probe, micros, kept, form):
    torch.manual_seed(2)
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    model.config._attn_implementation = "eager"
    model.train()
    vocab, count = model.config.vocab_size, len(layers_of(model))
    dropping = list(range(count)) if count < 3 else list(range(1, count))
    ids = torch.randint(1, vocab, (4, length))
    targets = torch.randint(0, vocab, ids.shape)
    targets[torch.rand(ids.shape) < (0.8 if arch == "bert" else 0.1)] = -100
    targets[:, 0] = 3
    begin, prefix, always = torch.zeros_like(ids), torch.zeros(4, dtype=int), torch.zeros_like(ids)
    if form == "documents":  # some begin inside a sequence
        for b, cuts in enumerate(([5], [1, 9], [], [length - 2])):
            for cut in cuts:
                begin[b, cut:] = cut
    if form == "prefix":
        prefix = torch.tensor([3, length // 2, 1, length])
    if form == "always":
        always[:, 0] = always[:, length // 2] = 1
    extra = {"documents": {"document_begin": begin.flatten().tolist()}, "prefix": {"prefix": prefix.tolist()},
             "always": {"always": always.flatten().tolist()}}.get(form, {})
    seen = {"attention_mask": additive(sights(arch, length, begin, prefix)), "position_ids": torch.arange(length) - begin}
    if arch != "bert":
        seen["use_cache"] = False
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder + "/model")
        with open(folder + "/batch.json", "w") as f:
            json.dump({"ids": ids.tolist(), "targets": targets.tolist(), "micros": micros, "kept": kept,
                       "dropping_layers": dropping, **extra}, f)
        done = subprocess.run([probe, folder + "/model", folder + "/batch.json", folder + "/out"], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{arch} {label}: probe failed: {done.stderr}")
        ours, tensors = json.loads(done.stdout), load_file(folder + "/out/out.safetensors")

    model.double()

    def loss_of(model):
        return torch.nn.functional.cross_entropy(model(input_ids=ids, **seen).logits.view(-1, vocab), targets.view(-1))

    whole = loss_of(model)
    chosen = []
    for number in dropping:
        rows = torch.tensor(ours["rows"][str(number)]).view(4, kept) % length
        assert (rows.diff() > 0).all(), "kept tokens are not in their order"
        chosen.append(rows.tolist())
        if form == "always":
            assert all(set(torch.nonzero(of).flatten().tolist()) <= set(r) for of, r in zip(always, rows.tolist())), \
                "a token that must be kept was dropped"
        drop(layers_of(model)[number], rows, sights(arch, length, begin, prefix))
    assert len({str(r) for r in chosen}) == len(chosen), "layers drop the same tokens"
    loss = loss_of(model)
    loss.backward()
    relative = abs(ours["loss"] - loss.item()) / loss.item()
    assert relative < 1e-6, f"{arch} {label}: loss {ours['loss']} and {loss.item()}"
    assert abs(whole.item() - loss.item()) > 1e-4, "dropping changes nothing: this compares nothing"
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    total = torch.sqrt(sum(g.pow(2).sum() for g in gradients.values())).item()
    worst = 0.0
    assert {"grad." + n for n in gradients} == {n for n in tensors if n.startswith("grad.")}, "other parameter names"
    for name, g in gradients.items():
        error = (tensors["grad." + name].double() - g).norm().item()
        # The gradients of BERT's key biases are only rounding errors: see docs/architecture/exactness.md.
        allowed = 1e-4 * max(g.norm().item(), (1e-6 if g.norm().item() > 1e-9 * total else 1e-2) * total)
        worst = max(worst, error / allowed)
        assert error <= allowed, f"{arch} {label}: gradient of {name} differs by {error}, allowed {allowed}"
    print(f"{arch} {label}, {form}, {kept} of {length} tokens in layers {dropping}, {micros} micro-batch(es): loss within "
          f"{relative:.1e}, gradients at most {worst:.3f} of their bound")


if __name__ == "__main__":
    arch, probe = sys.argv[1:3]
    torch.set_num_threads(2)
    for micros in (1, 2):
        torch.manual_seed(0)
        for label, model, length in models(arch):
            for form in ("plain", "documents", "always") + (("prefix",) if arch != "bert" else ()):
                check(arch, label, copy.deepcopy(model), length, probe, micros, length // 2 if micros == 1 else 7, form)

"""Layers that drop tokens, in Megalith and in transformers with each such layer wrapped in plain PyTorch: gather the
kept tokens, run the layer on them at their true positions, scatter the result. Loss and every gradient, in float64.

    token_dropping_agreement.py gpt2|llama|bert PROBE
"""
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


def drop(layer, rows_BK, causal):
    """Makes a layer see only the tokens of rows_BK, which hold positions inside each sequence."""
    whole = layer.forward
    kept = rows_BK.shape[1]

    def forward(hidden_BTC, *args, **kwargs):
        index = rows_BK.unsqueeze(-1)
        call = inspect.signature(whole).bind(hidden_BTC.gather(1, index.expand(-1, -1, hidden_BTC.shape[-1])), *args, **kwargs)
        mask = torch.full((kept, kept), float("-inf"), dtype=hidden_BTC.dtype).triu(1) if causal else None
        call.arguments["attention_mask"] = mask[None, None].expand(rows_BK.shape[0], 1, kept, kept) if causal else None
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


def check(arch, label, model, length, probe, micros, kept):
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
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder + "/model")
        with open(folder + "/batch.json", "w") as f:
            json.dump({"ids": ids.tolist(), "targets": targets.tolist(), "micros": micros, "kept": kept,
                       "dropping_layers": dropping}, f)
        done = subprocess.run([probe, folder + "/model", folder + "/batch.json", folder + "/out"], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{arch} {label}: probe failed: {done.stderr}")
        ours, tensors = json.loads(done.stdout), load_file(folder + "/out/out.safetensors")

    model.double()
    whole = torch.nn.functional.cross_entropy(model(input_ids=ids).logits.view(-1, vocab), targets.view(-1), ignore_index=-100)
    chosen = []
    for number in dropping:
        rows = torch.tensor(ours["rows"][str(number)]).view(4, kept) % length
        assert (rows.diff() > 0).all(), "kept tokens are not in their order"
        chosen.append(rows.tolist())
        drop(layers_of(model)[number], rows, arch != "bert")
    assert len({str(r) for r in chosen}) == len(chosen), "layers drop the same tokens"
    loss = torch.nn.functional.cross_entropy(model(input_ids=ids, use_cache=False).logits.view(-1, vocab)
                                             if arch != "bert" else model(input_ids=ids).logits.view(-1, vocab),
                                             targets.view(-1), ignore_index=-100)
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
        # BERT's key biases have no gradient but rounding: see docs/architecture.md.
        allowed = 1e-4 * max(g.norm().item(), (1e-6 if g.norm().item() > 1e-9 * total else 1e-2) * total)
        worst = max(worst, error / allowed)
        assert error <= allowed, f"{arch} {label}: gradient of {name} differs by {error}, allowed {allowed}"
    print(f"{arch} {label}, {kept} of {length} tokens in layers {dropping}, {micros} micro-batch(es): loss within "
          f"{relative:.1e}, gradients at most {worst:.3f} of their bound")


if __name__ == "__main__":
    arch, probe = sys.argv[1:3]
    torch.set_num_threads(2)
    for micros in (1, 2):
        torch.manual_seed(0)
        for label, model, length in models(arch):
            check(arch, label, model, length, probe, micros, kept=length // 2 if micros == 1 else 7)

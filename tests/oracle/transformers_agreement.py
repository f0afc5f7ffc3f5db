"""Compares Megalith with Hugging Face transformers for the same weights: logits, every gradient, and the losses of 20 AdamW
steps. The bounds are those of the exactness contract (docs/architecture/exactness.md)."""
import copy
import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import load_file
from transformers import (BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          MistralConfig, MistralForCausalLM, MixtralConfig, MixtralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen2MoeConfig, Qwen2MoeForCausalLM)
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

STEPS = 20
# If the scores of the last chosen expert and the next one are nearer than this, float32 cannot distinguish them. Then rounding
# decides which expert a token goes to, also in transformers. This changes the loss of a step by more than the contract allows.
TIE = 1e-5


def models(arch):
    """Returns ordinary sizes and odd ones: heads 5, vocabulary 1009, sequence 37."""
    if arch == "gpt2":
        plain = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        yield "even", GPT2LMHeadModel(GPT2Config(vocab_size=512, n_positions=64, n_embd=64, n_layer=3, n_head=4, **plain)), 64
        yield "odd", GPT2LMHeadModel(GPT2Config(vocab_size=1009, n_positions=41, n_embd=35, n_layer=2, n_head=5, **plain)), 37
        yield "untied", GPT2LMHeadModel(GPT2Config(vocab_size=300, n_positions=32, n_embd=32, n_layer=2, n_head=2,
                                                   tie_word_embeddings=False, **plain)), 32
    elif arch == "llama":
        yield "grouped", LlamaForCausalLM(LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=176, num_hidden_layers=3,
                                                      num_attention_heads=8, num_key_value_heads=2,
                                                      max_position_embeddings=64, rms_norm_eps=1e-5)), 64
        yield "odd", LlamaForCausalLM(LlamaConfig(vocab_size=1009, hidden_size=50, intermediate_size=71, num_hidden_layers=2,
                                                  num_attention_heads=5, num_key_value_heads=5, max_position_embeddings=64,
                                                  rms_norm_eps=1e-5, rope_theta=5000.0)), 37
        yield "tied", LlamaForCausalLM(LlamaConfig(vocab_size=257, hidden_size=48, intermediate_size=96, num_hidden_layers=2,
                                                   num_attention_heads=6, num_key_value_heads=3, max_position_embeddings=64,
                                                   rms_norm_eps=1e-6, tie_word_embeddings=True)), 33
    elif arch == "kin":  # variants of llama that differ only in keys
        sizes = dict(vocab_size=301, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
                     num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-6)
        yield "mistral", MistralForCausalLM(MistralConfig(sliding_window=64, head_dim=12, **sizes)), 40
        yield "qwen2", Qwen2ForCausalLM(Qwen2Config(tie_word_embeddings=True, rope_theta=1e6, **sizes)), 40
        yield "heads of 4", LlamaForCausalLM(LlamaConfig(head_dim=4, **sizes)), 37
        yield "biases", LlamaForCausalLM(LlamaConfig(attention_bias=True, **sizes)), 33
        stretched = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                         original_max_position_embeddings=16)
        yield "llama 3", LlamaForCausalLM(LlamaConfig(head_dim=16, rope_parameters=stretched, **sizes)), 64
    elif arch == "experts":
        sizes = dict(vocab_size=301, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
                     num_key_value_heads=2, max_position_embeddings=64)
        yield "mixtral", MixtralForCausalLM(MixtralConfig(num_local_experts=8, **sizes)), 40
        yield "mixtral, three of 5", MixtralForCausalLM(MixtralConfig(num_local_experts=5, num_experts_per_tok=3, **sizes)), 37
        yield "qwen2-moe", Qwen2MoeForCausalLM(Qwen2MoeConfig(
            num_experts=6, num_experts_per_tok=3, moe_intermediate_size=28, shared_expert_intermediate_size=36, **sizes)), 40
        yield "qwen2-moe, some layers", Qwen2MoeForCausalLM(Qwen2MoeConfig(
            num_experts=4, num_experts_per_tok=2, moe_intermediate_size=28, shared_expert_intermediate_size=36,
            norm_topk_prob=True, decoder_sparse_step=2, mlp_only_layers=[0, 1],
            **(sizes | dict(num_hidden_layers=5)))), 33
        # The balancing loss of transformers is over all layers and the whole batch. With one of each it equals ours.
        yield "mixtral, balanced", MixtralForCausalLM(MixtralConfig(
            num_local_experts=4, output_router_logits=True, router_aux_loss_coef=0.5,
            **(sizes | dict(num_hidden_layers=1)))), 64
    else:
        plain = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        yield "even", BertForMaskedLM(BertConfig(vocab_size=512, hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
                                                 intermediate_size=256, max_position_embeddings=64, **plain)), 64
        yield "odd", BertForMaskedLM(BertConfig(vocab_size=1009, hidden_size=35, num_hidden_layers=2, num_attention_heads=5,
                                                intermediate_size=77, max_position_embeddings=40, **plain)), 37
        yield "untied", BertForMaskedLM(BertConfig(vocab_size=300, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                                   intermediate_size=64, max_position_embeddings=32, tie_word_embeddings=False,
                                                   **plain)), 32


def decays(name):
    """Groups parameters as Megalith does: matrices and tables decay, norms and biases do not."""
    lowered = name.lower()
    return not (lowered.endswith("bias") or "norm" in lowered or ".ln_" in lowered)


def as_stored(model, tensors):
    """Returns tensors by their names in files. Experts are one tensor in memory, but many in a file."""
    mixtral = model.config.model_type == "mixtral"
    gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    stored = {}
    for name, tensor in tensors.items():
        name = name.replace(".mlp.", ".block_sparse_moe.") if mixtral else name
        if name.endswith("experts.gate_up_proj"):
            for e, expert in enumerate(tensor):
                for part, half in zip((gate, up), expert.chunk(2)):
                    stored[f"{name.removesuffix('gate_up_proj')}{e}.{part}.weight"] = half
        elif name.endswith("experts.down_proj"):
            for e, expert in enumerate(tensor):
                stored[f"{name.removesuffix('down_proj')}{e}.{down}.weight"] = expert
        else:
            stored[name] = tensor
    return stored


def batch_of(arch, model, length):
    """Returns random tokens and their targets."""
    vocab, balanced = model.config.vocab_size, getattr(model.config, "output_router_logits", False)
    ids = torch.randint(1, vocab, (1 if balanced else 4, length))  # not 0: transformers takes it for BERT's padding and gives it no gradient
    if arch == "bert":
        targets = torch.where(torch.rand(ids.shape) < 0.15, torch.randint(0, vocab, ids.shape), -100)
        targets[:, 0] = 3
    else:
        targets = torch.randint(0, vocab, ids.shape)
        targets[0, :3] = -100
    return ids, targets


def outcome(model, ids, targets):
    """Returns logits and the loss, including the balancing loss of experts, in the precision of the model."""
    out, config = model(input_ids=ids), model.config
    loss = torch.nn.functional.cross_entropy(out.logits.view(-1, config.vocab_size), targets.view(-1), ignore_index=-100)
    if not getattr(config, "output_router_logits", False):
        return out.logits, loss, loss
    aux = load_balancing_loss_func(out.router_logits, config.num_local_experts, config.num_experts_per_tok)
    return out.logits, loss, loss + config.router_aux_loss_coef * aux


def trained(model, ids, targets):
    """Returns the losses of AdamW's steps, and the smallest distance between the scores of a chosen expert and the next one."""
    nearest = [float("inf")]

    def watch(_, __, routed):
        scores = routed[0].topk(model.config.num_experts_per_tok + 1, -1).values
        nearest.append((scores[:, -2] - scores[:, -1]).min().item())

    for name, module in model.named_modules():
        if name.endswith("mlp.gate"):
            module.register_forward_hook(watch)
    groups = [{"params": [p for n, p in model.named_parameters() if decays(n)], "weight_decay": 0.01},
              {"params": [p for n, p in model.named_parameters() if not decays(n)], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        _, loss, total = outcome(model, ids, targets)
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, min(nearest)


def check(arch, label, model, length, probe, micros):
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():  # new models have zero biases and unit norms, which would test nothing
        parameter.data += 0.05 * torch.randn_like(parameter)
    model.train()
    if arch == "experts":
        model.set_experts_implementation("eager")  # the other implementations do not support float64
    vocab = model.config.vocab_size
    for _ in range(20):
        ids, targets = batch_of(arch, model, length)
        expected, nearest = trained(copy.deepcopy(model).double(), ids, targets)
        if nearest > TIE:
            break
    else:
        raise SystemExit(f"{arch} {label}: no batch of 20 without ties")

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder + "/model")
        with open(folder + "/batch.json", "w") as f:
            json.dump({"ids": ids.tolist(), "targets": targets.tolist(), "micros": micros}, f)
        done = subprocess.run([probe, folder + "/model", folder + "/batch.json", folder + "/out", str(STEPS)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{arch} {label}: probe failed: {done.stderr}")
        ours, tensors = json.loads(done.stdout), load_file(folder + "/out/out.safetensors")

    # All against transformers in float64.
    outcome(model, ids, targets)[2].backward()
    # An untied BERT has a second bias that it does not use. It has no gradient, and is not a parameter of ours.
    single = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    model.double()
    logits, _, total = outcome(model, ids, targets)
    total.backward()
    reference = logits.detach().reshape(-1, vocab)
    difference = (tensors["logits"].double() - reference).abs().max().item()
    bound = 1e-4 * max(1.0, reference.abs().max().item())
    assert difference <= bound, f"{arch} {label}: logits differ by {difference}, bound {bound}"

    gradients = as_stored(model, {n: p.grad.clone() for n, p in model.named_parameters() if n in single})
    single = as_stored(model, single)
    total = torch.sqrt(sum(g.pow(2).sum() for g in gradients.values())).item()
    worst = 0.0
    assert {"grad." + n for n in gradients} == {n for n in tensors if n.startswith("grad.")}, "other parameter names"
    for name, g in gradients.items():
        error = (tensors["grad." + name].double() - g).norm().item()
        allowed = 1e-4 * max(g.norm().item(), 1e-6 * total)
        if g.norm().item() < 1e-9 * total:
            # This gradient is zero except for rounding, because BERT's key biases shift all scores of a query by the same
            # amount. It may differ from zero by four times the error of transformers in float32.
            allowed = max(allowed, 4 * (single[name].double() - g).norm().item())
        worst = max(worst, error / allowed)
        assert error <= allowed, f"{arch} {label}: gradient of {name} differs by {error}, allowed {allowed}"

    largest = 0.0
    for step, (loss, wanted) in enumerate(zip(ours["losses"], expected, strict=True)):
        largest = max(largest, abs(loss - wanted) / wanted)
        assert largest <= 1e-4, f"{arch} {label}: loss of step {step}: {loss} and {wanted}"
    print(f"{arch} {label}, {micros} micro-batch(es): logits within {difference:.2e} (bound {bound:.1e}), gradients at most "
          f"{worst:.3f} of their bound, {STEPS} losses within {largest:.1e}")


if __name__ == "__main__":
    arch, probe = sys.argv[1:3]
    torch.manual_seed(0)
    torch.set_num_threads(2)
    for label, model, length in models(arch):
        alone = getattr(model.config, "output_router_logits", False)
        for micros in (1,) if alone else (2,) if arch in ("kin", "experts") else (1, 2):
            check(arch, label, copy.deepcopy(model), length, probe, micros)

"""Compares generation with Hugging Face transformers: the distributions, and greedy search for one prompt and many.
generation_agreement.py PROBE"""
import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, LogitsProcessorList, Qwen2Config,
                          Qwen2ForCausalLM, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper,
                          TopPLogitsWarper)

PROBE = sys.argv[1]


def ask(jobs):
    done = subprocess.run([PROBE], input="".join(json.dumps(j) + "\n" for j in jobs), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def processed(logits, history, temperature=1.0, top_k=0, top_p=1.0, repetition_penalty=1.0):
    """Applies processors, then warpers, in the order of transformers."""
    steps = LogitsProcessorList()
    if repetition_penalty != 1.0:
        steps.append(RepetitionPenaltyLogitsProcessor(repetition_penalty))
    if temperature != 1.0:
        steps.append(TemperatureLogitsWarper(temperature))
    if top_k:
        steps.append(TopKLogitsWarper(top_k))
    if top_p < 1.0:
        steps.append(TopPLogitsWarper(top_p))
    return steps(torch.tensor([history]), logits[None].clone())[0].softmax(-1)


def distributions_agree():
    chance = torch.Generator().manual_seed(5)
    jobs, wanted = [], []
    for n, settings in enumerate([{}, {"temperature": 0.7}, {"temperature": 1.9}, {"top_k": 1}, {"top_k": 17},
                                  {"top_k": 5000}, {"top_p": 0.9}, {"top_p": 0.05}, {"repetition_penalty": 1.3},
                                  {"repetition_penalty": 0.6}, {"temperature": 0.8, "top_k": 40, "top_p": 0.95},
                                  {"temperature": 1.2, "top_k": 50, "top_p": 0.8, "repetition_penalty": 1.1}]):
        for vocab in (100, 1009):
            logits = 3 * torch.randn(vocab, generator=chance)
            if n % 2:  # ties at the edge of top-k: transformers keeps all of them
                logits = (2 * logits).round() / 2
                if "top_p" in settings:
                    continue  # in transformers, the sort decides which ties are removed
            history = torch.randint(0, vocab, (30,), generator=chance).tolist()
            jobs.append({"distribution": {"logits": logits.tolist(), "history": history, **settings}})
            wanted.append(processed(logits, history, **settings))
    worst = 0.0
    for job, got, expected in zip(jobs, ask(jobs), wanted):
        difference = (torch.tensor(got) - expected).abs().max().item()
        worst = max(worst, difference)
        assert difference <= 1e-5, f"{job['distribution'].keys()}: probabilities differ by {difference}"
        assert abs(sum(got) - 1) < 1e-9
    print(f"{len(jobs)} distributions within {worst:.1e}")


def models():
    plain = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    yield "gpt2", GPT2LMHeadModel(GPT2Config(vocab_size=301, n_positions=96, n_embd=64, n_layer=3, n_head=4, **plain))
    sizes = dict(vocab_size=301, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=8,
                 num_key_value_heads=2, max_position_embeddings=96)
    yield "llama", LlamaForCausalLM(LlamaConfig(head_dim=12, **sizes))
    yield "qwen2", Qwen2ForCausalLM(Qwen2Config(tie_word_embeddings=True, **sizes))


def greedy_agrees():
    for name, model in models():
        for parameter in model.parameters():  # new models repeat one token
            parameter.data += 0.1 * torch.randn_like(parameter)
        model.eval()
        prompts = [torch.randint(0, 301, (n,)).tolist() for n in (1, 5, 33, 17)]
        tokens = 40
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            job = {"folder": folder, "tokens": tokens}
            together, *alone = ask([{"greedy": {**job, "ids": prompts}}] + [{"greedy": {**job, "ids": [p]}} for p in prompts])
        distinct = set()
        for i, prompt in enumerate(prompts):
            with torch.no_grad():
                said = model.generate(torch.tensor([prompt]), max_new_tokens=tokens, do_sample=False, pad_token_id=0,
                                      eos_token_id=None)[0, len(prompt):].tolist()
            assert alone[i][0]["ids"][0] == said, f"{name}, prompt of {len(prompt)}: {alone[i][0]['ids'][0]}, they {said}"
            assert together[0]["ids"][i] == said, f"{name}: prompt {i} gives other ids in a batch than alone"
            distinct.update(said)
        assert len(distinct) > 10, f"{name}: only {len(distinct)} different tokens were generated"
        print(f"{name}: {len(prompts)} prompts, {tokens} tokens each, alone and together as transformers")


torch.manual_seed(0)
torch.set_num_threads(2)
distributions_agree()
greedy_agrees()

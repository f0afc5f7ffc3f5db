"""Hugging Face transformers' models in a plain loop.  transformers_step.py WORKLOAD THREADS"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from worker import serve  # before what prints

import torch
import transformers
from batches import batch_of
from loop import step_of
from workloads import WORKLOADS


def model_of(work):
    common = {"vocab_size": work.vocab}
    if work.arch == "gpt2":
        config = transformers.GPT2Config(
            **common, n_positions=work.context, n_embd=work.hidden, n_layer=work.layers, n_head=work.heads,
            n_inner=work.ffn, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False,
        )
        return transformers.GPT2LMHeadModel(config)
    common |= {
        "hidden_size": work.hidden, "num_hidden_layers": work.layers, "num_attention_heads": work.heads,
        "intermediate_size": work.ffn, "max_position_embeddings": work.context,
    }
    if work.arch == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**common, tie_word_embeddings=True, use_cache=False))
    config = transformers.BertConfig(**common, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    return transformers.BertForMaskedLM(config)


def main():
    work, threads = WORKLOADS[sys.argv[1]], int(sys.argv[2])
    torch.set_num_threads(threads)

    def prepare():
        torch.manual_seed(0)
        model = model_of(work).train()
        ids, targets = batch_of(work)
        # Causal models shift labels themselves.
        labels = targets if work.arch == "bert" else ids

        return step_of(model, lambda: model(input_ids=ids, labels=labels).loss)

    serve(prepare)


if __name__ == "__main__":
    main()

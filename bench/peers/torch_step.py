"""PyTorch by hand, as a careful user would write it: modules, scaled_dot_product_attention, cross_entropy, fused AdamW.
torch_step.py WORKLOAD THREADS eager|compile"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from worker import serve  # before what prints

import torch
import torch.nn as nn
import torch.nn.functional as F
from batches import batch_of
from loop import step_of
from workloads import WORKLOADS


class Attention(nn.Module):
    def __init__(self, work, bias):
        super().__init__()
        self.heads, self.causal, self.rotary = work.heads, work.arch != "bert", work.arch == "llama"
        self.qkv = nn.Linear(work.hidden, 3 * work.hidden, bias=bias)
        self.out = nn.Linear(work.hidden, work.hidden, bias=bias)
        if self.rotary:
            half = work.hidden // work.heads // 2
            angles = torch.outer(
                torch.arange(work.context).float(), 10000.0 ** (-torch.arange(half).float() / half)
            )
            self.register_buffer("cos", angles.cos(), persistent=False)
            self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, x):
        a, b = x.chunk(2, -1)
        cos, sin = self.cos[: x.size(2)], self.sin[: x.size(2)]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            y.view(B, T, self.heads, C // self.heads).transpose(1, 2) for y in self.qkv(x).chunk(3, -1)
        )
        if self.rotary:
            q, k = self.rotate(q), self.rotate(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Mlp(nn.Module):
    def __init__(self, work, approximate):
        super().__init__()
        self.up, self.down = nn.Linear(work.hidden, work.ffn), nn.Linear(work.ffn, work.hidden)
        self.approximate = approximate

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.approximate))


class SwigluMlp(nn.Module):
    def __init__(self, work):
        super().__init__()
        self.gate = nn.Linear(work.hidden, work.ffn, bias=False)
        self.up = nn.Linear(work.hidden, work.ffn, bias=False)
        self.down = nn.Linear(work.ffn, work.hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, work):
        super().__init__()
        llama, bert = work.arch == "llama", work.arch == "bert"
        norm = nn.RMSNorm if llama else nn.LayerNorm
        self.norm1, self.norm2 = norm(work.hidden), norm(work.hidden)
        self.attention = Attention(work, bias=not llama)
        self.mlp = SwigluMlp(work) if llama else Mlp(work, "none" if bert else "tanh")
        self.post = bert

    def forward(self, x):
        if self.post:
            x = self.norm1(x + self.attention(x))
            return self.norm2(x + self.mlp(x))
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, work):
        super().__init__()
        C = work.hidden
        self.arch = work.arch
        self.tokens = nn.Embedding(work.vocab, C)
        if work.arch != "llama":
            self.positions = nn.Embedding(work.context, C)
        self.layers = nn.ModuleList(Layer(work) for _ in range(work.layers))
        if work.arch == "bert":
            self.types = nn.Embedding(2, C)
            self.norm = nn.LayerNorm(C)
            self.transform, self.transform_norm = nn.Linear(C, C), nn.LayerNorm(C)
            self.bias = nn.Parameter(torch.zeros(work.vocab))
        else:
            self.norm = nn.RMSNorm(C) if work.arch == "llama" else nn.LayerNorm(C)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * work.layers) if "down" in name or "out" in name else 0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids)
        if self.arch != "llama":
            x = x + self.positions.weight[: ids.size(1)]
        if self.arch == "bert":
            x = self.norm(x + self.types.weight[0])
        for layer in self.layers:
            x = layer(x)
        if self.arch == "bert":  # only masked positions go through the head
            chosen = targets != -100
            x = self.transform_norm(F.gelu(self.transform(x[chosen])))
            return F.cross_entropy(F.linear(x, self.tokens.weight, self.bias), targets[chosen])
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def main():
    work, threads, mode = WORKLOADS[sys.argv[1]], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(threads)

    def prepare():
        torch.manual_seed(0)
        model = Model(work)
        run = torch.compile(model) if mode == "compile" else model
        ids, targets = batch_of(work)

        return step_of(model, lambda: run(ids, targets))

    serve(prepare)


if __name__ == "__main__":
    main()

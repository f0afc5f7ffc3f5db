"""Workloads on which we measure Megalith and its peers: shapes, batch, tokens. Float32, AdamW, clipping in every step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    name: str
    arch: str  # gpt2 | llama | bert
    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int
    batch: int
    sequence: int
    context: int = 1024

    @property
    def tokens(self):
        return self.batch * self.sequence

    def parameters(self):
        """Trainable parameters, tied tables once."""
        C, F, L, V = self.hidden, self.ffn, self.layers, self.vocab
        if self.arch == "gpt2":
            return V * C + self.context * C + L * (4 * C * C + 4 * C + 2 * C * F + F + C + 4 * C) + 2 * C
        if self.arch == "llama":
            return V * C + L * (4 * C * C + 3 * C * F + 2 * C) + C
        embedding = (V + self.context + 2) * C + 2 * C
        return embedding + L * (4 * C * C + 4 * C + 2 * C * F + F + C + 4 * C) + C * C + C + 2 * C + V

    def flop(self):
        """Operations of one step, counted in the usual way: 6 per matrix parameter and token, plus the scores and values of
        attention. Masked models compute the head only for their targets."""
        C, F, L, N = self.hidden, self.ffn, self.layers, self.tokens
        matrices = L * (4 * C * C + (3 if self.arch == "llama" else 2) * C * F)
        head_tokens = N * 0.15 if self.arch == "bert" else N
        seen = 1.0 if self.arch == "bert" else 0.5
        attention = 3 * 4 * N * self.sequence * C * L * seen
        return 6 * N * matrices + 6 * head_tokens * self.vocab * C + attention


WORKLOADS = {
    w.name: w
    for w in (
        Workload("gpt2-124m 4x256", "gpt2", 12, 768, 12, 3072, 50257, 4, 256),
        Workload("gpt2-124m 2x1024", "gpt2", 12, 768, 12, 3072, 50257, 2, 1024),
        Workload("llama-110m 4x256", "llama", 12, 768, 12, 2048, 32000, 4, 256),
        Workload("bert-base 8x128", "bert", 12, 768, 12, 3072, 30522, 8, 128, context=512),
        Workload("llama-10m 16x128", "llama", 5, 384, 6, 1024, 4096, 16, 128),
    )
}
MASKED_SHARE = 0.15
MASK_EVERY = 20  # positions p with p % 20 in {3, 9, 16} are targets: 15%
MASK_PLACES = (3, 9, 16)
LR, BETAS, EPS, WEIGHT_DECAY, CLIP = 3e-4, (0.9, 0.95), 1e-8, 0.1, 1.0

"""Our files and Hugging Face's: each side reads what the other wrote. Usage: safetensors_agreement.py TOOL

The oracle is the `safetensors` package for the format, transformers for config.json and names, and the golden
file of stories260K (computed elsewhere in float64) for llama2.c's import.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import torch
import transformers
from safetensors.torch import load_file, save_file

transformers.utils.logging.disable_progress_bar()

TOOL = sys.argv[1]
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("MEGALITH_SHARED", SOURCE.parent / "shared"))


def tool(*args):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"{args}: {done.stderr}"
    return done.stdout


def bits(tensor):
    return [b & 0xFFFFFFFF for b in tensor.to(torch.float32).reshape(-1).view(torch.int32).tolist()]


def they_read_ours(tmp):
    tool("write", tmp / "ours")
    tensors = load_file(tmp / "ours" / "model.safetensors")
    assert len(tensors) == 16, sorted(tensors)
    assert tensors["scalar"].shape == () and tensors["none"].shape == (0, 3) and 'näme "x"' in tensors
    for name, tensor in tensors.items():
        flat = tensor.reshape(-1).to(torch.float64)
        expected = [(7 * i + 3) % 251 for i in range(flat.numel())]
        if tensor.dtype == torch.bool:
            expected = [v & 1 for v in expected]
        if tensor.dtype == torch.int8:
            expected = [v - 256 if v > 127 else v for v in expected]
        assert flat.tolist() == expected, name
        if name.replace("float", "").replace("uint", "").replace("int", "").replace("b", "").isdigit():
            assert str(tensor.dtype) == f"torch.{name}", name


def we_read_theirs(tmp):
    torch.manual_seed(1)
    tensors = {
        "a.weight": torch.randn(5, 7),
        "b": torch.randn(33).to(torch.bfloat16),
        "c": torch.tensor([1e-8, 6e-5, 65504.0, -0.0, float("inf")]).to(torch.float16),
        "d": torch.randn(4, dtype=torch.float64),
        "ids": torch.arange(6),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 4),
    }
    (tmp / "theirs").mkdir()
    save_file(tensors, tmp / "theirs" / "model.safetensors", metadata={"format": "pt", "note": "ü"})
    dumped = json.loads(tool("dump", tmp / "theirs"))
    assert dumped.keys() == tensors.keys()
    for name, tensor in tensors.items():
        dtype, shape, values = dumped[name]
        assert (f"torch.{dtype}", shape) == (str(tensor.dtype), list(tensor.shape)), name
        assert values == (bits(tensor) if tensor.is_floating_point() else []), name


def models():
    """One of each architecture, tied and untied, with sizes that divide nothing."""
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel
    from transformers import LlamaConfig, LlamaForCausalLM

    for tied in (True, False):
        yield GPT2LMHeadModel(GPT2Config(
            vocab_size=1009, n_positions=37, n_embd=40, n_layer=2, n_head=5, n_inner=72,
            layer_norm_epsilon=3e-5, bos_token_id=None, eos_token_id=None, tie_word_embeddings=tied))
        yield LlamaForCausalLM(LlamaConfig(
            vocab_size=1009, hidden_size=40, intermediate_size=72, num_hidden_layers=2,
            num_attention_heads=10, num_key_value_heads=2, rms_norm_eps=3e-5, max_position_embeddings=37,
            tie_word_embeddings=tied, rope_parameters={"rope_theta": 500.0, "rope_type": "default"}))
        yield BertForMaskedLM(BertConfig(
            vocab_size=1009, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, intermediate_size=72,
            max_position_embeddings=37, type_vocab_size=3, layer_norm_eps=3e-5, tie_word_embeddings=tied))


def loaded_whole(auto, folder):
    model, info = auto.from_pretrained(folder, output_loading_info=True)
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[key], (folder, key, info[key])
    return model.eval()


def folders_survive_us(tmp):
    """save_pretrained -> our shape and files -> from_pretrained: the same class, tensors and logits."""
    ids = torch.arange(2 * 37).reshape(2, 37) * 13 % 1009
    for number, model in enumerate(models()):
        name = f"{type(model).__name__}-{number}"
        with torch.no_grad():  # give biases and norms other values than zero and one
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
        model.eval()
        model.save_pretrained(tmp / name / "theirs", max_shard_size="100KB" if number % 2 else "1GB")
        tool("rewrite", tmp / name / "theirs", tmp / name / "ours", 10**9 if number % 2 else 50_000)
        auto = transformers.AutoModelForMaskedLM if "Bert" in name else transformers.AutoModelForCausalLM
        back = loaded_whole(auto, tmp / name / "ours")
        assert type(back) is type(model) and back.dtype == torch.float32
        assert back.config.tie_word_embeddings == model.config.tie_word_embeddings
        theirs = model.state_dict()
        assert theirs.keys() == back.state_dict().keys()
        for key, value in back.state_dict().items():
            assert torch.equal(value, theirs[key]), (name, key)
        with torch.no_grad():
            assert torch.equal(back(ids).logits, model(ids).logits), name
        tool("rewrite", tmp / name / "theirs", tmp / name / "half", 10**9, "bf16")
        half = auto.from_pretrained(tmp / name / "half")
        assert half.dtype == torch.bfloat16
        for key, value in half.state_dict().items():
            assert torch.equal(value, theirs[key].to(torch.bfloat16)), (name, key)
        again = json.loads(tool("shape", tmp / name / "ours"))  # we read what we wrote as the same shape
        assert again == json.loads((tmp / name / "ours" / "config.json").read_text()), name


def real_weights_give_the_golden_numbers(tmp):
    if not (SHARED / "corpus" / "stories260K.bin").exists():
        print(f"skipped: stories260K (no {SHARED}/corpus)")
        return
    golden = json.loads((SHARED / "corpus" / "stories260K_golden.json").read_text())
    tool("import", SHARED / "corpus" / "stories260K.bin", tmp / "stories")
    model = loaded_whole(transformers.AutoModelForCausalLM, tmp / "stories")
    tokens = torch.tensor(golden["greedy_tokens"])
    with torch.no_grad():
        logits = model(tokens[None]).logits[0]
    off = (logits[0] - torch.tensor(golden["logits_pos0"])).abs().max()
    assert off < 1e-4 * logits[0].abs().max(), off
    nll = torch.nn.functional.cross_entropy(logits[:-1], tokens[1:], reduction="none")
    off = (nll - torch.tensor(golden["nll_per_position"])).abs().max()
    assert off < 1e-4, off
    assert torch.equal(logits[:-1].argmax(-1), tokens[1:])


with tempfile.TemporaryDirectory() as folder:
    for check in (they_read_ours, we_read_theirs, folders_survive_us, real_weights_give_the_golden_numbers):
        sub = pathlib.Path(folder) / check.__name__
        sub.mkdir()
        check(sub)
        print(f"ok: {check.__name__.replace('_', ' ')}")

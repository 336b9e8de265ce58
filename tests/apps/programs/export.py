"""Exports transformers with few, random weights by PyTorch.

Usage: export.py FOLDER: writes bert.onnx, gpt2.onnx and t5.onnx.
"""

import pathlib
import sys

import torch
import transformers

folder = pathlib.Path(sys.argv[1])
tokens = torch.arange(14, dtype=torch.int64).reshape(2, 7) + 3
mask = torch.ones_like(tokens)
mask[1, 5:] = 0


class Logits(torch.nn.Module):
    """A model with its inputs by position, and its main output alone."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model = model.eval()
        self.names = names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True)), return_dict=False)[0]


def export(name: str, model: torch.nn.Module, **inputs: torch.Tensor) -> None:
    names = list(inputs)
    torch.onnx.export(
        Logits(model, names),
        tuple(inputs.values()),
        folder / f"{name}.onnx",
        input_names=names,
        output_names=["y"],
        dynamic_axes={one: {0: "batch", 1: f"{one}_length"} for one in names},
        opset_version=17,
        dynamo=False,
    )


torch.manual_seed(0)
bert = transformers.BertConfig(
    vocab_size=61,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    attn_implementation="eager",
)
export("bert", transformers.BertModel(bert), input_ids=tokens, attention_mask=mask)
gpt2 = transformers.GPT2Config(
    vocab_size=61, n_embd=32, n_layer=2, n_head=4, attn_implementation="eager", use_cache=False
)
export("gpt2", transformers.GPT2LMHeadModel(gpt2), input_ids=tokens, attention_mask=mask)
t5 = transformers.T5Config(
    vocab_size=61,
    d_model=32,
    d_kv=8,
    d_ff=48,
    num_layers=2,
    num_heads=4,
    use_cache=False,
    attn_implementation="eager",
)
export(
    "t5",
    transformers.T5ForConditionalGeneration(t5),
    input_ids=tokens,
    attention_mask=mask,
    decoder_input_ids=tokens[:, :4].contiguous(),
)

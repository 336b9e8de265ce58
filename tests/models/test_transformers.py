"""Architectures of transformers with few, random weights, exported by torch.onnx."""

import collections
import contextlib
import functools
import io
import json
import logging
import pathlib
import warnings

import numpy as np
import onnx
import pytest
import tenon
from converted import check_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 61,
}
LLAMA = {**SMALL, "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 8}
VISION = {**SMALL, "image_size": 32, "patch_size": 8}


def tokens(batch: int = 2, length: int = 7) -> torch.Tensor:
    return torch.randint(3, 60, (batch, length), generator=torch.Generator().manual_seed(1))


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def text(**more: torch.Tensor) -> dict[str, torch.Tensor]:
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 5:] = 0
    return {"input_ids": tokens(), "attention_mask": mask, **more}


IMAGES = {"pixel_values": numbers(2, 3, 32, 32)}

# Name of the model's class, of its configuration's, settings, inputs.
MODELS = {
    "bert": ("BertModel", "BertConfig", SMALL, text()),
    "bert_classifier": ("BertForSequenceClassification", "BertConfig", SMALL, text()),
    "roberta": ("RobertaModel", "RobertaConfig", SMALL, text()),
    "albert": ("AlbertModel", "AlbertConfig", {**SMALL, "embedding_size": 16}, text()),
    "electra": ("ElectraModel", "ElectraConfig", {**SMALL, "embedding_size": 16}, text()),
    "deberta": ("DebertaV2Model", "DebertaV2Config", SMALL, text()),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "vocab_size": 61},
        text(),
    ),
    "mpnet": ("MPNetModel", "MPNetConfig", SMALL, text()),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 61, "use_cache": False},
        text(),
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", {**SMALL, "use_cache": False}, text()),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**LLAMA, "use_cache": False}, text()),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**LLAMA, "use_cache": False}, text()),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", {**LLAMA, "use_cache": False}, text()),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**LLAMA, "use_cache": False}, text()),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**LLAMA, "use_cache": False}, text()),
    "phi": ("PhiForCausalLM", "PhiConfig", {**SMALL, "use_cache": False}, text()),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 61, "use_cache": False},
        text(),
    ),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32, "use_cache": False},
        text(),
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_heads": 4,
            "vocab_size": 61,
            "use_cache": False,
        },
        text(decoder_input_ids=tokens(2, 4)),
    ),
    "bart": (
        "BartForConditionalGeneration",
        "BartConfig",
        {
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "vocab_size": 61,
            "pad_token_id": 1,
            "use_cache": False,
        },
        text(decoder_input_ids=tokens(2, 4)),
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "vocab_size": 61,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "pad_token_id": 1,
            "bos_token_id": 2,
            "eos_token_id": 2,
            "decoder_start_token_id": 3,
            "use_cache": False,
        },
        {"input_features": numbers(2, 16, 40), "decoder_input_ids": tokens(2, 4)},
    ),
    "wav2vec2": (
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        {
            **SMALL,
            "conv_dim": (16, 16),
            "conv_kernel": (10, 3),
            "conv_stride": (5, 2),
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 2,
        },
        {"input_values": numbers(2, 400)},
    ),
    "vit": ("ViTModel", "ViTConfig", VISION, IMAGES),
    "deit": ("DeiTModel", "DeiTConfig", VISION, IMAGES),
    "beit": ("BeitModel", "BeitConfig", {**VISION, "out_indices": [1]}, IMAGES),
    "dinov2": ("Dinov2Model", "Dinov2Config", VISION, IMAGES),
    "swin": (
        "SwinModel",
        "SwinConfig",
        {
            "image_size": 32,
            "patch_size": 4,
            "embed_dim": 16,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
        },
        IMAGES,
    ),
    "convnext": (
        "ConvNextModel",
        "ConvNextConfig",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
        IMAGES,
    ),
    "resnet": (
        "ResNetModel",
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
        IMAGES,
    ),
    "mobilenet_v2": ("MobileNetV2Model", "MobileNetV2Config", {"depth_multiplier": 0.25}, IMAGES),
    "segformer": (
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
        },
        IMAGES,
    ),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        {"text_config": {**SMALL, "eos_token_id": 60}, "vision_config": VISION},
        {**text(), **IMAGES},
    ),
}


def flat(outputs: object) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(tuple(outputs.to_tuple()))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


class Wrapped(torch.nn.Module):
    """Takes the inputs by position and gives tensors."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(flat(self.model(**dict(zip(self.names, inputs, strict=True)))))


def export(module: torch.nn.Module, inputs: tuple, dynamo: bool) -> bytes:
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            into = io.BytesIO()
            if dynamo:
                torch.onnx.export(module, inputs, dynamo=True).save(into)
            else:
                torch.onnx.export(module, inputs, into, dynamo=False, opset_version=17)
            return into.getvalue()
    finally:
        logging.disable(logging.NOTSET)


@functools.cache
def exported(name: str, dynamo: bool) -> tuple[torch.nn.Module, bytes | str]:
    """The model, and its export or why there is none."""
    model_class, config_class, settings, inputs = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, config_class)(**settings)
    model = Wrapped(getattr(transformers, model_class)(config), list(inputs)).eval()
    try:
        return model, export(model, tuple(inputs.values()), dynamo)
    except Exception as error:
        return model, f"torch does not export it: {type(error).__name__}: {error}"[:200]


def export_or_skip(name: str, dynamo: bool) -> tuple[torch.nn.Module, bytes, dict]:
    """The model, its export, and its inputs."""
    model, content = exported(name, dynamo)
    if isinstance(content, str):
        pytest.skip(content)
    values = MODELS[name][3].values()
    names = [i.name for i in onnx.load_from_string(content).graph.input]
    assert len(names) == len(values)
    return model, content, {n: t.numpy() for n, t in zip(names, values, strict=True)}


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "script"])
@pytest.mark.parametrize("name", MODELS)
def test_model(name: str, dynamo: bool) -> None:
    model, content, feeds = export_or_skip(name, dynamo)
    try:
        actual = check_model(content, feeds, atol=2e-4)
    except Exception as error:
        if type(error).__module__.startswith("onnxruntime"):
            pytest.skip(f"onnxruntime does not run it: {error}"[:200])
        raise
    with torch.no_grad():
        expected = model(*MODELS[name][3].values())
    for value, tensor in zip(actual, expected, strict=True):
        np.testing.assert_allclose(value, tensor.numpy(), 1e-3, 1e-3)


# The number of attentions of each model: one per layer, two in decoder layers that attend to an
# encoder.
ATTENTIONS = {
    "bert": 2,
    "roberta": 2,
    "distilbert": 2,
    "gpt2": 2,
    "llama": 2,
    "mistral": 2,
    "qwen2": 2,
    "qwen3": 2,
    "whisper": 6,
    "vit": 2,
    "clip": 4,
}


def executed(content: bytes, feeds: dict, folder: pathlib.Path) -> collections.Counter:
    """The number of steps of each operator in a run."""
    options = tenon.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    session = tenon.InferenceSession(content, options)
    session.run(None, feeds)
    events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    return collections.Counter(
        event["args"]["op_name"] for event in events if event["name"].endswith("_kernel_time")
    )


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "script"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_is_fused(name: str, dynamo: bool, tmp_path: pathlib.Path) -> None:
    _, content, feeds = export_or_skip(name, dynamo)
    steps = executed(content, feeds, tmp_path)
    assert steps["Attention"] + steps["MultiHeadAttention"] == ATTENTIONS[name], steps
    assert steps["Softmax"] == 0, steps


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_repeated_heads_are_not_copied(name: str, tmp_path: pathlib.Path) -> None:
    for dynamo in (True, False):
        _, content, feeds = export_or_skip(name, dynamo)
        steps = executed(content, feeds, tmp_path)
        assert steps["Expand"] == 0, steps

"""The measured models and the inputs of each. Inputs are seeded; some come from recordings."""

import pathlib
import wave
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Feeds = dict[str, np.ndarray]

SPEECH = "samples/silero_test_speech.wav"
SINGING = "samples/vocadito_10.wav"

MakeFeeds = Callable[[pathlib.Path, np.random.Generator], Feeds]


@dataclass(frozen=True)
class Case:
    """One model with one set of inputs.

    path    of the model, relative to its folder
    feeds   makes the inputs from the model's folder and a random generator
    """

    name: str
    path: str
    feeds: MakeFeeds

    def inputs(self, folder: pathlib.Path) -> Feeds:
        return self.feeds(folder, np.random.default_rng(zlib.crc32(self.name.encode())))


def uniform(name: str, *shape: int, low: float = -1, high: float = 1):
    """One random input of float32."""
    return lambda _, random: {name: random.uniform(low, high, shape).astype(np.float32)}


def tokens(batch: int, sequence: int):
    """Inputs of a BERT-like encoder."""

    def feeds(_: pathlib.Path, random: np.random.Generator) -> Feeds:
        shape = (batch, sequence)
        return {
            "input_ids": random.integers(0, 30522, shape),
            "attention_mask": np.ones(shape, np.int64),
            "token_type_ids": np.zeros(shape, np.int64),
        }

    return feeds


def caches(random: np.random.Generator, layers: int, heads: int, past: int) -> Feeds:
    """Cached keys and values of `past` tokens."""
    return {
        f"past_key_values.{layer}.{kind}": random.standard_normal(
            (1, heads, past, 64), dtype=np.float32
        )
        for layer in range(layers)
        for kind in ("key", "value")
    }


def decoder(sequence: int, past: int):
    """Inputs of GPT-2: `sequence` new tokens after `past` cached ones."""
    return lambda _, random: (
        caches(random, 12, 12, past)
        | {
            "input_ids": random.integers(0, 50257, (1, sequence)),
            "position_ids": np.arange(past, past + sequence)[None],
        }
    )


def grouped_decoder(sequence: int, past: int):
    """Inputs of SmolLM 135M: `sequence` new tokens after `past` cached ones."""
    return lambda _, random: (
        caches(random, 30, 3, past)
        | {
            "input_ids": random.integers(0, 49152, (1, sequence)),
            "attention_mask": np.ones((1, past + sequence), np.int64),
        }
    )


def recording(path: pathlib.Path, start: int, count: int) -> np.ndarray:
    """Samples [start, start + count) of a 16-bit mono file, in [-1, 1)."""
    with wave.open(str(path)) as file:
        file.setpos(start)
        samples = np.frombuffer(file.readframes(count), np.int16)
    return samples.astype(np.float32) / 32768


def silero(folder: pathlib.Path, _: np.random.Generator) -> Feeds:
    return {
        "input": recording(folder / SPEECH, 32000, 576)[None],
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16000, np.int64),
    }


def dtln_spectrum(folder: pathlib.Path, _: np.random.Generator) -> Feeds:
    block = recording(folder / SPEECH, 32000, 512)
    magnitude = np.abs(np.fft.rfft(block)).astype(np.float32)
    return {"input_2": magnitude[None, None], "input_3": np.zeros((1, 2, 128, 2), np.float32)}


def dtln_block(folder: pathlib.Path, _: np.random.Generator) -> Feeds:
    block = recording(folder / SPEECH, 32000, 512)
    return {"input_4": block[None, None], "input_5": np.zeros((1, 2, 128, 2), np.float32)}


def dnsmos(folder: pathlib.Path, _: np.random.Generator) -> Feeds:
    return {"input_1": recording(folder / SPEECH, 32000, 144160)[None]}


def pitch(folder: pathlib.Path, _: np.random.Generator) -> Feeds:
    samples = recording(folder / SINGING, 44100, 2 * 43844)[::2]  # 44.1 kHz to 22.05 kHz
    return {"serving_default_input_2:0": samples[None, :, None]}


def text_bytes(folder: pathlib.Path, _: np.random.Generator) -> Feeds:
    """The beginning and the end of a text file, as magika reads it."""
    content = np.frombuffer((folder / "README.md").read_bytes(), np.uint8).astype(np.int32)
    return {"bytes": np.concatenate([content[:1024], content[-1024:]])[None]}


def sentences(folder: pathlib.Path, _: np.random.Generator) -> Feeds:
    text = (folder / "README.md").read_bytes()[:512]
    return {"input": np.frombuffer(text, np.uint8)[None]}


# Trained models, and light models whose weights are made when they are loaded.
REAL = (
    Case("silero_vad", "silero-vad/silero_vad.onnx", silero),
    Case("silero_vad_op18", "silero-vad/silero_vad_op18_ifless.onnx", silero),
    Case("magika", "magika/magika_standard_v3_3.onnx", text_bytes),
    Case("mnist", "mnist/opt-mnist.onnx", uniform("Input3", 1, 1, 28, 28, low=0)),
    Case("ultraface", "ultraface/ultraface-RFB-320.onnx", uniform("input", 1, 3, 240, 320)),
    Case("dtln_1", "dtln/dtln_model_1.onnx", dtln_spectrum),
    Case("dtln_2", "dtln/dtln_model_2.onnx", dtln_block),
    Case("basic_pitch", "basic-pitch/nmp.onnx", pitch),
    Case("dnsmos", "dnsmos/sig_bak_ovr.onnx", dnsmos),
    Case("dnsmos_v8", "dnsmos/model_v8.onnx", uniform("input_1", 1, 900, 120, low=0)),
    Case("sentence_lstm", "tract-cases/byte_sb_bidi_lstm.onnx", sentences),
    Case("lgbm_classifier", "tract-cases/lgbm_classifier_tensor.onnx", uniform("input", 1000, 13)),
    Case("xgboost_trees", "tract-cases/xgboost_classifier_tree.onnx", uniform("input", 1000, 13)),
    Case(
        "random_forest", "sklearn/sklearn_randomforest.onnx", uniform("X", 1000, 4, low=0, high=7)
    ),
    Case(
        "light_shufflenet",
        "onnx-light/light_shufflenet.onnx",
        uniform("gpu_0/data_0", 1, 3, 224, 224),
    ),
    Case(
        "light_inception_v1",
        "onnx-light/light_inception_v1.onnx",
        uniform("data_0", 1, 3, 224, 224),
    ),
    Case("light_alexnet", "onnx-light/light_bvlc_alexnet.onnx", uniform("data_0", 1, 3, 224, 224)),
    Case(
        "light_resnet50", "onnx-light/light_resnet50.onnx", uniform("gpu_0/data_0", 1, 3, 224, 224)
    ),
)

PICTURE = uniform("input", 1, 3, 224, 224)
PICTURES = uniform("input", 8, 3, 224, 224)
LARGE_PICTURE = uniform("input", 1, 3, 640, 640, low=0)

# Models of build_models.py.
GENERATED = (
    Case("bert_base", "bert_base.onnx", tokens(1, 128)),
    Case("minilm_l6", "minilm_l6.onnx", tokens(1, 128)),
    Case("minilm_l6_op17", "minilm_l6_op17.onnx", tokens(1, 128)),
    Case("minilm_l6_short", "minilm_l6.onnx", tokens(1, 8)),
    Case("minilm_l6_batch8", "minilm_l6.onnx", tokens(8, 128)),
    Case("minilm_l6_long", "minilm_l6.onnx", tokens(1, 512)),
    Case("gpt2_decode", "gpt2.onnx", decoder(1, 127)),
    Case("gpt2_prefill", "gpt2.onnx", decoder(128, 0)),
    Case("vit_b_16", "vit_b_16.onnx", PICTURE),
    Case("whisper_tiny_encoder", "whisper_tiny_encoder.onnx", uniform("input", 1, 80, 3000)),
    Case("resnet18", "resnet18.onnx", PICTURE),
    Case("resnet50", "resnet50.onnx", PICTURE),
    Case("mobilenet_v2", "mobilenet_v2.onnx", PICTURE),
    Case("mobilenet_v3_small", "mobilenet_v3_small.onnx", PICTURE),
    Case("mobilenet_v3_large", "mobilenet_v3_large.onnx", PICTURE),
    Case("efficientnet_b0", "efficientnet_b0.onnx", PICTURE),
    Case("convnext_tiny", "convnext_tiny.onnx", PICTURE),
    Case("densenet121", "densenet121.onnx", PICTURE),
    Case("yolov8n", "yolov8n.onnx", LARGE_PICTURE),
    Case("squeezenet", "squeezenet.onnx", PICTURE),
    Case("vgg11", "vgg11.onnx", PICTURE),
    Case("unet", "unet.onnx", PICTURE),
    Case("resnet50_batch8", "resnet50.onnx", PICTURES),
    Case("mobilenet_v2_batch8", "mobilenet_v2.onnx", PICTURES),
    Case("resnet50_fp16", "resnet50_fp16.onnx", PICTURE),
    Case("minilm_l6_fp16", "minilm_l6_fp16.onnx", tokens(1, 128)),
    Case("lstm_1_512", "lstm_1_512.onnx", uniform("input", 1, 100, 512)),
    Case("lstm_bi2_256", "lstm_bi2_256.onnx", uniform("input", 1, 100, 128)),
    Case("gru_2_256", "gru_2_256.onnx", uniform("input", 1, 100, 128)),
    Case("mlp_mnist", "mlp_mnist.onnx", uniform("input", 1, 784, low=0)),
    Case("mlp_tiny", "mlp_tiny.onnx", uniform("input", 1, 8)),
    Case("identity_tiny", "identity_tiny.onnx", uniform("input", 1, 4)),
    Case("chain200_1024", "chain200_1024.onnx", uniform("input", 1024)),
    Case("chain200_relu_1024", "chain200_relu_1024.onnx", uniform("input", 1024)),
    Case("chain200_65536", "chain200_65536.onnx", uniform("input", 65536)),
    Case("resnet50_qdq", "resnet50_qdq.onnx", PICTURE),
    Case("resnet50_qdq_s8", "resnet50_qdq_s8.onnx", PICTURE),
    Case("resnet50_qdq_u8mid", "resnet50_qdq_u8mid.onnx", PICTURE),
    Case("mobilenet_v2_qdq", "mobilenet_v2_qdq.onnx", PICTURE),
    Case("mobilenet_v2_qdq_s8", "mobilenet_v2_qdq_s8.onnx", PICTURE),
    Case("mobilenet_v3_large_qdq", "mobilenet_v3_large_qdq.onnx", PICTURE),
    Case("efficientnet_b0_qdq", "efficientnet_b0_qdq.onnx", PICTURE),
    Case("yolov8n_qdq", "yolov8n_qdq.onnx", LARGE_PICTURE),
    Case("vit_b_16_qdq", "vit_b_16_qdq.onnx", PICTURE),
    Case("minilm_l6_qdq", "minilm_l6_qdq.onnx", tokens(1, 128)),
    Case("bert_base_int8", "bert_base_int8.onnx", tokens(1, 128)),
    Case("minilm_l6_int8", "minilm_l6_int8.onnx", tokens(1, 128)),
    Case("gpt2_int8_decode", "gpt2_int8.onnx", decoder(1, 127)),
    Case("smollm_int4_decode", "smollm_135m_int4_acc0.onnx", grouped_decoder(1, 127)),
    Case("smollm_int4_prefill", "smollm_135m_int4_acc0.onnx", grouped_decoder(128, 0)),
    Case("smollm_int4_acc4_decode", "smollm_135m_int4_acc4.onnx", grouped_decoder(1, 127)),
    Case("smollm_int4_acc4_prefill", "smollm_135m_int4_acc4.onnx", grouped_decoder(128, 0)),
)

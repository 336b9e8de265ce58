"""onnxruntime-genai on Tenon, which it finds in the package tenon-onnxruntime."""

import pathlib

import pytest
from running import compare, need, run

# With weights of 4 bits, onnxruntime rounds what they are multiplied with, too: logits differ by a
# few percent, which samples do not survive.
METHODS = {"fp32": ("greedy", "sampled", "beams"), "int4": ("greedy", "beams")}


@pytest.mark.parametrize("precision", METHODS)
def test_generates_the_same_tokens(
    precision: str, tmp_path: pathlib.Path, packages: pathlib.Path
) -> None:
    need("onnxruntime_genai", "torch", "transformers")
    run("tiny_llama.py", tmp_path, precision)
    arguments = (tmp_path / "onnx", *METHODS[precision])
    got = compare(tmp_path, "generate.py", *arguments, path=packages)
    assert {len(tokens) for tokens in got.values()} == {40}

"""Tokenizer of com.microsoft, compared with onnxruntime."""

import random

import numpy as np
import onnxruntime
import pytest
import tenon
from onnx import TensorProto, helper

COMMON = {"mark": 0, "pad_value": "#", "mincharnum": 1}


def model(rank: int, **attributes: object) -> bytes:
    node = helper.make_node(
        "Tokenizer", ["x"], ["y"], domain="com.microsoft", **{**COMMON, **attributes}
    )
    x = helper.make_tensor_value_info("x", TensorProto.STRING, [None] * rank)
    y = helper.make_tensor_value_info("y", TensorProto.STRING, None)
    graph = helper.make_graph([node], "graph", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def check(texts: list, **attributes: object) -> None:
    x = np.array(texts, dtype=object)
    serialized = model(x.ndim, **attributes)
    (actual,) = tenon.InferenceSession(serialized).run(None, {"x": x})
    (expected,) = onnxruntime.InferenceSession(serialized).run(None, {"x": x})
    assert actual.shape == expected.shape
    assert actual.tolist() == expected.tolist(), attributes


@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize(
    ("texts", "attributes"),
    [
        (["abc", "é→", ""], {"separators": [""]}),
        (["a\nb"], {"tokenexp": "."}),
        (["a\nb"], {"tokenexp": "(.)"}),
        (["a b  c ", " a", ""], {"separators": [" "]}),
        ([["a b", "c"], ["", "d e f"]], {"separators": [" "]}),
        (["a b,c, d"], {"separators": [" ", ","]}),
        (["aa b,ccc, d", "éé é"], {"separators": [" ", ","], "mincharnum": 2}),
        (["abcd"], {"separators": ["bc", "b", "c"]}),
        (["xabab"], {"separators": ["^x", "^a"]}),
        (["axbxcd"], {"separators": ["c|$"]}),
        (["ab cd"], {"separators": [r"\b"]}),
        (["abc1"], {"separators": ["1"], "tokenexp": "b"}),
        (["abc123 dé"], {"tokenexp": "[a-z]*"}),
        (["abc123 dé"], {"tokenexp": "[a-z]+", "mincharnum": 2}),
        (["abab"], {"tokenexp": "a|ab"}),
        (["aab"], {"tokenexp": "^a"}),
        (["xaaxb"], {"tokenexp": "a*$|x"}),
        (["", ""], {"tokenexp": "a"}),
    ],
)
def test_splits(texts: list, attributes: dict, mark: int) -> None:
    check(texts, mark=mark, **attributes)


@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_nothing_to_split(shape: tuple, mark: int) -> None:
    check(np.empty(shape, object), mark=mark, separators=[" "])


def test_random_texts_and_patterns() -> None:
    # In ASCII: after an empty match onnxruntime continues inside longer characters, and fails.
    numbers = random.Random(3)
    pieces = ["a", "b", "[ab]", "a*", "b+", "x?", "^", "$", r"\b", r"\B", "(?i)A", "[^b]", "a|ab"]
    for _ in range(300):
        texts = ["".join(numbers.choices("aabbx A", k=numbers.randrange(9))) for _ in range(8)]
        patterns = ["".join(numbers.choices(pieces, k=numbers.choice([1, 1, 2]))) for _ in range(2)]
        length = numbers.choice([1, 1, 2])
        for attributes in ({"separators": patterns}, {"tokenexp": patterns[0]}):
            try:
                check(texts, mincharnum=length, **attributes)
            except (onnxruntime.capi.onnxruntime_pybind11_state.Fail, AssertionError):
                raise
            except Exception as error:  # both refuse it
                assert "pattern" in str(error)
                with pytest.raises(Exception, match="Can not digest"):
                    onnxruntime.InferenceSession(model(1, **attributes))


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({}, "expected attribute 'separators' or 'tokenexp', got neither"),
        ({"tokenexp": "a", "mincharnum": 0}, "'mincharnum': expected at least 1, got 0"),
        ({"separators": [""], "mincharnum": 2}, "'mincharnum': expected 1 for tokens of one"),
        ({"separators": ["a", "("]}, "pattern '(': missing ')' for '(' at byte 0"),
        ({"tokenexp": "a", "rank": 3}, "expected shape [C] or [N, C]"),
    ],
)
def test_errors(attributes: dict, text: str) -> None:
    rank = attributes.pop("rank", 1)
    with pytest.raises(Exception, match="Tokenizer") as caught:
        tenon.InferenceSession(model(rank, **attributes))
    assert text in str(caught.value)

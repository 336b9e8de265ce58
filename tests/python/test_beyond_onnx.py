"""What models of the field use though ONNX leaves it open or out: as onnxruntime does it."""

import contrib
import graphs
import numpy as np
import onnxruntime
import pytest
import tenon
from contrib import floats
from onnx import TensorProto, helper, numpy_helper


def both(model: bytes, feeds: dict[str, np.ndarray]) -> list:
    """Tenon's results, which are onnxruntime's."""
    results = tenon.InferenceSession(model).run(None, feeds)
    expected = onnxruntime.InferenceSession(model).run(None, feeds)
    for one, other in zip(results, expected, strict=True):
        if isinstance(other, list):
            assert [x.tolist() for x in one] == [x.tolist() for x in other]
        else:
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    return results


@pytest.mark.parametrize("pads", [[-1, 1], [1, -1], [-1, 3], [0, 2]])
def test_pads_of_an_empty_axis(pads: list[int]) -> None:
    inputs = [np.zeros(0, np.float32), np.array(pads), np.array(7, np.float32)]
    model = contrib.model("Pad", inputs, {"y": np.float32}, domain="")
    both(model, {f"x{i}": x for i, x in enumerate(inputs)})


def test_pads_that_take_more_than_an_empty_axis_has() -> None:
    inputs = [np.zeros(0, np.float32), np.array([-2, 1]), np.array(7, np.float32)]
    model = contrib.model("Pad", inputs, {"y": np.float32}, domain="", constants=(1,))
    with pytest.raises(Exception, match="take more than the 0 elements of axis 0"):
        tenon.InferenceSession(model).run(None, {"x0": inputs[0], "x2": inputs[2]})


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatter_of_whole_tensors(reduction: str) -> None:
    inputs = [floats(2, 3), np.zeros((2, 0), np.int64), floats(2, 2, 3, seed=1)]
    model = contrib.model(
        "ScatterND", inputs, {"y": np.float32}, domain="", opset=18, reduction=reduction
    )
    [y] = tenon.InferenceSession(model).run(None, {f"x{i}": x for i, x in enumerate(inputs)})
    updates = inputs[2]
    expected = updates[1] if reduction == "none" else inputs[0] + updates[0] + updates[1]
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_sizes_of_pieces_of_any_shape() -> None:
    inputs = [floats(4, 2), np.array([[1, 3]])]
    node = helper.make_node("SplitToSequence", ["x", "split"], ["y"])
    model = graphs.model(
        [node],
        [graphs.tensor("x", shape=[4, 2]), graphs.tensor("split", TensorProto.INT64, [1, 2])],
        [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)],
    )
    [pieces] = both(model, {"x": inputs[0], "split": inputs[1]})
    assert [piece.shape for piece in pieces] == [(1, 2), (3, 2)]


@pytest.mark.parametrize("roi", [None, []])
def test_crop_without_a_roi(roi: list | None) -> None:
    """No roi and an empty one are the whole input."""

    def crop(roi: list | None) -> bytes:
        return contrib.model(
            "Resize",
            [
                floats(1, 1, 4, 4),
                None if roi is None else np.array(roi, np.float32),
                np.array([1, 1, 2, 0.5], np.float32),
            ],
            {"y": np.float32},
            domain="",
            constants=(1, 2),
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
        )

    feeds = {"x0": floats(1, 1, 4, 4)}
    [expected] = both(crop([0, 0, 0, 0, 1, 1, 1, 1]), feeds)
    [y] = tenon.InferenceSession(crop(roi)).run(None, feeds)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_a_linear_classifier_without_labels(transform: str) -> None:
    inputs = [floats(5, 3)]
    model = contrib.model(
        "LinearClassifier",
        inputs,
        {"label": np.int64, "scores": np.float32},
        domain="ai.onnx.ml",
        coefficients=[0.5, -1.0, 2.0],
        intercepts=[0.1],
        post_transform=transform,
    )
    label, scores = both(model, {"x0": inputs[0]})
    assert set(label.tolist()) == {0, 1}
    assert scores.shape == (5, 1)


@pytest.mark.parametrize("shape", [[], [1]])
def test_a_loop_whose_body_declares_axes(shape: list[int]) -> None:
    """z collects the numbers of the iterations, which are [1] if the body says so."""
    nodes = [
        helper.make_node("Identity", ["go"], ["goes"]),
        helper.make_node("Identity", ["i"], ["number"]),
    ]
    if shape:  # refused for a scalar
        nodes.append(helper.make_node("Concat", ["state", "i"], ["next"], axis=0))
    else:
        nodes.append(helper.make_node("Add", ["state", "i"], ["next"]))
    body = helper.make_graph(
        nodes,
        "body",
        [
            graphs.tensor("i", TensorProto.INT64, shape),
            graphs.tensor("go", TensorProto.BOOL, shape),
            graphs.tensor("state", TensorProto.INT64),
        ],
        [
            graphs.tensor("goes", TensorProto.BOOL, shape),
            graphs.tensor("next", TensorProto.INT64),
            graphs.tensor("number", TensorProto.INT64, shape),
        ],
    )
    model = graphs.model(
        [helper.make_node("Loop", ["n", "", "x"], ["y", "z"], body=body)],
        [graphs.tensor("n", TensorProto.INT64, []), graphs.tensor("x", TensorProto.INT64, ["k"])],
        [graphs.tensor("y", TensorProto.INT64), graphs.tensor("z", TensorProto.INT64)],
    )
    y, z = both(model, {"n": np.array(3), "x": np.array([5])})
    assert y.tolist() == ([5, 0, 1, 2] if shape else [8])
    assert z.shape == (3, *shape)


@pytest.mark.parametrize("op_type", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint64])
@pytest.mark.parametrize("is_constant", [False, True])
def test_integers_are_not_divided_by_zero(op_type: str, dtype: type, is_constant: bool) -> None:
    inputs = [np.arange(1, 65, dtype=dtype), np.ones(64, dtype)]
    inputs[1][-1] = 0
    model = contrib.model(
        op_type, inputs, {"y": dtype}, domain="", constants=(1,) if is_constant else ()
    )
    feeds = {"x0": inputs[0]} | ({} if is_constant else {"x1": inputs[1]})
    with pytest.raises(Exception, match="by zero"):
        onnxruntime.InferenceSession(model).run(None, feeds)
    with pytest.raises(Exception, match=f"running {op_type} node.*integer division by zero"):
        tenon.InferenceSession(model).run(None, feeds)
    # Nothing is divided here.
    empty = contrib.model(
        op_type, [inputs[0][:0], np.zeros(1, dtype)], {"y": dtype}, domain="", constants=(1,)
    )
    assert tenon.InferenceSession(empty).run(None, {"x0": inputs[0][:0]})[0].shape == (0,)


def test_constants_that_divide_by_zero_fail_when_they_are_needed() -> None:
    """A session can be made as long as no run divides."""
    zero = numpy_helper.from_array(np.zeros(1, np.int64), "zero")
    model = graphs.model(
        [helper.make_node("Div", ["zero", "zero"], ["y"])],
        [],
        [graphs.tensor("y", TensorProto.INT64)],
        initializers=[zero],
    )
    session = tenon.InferenceSession(model)
    with pytest.raises(Exception, match="integer division by zero"):
        session.run(None, {})


OLD_OPERATORS = [
    ("Affine", [floats(2, 3)], {"alpha": 2.0, "beta": 0.5}),
    ("Affine", [floats(2, 3)], {}),
    ("Crop", [floats(1, 2, 5, 6)], {"border": [1, 0, 2, 3]}),
    ("Crop", [floats(1, 2, 5, 6)], {"border": [1, 2, 0, 0], "scale": [3, 4]}),
    ("DynamicSlice", [floats(4, 5), np.array([1, -3]), np.array([3, 9])], {}),
    ("DynamicSlice", [floats(4, 5), np.array([1]), np.array([3]), np.array([1])], {}),
    ("ImageScaler", [floats(2, 3, 2, 2)], {"scale": 2.0, "bias": [0.5, -1.0, 3.0]}),
    ("ParametricSoftplus", [floats(2, 3)], {"alpha": 2.0, "beta": 0.5}),
    ("Scale", [floats(2, 3)], {"scale": 1.5}),
    ("ScaledTanh", [floats(2, 3)], {"alpha": 2.0, "beta": 0.5}),
    ("ThresholdedRelu", [floats(2, 3)], {"alpha": 0.3}),
    (
        "BatchNormalization",
        [floats(2, 3, 4), *(np.abs(floats(3, 4, seed=i)) for i in range(4))],
        {"spatial": 0},
    ),
]


@pytest.mark.parametrize(("op_type", "inputs", "attributes"), OLD_OPERATORS)
def test_operators_that_onnx_removed(op_type: str, inputs: list, attributes: dict) -> None:
    model = contrib.model(op_type, inputs, {"y": np.float32}, domain="", opset=8, **attributes)
    both(model, {f"x{i}": x for i, x in enumerate(inputs)})


def test_operators_that_onnx_removed_end_at_opset_10() -> None:
    model = contrib.model("Scale", [floats(2)], {"y": np.float32}, domain="", opset=10)
    with pytest.raises(Exception, match="is deprecated since opset 10"):
        tenon.InferenceSession(model)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"border": [1, 1, 1]}, "'border': expected 4 numbers"),
        ({"border": [3, 0, 4, 0]}, "is smaller than what is cropped along axis 3"),
        ({"border": [0, 3, 0, 0], "scale": [3, 1]}, "is smaller than what is cropped along axis 2"),
    ],
)
def test_crops_beyond_an_image(attributes: dict, message: str) -> None:
    model = contrib.model(
        "Crop", [floats(1, 1, 5, 6)], {"y": np.float32}, domain="", opset=8, **attributes
    )
    with pytest.raises(Exception, match=message):
        tenon.InferenceSession(model)


@pytest.mark.parametrize(("op_type", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_final_states_of_empty_sequences(
    op_type: str, gates: int, direction: str, dtype: type
) -> None:
    inputs = [floats(3, 2, 4), floats(1, 2 * gates, 4), floats(1, 2 * gates, 2), None]
    inputs = [x if x is None else x.astype(dtype) for x in inputs]
    inputs += [np.array([2, 0], np.int32), floats(1, 2, 2).astype(dtype)]
    outputs = {"y": dtype, "h": dtype}
    if op_type == "LSTM":
        inputs.append(floats(1, 2, 2, seed=1).astype(dtype))
        outputs["c"] = dtype
    model = contrib.model(
        op_type, inputs, outputs, domain="", opset=14, hidden_size=2, direction=direction
    )
    results = contrib.run_tenon(model, inputs)
    assert all(not state[0, 1].any() and state[0, 0].any() for state in results[1:])
    if dtype == np.float32:
        for one, other in zip(results, contrib.run_onnxruntime(model, inputs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("words", [[[1, 99]], [[1, -2]], [[1, 2]], [[-1, 1]], [[2, 1]]])
def test_words_with_unknown_characters(words: list) -> None:
    inputs = [np.array(words, np.int32), floats(3, 1, 2, 4), floats(3), floats(2, 4)]
    model = contrib.model("WordConvEmbedding", inputs, {"y": np.float32}, conv_window_size=2)
    [expected] = contrib.run_onnxruntime(model, inputs)
    [y] = contrib.run_tenon(model, inputs)
    if words[0][0] > 0:  # onnxruntime does not write the row of an empty word
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    else:
        assert not y.any()


@pytest.mark.parametrize("name", ["embedding_size", "conv_window_size", "char_embedding_size"])
def test_words_whose_sizes_do_not_fit(name: str) -> None:
    inputs = [np.array([[1, 1]], np.int32), floats(3, 1, 2, 4), floats(3), floats(2, 4)]
    model = contrib.model("WordConvEmbedding", inputs, {"y": np.float32}, **{name: 5})
    with pytest.raises(Exception, match=f"{name} 5"):
        contrib.run_tenon(model, inputs)


@pytest.mark.parametrize("axes", [[0, 2, 0], [-3, 0]])
def test_squeeze_of_an_axis_twice(axes: list) -> None:
    inputs = [floats(1, 4, 1)]
    model = contrib.model("Squeeze", inputs, {"y": np.float32}, domain="", opset=11, axes=axes)
    both(model, {"x0": inputs[0]})


@pytest.mark.parametrize(
    ("op_type", "inputs", "options", "message"),
    [
        ("AffineGrid", [floats(1, 2, 3), np.array([1, 1, 0, 2])], {}, "sizes of at least 1, got 0"),
        ("Tile", [floats(2), np.array([[2]])], {}, "expected rank 1"),
        (
            "FusedMatMul",
            [floats(2, 3), floats(3, 2)],
            {"domain": "com.microsoft", "transBatchA": 1},
            "one rank of at least 3",
        ),
        (
            "QLinearConcat",
            [np.float32(1), np.uint8(0), np.zeros(2, np.uint8), np.float32(1), np.int8(0)],
            {"domain": "com.microsoft", "axis": 0},
            "expected int8 like all tensors and zero points, got uint8",
        ),
    ],
)
def test_what_onnxruntime_refuses(op_type: str, inputs: list, options: dict, message: str) -> None:
    inputs = [np.asarray(x) for x in inputs]
    output = {"y": np.uint8 if op_type == "QLinearConcat" else np.float32}
    options = {"domain": "", "opset": 20} | options
    model = contrib.model(op_type, inputs, output, **options)
    with pytest.raises(Exception, match=message):
        contrib.run_tenon(model, inputs)


@pytest.mark.parametrize(
    ("locale", "word", "message"),
    [
        ("de_DE.UTF-8@euro", "a", None),
        ("C", "a", None),
        ("zh-TW", "a", None),
        ("klingon_on_mars", "a", "expected a name like en_US, got 'klingon_on_mars'"),
        ("en_US", b"\xff\xfe", "expected UTF-8"),
    ],
)
def test_locales_and_encodings(locale: str, word: str | bytes, message: str | None) -> None:
    node = helper.make_node(
        "StringNormalizer", ["x"], ["y"], case_change_action="UPPER", locale=locale
    )
    model = graphs.model(
        [node],
        [],
        [graphs.tensor("y", TensorProto.STRING)],
        initializers=[helper.make_tensor("x", TensorProto.STRING, [1], [word])],
    )
    if message is None:
        assert tenon.InferenceSession(model).run(None, {})[0].tolist() == ["A"]
        return
    with pytest.raises(Exception, match=message):
        tenon.InferenceSession(model).run(None, {})


def test_a_locale_that_is_not_used() -> None:
    node = helper.make_node(
        "StringNormalizer", ["x"], ["y"], is_case_sensitive=1, stopwords=["b"], locale="none_such"
    )
    model = graphs.model(
        [node],
        [],
        [graphs.tensor("y", TensorProto.STRING)],
        initializers=[helper.make_tensor("x", TensorProto.STRING, [2], ["A", "b"])],
    )
    assert tenon.InferenceSession(model).run(None, {})[0].tolist() == ["A"]

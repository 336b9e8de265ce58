"""How exactly products are computed: session config "session.matmul_precision"."""

import pathlib

import numpy as np
import onnxruntime
import pytest
import tenon
from contrib import floats, model
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

MOST_ERROR = {"highest": 1e-6, "high": 3e-5, "medium": 8e-3}  # of the sum of the terms' sizes


def has_bf16() -> bool:
    information = pathlib.Path("/proc/cpuinfo")
    return information.exists() and "avx512_bf16" in information.read_text()


# Others multiply floats, whose sums are in another order for few rows.
needs_bf16 = pytest.mark.skipif(not has_bf16(), reason="no products of bfloat16 on this processor")


def session(
    content: bytes, precision: str, threads: int = 1, **entries: str
) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.matmul_precision", precision)
    for name, value in entries.items():
        options.add_session_config_entry(f"tenon.{name}", value)
    return tenon.InferenceSession(content, options)


def layers(weight: np.ndarray, shape: list[int | str], **attributes: int) -> bytes:
    """y = relu(x w + b), which becomes one product."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["z"], **attributes)
        if len(shape) == 2
        else helper.make_node("MatMul", ["x", "w"], ["p"]),
        *([] if len(shape) == 2 else [helper.make_node("Add", ["p", "b"], ["z"])]),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    columns = weight.shape[0 if attributes.get("transB") else 1]
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, None)],
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(floats(columns, seed=3), "b"),
        ],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize("precision", MOST_ERROR)
@pytest.mark.parametrize("rows", [1, 7, 70])
@pytest.mark.parametrize("form", ["plain", "transposed", "stack"])
def test_products_are_as_exact_as_asked(precision: str, rows: int, form: str) -> None:
    weight = floats(150, 90, seed=1)
    x = floats(*((2, rows, 150) if form == "stack" else (rows, 150)))
    if form == "transposed":
        content = layers(np.ascontiguousarray(weight.T), list(x.shape), transB=1)
    else:
        content = layers(weight, list(x.shape))
    bias = floats(90, seed=3)
    expected = np.maximum(x.astype(np.float64) @ weight + bias, 0)
    sizes = np.abs(x).astype(np.float64) @ np.abs(weight)
    results = [session(content, precision, threads).run(None, {"x": x})[0] for threads in (1, 2, 3)]
    assert (np.abs(results[0] - expected) <= MOST_ERROR[precision] * sizes + 1e-6).all()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_weights_of_few_bits_are_multiplied_as_exactly_as_asked() -> None:
    """In blocks that are too large for rows of 8 bits."""
    x, scales = floats(40, 512), floats(48, 2, seed=1)
    packed = np.random.default_rng(2).integers(0, 256, (48, 2, 128), dtype=np.uint8)
    content = model(
        "MatMulNBits",
        [x, packed, scales],
        {"y": np.float32},
        constants=(1, 2),
        **{"K": 512, "N": 48, "bits": 4, "block_size": 256},
    )
    elements = np.stack([packed & 15, packed >> 4], axis=-1).reshape(48, 2, 256).astype(np.float64)
    weight = ((elements - 8) * scales[:, :, None]).reshape(48, 512).T
    sizes = np.abs(x).astype(np.float64) @ np.abs(weight)
    errors = {}
    for precision, most in MOST_ERROR.items():
        (y,) = session(content, precision).run(None, {"x0": x})
        errors[precision] = (np.abs(y - x.astype(np.float64) @ weight) / sizes).max()
        assert errors[precision] <= most
    assert errors["medium"] == errors["high"]  # both round to 16 bits, where the machine does


@needs_bf16
def test_rows_are_independent_of_each_other() -> None:
    content = layers(floats(64, 64, seed=1), ["n", 64])
    medium = session(content, "medium")
    x = floats(40, 64)
    whole = medium.run(None, {"x": x})[0]
    np.testing.assert_array_equal(medium.run(None, {"x": x[17:18]})[0], whole[17:18])


@needs_bf16
@pytest.mark.parametrize("columns", [96, 4096])  # in a cache, and beyond one
def test_few_rows_have_the_bits_of_many(columns: int) -> None:
    content = layers(floats(300, columns, seed=1), ["n", 300])
    medium = session(content, "medium")
    x = floats(40, 300)
    whole = medium.run(None, {"x": x})[0]
    for rows in (1, 2, 3, 4, 5, 9):
        np.testing.assert_array_equal(medium.run(None, {"x": x[:rows]})[0], whole[:rows])


def convolution(weight: np.ndarray, **attributes: list[int]) -> bytes:
    """y = relu(conv(x, w) + r), whose layout is blocked inside."""
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["z"], **attributes),
            helper.make_node("Add", ["z", "r"], ["s"]),
            helper.make_node("Relu", ["s"], ["y"]),
        ],
        "convolution",
        [
            helper.make_tensor_value_info("x", 1, ["n", weight.shape[1], "h", "w"]),
            helper.make_tensor_value_info("r", 1, None),
        ],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(weight, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize("precision", MOST_ERROR)
@pytest.mark.parametrize(
    ("size", "attributes"),
    [(1, {}), (1, {"strides": [2, 2]}), (3, {"strides": [2, 2], "pads": [1, 1, 1, 1]})],
    ids=["1x1", "1x1 stride 2", "3x3 stride 2"],
)
def test_convolutions_are_as_exact_as_asked(
    precision: str, size: int, attributes: dict[str, list[int]]
) -> None:
    weight = floats(70, 37, size, size, seed=1)
    content = convolution(weight, **attributes)
    x = floats(2, 37, 15, 14)
    reference = ReferenceEvaluator(content)
    zero = np.zeros((1, 1, 1, 1), np.float32)
    residual = floats(*reference.run(None, {"x": x, "r": zero})[0].shape, seed=2)
    expected = reference.run(None, {"x": x.astype(np.float32), "r": residual})[0]
    sizes = ReferenceEvaluator(convolution(np.abs(weight), **attributes)).run(
        None, {"x": np.abs(x), "r": zero}
    )[0]
    results = [
        session(content, precision, threads).run(None, {"x": x, "r": residual})[0]
        for threads in (1, 2, 3)
    ]
    assert (np.abs(results[0] - expected) <= MOST_ERROR[precision] * sizes + 2e-6).all()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def recurrent(op: str, gates: int, direction: str, constants: bool) -> bytes:
    """y of 9 steps of 3 rows, with weights that are constants or inputs."""
    directions = 2 if direction == "bidirectional" else 1
    weights = {
        "w": floats(directions, gates * 48, 40, seed=1) / 6,
        "r": floats(directions, gates * 48, 48, seed=2) / 7,
    }
    graph = helper.make_graph(
        [
            helper.make_node(
                op,
                ["x", "w", "r", "b"],
                ["y"],
                hidden_size=48,
                direction=direction,
                **({"linear_before_reset": 1} if op == "GRU" else {}),
            )
        ],
        "recurrent",
        [
            helper.make_tensor_value_info("x", 1, [9, 3, 40]),
            *(
                helper.make_tensor_value_info(name, 1, each.shape)
                for name, each in weights.items()
                if not constants
            ),
        ],
        [helper.make_tensor_value_info("y", 1, None)],
        [
            numpy_helper.from_array(floats(directions, 2 * gates * 48, seed=3), "b"),
            *(numpy_helper.from_array(each, name) for name, each in weights.items() if constants),
        ],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_recurrent_layers_are_as_exact_as_asked(op: str, gates: int, direction: str) -> None:
    directions = 2 if direction == "bidirectional" else 1
    x = floats(9, 3, 40)
    given = {
        "w": floats(directions, gates * 48, 40, seed=1) / 6,
        "r": floats(directions, gates * 48, 48, seed=2) / 7,
    }
    constant, dynamic = (recurrent(op, gates, direction, each) for each in (True, False))
    reference = onnxruntime.InferenceSession(constant, providers=["CPUExecutionProvider"])
    exact = reference.run(None, {"x": x})[0]
    highest = session(constant, "highest").run(None, {"x": x})[0]
    assert np.abs(highest - exact).max() <= 1e-5
    results = [
        result
        for threads in (1, 2, 3)
        for result in (
            session(constant, "medium", threads).run(None, {"x": x})[0],
            session(dynamic, "medium", threads).run(None, {"x": x, **given})[0],
        )
    ]
    assert np.abs(results[0] - exact).max() <= 2e-2
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_files_of_packed_weights_tell_the_precisions_apart(tmp_path: pathlib.Path) -> None:
    content = layers(floats(256, 256, seed=1), ["n", 256])
    x = floats(20, 256)
    for _ in range(2):
        for precision in MOST_ERROR:
            alone = session(content, precision).run(None, {"x": x})[0]
            shared = session(content, precision, packed_weights_folder=str(tmp_path))
            np.testing.assert_array_equal(shared.run(None, {"x": x})[0], alone)


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(Exception, match=r"session\.matmul_precision: expected .* got 'low'"):
        session(layers(floats(4, 4), ["n", 4]), "low")

"""plugins/opencl in float16: operators, rounding, graphs of both types, whole networks."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from models import convolutional, transformers
from onnx import TensorProto, helper, numpy_helper
from opencl_cases import (
    CASES,
    LIBRARY,
    PROVIDER,
    cast_arrays,
    check,
    compare,
    floats,
    graph,
    node,
    on_cpu,
    unoptimized,
)
from plugin_runtimes import placement, registered, session_on

HALF = TensorProto.FLOAT16
FLOAT = TensorProto.FLOAT


def takes_floats(inputs: list) -> bool:
    arrays = [x[0] if isinstance(x, tuple) else x for x in inputs]
    return any(x is not None and x.dtype == np.float32 for x in arrays)


@pytest.mark.parametrize("name", [name for name in CASES if takes_floats(CASES[name][1])])
def test_operator(module, devices: list, name: str) -> None:
    op, inputs, attributes = CASES[name]
    halves = cast_arrays(inputs, np.float16)
    reference, feeds = node(op, cast_arrays(halves, np.float32), **attributes)
    expected = cast_arrays(on_cpu(module, reference).run(None, feeds), np.float16)
    model, feeds = node(op, halves, **attributes)
    check(module, devices, model, feeds, expected)


def test_constant_of_shape(module, devices: list) -> None:
    value = helper.make_tensor("value", HALF, [1], [-1.5])
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["a"], value=value),
        helper.make_node("Add", ["a", "x"], ["y"]),
    ]
    feeds = {"x": floats(3, 5).astype(np.float16)}
    shape = numpy_helper.from_array(np.array([3, 1]), "shape")
    check(module, devices, graph(nodes, feeds, ["y"], [shape]), feeds, [feeds["x"] - 1.5])


def every_half() -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def around_every_half() -> np.ndarray:
    """All numbers of float16, the middles between neighbours, and the floats beside those."""
    halves = every_half().astype(np.float32)
    halves = np.sort(halves[np.isfinite(halves)])
    beyond = np.float32([-65536, 65536, 1e38, 1e-30, -1e-45, np.inf, -np.inf, np.nan])
    middles = np.concatenate([(halves[1:] + halves[:-1]) / 2, np.float32([-65520, 65520])])
    beside = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    return np.concatenate([halves, middles, *beside, beyond])


def test_every_number_is_read_and_written(module, devices: list) -> None:
    x = every_half()
    model, feeds = node("Cast", [x], to=FLOAT)
    check(module, devices, model, feeds, [x.astype(np.float32)])
    model, feeds = node("Identity", [x])
    check(module, devices, model, feeds, [x])


def test_casts_round_to_nearest_even(module, devices: list) -> None:
    """In memory, and if the result is cast again before it is stored."""
    nodes = [
        helper.make_node("Cast", ["x"], ["y0"], to=HALF),
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=HALF),
        helper.make_node("Cast", ["b"], ["y1"], to=FLOAT),
    ]
    x = around_every_half()
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float16)
    session = session_on(
        module,
        devices,
        graph(nodes, {"x": x}, ["y0", "y1"], []),
        graph_optimization_level=unoptimized(module),
    )
    y0, y1 = session.run(None, {"x": x})
    np.testing.assert_array_equal(y0, rounded)
    np.testing.assert_array_equal(y1, -rounded.astype(np.float32))
    assert np.array_equal(np.signbit(y0), np.signbit(rounded)), "signs of zeros"


def kernels_of(module, devices: list, model: bytes, feeds: dict, folder: Path) -> list[str]:
    session = session_on(
        module,
        devices,
        model,
        graph_optimization_level=unoptimized(module),
        enable_profiling=True,
        profile_file_prefix=str(folder / "trace"),
    )
    session.run(None, feeds)
    with open(session.end_profiling(), encoding="utf-8") as file:
        return [event["name"] for event in json.load(file) if event["cat"] == "Kernel"]


def test_float16_weights_of_a_float32_layer_are_read_in_place(
    module, devices: list, tmp_path: Path
) -> None:
    nodes = [
        helper.make_node("Cast", ["w"], ["wide"], to=FLOAT),
        helper.make_node("Cast", ["b"], ["bias"], to=FLOAT),
        helper.make_node("MatMul", ["x", "wide"], ["a"]),
        helper.make_node("Add", ["a", "bias"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    w, b = floats(33, 21, seed=1).astype(np.float16), floats(21, seed=2).astype(np.float16)
    constants = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")]
    feeds = {"x": floats(5, 33)}
    model = graph(nodes, feeds, ["y"], constants)
    expected = feeds["x"].astype(np.float64) @ w.astype(np.float64) + b
    check(module, devices, model, feeds, [np.maximum(expected, 0).astype(np.float32)])
    kernels = kernels_of(module, devices, model, feeds, tmp_path)
    assert [name for name in kernels if name != "copy"] == ["product"]


def test_float16_between_casts_is_one_kernel(module, devices: list, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=HALF),
        helper.make_node("Mul", ["a", "w"], ["b"]),
        helper.make_node("Tanh", ["b"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=FLOAT),
    ]
    w = floats(9, seed=1).astype(np.float16)
    feeds = {"x": floats(4, 7, 9)}
    model = graph(nodes, feeds, ["y"], [numpy_helper.from_array(w, "w")])
    a = feeds["x"].astype(np.float16).astype(np.float32)
    check(module, devices, model, feeds, [np.tanh(a * w.astype(np.float32))])
    kernels = kernels_of(module, devices, model, feeds, tmp_path)
    assert [name for name in kernels if name != "copy"] == ["elementwise"]


def test_kernels_of_both_types_are_kept_apart(module, devices: list, tmp_path: Path) -> None:
    """In memory, and in the folder of compiled programs."""
    settings = {"ep.openclexecutionprovider.kernel_cache_folder": str(tmp_path)}
    with registered(module, LIBRARY, PROVIDER) as fresh:
        for dtype in (np.float32, np.float16, np.float32):
            x = floats(3, 5).astype(dtype)
            model, feeds = node("Softsign", [x])
            session = session_on(module, fresh[:1], model, **settings)
            compare(session.run(None, feeds)[0], x / (1 + abs(x)))
    assert len(list(tmp_path.iterdir())) == 2


def in_float16(model: onnx.ModelProto, inputs_stay: bool = False) -> onnx.ModelProto:
    """The model with float16 for float32 everywhere, as converters make it; its inputs and outputs
    may stay, with casts."""
    half = onnx.ModelProto.FromString(model.SerializeToString())
    tensors = list(half.graph.initializer)
    for one in half.graph.node:
        tensors += [attribute.t for attribute in one.attribute if attribute.HasField("t")]
        for attribute in one.attribute:
            if one.op_type == "Cast" and attribute.name == "to" and attribute.i == FLOAT:
                attribute.i = HALF
    for tensor in tensors:
        if tensor.data_type == FLOAT:
            limit = float(np.finfo(np.float16).max)
            values = np.clip(numpy_helper.to_array(tensor), -limit, limit).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    del half.graph.value_info[:]
    for value in [*half.graph.input, *half.graph.output]:
        kind = value.type.tensor_type
        if kind.elem_type != FLOAT:
            continue
        if not inputs_stay:
            kind.elem_type = HALF
            continue
        inner = f"{value.name}_half"
        is_input = value in half.graph.input
        for one in half.graph.node:
            names = one.input if is_input else one.output
            names[:] = [inner if name == value.name else name for name in names]
        if is_input:
            half.graph.node.insert(0, helper.make_node("Cast", [value.name], [inner], to=HALF))
        else:
            half.graph.node.append(helper.make_node("Cast", [inner], [value.name], to=FLOAT))
    return half


def resnet(size: int) -> onnx.ModelProto:
    """ResNet-18 on smaller pictures."""
    model = convolutional.resnet("resnet18", depths=(2, 2, 2, 2), bottleneck=False)
    for dim in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        dim.dim_value = size
    return model


def bert() -> onnx.ModelProto:
    sizes = transformers.Encoder(
        layers=2, width=48, heads=4, inner=96, vocabulary=100, positions=32
    )
    return transformers.bert("small_bert", sizes, opset=17, pooler=True)


def tokens(batch: int, length: int) -> dict:
    """The last sequence is padded."""
    random = np.random.default_rng(0)
    mask = np.ones((batch, length), np.int64)
    mask[-1, length // 2 :] = 0
    return {
        "input_ids": random.integers(0, 100, (batch, length)),
        "attention_mask": mask,
        "token_type_ids": random.integers(0, 2, (batch, length)),
    }


def check_network(module, devices: list, half: onnx.ModelProto, full: onnx.ModelProto, feeds: dict):
    """All nodes run on the device. The CPU's results in float16, and those of the original in
    float32, differ by at most 0.5 % of the largest element: each layer rounds its result to 11
    bits.
    """
    session = session_on(module, devices, half.SerializeToString())
    assert list(placement(session)) == [PROVIDER]
    wide = dict(zip(feeds, cast_arrays(list(feeds.values()), np.float32), strict=True))
    for reference, inputs in ((half, feeds), (full, wide)):
        expected = on_cpu(module, reference.SerializeToString()).run(None, inputs)
        for got, wanted in zip(session.run(None, feeds), expected, strict=True):
            error = np.abs(got.astype(np.float32) - wanted.astype(np.float32)).max()
            assert error <= 5e-3 * np.abs(wanted).max()


@pytest.mark.parametrize("inputs_stay", [False, True])
def test_a_convolutional_network(module, devices: list, inputs_stay: bool) -> None:
    full = resnet(size=64)
    x = floats(2, 3, 64, 64).astype(np.float32 if inputs_stay else np.float16)
    check_network(module, devices, in_float16(full, inputs_stay), full, {"input": x})


def test_a_transformer(module, devices: list) -> None:
    full = bert()
    half = in_float16(full)
    for batch, length in [(2, 9), (1, 32)]:
        check_network(module, devices, half, full, tokens(batch, length))

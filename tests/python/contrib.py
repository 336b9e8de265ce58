"""One-node models of com.microsoft, run by Tenon and by onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import tenon
from onnx import helper

Arrays = list[np.ndarray | None]


def floats(*shape: int, seed: int = 0, dtype: type = np.float32) -> np.ndarray:
    generator = np.random.default_rng([seed, *shape])
    return generator.standard_normal(shape).astype(dtype)


def model(
    op_type: str,
    inputs: Arrays,
    outputs: dict[str, type],
    domain: str = "com.microsoft",
    opset: int = 17,
    constants: tuple[int, ...] = (),
    **attributes: object,
) -> bytes:
    """Inputs x0, x1, ...; None is an absent one. An output named "" is absent."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op_type, names, list(outputs), domain=domain, **attributes)
    given = [(name, x) for name, x in zip(names, inputs, strict=True) if x is not None]
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), list(x.shape)
            )
            for name, x in given
            if int(name[1:]) not in constants
        ],
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None
            )
            for name, dtype in outputs.items()
            if name
        ],
        [
            helper.make_tensor(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape, x.tobytes(), raw=True
            )
            for name, x in given
            if int(name[1:]) in constants
        ],
    )
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def onnx_with_version(content: bytes, domain: str, version: int) -> bytes:
    """The model with another version of one of its operator sets."""
    changed = onnx.load_from_string(content)
    for opset in changed.opset_import:
        if opset.domain == domain:
            opset.version = version
    return changed.SerializeToString()


def run_tenon(content: bytes, inputs: Arrays) -> list[np.ndarray]:
    session = tenon.InferenceSession(content)
    wanted = {x.name for x in session.get_inputs()}
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if f"x{i}" in wanted}
    return session.run(None, feeds)


def run_onnxruntime(content: bytes, inputs: Arrays) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # by which some operators round
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
    wanted = {x.name for x in session.get_inputs()}
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if f"x{i}" in wanted}
    return session.run(None, feeds)


def check(
    op_type: str,
    inputs: Arrays,
    outputs: dict[str, type] | None = None,
    expected: list[np.ndarray] | None = None,
    rtol: float = 1e-4,
    atol: float = 2e-5,
    **options: object,
) -> list[np.ndarray]:
    """Compares Tenon's outputs with `expected`, or else with onnxruntime's; returns them."""
    content = model(op_type, inputs, outputs or {"y": np.float32}, **options)
    if expected is None:
        expected = run_onnxruntime(content, inputs)
    actual = run_tenon(content, inputs)
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype
        assert a.shape == e.shape
        if a.dtype.kind == "f":
            np.testing.assert_allclose(
                a.astype(np.float64), e.astype(np.float64), rtol=rtol, atol=atol
            )
        else:
            np.testing.assert_array_equal(a, e)
    return actual


__all__ = ["check", "floats", "model", "onnx_with_version", "run_onnxruntime", "run_tenon"]

"""Kernels divided among workers: the same bits as on one thread, on the module that traps where a
worker uses the heap.
"""

from __future__ import annotations

import pathlib
import shutil
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from test_onnx_suite import CHECKED, PACKAGE, Server

OPSET = 20
MICROSOFT = "com.microsoft"


@dataclass
class Case:
    """One operator on inputs large enough for several threads."""

    op: str
    shapes: list[tuple[int, ...]]
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: list[np.ndarray] = field(default_factory=list)  # inputs behind the others
    dtype: Any = np.float32
    outputs: int = 1
    domain: str = ""


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def weights(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape)) * 0.37).reshape(shape).astype(np.float32)


IMAGE = (1, 32, 64, 64)
CASES = [
    Case("MatMul", [(300, 310), (310, 320)]),
    Case("MatMul", [(3, 1024)], constants=[weights(1024, 2048)]),
    Case("Gemm", [(3, 1024), (2048, 1024)], {"transB": 1}),
    Case("MatMulInteger", [(128, 256), (256, 512)], dtype=np.uint8),
    Case("Conv", [IMAGE], {"pads": [1] * 4}, [weights(32, 32, 3, 3)]),
    Case("Conv", [IMAGE], {}, [weights(64, 32, 1, 1)]),
    Case("Conv", [IMAGE], {"pads": [2] * 4, "group": 32}, [weights(32, 1, 5, 5)]),
    Case("Conv", [(1, 3, 224, 224)], {"pads": [1] * 4}, [weights(16, 3, 3, 3)]),
    Case("ConvTranspose", [IMAGE], {"strides": [2, 2]}, [weights(32, 16, 2, 2)]),
    Case("MaxPool", [IMAGE], {"kernel_shape": [3, 3]}),
    Case("AveragePool", [IMAGE], {"kernel_shape": [3, 3]}),
    Case("LRN", [IMAGE], {"size": 5}),
    Case("InstanceNormalization", [IMAGE], {}, [weights(32), weights(32)]),
    Case("LayerNormalization", [(512, 768)], {}, [weights(768), weights(768)]),
    Case("Softmax", [(512, 1000)]),
    Case("Softmax", [(64, 64, 64)], {"axis": 1}),
    Case("Erf", [(1 << 20,)]),
    Case("Add", [(1024, 1024), (1024, 1)]),
    Case("Where", [(1024, 1024)] * 3),
    Case("ReduceSum", [(1024, 1024)], {}, [ints(0)]),
    Case("ReduceMax", [(64, 64, 256)], {}, [ints(1)]),
    Case("ArgMax", [(1024, 1024)], {"axis": 1}),
    Case("CumSum", [(1024, 512)], {}, [ints(1)]),
    Case("TopK", [(256, 1024)], {}, [ints(40)], outputs=2),
    Case("Transpose", [(64, 128, 96)], {"perm": [2, 0, 1]}),
    Case("Concat", [(256, 1024)] * 3, {"axis": 1}),
    Case("Pad", [IMAGE], {"mode": "reflect"}, [ints(0, 0, 3, 3, 0, 0, 3, 3)]),
    Case("Tile", [(512, 512)], {}, [ints(2, 2)]),
    Case("Gather", [(4096, 256)], {}, [np.arange(0, 4096, 2).reshape(2, -1)]),
    Case("Resize", [IMAGE], {"mode": "linear"}, [weights(0), np.array([1, 1, 2, 2], np.float32)]),
    Case("LSTM", [(40, 8, 128)], {"hidden_size": 128}, [weights(1, 512, 128)] * 2, outputs=2),
    Case("GRU", [(40, 8, 128)], {"hidden_size": 128}, [weights(1, 384, 128)] * 2, outputs=2),
    Case("DFT", [(64, 1024, 1)], {"axis": 1}),
    Case("Einsum", [(64, 64, 64), (64, 64, 64)], {"equation": "bij,bjk->bik"}),
    Case("QuantizeLinear", [(1 << 20,)], {}, [np.array(0.01, np.float32), np.array(128, np.uint8)]),
    Case("BiasGelu", [(512, 768), (768,)], domain=MICROSOFT),
    Case("MultiHeadAttention", [(2, 128, 256)] * 3, {"num_heads": 8}, domain=MICROSOFT),
]


def inputs_of(case: Case) -> list[np.ndarray]:
    inputs = [
        np.cos(np.arange(np.prod(shape)) * (0.11 + 0.01 * i)).reshape(shape)
        for i, shape in enumerate(case.shapes)
    ]
    if case.op == "Where":
        inputs[0] = inputs[0] > 0
        return [inputs[0], *(each.astype(np.float32) for each in inputs[1:])]
    if case.dtype is np.uint8:
        return [(100 * each + 128).astype(np.uint8) for each in inputs]
    return [each.astype(case.dtype) for each in inputs]


def model_of(case: Case, inputs: list[np.ndarray]) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(inputs))]
    # An initializer without elements is an input that is left out.
    constants = [(f"c{i}" if value.size else "", value) for i, value in enumerate(case.constants)]
    outputs = [f"y{i}" for i in range(case.outputs)]
    operands = [*names, *(name for name, _ in constants)]
    if case.op == "DFT":
        operands.insert(1, "")
        operands.append("axis")
        constants.append(("axis", np.array(case.attributes["axis"], np.int64)))
    attributes = {} if case.op == "DFT" else case.attributes
    node = helper.make_node(case.op, operands, outputs, domain=case.domain, **attributes)
    types = [helper.np_dtype_to_tensor_dtype(value.dtype) for value in inputs]
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(name, dtype, value.shape)
            for name, dtype, value in zip(names, types, inputs, strict=True)
        ],
        [helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants if name],
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
        ir_version=9,
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.skipif(not pathlib.Path(PACKAGE).is_dir(), reason="needs the package: ./dev web")
@pytest.mark.skipif(not CHECKED.exists(), reason="needs the build: ./dev build wasm")
def test_kernels_leave_the_heap_to_the_session_thread() -> None:  # WB-37, WB-40, WB-41
    alone, divided = Server("wasm", "1"), Server("wasm", "4")
    wrong = []
    helped = 0
    try:
        for case in CASES:
            inputs = inputs_of(case)
            model = model_of(case, inputs)
            try:
                expected = alone.run(model, inputs)
                got = divided.run(model, inputs)
            except RuntimeError as error:
                wrong.append(f"{case.op} {case.shapes}: {error}")
                continue
            helped += divided.helped
            if alone.divided > 0 or divided.divided == 0:
                wrong.append(f"{case.op} {case.shapes}: {divided.divided} loops were divided")
            for i, (a, b) in enumerate(zip(expected, got, strict=True)):
                if a.shape != b.shape or a.tobytes() != b.tobytes():
                    wrong.append(f"{case.op} {case.shapes}: output {i} differs")
    finally:
        alone.stop()
        divided.stop()
    assert not wrong, "\n".join(wrong)
    assert helped > 0

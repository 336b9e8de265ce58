"""A builder of ONNX graphs in the style of PyTorch's exporter.

Values are their names. Small constants are Constant nodes and weights are initializers, as in an
exported file. Weights are random, seeded by the model's name, and scaled so that activations
neither vanish nor overflow.
"""

import math
import zlib
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
INT32 = TensorProto.INT32
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL

# A dimension of an input or output: a size, or a symbol that every run chooses.
Dim = int | str


class GraphBuilder:
    def __init__(self, name: str, opset: int):
        self.name = name
        self.opset = opset
        self._random = np.random.default_rng(zlib.crc32(name.encode()))
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    # ---- the model's interface ----

    def input(self, name: str, dims: Sequence[Dim], data_type: int = FLOAT) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, data_type, dims))
        return name

    def output(self, name: str, value: str, dims: Sequence[Dim], data_type: int = FLOAT) -> None:
        """Gives `value` the name of an output."""
        self._nodes.append(helper.make_node("Identity", [value], [name], name=f"Output_{name}"))
        self._outputs.append(helper.make_tensor_value_info(name, data_type, dims))

    def model(self) -> onnx.ModelProto:
        self._drop_output_identities()
        graph = helper.make_graph(
            self._nodes, self.name, self._inputs, self._outputs, self._initializers
        )
        domains = sorted({node.domain for node in self._nodes if node.domain})
        return helper.make_model(
            graph,
            producer_name="tenon-bench",
            opset_imports=[
                helper.make_opsetid("", self.opset),
                *(helper.make_opsetid(domain, 1) for domain in domains),
            ],
            ir_version=8,
        )

    def _drop_output_identities(self) -> None:
        """Lets the nodes that compute the outputs write them, if nothing else reads them."""
        identities = [node for node in self._nodes if node.name.startswith("Output_")]
        readers: dict[str, int] = {}
        for node in self._nodes:
            for value in node.input:
                readers[value] = readers.get(value, 0) + 1
        makers = {value: node for node in self._nodes for value in node.output}
        for identity in identities:
            value, name = identity.input[0], identity.output[0]
            if readers[value] == 1 and value in makers:
                outputs = makers[value].output
                outputs[list(outputs).index(value)] = name
                self._nodes.remove(identity)

    # ---- nodes ----

    def op(self, op_type: str, *inputs: str, **attributes) -> str:
        """A node with one output."""
        return self.ops(op_type, 1, *inputs, **attributes)[0]

    def ops(self, op_type: str, count: int, *inputs: str, **attributes) -> list[str]:
        """A node with `count` outputs."""
        index = len(self._nodes)
        outputs = [f"/{op_type}_{index}_output_{i}" for i in range(count)]
        node = helper.make_node(op_type, inputs, outputs, name=f"/{op_type}_{index}", **attributes)
        self._nodes.append(node)
        return outputs

    def constant(self, value, dtype=np.float32) -> str:
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value, dtype)))

    def ints(self, *values: int) -> str:
        """A one-dimensional constant of int64."""
        return self.constant(values, np.int64)

    # ---- initializers ----

    def initializer(self, array: np.ndarray) -> str:
        name = f"onnx::weight_{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(array, name))
        return name

    def normal(self, *shape: int, std: float) -> str:
        values = self._random.standard_normal(shape, dtype=np.float32)
        return self.initializer(np.multiply(values, np.float32(std), out=values))

    def scalar(self, value: float) -> str:
        return self.initializer(np.asarray(value, np.float32))

    def near_one(self, *shape: int) -> str:
        """A scale like the learned ones of normalizations."""
        values = self._random.standard_normal(shape, dtype=np.float32)
        return self.initializer(1 + np.float32(0.05) * values)

    def linear_int4(self, value: str, inputs: int, outputs: int, accuracy_level: int) -> str:
        """A product with 4-bit weights in blocks of 32, as onnxruntime's tools write it."""
        packed = self._random.integers(0, 256, (outputs, inputs // 32, 16), np.uint8)
        scales = self._random.uniform(0.5, 1.5, (outputs, inputs // 32)).astype(np.float32)
        scales *= np.float32(1 / (4.6 * math.sqrt(inputs)))  # 4.6: the deviation of 0 to 15
        return self.op(
            "MatMulNBits",
            value,
            self.initializer(packed),
            self.initializer(scales),
            domain="com.microsoft",
            K=inputs,
            N=outputs,
            bits=4,
            block_size=32,
            accuracy_level=accuracy_level,
        )

    def bias(self, *shape: int) -> str:
        return self.normal(*shape, std=0.02)

    # ---- what several architectures share ----

    def size(self, value: str, axis: int) -> str:
        """The size of one axis as a scalar, in the form that tracing writes."""
        return self.op("Gather", self.op("Shape", value), self.constant(axis, np.int64), axis=0)

    def vector(self, *dims: int | str) -> str:
        """A shape from sizes and scalar values."""
        if all(isinstance(dim, int) for dim in dims):
            return self.ints(*(int(dim) for dim in dims))
        parts = [
            self.ints(dim) if isinstance(dim, int) else self.op("Unsqueeze", dim, self.ints(0))
            for dim in dims
        ]
        return self.op("Concat", *parts, axis=0)

    def reshape(self, value: str, *dims: int | str) -> str:
        return self.op("Reshape", value, self.vector(*dims))

    def transpose(self, value: str, *perm: int) -> str:
        return self.op("Transpose", value, perm=perm)

    def linear(self, value: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """nn.Linear on a tensor of rank 3 or more: MatMul, then the bias as the first operand."""
        weight = self.normal(inputs, outputs, std=gain / math.sqrt(inputs))
        return self.op("Add", self.bias(outputs), self.op("MatMul", value, weight))

    def gemm(self, value: str, inputs: int, outputs: int) -> str:
        """nn.Linear on a matrix."""
        weight = self.normal(outputs, inputs, std=1 / math.sqrt(inputs))
        return self.op("Gemm", value, weight, self.bias(outputs), transB=1)

    def conv(
        self,
        value: str,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        gain: float = 1.0,
    ) -> str:
        """A square convolution with folded batch normalization; the default padding is "same"."""
        if padding is None:
            padding = (kernel - 1) // 2
        fan_in = inputs // groups * kernel * kernel
        weight = self.normal(
            outputs, inputs // groups, kernel, kernel, std=gain * math.sqrt(2 / fan_in)
        )
        return self.op(
            "Conv",
            value,
            weight,
            self.bias(outputs),
            dilations=[1, 1],
            group=groups,
            kernel_shape=[kernel, kernel],
            pads=[padding] * 4,
            strides=[stride, stride],
        )

    def layer_norm(self, value: str, width: int, epsilon: float) -> str:
        """Over the last axis: one node from opset 17 on, the decomposition before."""
        scale, bias = self.near_one(width), self.bias(width)
        if self.opset >= 17:
            return self.op("LayerNormalization", value, scale, bias, axis=-1, epsilon=epsilon)
        centred = self.op("Sub", value, self.op("ReduceMean", value, axes=[-1]))
        square = self.op("Pow", centred, self.constant(2))
        variance = self.op("ReduceMean", square, axes=[-1])
        deviation = self.op("Sqrt", self.op("Add", variance, self.constant(epsilon)))
        normalized = self.op("Div", centred, deviation)
        return self.op("Add", self.op("Mul", normalized, scale), bias)

    def gelu(self, value: str) -> str:
        """x * (1 + erf(x / sqrt(2))) * 0.5."""
        erf = self.op("Erf", self.op("Div", value, self.constant(math.sqrt(2))))
        product = self.op("Mul", value, self.op("Add", erf, self.constant(1)))
        return self.op("Mul", product, self.constant(0.5))

"""Random valid graphs on Tenon, optimized and not, and on onnxruntime.

    python fuzz/differential.py [--kind float] [--seconds 60] [--seed 0] [--keep FOLDER]

The kinds are graphs of float, of float16 and of floats that are quantized between operators. Every
third graph does not declare the sizes of its inputs.

Each graph is built node by node. onnxruntime runs each new node by itself, which shows whether the
node is valid and what its outputs are. Tenon then runs the whole graph. A difference is printed
with its seed, which reproduces the graph, and the model is kept in FOLDER. The exit status is 1 if
there was a difference.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import tenon
from onnx import NodeProto, helper, numpy_helper

OPSET = 20
# Of the values. Those of float16 are a hundredth apart there, so that functions differ little.
LARGEST = {"float": 1e3, "float16": 16, "quantized": 1e3}
# A larger difference is not due to rounding; values are of the order of 1. Where values
# are quantized it is measured in the largest number of an output, of which a step is 1/127.
TOLERANCES = {"float": 2e-3, "float16": 0.05, "quantized": 0.1}

# Without operators that jump at values to which rounding may move a sum: ThresholdedRelu at 1, the
# sum of a row of Softmax, and Sign at 0, the result of LayerNormalization for equal elements.
UNARY = """Abs Neg Relu Sigmoid Tanh Exp Erf Softplus Softsign HardSwish HardSigmoid LeakyRelu Elu
Selu Celu Mish Gelu Sin Cos Atan Identity""".split()
BINARY = "Add Sub Mul Max Min Sum Mean".split()
REDUCTIONS = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare".split()


class Graph:
    """The graph so far: its nodes, its constants, and every value with onnxruntime's result."""

    def __init__(self, seed: int, kind: str) -> None:
        self.kind = kind
        self.dtype = np.float16 if kind == "float16" else np.float32
        self.is_declared = seed % 3 != 0
        self.made = 0  # names of values so far
        self.rng = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.values: dict[str, np.ndarray] = {}
        self.inputs: list[str] = []
        self.computed: set[str] = set()  # of the constants, those that nodes compute

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def chance(self, p: float = 0.5) -> bool:
        return bool(self.rng.random() < p)

    def any(self, ranks: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> str | None:
        """A value of one of the ranks; later values are more likely."""
        names = [name for name, x in self.values.items() if x.ndim in ranks]
        return names[max(self.below(len(names)), self.below(len(names)))] if names else None

    def constant(self, x: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(x)  # onnxruntime takes no scalars
        return name

    def floats(self, *shape: int) -> str:
        scale = 1 / np.sqrt(max(1, np.prod(shape[1:], dtype=int)))
        return self.constant((self.rng.standard_normal(shape) * scale).astype(self.dtype))

    def weights(self, *shape: int, axis: int = 0) -> str:
        """Floats that may be stored quantized, with one scale or one for each index of an axis."""
        name = self.floats(*shape)
        if self.kind != "quantized" or self.chance(0.2):
            return name
        x = self.constants.pop(name)
        axes = tuple(i for i in range(x.ndim) if i != axis) if self.chance() else None
        most = np.abs(x).max(axes, keepdims=True)
        scales = (np.maximum(most, 1e-3) / 127).astype(np.float32)
        q = self.constant(np.round(x / scales).astype(np.int8))
        zeros = np.zeros(scales.size, np.int8) if axes is not None else np.int8(0)
        scales = scales.reshape(-1) if axes is not None else np.float32(scales.item())
        inputs = [q, self.constant(scales), self.constant(np.array(zeros))]
        made = self.name()
        node = helper.make_node("DequantizeLinear", inputs, [made], axis=axis)
        self.nodes.append(node)
        (self.constants[made],) = run_nodes([node], {n: self.constants[n] for n in inputs})
        self.computed.add(made)
        return made

    def name(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def add(self, op: str, inputs: list[str], outputs: int = 1, **attributes: object) -> None:
        names = [self.name() for _ in range(outputs)]
        self.add_all([helper.make_node(op, inputs, names, **attributes)], names)

    def add_all(self, nodes: list[NodeProto], names: list[str]) -> None:
        """Adds nodes that make the values of these names, if onnxruntime runs them."""
        own = {name for node in nodes for name in node.output}
        read = {name for node in nodes for name in node.input if name} - own
        feeds = {n: self.values.get(n, self.constants.get(n)) for n in read}
        made = run_nodes(nodes, feeds, names)
        if made is None or any(not self.is_tame(x) for x in made):
            return
        self.nodes += nodes
        for name, x in zip(names, made, strict=True):
            if self.kind == "quantized" and self.chance(0.8):
                self.quantize(name, x)
            else:
                self.values[name] = x

    def quantize(self, name: str, x: np.ndarray) -> None:
        """Adds the value that results from quantizing this one, as quantizers of models do."""
        low, high = min(0, float(x.min())), max(0, float(x.max()))
        if self.chance():
            dtype, scale, zero = np.int8, max(high, -low, 1e-3) / 127, 0
        else:
            dtype, scale = np.uint8, max(high - low, 1e-3) / 255
            zero = round(-low / scale)
        parameters = [self.constant(np.float32(scale)), self.constant(np.array(zero, dtype))]
        q, back = self.name(), self.name()
        nodes = [
            helper.make_node("QuantizeLinear", [name, *parameters], [q]),
            helper.make_node("DequantizeLinear", [q, *parameters], [back]),
        ]
        feeds = {name: x, **{n: self.constants[n] for n in parameters}}
        (self.values[back],) = run_nodes(nodes, feeds, [back])
        self.nodes += nodes

    def is_tame(self, x: np.ndarray) -> bool:
        is_small = x.dtype == self.dtype and 0 < x.size <= 20000
        return is_small and bool(np.isfinite(x).all() and (np.abs(x) < LARGEST[self.kind]).all())


def is_spread(x: np.ndarray, axes: int | tuple[int, ...]) -> bool:
    """Whether elements along the axes differ. Normalizing divides by their deviation, which is only
    rounding error for equal elements.
    """
    return bool((x.std(axes) > 1e-2 * np.abs(x).max(axes)).all())


def info(name: str, x: np.ndarray, is_declared: bool) -> onnx.ValueInfoProto:
    shape = x.shape if is_declared else [f"{name}_{i}" for i in range(x.ndim)]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), shape)


def model_of(
    nodes: list[NodeProto],
    inputs: dict,
    outputs: list[str],
    constants: dict,
    is_declared: bool = True,
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "graph",
        [info(name, x, is_declared) for name, x in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def run_nodes(
    nodes: list[NodeProto], inputs: dict[str, np.ndarray], outputs: list[str] | None = None
) -> list[np.ndarray] | None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        content = model_of(nodes, inputs, outputs or list(nodes[-1].output), {})
        return onnxruntime.InferenceSession(content, options).run(None, inputs)
    except Exception:
        return None


# ---- what can be added --------------------------------------------------------------------------


def unary(g: Graph) -> None:
    g.add(UNARY[g.below(len(UNARY))], [g.any()])


def binary(g: Graph) -> None:
    x = g.any()
    shape = list(g.values[x].shape)
    other = g.any() if g.chance(0.6) else None
    if other is None or g.chance(0.3):
        shape = [1 if g.chance(0.3) else d for d in shape][g.below(len(shape) + 1) :]
        other = g.floats(*shape)
    pair = [x, other] if g.chance() else [other, x]
    g.add(BINARY[g.below(len(BINARY))], pair)


def where(g: Graph) -> None:
    x, y = g.any(), g.any()
    mask = g.constant(g.rng.random(g.values[x].shape) < 0.5)
    g.add("Where", [mask, x, y] if g.chance() else [mask, y, x])


def transpose(g: Graph) -> None:
    x = g.any((2, 3, 4, 5))
    if x:
        g.add("Transpose", [x], perm=[int(i) for i in g.rng.permutation(g.values[x].ndim)])


def reshape(g: Graph) -> None:
    x = g.any((1, 2, 3, 4))
    if x is None:
        return
    shape = list(g.values[x].shape)
    at = g.below(len(shape))
    if g.chance() and len(shape) > 1:
        at = g.below(len(shape) - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    elif shape[at] % 2 == 0:
        shape[at : at + 1] = [2, shape[at] // 2]
    if g.chance() and 0 not in shape:
        shape[g.below(len(shape))] = -1
    g.add("Reshape", [x, g.ints(*shape)])


def squeeze(g: Graph) -> None:
    x = g.any((0, 1, 2, 3, 4))
    ones = [i for i, d in enumerate(g.values[x].shape) if d == 1]
    if ones and g.chance():
        g.add("Squeeze", [x, g.ints(ones[g.below(len(ones))])])
    else:
        g.add("Unsqueeze", [x, g.ints(g.below(g.values[x].ndim + 1))])


def concat(g: Graph) -> None:
    x = g.any((1, 2, 3, 4))
    if x:
        names = [x, *(n for n, y in g.values.items() if y.shape == g.values[x].shape)][:3]
        g.add("Concat", names, axis=g.below(g.values[x].ndim))


def slice_part(g: Graph) -> None:
    x = g.any((1, 2, 3, 4))
    if x is None:
        return
    axis = g.below(g.values[x].ndim)
    n = g.values[x].shape[axis]
    step = [1, 1, 2, -1][g.below(4)]
    start, end = (g.below(n + 1), n + 2) if step > 0 else (n, -n - 1 + g.below(n + 1))
    g.add("Slice", [x, g.ints(start), g.ints(end), g.ints(axis), g.ints(step)])


def split(g: Graph) -> None:
    x = g.any((1, 2, 3, 4))
    if x and g.values[x].shape[-1] % 2 == 0:
        g.add("Split", [x], 2, axis=-1, num_outputs=2)


def pad(g: Graph) -> None:
    x = g.any((1, 2, 3, 4))
    if x:
        pads = [g.below(3) for _ in range(2 * g.values[x].ndim)]
        mode = ["constant", "reflect", "edge", "wrap"][g.below(4)]
        g.add("Pad", [x, g.ints(*pads)], mode=mode)


def reduce(g: Graph) -> None:
    x = g.any((1, 2, 3, 4))
    if x:
        axes = [i for i in range(g.values[x].ndim) if g.chance()] or [-1]
        op = REDUCTIONS[g.below(len(REDUCTIONS))]
        g.add(op, [x, g.ints(*axes)], keepdims=g.below(2))


def softmax(g: Graph) -> None:
    x = g.any((1, 2, 3, 4))
    if x:
        op = "Softmax" if g.chance() else "LogSoftmax"
        g.add(op, [x], axis=g.below(g.values[x].ndim))


def product(g: Graph) -> None:
    x = g.any((2, 3, 4))
    if x is None:
        return
    k = g.values[x].shape[-1]
    if g.values[x].ndim == 2 and g.chance():
        n = 1 + g.below(20)
        inputs = [x, g.weights(n, k), g.floats(n)]
        g.add("Gemm", inputs, transB=1, alpha=0.5 + g.below(2), beta=1.0)
    else:
        g.add("MatMul", [x, g.weights(k, 1 + g.below(20), axis=1)])


def attention(g: Graph) -> None:
    x = g.any((3, 4))
    if x:
        perm = [*range(g.values[x].ndim - 2), g.values[x].ndim - 1, g.values[x].ndim - 2]
        count = len(g.values)
        g.add("Transpose", [x], perm=perm)
        if len(g.values) > count:
            g.add("MatMul", [x, list(g.values)[-1]])
            softmax(g)


def reshape_by_shape(g: Graph) -> None:
    """Joins all axes but the first ones, whose sizes are read from the value."""
    x = g.any((2, 3, 4))
    if x is None:
        return
    shape, some, sizes, y = (g.name() for _ in range(4))
    nodes = [
        helper.make_node("Shape", [x], [shape]),
        helper.make_node("Slice", [shape, g.ints(0), g.ints(g.below(g.values[x].ndim))], [some]),
        helper.make_node("Concat", [some, g.ints(-1)], [sizes], axis=0),
        helper.make_node("Reshape", [x, sizes], [y]),
    ]
    g.add_all(nodes, [y])


def layers(g: Graph) -> None:
    """A quantizer's favourite: convolutions, activations, a sum."""
    x = g.any((4,))
    if x is None:
        return
    channels = g.values[x].shape[1]
    for _ in range(1 + g.below(3)):
        before = list(g.values)[-1]
        inputs = [x, g.weights(channels, channels, 3, 3), g.floats(channels)]
        g.add("Conv", inputs, pads=[1, 1, 1, 1])
        y = list(g.values)[-1]
        if y == before:
            return
        g.add(["Relu", "HardSwish", "Sigmoid", "LeakyRelu"][g.below(4)], [y])
        if g.chance():
            g.add("Add", [x, list(g.values)[-1]])
        x = list(g.values)[-1]


def recurrent(g: Graph) -> None:
    x = g.any((3,))
    if x is None or g.kind != "float":
        return
    size, width = g.values[x].shape[2], 1 + g.below(9)
    op, gates = [("LSTM", 4), ("GRU", 3), ("RNN", 1)][g.below(3)]
    directions = 1 + g.below(2)
    inputs = [
        x,
        g.floats(directions, gates * width, size),
        g.floats(directions, gates * width, width),
    ]
    if g.chance():
        inputs.append(g.floats(directions, 2 * gates * width))
    direction = "bidirectional" if directions == 2 else ["forward", "reverse"][g.below(2)]
    g.add(op, inputs, 2, hidden_size=width, direction=direction)


def scatter(g: Graph) -> None:
    x = g.any((1, 2, 3))
    if x is None:
        return
    rows = g.values[x].shape[0]
    indices = g.constant(g.rng.permutation(rows)[: 1 + g.below(rows), None].astype(np.int64))
    updates = g.floats(len(g.constants[indices]), *g.values[x].shape[1:])
    g.add("ScatterND", [x, indices, updates])


def blocks(g: Graph) -> None:
    x = g.any((4,))
    if x is None:
        return
    shape = g.values[x].shape
    if shape[1] % 4 == 0 and g.chance():
        g.add("DepthToSpace", [x], blocksize=2, mode=["DCR", "CRD"][g.below(2)])
    elif shape[2] % 2 == 0 and shape[3] % 2 == 0:
        g.add("SpaceToDepth", [x], blocksize=2)


def conv(g: Graph) -> None:
    x = g.any((3, 4))
    if x is None:
        return
    channels, dims = g.values[x].shape[1], g.values[x].ndim - 2
    group = channels if g.chance(0.3) else 1
    out = channels if group > 1 else 1 + g.below(20)
    kernel = [1 + g.below(3) for _ in range(dims)]
    inputs = [x, g.weights(out, channels // group, *kernel)]
    if g.chance():
        inputs.append(g.floats(out))
    more = {"pads": [g.below(2) for _ in range(2 * dims)]} if g.chance() else {}
    strides = [1 + g.below(2) for _ in range(dims)]
    if g.chance(0.2) and group == 1:
        inputs[1] = g.floats(channels, out, *kernel)
        g.add("ConvTranspose", inputs, kernel_shape=kernel, strides=strides, **more)
    else:
        dilations = [1 + g.below(2) for _ in range(dims)]
        more["dilations"] = dilations
        g.add("Conv", inputs, kernel_shape=kernel, strides=strides, group=group, **more)


def pool(g: Graph) -> None:
    x = g.any((3, 4))
    if x is None:
        return
    dims = g.values[x].ndim - 2
    op = ["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"][g.below(4)]
    if op.startswith("Global"):
        g.add(op, [x])
        return
    # Windows inside the input: outside of it, the standard's formula and its text disagree.
    kernel = [1 + g.below(min(3, d)) for d in g.values[x].shape[2:]]
    strides = [1 + g.below(2) for _ in range(dims)]
    g.add(op, [x], kernel_shape=kernel, strides=strides, ceil_mode=g.below(2))


def normalize(g: Graph) -> None:
    x = g.any((3, 4))
    if x is None:
        return
    shape = g.values[x].shape
    kind = g.below(4)
    if kind == 0:
        variance = g.constant(g.rng.random(shape[1]).astype(g.dtype) + g.dtype(0.5))
        parts = [g.floats(shape[1]) for _ in range(3)]
        g.add("BatchNormalization", [x, *parts, variance])
    elif kind == 1 and is_spread(g.values[x], tuple(range(2, len(shape)))):
        g.add("InstanceNormalization", [x, g.floats(shape[1]), g.floats(shape[1])])
    elif kind > 1 and is_spread(g.values[x], -1):
        inputs = [x, g.floats(shape[-1])] + ([g.floats(shape[-1])] if g.chance() else [])
        g.add("LayerNormalization", inputs, axis=-1)


def gather(g: Graph) -> None:
    x = g.any((1, 2, 3, 4))
    if x is None:
        return
    axis = g.below(g.values[x].ndim)
    n = g.values[x].shape[axis]
    if n:
        rank = g.below(3)
        indices = g.constant(g.rng.integers(-n, n, [2] * rank).astype(np.int64))
        g.add("Gather", [x, indices], axis=axis)


def expand(g: Graph) -> None:
    x = g.any((1, 2, 3))
    if x and g.chance():
        g.add("Expand", [x, g.ints(2, *g.values[x].shape)])
    elif x:
        g.add("Tile", [x, g.ints(*(1 + g.below(2) for _ in g.values[x].shape))])


def cumsum(g: Graph) -> None:
    x = g.any((1, 2, 3))
    if x:
        axis = g.constant(np.array(g.below(g.values[x].ndim), np.int64))
        g.add("CumSum", [x, axis], exclusive=g.below(2), reverse=g.below(2))


def resize(g: Graph) -> None:
    x = g.any((4,))
    if x:
        shape = g.values[x].shape
        sizes = g.ints(*shape[:2], *(1 + g.below(2 * d + 1) for d in shape[2:]))
        mode = ["nearest", "linear", "cubic"][g.below(3)]
        if mode == "nearest":  # with other scales there are ties, which rounding decides
            sizes = g.ints(*shape[:2], *(d * (1 + g.below(3)) for d in shape[2:]))
        g.add("Resize", [x, "", "", sizes], mode=mode)


def clip(g: Graph) -> None:
    low = g.constant(g.dtype(-0.5))
    high = g.constant(g.dtype(1 + g.below(6)))
    inputs = [g.any(), *([low, high] if g.chance() else ["", high] if g.chance() else [low])]
    g.add("Clip", inputs)


MAKERS: list[Callable[[Graph], None]] = [
    *[unary] * 4,
    *[binary] * 5,
    *[conv] * 3,
    *[product] * 3,
    where,
    transpose,
    transpose,
    reshape,
    reshape,
    squeeze,
    concat,
    slice_part,
    split,
    pad,
    reduce,
    softmax,
    attention,
    pool,
    normalize,
    gather,
    expand,
    cumsum,
    resize,
    clip,
    reshape_by_shape,
    layers,
    layers,
    recurrent,
    scatter,
    blocks,
]


def make_graph(seed: int, kind: str) -> Graph:
    g = Graph(seed, kind)
    for _ in range(1 + g.below(2)):
        name = f"x{len(g.inputs)}"
        shape = [1 + g.below(9 if i > 1 else 4) for i in range(1 + g.below(4))]
        g.inputs.append(name)
        g.values[name] = g.rng.standard_normal(shape).astype(g.dtype)
    for _ in range(3 + g.below(16)):
        MAKERS[g.below(len(MAKERS))](g)
    return g


# ---- comparison ---------------------------------------------------------------------------------


def run_tenon(content: bytes, feeds: dict, optimized: bool, threads: int) -> list[np.ndarray]:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    if not optimized:
        options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = tenon.InferenceSession(content, options)
    session.run(None, feeds)  # the second run uses the memory plan of the first
    return session.run(None, feeds)


def difference(actual: np.ndarray, expected: np.ndarray, kind: str) -> str:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"expected {expected.dtype} {expected.shape}, got {actual.dtype} {actual.shape}"
    actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    unit = np.abs(expected).max() + 1e-3 if kind == "quantized" else 1 + np.abs(expected)
    error = np.abs(actual - expected) / unit
    if not np.isfinite(actual).all() or error.max(initial=0) > TOLERANCES[kind]:
        return f"error {error.max(initial=0):.3g}"
    return ""


def try_seed(seed: int, kind: str) -> tuple[str, bytes]:
    """The difference, if there is one, and the model."""
    g = make_graph(seed, kind)
    used = {name for node in g.nodes for name in node.input}
    outputs = [name for name in g.values if name not in used or g.chance(0.1)]
    outputs = [name for name in outputs if name not in g.inputs]
    if not outputs:
        return "", b""
    feeds = {name: g.values[name] for name in g.inputs}
    constants = {
        name: x for name, x in g.constants.items() if name in used and name not in g.computed
    }
    content = model_of(g.nodes, feeds, outputs, constants, g.is_declared)
    for optimized in (False, True):
        label = "optimized" if optimized else "not optimized"
        try:
            actual = run_tenon(content, feeds, optimized, 1 + seed % 2)
        except Exception as error:
            return f"{label}: {error}", content
        for name, x in zip(outputs, actual, strict=True):
            if problem := difference(x, g.values[name], kind):
                return f"{label}, output {name}: {problem}", content
    return "", content


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kind", choices=list(TOLERANCES), default="float")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first graph")
    parser.add_argument("--keep", type=pathlib.Path, help="where models that differ are written")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    seed, differences = arguments.seed, 0
    while time.monotonic() < end:
        problem, content = try_seed(seed, arguments.kind)
        if problem:
            differences += 1
            print(f"seed {seed}: {problem}", flush=True)
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                (arguments.keep / f"{seed}.onnx").write_bytes(content)
        seed += 1
    print(f"{seed - arguments.seed} graphs, {differences} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

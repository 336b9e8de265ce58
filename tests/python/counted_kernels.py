"""Counts the instructions of one run each of small models, for test_kernel_costs.py."""

import functools
import pathlib
import sys

import graphs
import instructions
import numpy as np
import onnx
import tenon
from onnx import helper, numpy_helper

random = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def one(
    op_type: str,
    *operands: np.ndarray,
    constants: int = 0,
    domain: str = "",
    outputs: int = 1,
    **attributes: object,
) -> tuple[bytes, dict[str, np.ndarray]]:
    """A model of one node and its feeds; the last `constants` operands are initializers."""
    names = [f"i{i}" for i in range(len(operands))]
    feeds = dict(zip(names, operands[: len(operands) - constants], strict=False))
    fixed = operands[len(operands) - constants :]
    results = [f"y{i}" for i in range(outputs)]
    model = graphs.model(
        [helper.make_node(op_type, names, results, domain=domain, **attributes)],
        [
            graphs.tensor(name, helper.np_dtype_to_tensor_dtype(value.dtype), list(value.shape))
            for name, value in feeds.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in results],
        initializers=[
            numpy_helper.from_array(value, name)
            for name, value in zip(names[len(feeds) :], fixed, strict=True)
        ],
    )
    return model, feeds


def quantized_conv() -> tuple[bytes, dict[str, np.ndarray]]:
    scale, zero = np.float32(0.02), np.uint8(128)
    x = random.integers(0, 256, (1, 32, 14, 14)).astype(np.uint8)
    w = random.integers(-127, 128, (32, 32, 3, 3)).astype(np.int8)
    scales = np.full(32, 0.01, np.float32)
    operands = (x, scale, zero, w, scales, np.zeros(32, np.int8), scale, zero)
    arrays = [np.asarray(operand) for operand in operands]
    return one("QLinearConv", *arrays, constants=7, pads=[1, 1, 1, 1])


def few_bits() -> tuple[bytes, dict[str, np.ndarray]]:
    b = random.integers(0, 256, (64, 8, 16)).astype(np.uint8)
    scales = np.abs(floats(64 * 8))
    attributes = {"K": 256, "N": 64, "bits": 4, "block_size": 32}
    return one(
        "MatMulNBits", floats(1, 256), b, scales, constants=2, domain="com.microsoft", **attributes
    )


MODELS = {
    # What a call costs without a kernel's work.
    "call": lambda: one("Identity", floats(1)),
    "matmul": lambda: one("MatMul", floats(48, 96), floats(96, 128), constants=1),
    "matmul_of_a_row": lambda: one("MatMul", floats(1, 256), floats(256, 256), constants=1),
    "matmul_of_activations": lambda: one("MatMul", floats(4, 32, 48), floats(4, 48, 32)),
    "conv_3x3": lambda: one(
        "Conv", floats(1, 32, 14, 14), floats(32, 32, 3, 3), constants=1, pads=[1, 1, 1, 1]
    ),
    "conv_depthwise": lambda: one(
        "Conv", floats(1, 32, 14, 14), floats(32, 1, 3, 3), constants=1, group=32
    ),
    "conv_1d": lambda: one("Conv", floats(1, 16, 200), floats(32, 16, 5), constants=1),
    "quantized_conv": quantized_conv,
    "matmul_of_4_bits": few_bits,
    "lstm": lambda: one(
        "LSTM",
        floats(8, 1, 32),
        floats(1, 128, 32),
        floats(1, 128, 32),
        constants=2,
        hidden_size=32,
    ),
    "softmax": lambda: one("Softmax", floats(64, 200)),
    "layer_normalization": lambda: one(
        "LayerNormalization", floats(64, 200), floats(200), floats(200), constants=2
    ),
    "erf": lambda: one("Erf", floats(10_000)),
    "add_of_a_row": lambda: one("Add", floats(64, 200), floats(200)),
    "transpose": lambda: one("Transpose", floats(8, 40, 50), perm=[0, 2, 1]),
    "reduce_mean": lambda: one("ReduceMean", floats(8, 40, 50), np.array([1]), constants=1),
    "max_pool": lambda: one("MaxPool", floats(1, 8, 32, 32), kernel_shape=[3, 3], strides=[2, 2]),
    "top_k": lambda: one("TopK", floats(8, 1000), np.array([10]), constants=1, outputs=2),
    "gather": lambda: one("Gather", floats(100, 64), random.integers(0, 100, 200)),
    "resize": lambda: one(
        "Resize",
        floats(1, 4, 20, 20),
        np.array([], np.float32),
        np.array([1, 1, 2, 2], np.float32),
        constants=2,
        mode="linear",
    ),
}


def main(folder: pathlib.Path) -> None:
    recorder = instructions.Recorder(folder)
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 1
    for name, make in MODELS.items():
        model, feeds = make()
        session = tenon.InferenceSession(model, options)
        binding = session.io_binding()
        for feed, value in feeds.items():
            binding.bind_cpu_input(feed, value)
        for output in session.get_outputs():
            binding.bind_output(output.name)
        recorder.measure(name, functools.partial(session.run_with_iobinding, binding), 1, 4)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

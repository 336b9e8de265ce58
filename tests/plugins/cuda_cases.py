"""Shared by the tests of plugins/cuda: devices, comparisons, cases of its own operators."""

import importlib.util
import math
import os
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from opencl_cases import cast_arrays, floats, graph, node, on_cpu
from plugin_runtimes import BUILD, session_on

LIBRARY = BUILD / "plugins" / "cuda" / "libtenon_cuda.so"
FAKE_DRIVER = BUILD / "tests" / "plugins" / "fake_cuda"
PROVIDER = "CUDAExecutionProvider"


def compiler_folder() -> Path | None:
    """Where PyPI's package of NVIDIA's run-time compiler has its libraries."""
    found = importlib.util.find_spec("nvidia")
    for place in found.submodule_search_locations if found else ():
        folder = Path(place) / "cu13" / "lib"
        if any(folder.glob("libnvrtc.so.*")):
            return folder
    return None


def library_path() -> str:
    """For TENON_CUDA_LIBRARY_PATH: a machine without a driver takes the fake one."""
    folders = [os.environ.get("TENON_CUDA_LIBRARY_PATH"), compiler_folder(), FAKE_DRIVER]
    return ":".join(str(folder) for folder in folders if folder)


def cuda_session(module, devices: list, model: bytes, **settings: object):
    """Without TF32 and files of kernels, unless the settings ask for them."""
    options = {
        "ep.cudaexecutionprovider.use_tf32": "0",
        "ep.cudaexecutionprovider.kernel_cache_folder": "",
        **settings,
    }
    return session_on(module, devices, model, **options)


def error(got: np.ndarray, wanted: np.ndarray) -> float:
    """The greatest difference, of the largest element; infinite if other elements are finite."""
    assert got.shape == wanted.shape
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(wanted)
    if not np.array_equal(got[~finite], wanted[~finite], equal_nan=True):
        return math.inf
    scale = max(1.0, float(np.abs(wanted[finite]).max(initial=0)))
    return float(np.abs(got[finite] - wanted[finite]).max(initial=0)) / scale


def check(module, devices: list, op: str, inputs: list, attributes: dict, half: bool) -> None:
    """All of the node runs on the device; its results are the CPU's in float32."""
    full = cast_arrays(cast_arrays(inputs, np.float16), np.float32) if half else inputs
    reference, feeds = node(op, full, **attributes)
    expected = on_cpu(module, reference).run(None, feeds)
    model, feeds = node(op, cast_arrays(inputs, np.float16) if half else inputs, **attributes)
    session = cuda_session(module, devices, model)
    tolerance = 3e-3 if half else 2e-5
    for _ in range(3):  # the last is a replay
        for got, wanted in zip(session.run(None, feeds), expected, strict=True):
            assert error(got, wanted) <= tolerance


def packed(n: int, k: int, block: int, zeros: bool, seed: int = 0) -> list:
    """Weights of MatMulNBits: [n, blocks, block / 2], their scales, and zero points."""
    random = np.random.default_rng(seed)
    blocks = -(-k // block)
    inputs = [
        (random.integers(0, 256, (n, blocks, block // 2), dtype=np.uint8),),
        (random.uniform(0.01, 0.1, (n * blocks,)).astype(np.float32),),
    ]
    if zeros:
        inputs.append((random.integers(0, 256, (n * (-(-blocks // 2)),), dtype=np.uint8),))
    return inputs


def nbits(rows: int, n: int, k: int, block: int, zeros: bool, bias: bool = False) -> tuple:
    inputs = [floats(2, rows, k), *packed(n, k, block, zeros)]
    if bias:
        inputs += [None] * (5 - len(inputs)) + [(floats(n, seed=4),)]
    attributes = {"K": k, "N": n, "bits": 4, "block_size": block, "domain": "com.microsoft"}
    return "MatMulNBits", inputs, attributes


NBITS = {
    "one row": nbits(1, 33, 256, 32, False),
    "one row, zero points": nbits(1, 40, 2048, 128, True),
    "few rows": nbits(3, 17, 96, 32, True),
    "many rows": nbits(19, 64, 128, 32, False, bias=True),
    "a part of a block": nbits(2, 24, 72, 16, True),
}


def multi_head(batch: int, queries: int, keys: int, heads: int, depth: int, **more) -> tuple:
    width = heads * depth
    inputs = [
        floats(batch, queries, width, seed=1),
        floats(batch, keys, width, seed=2),
        floats(batch, keys, width, seed=3),
        (floats(3 * width, seed=4),) if more.get("bias") else None,
        more.get("padding"),
        floats(*more["mask"], seed=5) if "mask" in more else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"num_heads": heads, "domain": "com.microsoft"}
    if more.get("causal"):
        attributes["unidirectional"] = 1
    return "MultiHeadAttention", inputs, attributes


# Large enough for kernels that do eight elements at once.
WIDE = floats(6, 128, 256, seed=1)
LARGE = {
    "Mul": ("Mul", [WIDE, floats(6, 128, 256, seed=2)], {}),
    "Add a row": ("Add", [WIDE, (floats(256, seed=2),)], {}),
    "Add a column": ("Add", [WIDE, (floats(128, 1, seed=2),)], {}),
    "Add a number": ("Add", [WIDE, floats(1, seed=2)], {}),
    "Where": ("Where", [WIDE > 0, WIDE, floats(6, 1, 256, seed=3)], {}),
    "Greater": ("Greater", [WIDE, floats(6, 128, 256, seed=2)], {}),
    "odd": ("Mul", [floats(7, 129, 251), floats(251)], {}),
    "Softmax": ("Softmax", [floats(40, 3000)], {}),
    "LayerNormalization": (
        "LayerNormalization",
        [floats(40, 768), (floats(768, seed=1),), (floats(768, seed=2),)],
        {},
    ),
    "long LayerNormalization": (
        "LayerNormalization",
        [floats(3, 20000), (floats(20000, seed=1),), (floats(20000, seed=2),)],
        {},
    ),
    "MatMul of a row": ("MatMul", [floats(1, 4096), (floats(4096, 264, seed=1),)], {}),
    "MatMul of rows": ("MatMul", [floats(3, 776), (floats(776, 40, seed=1),)], {}),
    "Gemm of a row": (
        "Gemm",
        [floats(1, 264), (floats(264, 72, seed=1),), (floats(72, seed=2),)],
        {"alpha": 0.5},
    ),
}

PADDING = np.array([[1] * 30 + [0] * 3, [1] * 7 + [0] * 26], np.int32)
MULTI_HEAD = {
    "plain": multi_head(2, 33, 33, 4, 64),
    "long": multi_head(1, 5, 700, 2, 64),
    "bias": multi_head(2, 33, 70, 3, 40, bias=True),
    "causal": multi_head(2, 90, 90, 2, 128, causal=True),
    "mask": multi_head(2, 20, 33, 3, 32, mask=(2, 3, 20, 33)),
    "broadcast mask": multi_head(2, 20, 33, 3, 96, mask=(1, 1, 20, 33)),
    "padding": multi_head(2, 20, 33, 3, 64, padding=PADDING),
    "padding and mask": multi_head(2, 20, 33, 3, 256, padding=PADDING, mask=(2, 3, 20, 33)),
}


def group_query(queries: int, pasts: list[int], capacity: int, **more) -> tuple[bytes, dict]:
    """A step of a decoder, whose cache has room for `capacity` positions: 6 heads in 2 groups."""
    heads, kv_heads, depth = 6, 2, more.get("depth", 64)
    batch = len(pasts)
    half = more.get("rotated", depth) // 2
    attributes = {
        "num_heads": heads,
        "kv_num_heads": kv_heads,
        "do_rotary": int(more.get("rotary", True)),
        "rotary_interleaved": int(more.get("interleaved", False)),
        "local_window_size": more.get("window", -1),
        "softcap": float(more.get("softcap", 0)),
    }
    angles = np.outer(np.arange(1024), 10000.0 ** -(np.arange(half) / half))
    shape = (batch, kv_heads, capacity, depth)
    total = max(pasts) + queries
    feeds = {
        "q": floats(batch, queries, heads * depth, seed=1),
        "k": floats(batch, queries, kv_heads * depth, seed=2),
        "v": floats(batch, queries, kv_heads * depth, seed=3),
        "past_k": floats(*shape, seed=4),
        "past_v": floats(*shape, seed=5),
        "lengths": np.array(pasts, np.int32) + np.int32(queries - 1),
        "mask": np.ones((batch, total), np.int64),
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
    }
    if more.get("packed"):
        feeds["q"] = np.concatenate([feeds.pop(name) for name in "qkv"], axis=-1)
    if more.get("half"):
        feeds = {name: cast_arrays([x], np.float16)[0] for name, x in feeds.items()}
    names = ["q", "k", "v", "past_k", "past_v", "lengths", "total", "cos", "sin"]
    if not attributes["do_rotary"]:
        names = names[:7]
        del feeds["cos"], feeds["sin"]
    nodes = [
        helper.make_node("Shape", ["mask"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "one"], ["total64"], axis=0),
        helper.make_node("Cast", ["total64"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            [name if name in feeds or name == "total" else "" for name in names],
            ["y", "present_k", "present_v"],
            domain="com.microsoft",
            **attributes,
        ),
    ]
    one = numpy_helper.from_array(np.array(1), "one")
    return graph(nodes, feeds, ["y", "present_k", "present_v"], [one]), feeds


GROUP_QUERY = {
    "a step": (1, [40, 12], 128, {}),
    "a long cache": (1, [900, 500], 1024, {}),
    "interleaved": (1, [40], 64, {"interleaved": True}),
    "a part is turned": (1, [9], 64, {"rotated": 32}),
    "no rotary": (1, [40, 12], 128, {"rotary": False, "depth": 128}),
    "packed": (1, [40, 12], 128, {"packed": True}),
    "window": (1, [90, 20], 128, {"window": 32}),
    "softcap": (1, [40, 12], 128, {"softcap": 5.0}),
    "the prompt": (70, [0, 0], 128, {}),
    "a full cache": (1, [127], 128, {}),
}

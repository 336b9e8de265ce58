"""Random cases of operators whose gradients PyTorch found, and models that compute them.

A family is a function that draws a case; make_torch_gradients.py has the same operator in PyTorch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import parser

TRAINING = "ai.onnx.preview.training"
HEADER = (
    '<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1,'
    ' "ai.onnx.preview.training": 1]>\n'
)
TYPES = {"float64": "double", "float32": "float"} | {
    name: name for name in ("int64", "int32", "int8", "bool")
}


@dataclasses.dataclass(frozen=True)
class Case:
    nodes: str  # make y of the inputs
    inputs: dict[str, np.ndarray]
    options: dict[str, Any]
    opset: int = 24
    differentiated: tuple[str, ...] = ("x",)
    has_second: bool = True  # whether PyTorch has the derivatives of the derivatives
    tolerance: float = 1e-11  # in double
    types: tuple[str, ...] = ("float64", "float32")


Family = Callable[[np.random.Generator, int], Case]
FAMILIES: dict[str, tuple[Family, int]] = {}


def family(count: int) -> Callable[[Family], Family]:
    """Registers a function that draws a case: of a generator, and a factor for some sizes."""

    def register(function: Family) -> Family:
        FAMILIES[function.__name__] = (function, count)
        return function

    return register


def case_of(name: str, factor: int = 1) -> Case:
    function, number = name.split("-")
    generator = np.random.default_rng([int(number), *function.encode()])
    return FAMILIES[function][0](generator, factor)


def names() -> list[str]:
    return [f"{name}-{i}" for name, (_, count) in FAMILIES.items() for i in range(count)]


def attributes(**given: object) -> str:
    def text(value: object) -> str:
        return f'"{value}"' if isinstance(value, str) else str(value)

    listed = [f"{key}={text(value)}" for key, value in given.items() if value is not None]
    return f"<{', '.join(listed)}>" if listed else ""


def model_of(case: Case, dtype: str, is_dynamic: bool, order: int) -> onnx.ModelProto:
    """Computes y and the gradients of the sum of its squares, or those of their squares."""

    def declared(name: str, value: np.ndarray) -> str:
        type_name = TYPES[dtype if value.dtype == np.float64 else str(value.dtype)]
        sizes = [f"{name}{i}" if is_dynamic else str(n) for i, n in enumerate(value.shape)]
        return f"{type_name}[{', '.join(sizes)}] {name}" if sizes else f"{type_name} {name}"

    def gradient(prefix: str, y: str) -> str:
        xs = ", ".join(f'"{x}"' for x in case.differentiated)
        results = ", ".join(prefix + x for x in case.differentiated)
        arguments = ", ".join(case.differentiated)
        return f'{results} = {TRAINING}.Gradient <xs=[{xs}], y="{y}"> ({arguments})\n'

    body = f"{case.nodes}\nsquares = Mul (y, y)\n{gradient('d_', 'squares')}"
    outputs = ["y", *(f"d_{x}" for x in case.differentiated)]
    if order == 2:
        norms = [f"norm_{x}" for x in case.differentiated]
        for x, norm in zip(case.differentiated, norms, strict=True):
            body += f"{norm} = ReduceSumSquare <keepdims=0> (d_{x})\n"
        body += f"norm = Sum ({', '.join(norms)})\n{gradient('dd_', 'norm')}"
        outputs = [f"dd_{x}" for x in case.differentiated]
    inputs = ", ".join(declared(name, value) for name, value in case.inputs.items())
    results = ", ".join(f"{TYPES[dtype]} {output}" for output in outputs)
    text = f"{HEADER.format(opset=case.opset)}g ({inputs}) => ({results}) {{\n{body}}}"
    model = parser.parse_model(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


def constant(name: str, values: Any) -> str:
    """Integers in one dimension, or one number, as text of a node."""
    if isinstance(values, int):
        return f"{name} = Constant <value_int={values}> ()\n"
    return f"{name} = Constant <value_ints={[int(x) for x in values]}> ()\n"


Generator = np.random.Generator


def uniform(rng: Generator, *shape: int, low: float = -1.5, high: float = 1.5) -> np.ndarray:
    return rng.uniform(low, high, shape)


def apart(rng: Generator, *shape: int) -> np.ndarray:
    """Numbers none of which is near another or 0, for functions that choose."""
    count = int(np.prod(shape))
    numbers = np.linspace(-1.5, 1.5, count + count % 2)[:count]
    return rng.permutation(numbers).reshape(shape)


def draw(rng: Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def pick(rng: Generator, *choices: Any) -> Any:
    return choices[rng.integers(len(choices))]


# --- Samples ---


@family(6)
def grid_sample_cubic(rng: Generator, factor: int) -> Case:
    n, c, h, w = draw(rng, 1, 2), draw(rng, 1, 3), draw(rng, 1, 6), draw(rng, 3, 6) * factor
    grid = uniform(rng, n, draw(rng, 1, 4), draw(rng, 1, 4) * factor, 2, low=-1.4, high=1.4)
    padding, aligned = pick(rng, "zeros", "border", "reflection"), draw(rng, 0, 1)
    opset = pick(rng, 16, 20, 22)
    given = attributes(
        mode="bicubic" if opset == 16 else "cubic", padding_mode=padding, align_corners=aligned
    )
    return Case(
        f"y = GridSample {given} (x, grid)",
        {"x": uniform(rng, n, c, h, w), "grid": grid},
        {"padding": padding, "aligned": aligned},
        opset,
        ("x", "grid"),
        has_second=False,
    )


@family(12)
def grid_sample(rng: Generator, factor: int) -> Case:
    n, c, axes = draw(rng, 1, 2), draw(rng, 1, 10), draw(rng, 2, 3)
    sizes = [draw(rng, 1, 6) for _ in range(axes)]
    sizes[-1] *= factor
    positions = [draw(rng, 1, 4) * factor, *(draw(rng, 1, 3) for _ in range(axes - 1)), axes]
    mode, aligned = pick(rng, "linear", "linear", "nearest"), draw(rng, 0, 1)
    padding = pick(rng, "zeros", "border", "reflection")
    given = attributes(mode=mode, padding_mode=padding, align_corners=aligned)
    return Case(
        f"y = GridSample {given} (x, grid)",
        {
            "x": uniform(rng, n, c, *sizes),
            "grid": uniform(rng, n, *positions, low=-1.7, high=1.7),
        },
        {"mode": mode, "padding": padding, "aligned": aligned},
        20,
        ("x", "grid"),
        has_second=False,
    )


@family(8)
def deform_conv(rng: Generator, factor: int) -> Case:
    group, offset_group = pick(rng, 1, 2), pick(rng, 1, 2)
    n, c, out_c = draw(rng, 1, 2), 2 * draw(rng, 1, 2), 2 * draw(rng, 1, 2)
    kernel = [draw(rng, 1, 3), draw(rng, 1, 2)]
    strides, dilations = [draw(rng, 1, 2) for _ in "hw"], [draw(rng, 1, 2) for _ in "hw"]
    pads = [draw(rng, 0, 1) for _ in range(4)]
    sizes = [draw(rng, 4, 5) * factor, draw(rng, 4, 5)]
    out = [
        (sizes[i] + pads[i] + pads[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(2)
    ]
    count = offset_group * kernel[0] * kernel[1]
    # Some positions lie outside, and none is near an element.
    offsets = n, 2 * count, *out
    inputs = {
        "x": uniform(rng, n, c, *sizes),
        "w": uniform(rng, out_c, c // group, *kernel),
        "offset": rng.integers(-2, 2, offsets) + uniform(rng, *offsets, low=0.2, high=0.8),
    }
    names = ["x", "w", "offset"]
    has_bias, has_mask = draw(rng, 0, 1), draw(rng, 0, 1)
    if has_bias:
        inputs["bias"] = uniform(rng, out_c)
    if has_mask:
        inputs["mask"] = uniform(rng, n, count, *out)
    given = attributes(
        group=group,
        offset_group=offset_group,
        strides=strides,
        dilations=dilations,
        pads=pads,
        kernel_shape=pick(rng, kernel, None),
    )
    listed = ", ".join([*names, "bias" if has_bias else "", "mask" if has_mask else ""])
    options = {"group": group, "offset_group": offset_group, "strides": strides}
    options |= {"dilations": dilations, "pads": pads}
    return Case(
        f"y = DeformConv {given} ({listed.rstrip(', ')})",
        inputs,
        options,
        pick(rng, 19, 22),
        tuple(inputs),
        tolerance=1e-10,
    )


# --- Windows ---


@family(6)
def col2im(rng: Generator, factor: int) -> Case:
    axes = pick(rng, 1, 2)
    block = [draw(rng, 1, 3) for _ in range(axes)]
    strides, dilations = ([draw(rng, 1, 2) for _ in range(axes)] for _ in range(2))
    pads = [draw(rng, 0, 1) for _ in range(2 * axes)]
    image = [draw(rng, 5, 7) * factor for _ in range(axes)]
    steps = [
        (image[i] + pads[i] + pads[axes + i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(axes)
    ]
    x = uniform(rng, draw(rng, 1, 2), draw(rng, 1, 3) * int(np.prod(block)), int(np.prod(steps)))
    given = attributes(strides=strides, dilations=dilations, pads=pads)
    options = {"image": image, "block": block, "strides": strides}
    options |= {"dilations": dilations, "pads": pads}
    nodes = constant("image", image) + constant("block", block)
    return Case(f"{nodes}y = Col2Im {given} (x, image, block)", {"x": x}, options, 18)


def pool(rng: Generator, factor: int) -> tuple[np.ndarray, dict[str, Any]]:
    """The input of a pool over two axes, and its attributes."""
    given: dict[str, Any] = {"kernel_shape": [draw(rng, 2, 3), draw(rng, 1, 3)]}
    given["strides"] = [draw(rng, 1, 3), draw(rng, 1, 2)]
    kind = pick(rng, "pads", "pads", "ceil", "SAME_UPPER", "SAME_LOWER", "VALID")
    if kind in ("pads", "ceil"):
        given["pads"] = [draw(rng, 0, min(1, k - 1)) for k in given["kernel_shape"] * 2]
        given["dilations"] = [draw(rng, 1, 2) for _ in "hw"]
        given["ceil_mode"] = int(kind == "ceil")
    else:
        given["auto_pad"] = kind
    sizes = draw(rng, 5, 8) * factor, draw(rng, 5, 8)
    return uniform(rng, draw(rng, 1, 2), draw(rng, 1, 3), *sizes), given


@family(10)
def lp_pool(rng: Generator, factor: int) -> Case:
    x, given = pool(rng, factor)
    p = draw(rng, 1, 3)
    nodes = f"y = LpPool {attributes(p=p, **given)} (x)"
    return Case(nodes, {"x": x}, {"p": p, **given}, 18, has_second=p > 1)


@family(12)
def average_pool(rng: Generator, factor: int) -> Case:
    x, given = pool(rng, factor)
    given["count_include_pad"] = draw(rng, 0, 1)
    return Case(f"y = AveragePool {attributes(**given)} (x)", {"x": x}, given, 19)


@family(4)
def max_pool_by_columns(rng: Generator, factor: int) -> Case:
    x, given = pool(rng, factor)
    nodes = f"y, places = MaxPool {attributes(storage_order=1, **given)} (x)"
    return Case(nodes, {"x": apart(rng, *x.shape)}, given, 12)


@family(6)
def max_unpool(rng: Generator, factor: int) -> Case:
    n, c, h, w = draw(rng, 1, 2), draw(rng, 1, 2), draw(rng, 2, 4) * factor, draw(rng, 2, 4)
    kernel, strides = [draw(rng, 2, 3), draw(rng, 2, 3)], [draw(rng, 1, 2), 2]
    pads = [draw(rng, 0, 1) for _ in range(4)]
    sizes = [
        (size - 1) * strides[i] + kernel[i] - pads[i] - pads[2 + i] for i, size in enumerate([h, w])
    ]
    places = rng.permutation(n * c * sizes[0] * sizes[1])[: n * c * h * w]
    given = attributes(kernel_shape=kernel, strides=strides, pads=pads)
    larger = None
    nodes = f"y = MaxUnpool {given} (x, places)"
    if draw(rng, 0, 1):
        larger = [size + draw(rng, 0, 2) for size in sizes]
        shape = constant("shape", [n, c, *larger])
        nodes = f"{shape}y = MaxUnpool {given} (x, places, shape)"
    inputs = {"x": uniform(rng, n, c, h, w), "places": places.reshape(n, c, h, w)}
    return Case(nodes, inputs, {"sizes": sizes, "larger": larger}, 22)


# --- Regions ---


def regions(rng: Generator, count: int, h: int, w: int) -> np.ndarray:
    """x1, y1, x2, y2, before they are scaled by a half; some reach outside."""
    first = uniform(rng, count, 2, low=-1, high=1) * [w, h]
    return np.concatenate([first, first + uniform(rng, count, 2, low=0.3, high=1.6) * [w, h]], 1)


@family(8)
def roi_align(rng: Generator, factor: int) -> Case:
    n, c, h, w = draw(rng, 1, 3), draw(rng, 1, 3) * factor, draw(rng, 3, 7), draw(rng, 3, 7)
    count = draw(rng, 1, 4)
    inputs = {
        "x": apart(rng, n, c, h, w),
        "rois": regions(rng, count, h, w),
        "images": rng.integers(0, n, count),
    }
    options = {"mode": pick(rng, "avg", "avg", "max"), "sampling_ratio": draw(rng, 0, 2)}
    options |= {"output_height": draw(rng, 1, 3), "output_width": draw(rng, 1, 3)}
    options["spatial_scale"] = 0.5
    opset = pick(rng, 10, 16, 22)
    half = "output_half_pixel" if opset == 10 else pick(rng, "half_pixel", "output_half_pixel")
    how = {} if opset == 10 else {"coordinate_transformation_mode": half}
    return Case(
        f"y = RoiAlign {attributes(**options, **how)} (x, rois, images)",
        inputs,
        {**options, "half_pixel": half == "half_pixel"},
        opset,
        has_second=options["mode"] == "avg",
    )


@family(5)
def max_roi_pool(rng: Generator, factor: int) -> Case:
    n, c, h, w = draw(rng, 1, 3), draw(rng, 1, 3) * factor, draw(rng, 4, 7), draw(rng, 4, 7)
    count = draw(rng, 1, 4)
    images = rng.integers(0, n, (count, 1)).astype(float)
    pooled = [draw(rng, 1, 3), draw(rng, 1, 3)]
    rois = np.concatenate([images, regions(rng, count, h, w)], 1)
    return Case(
        f"y = MaxRoiPool {attributes(pooled_shape=pooled, spatial_scale=0.5)} (x, rois)",
        {"x": apart(rng, n, c, h, w), "rois": rois},
        {"pooled_shape": pooled},
        has_second=False,
    )


# --- Transforms ---


@family(16)
def dft(rng: Generator, factor: int) -> Case:
    inverse, onesided = draw(rng, 0, 1), draw(rng, 0, 1)
    parts = 2 if inverse and onesided else 1 if onesided else pick(rng, 1, 2)
    signal = [draw(rng, 1, 2), draw(rng, 4, 6) * factor, draw(rng, 4, 6)]
    axis = draw(rng, 0, 2)
    length = pick(rng, None, signal[axis] - 1, signal[axis] + 2)
    opset = pick(rng, 17, 20)
    named = {"inverse": inverse, "onesided": onesided}
    nodes = "" if length is None else constant("length", length)
    second = "" if length is None else ", length"
    if opset == 20:
        nodes += constant("axis", pick(rng, axis, axis - 4))
        nodes += f"y = DFT {attributes(**named)} (x, {second.lstrip(', ')}, axis)"
    else:
        nodes += f"y = DFT {attributes(axis=axis, **named)} (x{second})"
    options = {"axis": axis, "length": length, **named}
    return Case(nodes, {"x": uniform(rng, *signal, parts)}, options, opset)


@family(8)
def stft(rng: Generator, factor: int) -> Case:
    onesided, has_window = draw(rng, 0, 1), draw(rng, 0, 1)
    batch, size, length = draw(rng, 1, 3), draw(rng, 9, 14) * factor, draw(rng, 3, 6)
    step = draw(rng, 1, 4)
    parts = [] if onesided and draw(rng, 0, 1) else [1 if onesided else pick(rng, 1, 2)]
    inputs = {"x": uniform(rng, batch, size, *parts)}
    nodes = constant("step", step)
    if has_window:
        inputs["window"] = uniform(rng, length, low=0.2, high=1)
    if draw(rng, 0, 1) or not has_window:
        nodes += constant("length", length)
        listed = f"x, step, {'window' if has_window else ''}, length"
    else:
        listed = "x, step, window"
    return Case(
        f"{nodes}y = STFT {attributes(onesided=onesided)} ({listed})",
        inputs,
        {"onesided": onesided, "length": length, "step": step},
        pick(rng, 17, 20),
        tuple(inputs),
    )


# --- Products ---


@family(10)
def einsum(rng: Generator, factor: int) -> Case:
    """Labels may occur several times in an operand, and the output may be implied."""
    sizes = {label: draw(rng, 1, 4) * (factor if label == "a" else 1) for label in "abcd"}
    terms = ["".join(rng.choice(list("abcd"), draw(rng, 1, 3))) for _ in range(draw(rng, 1, 2))]
    equation = ",".join(terms)
    if draw(rng, 0, 2):
        used = sorted(set("".join(terms)))
        equation += "->" + "".join(rng.permutation(used)[: draw(rng, 0, len(used))])
    inputs = {
        name: uniform(rng, *(sizes[label] for label in term))
        for name, term in zip("xw", terms, strict=False)
    }
    nodes = f'y = Einsum <equation="{equation}"> ({", ".join(inputs)})'
    return Case(nodes, inputs, {"equation": equation}, 21, tuple(inputs))


@family(6)
def conv_transpose(rng: Generator, factor: int) -> Case:
    """Parts of the whole result: as `auto_pad` says, or of given sizes."""
    c, out_c, group = 2 * draw(rng, 1, 2), draw(rng, 1, 3), pick(rng, 1, 2)
    sizes, kernel = [draw(rng, 2, 4) * factor, draw(rng, 2, 4)], [draw(rng, 1, 4), draw(rng, 1, 4)]
    strides, dilations = [draw(rng, 1, 3) for _ in "hw"], [draw(rng, 1, 2) for _ in "hw"]
    whole = [(sizes[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(2)]
    given: dict[str, Any] = {"auto_pad": pick(rng, "SAME_UPPER", "SAME_LOWER", "NOTSET")}
    out = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    if given["auto_pad"] == "NOTSET":
        out = given["output_shape"] = [max(1, size - draw(rng, 0, 2)) for size in whole]
    # A larger result has zeros at its end.
    missing = [max(0, whole[i] - out[i]) for i in range(2)]
    is_upper = given["auto_pad"] == "SAME_UPPER"
    begin = [n // 2 if is_upper else n - n // 2 for n in missing]
    options = {"group": group, "strides": strides, "dilations": dilations}
    options |= {"begin": begin, "out": out}
    listed = attributes(group=group, strides=strides, dilations=dilations, **given)
    inputs = {"x": uniform(rng, 2, c, *sizes), "w": uniform(rng, c, out_c, *kernel)}
    inputs["bias"] = uniform(rng, out_c * group)
    return Case(
        f"y = ConvTranspose {listed} (x, w, bias)",
        inputs,
        options,
        11,
        tuple(inputs),
        types=("float32",),
    )


@family(4)
def det(rng: Generator, factor: int) -> Case:
    batch = [draw(rng, 1, 3) * factor for _ in range(draw(rng, 0, 2))]
    n = draw(rng, 1, 5)
    return Case("y = Det (x)", {"x": uniform(rng, *batch, n, n)}, {}, 22, tolerance=1e-9)


@family(3)
def inverse(rng: Generator, factor: int) -> Case:
    batch = [draw(rng, 1, 3) * factor for _ in range(draw(rng, 0, 2))]
    n = draw(rng, 1, 4)
    x = uniform(rng, *batch, n, n, low=-0.4, high=0.4) + 2 * np.eye(n)
    return Case("y = com.microsoft.Inverse (x)", {"x": x}, {}, 22)


# --- Elements ---


@family(8)
def cum_prod(rng: Generator, factor: int) -> Case:
    x = uniform(rng, draw(rng, 1, 3) * factor, draw(rng, 1, 6), draw(rng, 1, 4))
    has_zeros = draw(rng, 0, 1)
    if has_zeros:
        x[rng.uniform(size=x.shape) < 0.3] = 0
    axis = draw(rng, -3, 2)
    options = {"exclusive": draw(rng, 0, 1), "reverse": draw(rng, 0, 1)}
    nodes = f"{constant('axis', axis)}y = CumProd {attributes(**options)} (x, axis)"
    return Case(nodes, {"x": x}, {"axis": axis, **options}, 26, has_second=not has_zeros)


@family(6)
def center_crop_pad(rng: Generator, factor: int) -> Case:
    shape = [draw(rng, 1, 5) * factor, draw(rng, 1, 5), draw(rng, 1, 5)]
    axes = [int(axis) for axis in rng.permutation([0, -2, 2])[: draw(rng, 1, 3)]]
    sizes = [draw(rng, 1, 6) for _ in axes]
    nodes = f"{constant('sizes', sizes)}y = CenterCropPad {attributes(axes=axes)} (x, sizes)"
    return Case(nodes, {"x": uniform(rng, *shape)}, {"axes": axes, "sizes": sizes}, 18)


@family(4)
def one_hot(rng: Generator, factor: int) -> Case:
    shape = [draw(rng, 1, 4) * factor for _ in range(draw(rng, 1, 2))]
    depth, axis = draw(rng, 2, 5), draw(rng, -1, len(shape))
    indices = rng.integers(-depth - 1, depth + 1, shape)
    nodes = f"{constant('depth', depth)}y = OneHot {attributes(axis=axis)} (indices, depth, x)"
    inputs = {"x": uniform(rng, 2), "indices": indices}
    return Case(nodes, inputs, {"depth": depth, "axis": axis}, 13)


@family(6)
def tensor_scatter(rng: Generator, factor: int) -> Case:
    shape = [draw(rng, 1, 3), draw(rng, 2, 3), draw(rng, 4, 6) * factor, draw(rng, 1, 3)]
    axis = pick(rng, -2, 1, 2, 3)
    update = list(shape)
    update[axis] = draw(rng, 1, shape[axis])
    mode = pick(rng, "linear", "circular")
    last = shape[axis] - update[axis] if mode == "linear" else 2 * shape[axis]
    inputs = {"x": uniform(rng, *shape), "update": uniform(rng, *update)}
    listed = "x, update"
    if draw(rng, 0, 3):
        inputs["starts"] = rng.integers(0, last + 1, shape[0])
        listed += ", starts"
    nodes = f"y = TensorScatter {attributes(axis=axis, mode=mode)} ({listed})"
    return Case(nodes, inputs, {"axis": axis}, 24, ("x", "update"))


@family(4)
def gather_nd(rng: Generator, factor: int) -> Case:
    batches, depth = draw(rng, 0, 2), draw(rng, 1, 2)
    shape = [draw(rng, 2, 3) for _ in range(batches)] + [draw(rng, 2, 4) for _ in range(depth + 1)]
    shape[-1] *= factor
    count = draw(rng, 1, 5)
    limits = shape[batches : batches + depth]
    indices = np.stack([rng.integers(-n, n, [*shape[:batches], count]) for n in limits], -1)
    nodes = f"y = GatherND {attributes(batch_dims=batches)} (x, indices)"
    inputs = {"x": uniform(rng, *shape), "indices": indices}
    return Case(nodes, inputs, {"batches": batches}, 13)


def factors(rng: Generator, kind: str, *shape: int) -> np.ndarray:
    """Numbers of which some are equal, or 0."""
    if kind == "mul":
        x = uniform(rng, *shape)
        x[rng.uniform(size=shape) < pick(rng, 0, 0.2)] = 0
        return x
    return rng.integers(-2, 3, shape) / 2


def has_factors(inputs: dict[str, np.ndarray], kind: str) -> bool:
    """Whether products of the inputs have derivatives of derivatives in PyTorch."""
    return kind == "mul" and all(inputs[x].all() for x in ("x", "updates"))


@family(9)
def scatter_elements(rng: Generator, factor: int) -> Case:
    kind = pick(rng, "mul", "max", "min")
    shape = [draw(rng, 3, 5) * factor, draw(rng, 3, 5)]
    axis = draw(rng, -2, 1)
    sizes = list(shape)
    sizes[axis] = draw(rng, 2, 6)
    indices = rng.integers(-shape[axis], shape[axis], sizes)
    inputs = {"x": factors(rng, kind, *shape), "updates": factors(rng, kind, *sizes)}
    inputs["indices"] = indices
    given = attributes(axis=axis, reduction=kind)
    nodes = f"y = ScatterElements {given} (x, indices, updates)"
    options = {"axis": axis, "reduction": kind}
    has_second = has_factors(inputs, kind)
    return Case(nodes, inputs, options, 18, ("x", "updates"), has_second)


@family(9)
def scatter_nd(rng: Generator, factor: int) -> Case:
    kind = pick(rng, "mul", "max", "min")
    shape = [draw(rng, 2, 4), draw(rng, 2, 4) * factor, draw(rng, 1, 3)]
    depth, count = draw(rng, 1, 3), draw(rng, 2, 7)
    indices = np.stack([rng.integers(-n, n, count) for n in shape[:depth]], -1)
    inputs = {"x": factors(rng, kind, *shape)}
    inputs["updates"] = factors(rng, kind, count, *shape[depth:])
    inputs["indices"] = indices
    nodes = f"y = ScatterND {attributes(reduction=kind)} (x, indices, updates)"
    options = {"reduction": kind}
    has_second = has_factors(inputs, kind)
    return Case(nodes, inputs, options, 18, ("x", "updates"), has_second)


# --- Quantization ---


@family(10)
def fake_quantize(rng: Generator, factor: int) -> Case:
    """PyTorch has it in float32 alone, and so has the standard."""
    shape = [draw(rng, 2, 4), draw(rng, 3, 5) * factor, draw(rng, 2, 4)]
    layout = pick(rng, "tensor", "axis", "blocks")
    axis = draw(rng, 0, 2)
    block = draw(rng, 2, 3) if layout == "blocks" else 0
    scales: list[int] = []
    if layout == "axis":
        scales = [shape[axis]]
    elif layout == "blocks":
        scales = list(shape)
        scales[axis] = -(-shape[axis] // block)
    scale = uniform(rng, *scales, low=0.01, high=0.03)
    # PyTorch's gradient by one scale is not that of its function where the zero point is negative.
    zero_point = rng.integers(0 if layout == "tensor" else -20, 21, scales).astype(np.int8)
    inputs = {"x": 2 * uniform(rng, *shape), "scale": np.float32(scale).astype(float)}
    inputs["x"] = np.float32(inputs["x"]).astype(float)
    inputs["zero_point"] = zero_point
    given = attributes(axis=axis, block_size=block or None)
    listed = "scale, zero_point"
    nodes = f"""q = QuantizeLinear {given} (x, {listed})
        y = DequantizeLinear {given} (q, {listed})"""
    options = {"layout": layout, "axis": axis, "block": block}
    return Case(nodes, inputs, options, 21, ("x", "scale"), has_second=False, types=("float32",))

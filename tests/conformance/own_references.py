"""Results by NumPy for operators that onnx.reference and onnxruntime lack or compute wrongly.

Each function takes the schema and the call, and follows the words of the standard for the calls
that the recipes make; it raises where it does not know.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import generated
import ml_dtypes
import numpy as np
import onnx
import recipes
from onnx.reference import ReferenceEvaluator
from recipes import Call

# Versions that say the same of a case as a version that the references lack.
SAME_AS = {
    "Clip-1": 6,
    "Gemm-1": 6,
    "RNN-1": 7,
}


def qlinear_matmul(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = call.inputs

    def real(x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        return (x.astype(np.float64) - zero.astype(np.float64)) * scale.astype(np.float64)

    y = real(a, a_scale, a_zero) @ real(b, b_scale, b_zero) / scale.astype(np.float64)
    if zero.dtype.kind in "iu":
        least, most = recipes.integer_range(zero.dtype)
        return [np.clip(np.rint(y) + int(zero), least, most).astype(zero.dtype)]
    most = float(ml_dtypes.finfo(zero.dtype).max)
    return [np.clip(y + float(zero), -most, most).astype(zero.dtype)]


def random(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """For calls with only one possible number."""
    attributes = call.attributes
    number = attributes["mean"] if "mean" in attributes else attributes["low"]
    shape = call.inputs[0].shape if call.inputs else attributes["shape"]
    named = attributes.get("dtype")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(named) if named else call.inputs[0].dtype
    return [np.full(shape, number).astype(dtype)]


def gather_elements(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    return [np.take_along_axis(*call.inputs, call.attributes["axis"])]


def one_hot(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    indices, depth, (off, on) = call.inputs
    y = np.full((*indices.shape, int(depth)), off)
    np.put_along_axis(y, indices.astype(int)[..., None], on, -1)
    return [np.moveaxis(y, -1, call.attributes.get("axis", -1))]


def recurrent(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """Each sequence by itself, forward over its own length."""
    x, w, r, b, lengths = call.inputs
    newest = onnx.defs.get_schema(schema.name, 22)
    found = []
    for i, length in enumerate(lengths):
        one = Call([x[:length, i : i + 1], w, r, b], call.attributes, call.outputs)
        model, feeds = generated.model_of(newest, one)
        y, *states = ReferenceEvaluator(model).run(None, feeds)
        rest = np.zeros((len(x) - length, *y.shape[1:]), y.dtype)
        found.append([np.concatenate([y, rest]), *states])
    return [np.concatenate(parts, -2) for parts in zip(*found, strict=True)]


def scan(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """For the body that keeps the state and returns the elements."""
    state, x = call.inputs[-2:]
    attributes, time = call.attributes, 1 if schema.since_version < 9 else 0
    y = np.moveaxis(x, attributes.get("scan_input_axes", [time])[0], time)
    for name in ("directions", "scan_input_directions", "scan_output_directions"):
        if attributes.get(name) == [1]:
            y = np.flip(y, time)
    if time == 1 and call.inputs[0] is not None:
        y = y.copy()
        for row, length in zip(y, call.inputs[0], strict=True):
            row[length:] = 0 if y.dtype != object else ""
    return [state, np.moveaxis(y, time, attributes.get("scan_output_axes", [time])[0])]


def scatter(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x, at, updates = call.inputs
    y = x.copy()
    np.put_along_axis(y, at, updates, call.attributes["axis"])
    return [y]


def sequence_insert(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    sequence, value, *at = call.inputs
    out = list(sequence)
    out.insert(int(at[0]) if at else len(out), value)
    return [out]


def tree_ensemble(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """Softmax or the logistic function, which onnx.reference leaves out."""
    attributes = dict(call.attributes)
    transform = attributes.pop("post_transform")
    model, feeds = generated.model_of(schema, Call(call.inputs, attributes))
    y = ReferenceEvaluator(model).run(None, feeds)[0].astype(np.float64)
    if transform == 1:
        y = np.exp(y - y.max(1, keepdims=True))
        y /= y.sum(1, keepdims=True)
    elif transform == 2:
        y = 1 / (1 + np.exp(-y))
    else:
        raise NotImplementedError(transform)
    return [y.astype(call.inputs[0].dtype)]


def unique(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """By the places of the strings in their order."""
    texts, places = np.unique(call.inputs[0], return_inverse=True)
    places = places.reshape(call.inputs[0].shape)
    axis = call.attributes.get("axis")
    found, *more = np.unique(places, True, True, True, axis)
    return [texts[found], *(array.reshape(-1).astype(np.int64) for array in more)]


def matmul_integer(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    a, b, *zeros = (x if x is None else x.astype(np.int32) for x in call.inputs)
    if zeros and zeros[0] is not None:
        a = a - (zeros[0][:, None] if zeros[0].ndim == 1 else zeros[0])
    if len(zeros) > 1:
        b = b - zeros[1]
    return [a @ b]


def string_normalizer(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    action = call.attributes.get("case_change_action", "NONE")
    is_sensitive = call.attributes.get("is_case_sensitive", 0)

    def key(text: str) -> str:
        return text if is_sensitive else text.lower()

    stopwords = {key(word) for word in call.attributes.get("stopwords", [])}
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
    kept = [change(text) for text in call.inputs[0].reshape(-1) if key(text) not in stopwords]
    array = np.array(kept or [""], object)
    return [array[None] if call.inputs[0].ndim == 2 else array]


def multinomial(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """For logarithms that leave one choice."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(call.attributes.get("dtype", 6))
    choice = call.inputs[0].astype(np.float32).argmax(1)
    return [choice[:, None].repeat(call.attributes.get("sample_size", 1), 1).astype(dtype)]


def optional(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    return [call.inputs[0] if call.inputs else None]


def loop(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """For the body that returns the state, which does not change."""
    trips, go, state = call.inputs
    count = int(trips) if go is None or go else 0
    return [state, np.stack([state] * count) if count else np.zeros((0, 2), state.dtype)]


def image_decoder(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """The one bitmap, of 3 by 2 pixels."""
    bgr = call.inputs[0][54:].reshape(2, 12)[::-1, :9].reshape(2, 3, 3)
    form = call.attributes.get("pixel_format", "RGB")
    if form == "Grayscale":
        return [np.rint(bgr @ np.array([0.114, 0.587, 0.299]))[..., None].astype(np.uint8)]
    return [bgr if form == "BGR" else bgr[..., ::-1]]


def max_roi_pool(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x, rois = call.inputs
    height, width = call.attributes["pooled_shape"]
    scale = call.attributes.get("spatial_scale", 1.0)
    y = np.zeros((len(rois), x.shape[1], height, width), x.dtype)
    for r, roi in enumerate(rois.astype(np.float64)):
        left, top, right, bottom = np.floor(roi[1:] * scale + 0.5).astype(int)
        high, wide = max(bottom - top + 1, 1) / height, max(right - left + 1, 1) / width
        for c, i, j in itertools.product(range(x.shape[1]), range(height), range(width)):
            rows = [int(np.floor(i * high)) + top, int(np.ceil((i + 1) * high)) + top]
            columns = [int(np.floor(j * wide)) + left, int(np.ceil((j + 1) * wide)) + left]
            rows, columns = np.clip(rows, 0, x.shape[2]), np.clip(columns, 0, x.shape[3])
            bin_ = x[int(roi[0]), c, slice(*rows), slice(*columns)]
            y[r, c, i, j] = bin_.max() if bin_.size else 0
    return [y]


def max_unpool(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """Windows without overlap; indices are of the shape that the windows alone make."""
    x, at, *rest = call.inputs
    window = call.attributes["kernel_shape"]
    small = [*x.shape[:2], *(n * k for n, k in zip(x.shape[2:], window, strict=True))]
    y = np.zeros(small, x.dtype)
    y.reshape(-1)[at.reshape(-1)] = x.reshape(-1)
    if not rest:
        return [y]
    more = [(0, int(n) - m) for n, m in zip(rest[0], small, strict=True)]
    return [np.pad(y, more)]


def enlarge(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """Resize and Upsample to the nearest, by whole numbers."""
    x, *more = call.inputs
    attributes = call.attributes
    if attributes.get("mode", "nearest") != "nearest":
        raise NotImplementedError(attributes["mode"])
    scales = more[-1] if more else attributes.get("scales")
    if len(more) == 3:  # sizes
        scales = [size // n for size, n in zip(scales, x.shape, strict=True)]
    if scales is None:
        scales = [1, 1, attributes["height_scale"], attributes["width_scale"]]
    for axis, scale in enumerate(scales):
        x = x.repeat(int(scale), axis)
    return [x]


def global_max_pool(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x = call.inputs[0]
    return [x.max(tuple(range(2, x.ndim)), keepdims=True)]


def reduce_log_sum_exp(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x, attributes = call.inputs[0], call.attributes
    axes = tuple(call.inputs[1]) if len(call.inputs) > 1 else tuple(attributes.get("axes", ()))
    if not axes and not attributes.get("noop_with_empty_axes"):
        axes = None
    sums = np.exp(x.astype(np.float64)).sum(axes, keepdims=bool(attributes.get("keepdims", 1)))
    return [np.log(sums).astype(x.dtype)]


def global_lp_pool(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x, p = call.inputs[0].astype(np.float64), call.attributes.get("p", 2)
    sums = (np.abs(x) ** p).sum(tuple(range(2, x.ndim)), keepdims=True)
    return [(sums ** (1 / p)).astype(call.inputs[0].dtype)]


def mean_variance_normalization(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x, axes = call.inputs[0].astype(np.float64), tuple(call.attributes.get("axes", (0, 2, 3)))
    centred = x - x.mean(axes, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axes, keepdims=True))
    return [(centred / (deviation + 1e-9)).astype(call.inputs[0].dtype)]


def softsign(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x = call.inputs[0].astype(np.float64)
    return [(x / (1 + np.abs(x))).astype(call.inputs[0].dtype)]


def dropout(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    if not call.attributes.get("is_test"):
        raise NotImplementedError("training")
    return [call.inputs[0]]


def attribute(schema: onnx.defs.OpSchema, call: Call, name: str) -> Any:
    """As the call or else the schema has it: a float is one of 32 bits."""
    if name in call.attributes:
        value = call.attributes[name]
        return float(np.float32(value)) if isinstance(value, float) else value
    return onnx.helper.get_attribute_value(schema.attributes[name].default_value)


def by_element(function: Callable[[float], float]) -> Callable[..., list[Any]]:
    """Of one number of Python at a time."""

    def reference(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
        x = call.inputs[0]
        y = [function(float(value)) for value in x.reshape(-1)]
        return [np.array(y, np.float64).reshape(x.shape).astype(x.dtype)]

    return reference


def gelu(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    if attribute(schema, call, "approximate") != b"none":
        raise NotImplementedError
    return by_element(lambda x: x / 2 * math.erfc(-x / math.sqrt(2)))(schema, call)


def selu(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    alpha, gamma = (attribute(schema, call, name) for name in ("alpha", "gamma"))
    return by_element(lambda x: gamma * (x if x > 0 else alpha * math.expm1(x)))(schema, call)


def average_pool(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """Of version 1, which does not count pads."""
    if schema.since_version > 1:
        raise NotImplementedError
    (x,), kernel = call.inputs, call.attributes["kernel_shape"]
    rank = len(kernel)
    strides, pads = (call.attributes.get(n, [d] * rank) for n, d in (("strides", 1), ("pads", 0)))
    pads = pads if len(pads) == 2 * rank else pads * 2
    widths = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x.astype(np.float64), widths, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, tuple(range(2, 2 + rank)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, step) for step in strides))]
    return [np.nanmean(windows, tuple(range(-rank, 0))).astype(x.dtype)]


def group_normalization(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x, *rows = (value.astype(np.float64) for value in call.inputs)
    if schema.since_version < 21:  # a scale and a bias for each group
        rows = [row.repeat(x.shape[1] // len(row)) for row in rows]
    parts = x.reshape(len(x), call.attributes["num_groups"], -1)
    centred = parts - parts.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + attribute(schema, call, "epsilon"))
    scale, bias = (row.reshape(-1, *[1] * (x.ndim - 2)) for row in rows)
    return [((centred / deviation).reshape(x.shape) * scale + bias).astype(call.inputs[0].dtype)]


def lrn(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    x, size = call.inputs[0].astype(np.float64), call.attributes["size"]
    alpha, beta, bias = (attribute(schema, call, name) for name in ("alpha", "beta", "bias"))
    before = (size - 1) // 2
    squares = np.pad(x**2, [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    sums = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return [(x / (bias + alpha / size * sums) ** beta).astype(call.inputs[0].dtype)]


def adam(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    rate, count, *tensors = (np.asarray(value, np.float64) for value in call.inputs)
    names = ("alpha", "beta", "epsilon", "norm_coefficient", "norm_coefficient_post")
    alpha, beta, epsilon, norm, norm_post = (attribute(schema, call, name) for name in names)
    if count > 0:
        rate = rate * np.sqrt(1 - beta**count) / (1 - alpha**count)
    found: list[list[Any]] = [[], [], []]
    parts = [tensors[i :: len(tensors) // 4] for i in range(len(tensors) // 4)]
    for x, g, v, h in parts:
        gradient = norm * x + g
        v_new = alpha * v + (1 - alpha) * gradient
        h_new = beta * h + (1 - beta) * gradient**2
        x_new = (1 - norm_post) * (x - rate * v_new / (np.sqrt(h_new) + epsilon))
        for group, value in zip(found, (x_new, v_new, h_new), strict=True):
            group.append(value.astype(call.inputs[2].dtype))
    return [value for group in found for value in group]


def split(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    sizes = call.attributes.get("split", call.inputs[-1].astype(int))
    return np.split(call.inputs[0], np.cumsum(sizes)[:-1], call.attributes["axis"])


def tile(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """Version 1: `tiles` times along one axis."""
    x, tiles, axis = call.inputs
    return [np.concatenate([x] * int(tiles), int(axis))]


def cast(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """To float, as versions before 6 name it, and whole numbers to strings."""
    x, to = call.inputs[0], call.attributes["to"]
    if to == "FLOAT":
        return [x.astype(np.float32)]
    if to == onnx.TensorProto.STRING and x.dtype.kind != "O":
        return [np.array([str(int(value)) for value in x.reshape(-1)], object).reshape(x.shape)]
    raise NotImplementedError(to)


def batch_normalization(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    if not call.attributes.get("is_test"):
        raise NotImplementedError("training")
    x, *rows = (value.astype(np.float64) for value in call.inputs)
    scale, bias, mean, variance = (row[:, None] for row in rows)
    deviation = np.sqrt(variance + call.attributes.get("epsilon", np.float32(1e-5)))
    return [((x - mean) / deviation * scale + bias).astype(call.inputs[0].dtype)]


def cast_map(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    values, attributes = call.inputs[0], call.attributes
    kinds = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}
    kind = kinds[attributes["cast_to"]]
    if attributes.get("map_form") == "SPARSE":
        absent = "" if kind is object else 0
        values = {key: values.get(key, absent) for key in range(attributes["max_map"])}
    listed = [values[key] for key in sorted(values)]
    if kind is object:  # the numbers are whole
        listed = [value if isinstance(value, str) else str(int(value)) for value in listed]
    else:
        listed = [float(value) for value in listed]
    return [np.array([listed], object).astype(kind)]


def dict_vectorizer(_: onnx.defs.OpSchema, call: Call) -> list[Any]:
    """Of one row, as onnxruntime has it."""
    values, attributes = call.inputs[0], call.attributes
    keys = attributes.get("string_vocabulary") or attributes["int64_vocabulary"]
    example = np.array(next(iter(values.values())))
    is_text = example.dtype.kind == "U"
    row = [values.get(key, "" if is_text else 0) for key in keys]
    return [np.array([row], object if is_text else example.dtype)]


def label_encoder(schema: onnx.defs.OpSchema, call: Call) -> list[Any]:
    def given(part: str) -> np.ndarray | None:
        for name, value in call.attributes.items():
            if name.startswith(f"{part}_"):
                is_tensor = isinstance(value, onnx.TensorProto)
                array = onnx.numpy_helper.to_array(value) if is_tensor else value
                kinds = {"floats": np.float32, "int64s": np.int64, "strings": object}
                return np.asarray(array, kinds.get(name.split("_")[1]))
        return None

    keys, values, default = given("keys"), given("values"), given("default")
    if default is None:
        default = {"O": "_Unused", "i": -1, "f": -0.0}[values.dtype.kind]
    elif default.size != 1:
        raise ValueError(default)
    else:
        default = default.reshape(-1)[0]
    known = dict(zip(keys.tolist(), values.tolist(), strict=True))
    found = [known.get(key, default) for key in call.inputs[0].reshape(-1).tolist()]
    return [np.array(found, values.dtype).reshape(call.inputs[0].shape)]


FUNCTIONS: dict[str, Callable[[onnx.defs.OpSchema, Call], list[Any]]] = {
    "Adam": adam,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Cast": cast,
    "CastMap": cast_map,
    "DictVectorizer": dict_vectorizer,
    "Dropout": dropout,
    "Erf": by_element(math.erf),
    "Gelu": gelu,
    "GlobalLpPool": global_lp_pool,
    "GlobalMaxPool": global_max_pool,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), recurrent),
    "GatherElements": gather_elements,
    "GroupNormalization": group_normalization,
    "HardSwish": by_element(lambda x: x * min(max(x / 6 + 0.5, 0.0), 1.0)),
    "ImageDecoder": image_decoder,
    "LRN": lrn,
    "LabelEncoder": label_encoder,
    "Loop": loop,
    "MatMulInteger": matmul_integer,
    "MaxRoiPool": max_roi_pool,
    "MaxUnpool": max_unpool,
    "MeanVarianceNormalization": mean_variance_normalization,
    "Multinomial": multinomial,
    "OneHot": one_hot,
    "Optional": optional,
    "QLinearMatMul": qlinear_matmul,
    **dict.fromkeys(("RandomNormal", "RandomNormalLike"), random),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), random),
    "ReduceLogSumExp": reduce_log_sum_exp,
    "Resize": enlarge,
    "Scan": scan,
    "Selu": selu,
    "Scatter": scatter,
    "SequenceInsert": sequence_insert,
    "Softsign": softsign,
    "Split": split,
    "StringNormalizer": string_normalizer,
    "Tile": tile,
    "TreeEnsemble": tree_ensemble,
    "Unique": unique,
    "Upsample": enlarge,
}

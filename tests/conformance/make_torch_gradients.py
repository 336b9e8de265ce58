"""Writes torch_gradients.npz, with PyTorch: derivatives of the operators of torch_cases.py and
torch_attention_cases.py.
"""

from __future__ import annotations

import itertools
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch_attention
import torch_attention_cases  # noqa: F401 - adds its cases
from torch.nn import functional
from torch_cases import Case, case_of, names

Tensors = dict[str, torch.Tensor]
Options = dict[str, Any]


def grid_sample_cubic(v: Tensors, o: Options) -> torch.Tensor:
    return functional.grid_sample(
        v["x"], v["grid"], "bicubic", o["padding"], align_corners=bool(o["aligned"])
    )


def grid_sample(v: Tensors, o: Options) -> torch.Tensor:
    mode = "bilinear" if o["mode"] == "linear" else o["mode"]
    return functional.grid_sample(v["x"], v["grid"], mode, o["padding"], bool(o["aligned"]))


def bilinear(image: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Of [C, H, W] at positions of one shape, [C, *positions]. Elements outside are 0."""
    _, h, w = image.shape
    top, left = y.detach().floor(), x.detach().floor()
    total = 0
    for dy, dx in itertools.product((0, 1), repeat=2):
        row, column = top + dy, left + dx
        is_inside = (row >= 0) & (row < h) & (column >= 0) & (column < w)
        picked = image[:, row.clamp(0, h - 1).long(), column.clamp(0, w - 1).long()]
        weight = (1 - (y - row).abs()) * (1 - (x - column).abs())
        total = total + picked * weight * is_inside
    return total


def deform_conv(v: Tensors, o: Options) -> torch.Tensor:
    x, w, offset = v["x"], v["w"], v["offset"]
    (n, c, _, _), (out_c, _, kh, kw) = x.shape, w.shape
    h, width = offset.shape[2:]
    per_offset = c // o["offset_group"]
    offset = offset.reshape(n, o["offset_group"], kh, kw, 2, h, width)
    mask = v.get("mask", torch.ones(())).expand(n, o["offset_group"] * kh * kw, h, width)
    mask = mask.reshape(n, o["offset_group"], kh, kw, h, width)
    rows = torch.arange(h).reshape(-1, 1) * o["strides"][0] - o["pads"][0]
    columns = torch.arange(width) * o["strides"][1] - o["pads"][1]
    images = []
    for image, g in itertools.product(range(n), range(o["offset_group"])):
        channels = x[image, g * per_offset : (g + 1) * per_offset]
        taps = [
            bilinear(
                channels,
                rows + i * o["dilations"][0] + offset[image, g, i, j, 0],
                columns + j * o["dilations"][1] + offset[image, g, i, j, 1],
            )
            * mask[image, g, i, j]
            for i, j in itertools.product(range(kh), range(kw))
        ]
        images.append(torch.stack(taps, 1))
    samples = torch.stack(images).reshape(n, o["group"], -1, h * width)
    y = w.reshape(o["group"], out_c // o["group"], -1) @ samples
    y = y.reshape(n, out_c, h, width)
    return y + v["bias"].reshape(-1, 1, 1) if "bias" in v else y


def padded_pairs(pads: list[int]) -> list[int]:
    """ONNX's pads as those of torch.nn.functional.pad: the last axis first."""
    axes = len(pads) // 2
    return [pads[end * axes + i] for i in reversed(range(axes)) for end in (0, 1)]


def col2im(v: Tensors, o: Options) -> torch.Tensor:
    axes = len(o["image"])
    # A first axis of one element, in images that have their pads already.
    image = [n + o["pads"][i] + o["pads"][axes + i] for i, n in enumerate(o["image"])]
    settings = {key: [1] * (2 - axes) + o[key] for key in ("strides", "dilations", "block")}
    y = functional.fold(
        v["x"],
        [1] * (2 - axes) + image,
        settings["block"],
        dilation=settings["dilations"],
        stride=settings["strides"],
    )
    cut = functional.pad(y, [-n for n in padded_pairs(o["pads"])])
    return cut.squeeze(2) if axes == 1 else cut


def padded(x: torch.Tensor, o: Options, value: float) -> tuple[torch.Tensor, list[int]]:
    """The input of a pool with its pads, and the number of windows along each axis."""
    dilations = o.get("dilations", [1, 1])
    pads = list(o.get("pads", [0] * 4))
    counts = []
    for i, size in enumerate(x.shape[2:]):
        kernel, stride = o["kernel_shape"][i], o["strides"][i]
        extent = (kernel - 1) * dilations[i] + 1
        if o.get("auto_pad", "").startswith("SAME"):
            counts.append(-(-size // stride))
            total = max(0, (counts[i] - 1) * stride + extent - size)
            halves = [total // 2, total - total // 2]
            pads[i], pads[2 + i] = halves if o["auto_pad"] == "SAME_UPPER" else halves[::-1]
            continue
        free = size + pads[i] + pads[2 + i] - extent
        counts.append(free // stride + 1)
        if o.get("ceil_mode"):
            # No window begins beyond the input and the pads before it.
            counts[i] = min(-(-free // stride) + 1, -(-(size + pads[i]) // stride))
    return functional.pad(x, padded_pairs(pads), value=value), counts


def windows(x: torch.Tensor, counts: list[int], o: Options, value: float) -> torch.Tensor:
    """[N, C, kernel, steps] of what has its pads; windows may reach further."""
    dilations = o.get("dilations", [1, 1])
    missing = [
        max(
            0,
            (count - 1) * o["strides"][i] + (o["kernel_shape"][i] - 1) * dilations[i] + 1 - size,
        )
        for i, (count, size) in enumerate(zip(counts, x.shape[2:], strict=True))
    ]
    x = functional.pad(x, [0, missing[1], 0, missing[0]], value=value)
    rows = [
        x[
            :,
            :,
            i * dilations[0] :: o["strides"][0],
            j * dilations[1] :: o["strides"][1],
        ][:, :, : counts[0], : counts[1]]
        for i, j in itertools.product(*map(range, o["kernel_shape"]))
    ]
    return torch.stack(rows, 2)


def lp_pool(v: Tensors, o: Options) -> torch.Tensor:
    x, counts = padded(v["x"], o, 0)
    return windows(x, counts, o, 0).abs().pow(o["p"]).sum(2).pow(1 / o["p"])


def average_pool(v: Tensors, o: Options) -> torch.Tensor:
    x, counts = padded(v["x"], o, 0)
    ones, _ = padded(torch.ones_like(v["x"]), o, o["count_include_pad"])
    return windows(x, counts, o, 0).sum(2) / windows(ones, counts, o, 0).sum(2)


def max_pool_by_columns(v: Tensors, o: Options) -> torch.Tensor:
    x, counts = padded(v["x"], o, -math.inf)
    return windows(x, counts, o, -math.inf).amax(2)


def max_unpool(v: Tensors, o: Options) -> torch.Tensor:
    x = v["x"]
    places = v["places"].flatten()
    y = x.new_zeros(x.shape[0] * x.shape[1] * math.prod(o["sizes"]))
    y = y.index_put((places,), x.flatten()).reshape(*x.shape[:2], *o["sizes"])
    larger = o["larger"] or o["sizes"]
    more = [larger[i] - size for i, size in enumerate(o["sizes"])]
    return functional.pad(y, [0, more[1], 0, more[0]])


def products(x: torch.Tensor, y: float, column: float) -> torch.Tensor:
    """[C, 4]: the elements around a sample of [C, H, W], times their weights."""
    h, w = x.shape[1:]
    if not (-1 <= y <= h and -1 <= column <= w):
        return x.new_zeros(x.shape[0], 4)
    y, column = min(max(y, 0), h - 1), min(max(column, 0), w - 1)
    top, left = min(int(y), h - 1), min(int(column), w - 1)
    bottom, right = min(top + 1, h - 1), min(left + 1, w - 1)
    down, along = y - top, column - left
    corners = [
        ((1 - down) * (1 - along), top, left),
        ((1 - down) * along, top, right),
        (down * (1 - along), bottom, left),
        (down * along, bottom, right),
    ]
    return torch.stack([weight * x[:, row, place] for weight, row, place in corners], 1)


def roi_align(v: Tensors, o: Options) -> torch.Tensor:
    x, bins = v["x"], (o["output_height"], o["output_width"])
    offset = 0.5 if o["half_pixel"] else 0.0
    results = []
    for roi, image in zip(v["rois"] * o["spatial_scale"] - offset, v["images"], strict=True):
        samples = []
        for i in range(2):
            start, length = float(roi[1 - i]), float(roi[3 - i] - roi[1 - i])
            if not o["half_pixel"]:
                length = max(length, 1.0)
            size = length / bins[i]
            count = o["sampling_ratio"] or math.ceil(size)
            steps = [(s + 0.5) / count for s in range(count)]
            samples.append([[start + (b + step) * size for step in steps] for b in range(bins[i])])
        for ys, xs in itertools.product(*samples):
            parts = torch.stack([products(x[image], *at) for at in itertools.product(ys, xs)], 1)
            is_mean = o["mode"] == "avg"
            results.append(parts.sum(2).mean(1) if is_mean else parts.flatten(1).amax(1))
    return torch.stack(results).reshape(-1, *bins, x.shape[1]).permute(0, 3, 1, 2)


def max_roi_pool(v: Tensors, o: Options) -> torch.Tensor:
    x, (rows, columns) = v["x"], o["pooled_shape"]
    h, w = x.shape[2:]
    results = []
    for roi in v["rois"].tolist():
        # Halves go away from 0.
        x1, y1, x2, y2 = (math.copysign(math.floor(abs(n / 2) + 0.5), n) for n in roi[1:])
        for i, j in itertools.product(range(rows), range(columns)):
            ranges = []
            for k, count, first, last, size in ((i, rows, y1, y2, h), (j, columns, x1, x2, w)):
                length = max(last - first + 1, 1) / count
                ends = first + math.floor(k * length), first + math.ceil((k + 1) * length)
                ranges.append(slice(*(int(min(max(end, 0), size)) for end in ends)))
            part = x[int(roi[0]), :, ranges[0], ranges[1]].flatten(1)
            results.append(part.amax(1) if part.shape[1] else x.new_zeros(x.shape[1]))
    return torch.stack(results).reshape(-1, rows, columns, x.shape[1]).permute(0, 3, 1, 2)


def dft(v: Tensors, o: Options) -> torch.Tensor:
    x, n, axis = v["x"], o["length"], o["axis"]
    if x.shape[-1] == 1:
        x = torch.cat([x, torch.zeros_like(x)], -1)
    signal = torch.view_as_complex(x.contiguous())
    if o["inverse"] and o["onesided"]:
        return torch.fft.irfft(signal, n, axis).unsqueeze(-1)
    spectrum = (torch.fft.ifft if o["inverse"] else torch.fft.fft)(signal, n, axis)
    if o["onesided"]:
        spectrum = spectrum.narrow(axis, 0, spectrum.shape[axis] // 2 + 1)
    return torch.view_as_real(spectrum)


def stft(v: Tensors, o: Options) -> torch.Tensor:
    x, length = v["x"], o["length"]
    x = x.unsqueeze(-1) if x.dim() == 2 else x
    frames = x.unfold(1, length, o["step"]).transpose(2, 3)
    if "window" in v:
        frames = frames * v["window"].unsqueeze(-1)
    if frames.shape[-1] == 1:
        frames = torch.cat([frames, torch.zeros_like(frames)], -1)
    spectrum = torch.fft.fft(torch.view_as_complex(frames.contiguous()), dim=2)
    bins = length // 2 + 1 if o["onesided"] else length
    return torch.view_as_real(spectrum[:, :, :bins])


def einsum(v: Tensors, o: Options) -> torch.Tensor:
    return torch.einsum(o["equation"], *v.values())


def conv_transpose(v: Tensors, o: Options) -> torch.Tensor:
    settings = {"stride": o["strides"], "groups": o["group"], "dilation": o["dilations"]}
    y = functional.conv_transpose2d(v["x"], v["w"], **settings)
    for axis, (begin, out) in enumerate(zip(o["begin"], o["out"], strict=True), 2):
        y = y.narrow(axis, begin, min(out, y.shape[axis] - begin))
    more = [size - n for size, n in zip(o["out"], y.shape[2:], strict=True)]
    return functional.pad(y, [0, more[1], 0, more[0]]) + v["bias"].reshape(-1, 1, 1)


def det(v: Tensors, _: Options) -> torch.Tensor:
    return torch.linalg.det(v["x"])


def inverse(v: Tensors, _: Options) -> torch.Tensor:
    return torch.linalg.inv(v["x"])


def cum_prod(v: Tensors, o: Options) -> torch.Tensor:
    x, axis = v["x"], o["axis"]
    x = x.flip(axis) if o["reverse"] else x
    if o["exclusive"]:
        first = torch.ones_like(x.narrow(axis, 0, 1))
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    y = x.cumprod(axis)
    return y.flip(axis) if o["reverse"] else y


def center_crop_pad(v: Tensors, o: Options) -> torch.Tensor:
    x = v["x"]
    for axis, size in zip(o["axes"], o["sizes"], strict=True):
        missing = max(0, size - x.shape[axis])
        pads = [missing // 2, missing - missing // 2]
        x = functional.pad(x.movedim(axis, -1), pads)
        x = x.narrow(-1, (x.shape[-1] - size) // 2, size).movedim(-1, axis)
    return x


def one_hot(v: Tensors, o: Options) -> torch.Tensor:
    indices, depth = v["indices"], o["depth"]
    is_inside = (indices >= -depth) & (indices < depth)
    hot = functional.one_hot(indices % depth, depth) * is_inside.unsqueeze(-1)
    return v["x"][hot.movedim(-1, o["axis"])]


def tensor_scatter(v: Tensors, o: Options) -> torch.Tensor:
    x, update, axis = v["x"], v["update"], o["axis"] % 4
    starts = v.get("starts", torch.zeros(x.shape[0], dtype=torch.int64))
    rows = []
    for row, new, start in zip(x, update, starts, strict=True):
        places = (start + torch.arange(new.shape[axis - 1])) % row.shape[axis - 1]
        rows.append(row.index_copy(axis - 1, places, new))
    return torch.stack(rows)


def gather_nd(v: Tensors, o: Options) -> torch.Tensor:
    x, indices = v["x"], v["indices"]
    grids = [
        torch.arange(n).reshape([-1 if k == i else 1 for k in range(indices.dim() - 1)])
        for i, n in enumerate(x.shape[: o["batches"]])
    ]
    return x[(*grids, *indices.unbind(-1))]


REDUCTIONS = {"mul": "prod", "max": "amax", "min": "amin"}


def scatter_elements(v: Tensors, o: Options) -> torch.Tensor:
    indices = v["indices"] % v["x"].shape[o["axis"]]
    return v["x"].scatter_reduce(o["axis"], indices, v["updates"], REDUCTIONS[o["reduction"]])


def scatter_nd(v: Tensors, o: Options) -> torch.Tensor:
    x, indices = v["x"], v["indices"]
    numbers = torch.arange(x.numel()).reshape(x.shape)
    places = numbers[tuple(indices.unbind(-1))].flatten()
    updates = v["updates"].flatten()
    y = x.flatten().scatter_reduce(0, places, updates, REDUCTIONS[o["reduction"]])
    return y.reshape(x.shape)


def fake_quantize(v: Tensors, o: Options) -> torch.Tensor:
    x, scale = v["x"].float(), v["scale"].float()
    zero_point, axis = v["zero_point"].float(), o["axis"]
    if o["layout"] == "tensor":
        return torch._fake_quantize_learnable_per_tensor_affine(
            x, scale.reshape(1), zero_point.reshape(1), -128, 127, 1.0
        )
    if o["layout"] == "axis":
        return torch._fake_quantize_learnable_per_channel_affine(
            x, scale, zero_point, axis, -128, 127, 1.0
        )
    # Each block is a channel of its own, filled up with elements that are dropped again.
    size, block = x.shape[axis], o["block"]
    blocks = -(-size // block)
    rows = functional.pad(x.movedim(axis, -1), [0, blocks * block - size])
    channels = rows.reshape(-1, block)
    y = torch._fake_quantize_learnable_per_channel_affine(
        channels,
        scale.movedim(axis, -1).flatten(),
        zero_point.movedim(axis, -1).flatten(),
        0,
        -128,
        127,
        1.0,
    )
    return y.reshape(rows.shape)[..., :size].movedim(-1, axis)


def gradients(name: str, case: Case) -> dict[str, Any]:
    functions = {**globals(), **vars(torch_attention)}
    function: Callable[[Tensors, Options], torch.Tensor] = functions[name.partition("-")[0]]
    values = {
        key: torch.tensor(value, requires_grad=key in case.differentiated)
        for key, value in case.inputs.items()
    }
    xs = [values[x] for x in case.differentiated]
    y = function(values, case.options)
    first = torch.autograd.grad(y.square().sum(), xs, create_graph=case.has_second)
    found = {"y": y, **{f"d_{x}": g for x, g in zip(case.differentiated, first, strict=True)}}
    if case.has_second:
        norm = sum(slope.square().sum() for slope in first)
        second = torch.autograd.grad(norm, xs)
        found |= {f"dd_{x}": g for x, g in zip(case.differentiated, second, strict=True)}
    return {f"{name}/{key}": value.detach().double().numpy() for key, value in found.items()}


if __name__ == "__main__":
    everything: dict[str, Any] = {}
    for each in names():
        everything |= gradients(each, case_of(each))
    np.savez_compressed(pathlib.Path(__file__).with_name("torch_gradients.npz"), **everything)

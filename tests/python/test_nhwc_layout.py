"""Quantized convolutional networks run with their channels last on x86 processors with AVX2."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from quantized_graphs import FORMS, Graph, assert_near, clipped, conv, run, run_genuine
from traces import profiled


def has_avx2() -> bool:
    information = pathlib.Path("/proc/cpuinfo")
    return information.exists() and "avx2" in information.read_text()


def layer(g: Graph, x: str, channels: int, out: int, kernel: int, scale: float, **options) -> str:
    pad = kernel // 2
    group = options.pop("group", 1)
    w = g.weights(out, channels // group, kernel, kernel, axis=0)
    y = g.op("Conv", x, w, g.bias(out), pads=[pad] * 4, group=group, **options)
    return g.between(y, scale)


def network(g: Graph) -> str:
    """Every operator that works with the channels last, in a network that branches."""
    shape = (2, 16, 29, 31)
    x = g.between(conv(g, shape, 32, (3, 3), {"axis": 0}, strides=[2, 2]), 0.4)
    x = g.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    deep = layer(g, x, 32, 32, 5, 0.3, group=32)
    wide = g.between(clipped(g, layer(g, deep, 32, 40, 3, 2.0), -100, 100), 2.0)
    gate = g.between(g.op("GlobalAveragePool", wide), 0.5)
    gate = g.between(g.op("Sigmoid", layer(g, gate, 40, 40, 1, 0.02)), 1 / 128)
    gated = g.between(g.op("Mul", wide, gate), 1.0)
    narrow = layer(g, gated, 40, 32, 1, 3.0)
    joined = g.between(g.op("Concat", narrow, deep, axis=1), 3.0)
    pooled = g.between(g.op("AveragePool", joined, kernel_shape=[2, 2], strides=[2, 2]), 3.0)
    grouped = layer(g, pooled, 64, 32, 3, 10.0, group=4)
    skipped = g.between(g.op("Add", layer(g, pooled, 64, 32, 1, 5.0), grouped), 12.0)
    return g.quantize(g.op("LeakyRelu", skipped, alpha=0.1), 8.0)


@pytest.mark.parametrize("form", FORMS)
def test_networks_run_with_channels_last(form: str, tmp_path: pathlib.Path) -> None:
    g = Graph(form)
    model = g.model(network(g))
    integers, ran = run(model, g.feeds, True, tmp_path)
    if has_avx2():
        assert "NhwcQLinearConv" in ran
        assert not ran & {"QLinearConv", "MaxPool", "Conv", "DequantizeLinear"}
    expected = run_genuine(model, g.feeds)
    # Each layer may round a tie the other way, which those after it enlarge.
    differences = np.abs(integers.astype(np.int32) - expected.astype(np.int32))
    assert np.ptp(expected.astype(np.int32)) > 50
    assert np.max(differences) <= 6 and np.mean(differences > 0) < 0.15


def pyramid(g: Graph) -> str:
    """What detectors have between the convolutions of their pyramids."""
    x = g.between(conv(g, (2, 16, 20, 24), 48, (3, 3), {"axis": 0}, pads=[1] * 4), 0.4)
    left, right = (g.between(part, 0.4) for part in g.split(x, 2, axis=1, num_outputs=2))
    deep = layer(g, right, 24, 40, 3, 2.0, strides=[2, 2])
    scales = g.constant(np.array([1, 1, 2, 2], np.float32))
    larger = g.between(g.op("Resize", deep, "", scales), 2.0)
    joined = g.between(g.op("Concat", left, larger, axis=1), 1.5)
    return g.quantize(layer(g, joined, 64, 32, 3, 8.0), 8.0)


def sequence_layer(
    g: Graph, x: str, channels: int, out: int, kernel: int, scale: float, **options
) -> str:
    w = g.weights(out, channels // options.get("group", 1), kernel, axis=0)
    return g.between(g.op("Conv", x, w, g.bias(out), **options), scale)


@pytest.mark.parametrize("form", FORMS)
def test_sequences_run_with_channels_last(form: str, tmp_path: pathlib.Path) -> None:
    g = Graph(form)
    first = sequence_layer(g, g.input(2, 1, 4000), 1, 48, 10, 0.06, strides=[5])
    wide = g.between(g.op("Sigmoid", first), 1 / 256)
    deep = sequence_layer(g, wide, 48, 48, 3, 0.1, pads=[1, 1], group=48)
    both = g.between(g.op("Add", deep, wide), 0.1)
    joined = g.between(g.op("Concat", both, wide, axis=1), 0.1)
    last = sequence_layer(g, joined, 96, 40, 3, 0.03, strides=[2], dilations=[2])
    model = g.model(g.quantize(g.op("LeakyRelu", last, alpha=0.5), 0.03))
    integers, ran = run(model, g.feeds, True, tmp_path)
    if has_avx2():
        assert "NhwcQLinearConv" in ran and "QLinearConv" not in ran
    expected = run_genuine(model, g.feeds)
    differences = np.abs(integers.astype(np.int32) - expected.astype(np.int32))
    assert np.ptp(expected.astype(np.int32)) > 50
    assert np.max(differences) <= 6 and np.mean(differences > 0) < 0.15


@pytest.mark.parametrize("form", FORMS)
def test_operands_with_fewer_axes_are_no_images(form: str, tmp_path: pathlib.Path) -> None:
    """A sum with [C, H, W], where H is as large as C."""
    g = Graph(form)
    x = g.between(conv(g, (2, 16, 34, 12), 32, (3, 3), {"axis": 0}), 0.3)
    both = g.between(g.op("Add", x, g.input(32, 32, 10)), 0.3)
    model = g.model(g.quantize(layer(g, both, 32, 16, 3, 2.0), 2.0))
    integers, _ = run(model, g.feeds, True, tmp_path)
    expected = run_genuine(model, g.feeds)
    assert np.max(np.abs(integers.astype(np.int32) - expected.astype(np.int32))) <= 2


@pytest.mark.parametrize("form", FORMS)
def test_pieces_and_sizes_keep_channels_last(form: str, tmp_path: pathlib.Path) -> None:
    g = Graph(form)
    model = g.model(pyramid(g))
    (integers,), names = profiled(model, g.feeds, tmp_path)
    assert {"Split", "Resize"} <= set(names)
    if has_avx2():
        assert names.count("Transpose") == 2  # before the first convolution and after the last
    expected = run_genuine(model, g.feeds)
    differences = np.abs(integers.astype(np.int32) - expected.astype(np.int32))
    assert np.ptp(expected.astype(np.int32)) > 50
    assert np.max(differences) <= 3 and np.mean(differences > 0) < 0.15


@pytest.mark.parametrize("form", FORMS)
def test_values_that_others_read_keep_their_layout(form: str, tmp_path: pathlib.Path) -> None:
    """A Softmax over the channels, and an output, read a value of the region."""
    g = Graph(form)
    x = g.between(conv(g, (1, 24, 40, 40), 24, (3, 3), {"axis": 0}), 0.4)
    y = layer(g, x, 24, 24, 3, 3.0)
    probabilities = g.between(g.op("Softmax", y, axis=1), 1 / 256)
    model = g.model(g.quantize(g.op("Add", probabilities, x), 0.4))
    integers, ran = run(model, g.feeds, True, tmp_path)
    if has_avx2():
        assert "NhwcQLinearConv" in ran
    assert_near(integers, run_genuine(model, g.feeds))


def test_convolutions_with_other_dilations_share_weights(tmp_path: pathlib.Path) -> None:
    """With 6 channels, the packed weights of the two have other orders and sizes."""
    g = Graph("uint8")
    x = g.input(1, 6, 60, 60)
    w = g.weights(64, 6, 3, 3, axis=0)
    near = g.between(g.op("Conv", x, w, pads=[1] * 4), 0.4)
    far = g.between(g.op("Conv", x, w, pads=[2] * 4, dilations=[2, 2]), 0.4)
    model = g.model(g.quantize(g.op("Add", near, far), 0.5))
    integers, ran = run(model, g.feeds, True, tmp_path)
    if has_avx2():
        assert "NhwcQLinearConv" in ran and "QLinearConv" not in ran
    assert_near(integers, run_genuine(model, g.feeds))


def test_weights_with_other_zero_points_stay(tmp_path: pathlib.Path) -> None:
    g = Graph("uint8")
    x = conv(g, (1, 24, 40, 40), 24, (3, 3), {"dtype": np.uint8})
    model = g.model(g.quantize(x, 0.4))
    integers, ran = run(model, g.feeds, True, tmp_path)
    assert "QLinearConv" in ran
    assert_near(integers, run_genuine(model, g.feeds))

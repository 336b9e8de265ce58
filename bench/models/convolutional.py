"""torchvision's convolutional networks in evaluation mode: batch normalization is folded."""

import math
from dataclasses import dataclass

import numpy as np
import onnx

from .graph import GraphBuilder

# The last convolution of a residual branch is small, so that the sum does not grow with depth.
BRANCH_GAIN = 0.4


def _start(name: str, opset: int) -> tuple[GraphBuilder, str]:
    g = GraphBuilder(name, opset)
    return g, g.input("input", ["batch", 3, 224, 224])


def _classify(g: GraphBuilder, x: str, width: int) -> onnx.ModelProto:
    """Global average, then the classifier of 1000 classes."""
    flat = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.output("output", g.gemm(flat, width, 1000), ["batch", 1000])
    return g.model()


def _make_divisible(channels: float) -> int:
    """The nearest multiple of 8 that is not below 90 % of `channels`."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


# ---- ResNet ----


def resnet(name: str, depths: tuple[int, ...], bottleneck: bool) -> onnx.ModelProto:
    g, x = _start(name, 13)
    x = g.op("Relu", g.conv(x, 3, 64, kernel=7, stride=2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2], ceil_mode=0)
    inputs = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        outputs = width * 4 if bottleneck else width
        for block in range(depth):
            stride = 2 if stage > 0 and block == 0 else 1
            if bottleneck:
                branch = g.op("Relu", g.conv(x, inputs, width, kernel=1))
                branch = g.op("Relu", g.conv(branch, width, width, kernel=3, stride=stride))
                branch = g.conv(branch, width, outputs, kernel=1, gain=BRANCH_GAIN)
            else:
                branch = g.op("Relu", g.conv(x, inputs, width, kernel=3, stride=stride))
                branch = g.conv(branch, width, outputs, kernel=3, gain=BRANCH_GAIN)
            if stride != 1 or inputs != outputs:
                x = g.conv(x, inputs, outputs, kernel=1, stride=stride)
            x = g.op("Relu", g.op("Add", branch, x))
            inputs = outputs
    return _classify(g, x, inputs)


# ---- MobileNetV2 ----


def mobilenet_v2(name: str) -> onnx.ModelProto:
    g, x = _start(name, 13)

    def relu6(value: str) -> str:
        return g.op("Clip", value, g.constant(0), g.constant(6))

    x = relu6(g.conv(x, 3, 32, kernel=3, stride=2))
    inputs = 32
    for expansion, outputs, repeats, first_stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            hidden = inputs * expansion
            branch = x if expansion == 1 else relu6(g.conv(x, inputs, hidden, kernel=1))
            branch = relu6(g.conv(branch, hidden, hidden, kernel=3, stride=stride, groups=hidden))
            if stride == 1 and inputs == outputs:
                x = g.op("Add", x, g.conv(branch, hidden, outputs, kernel=1, gain=BRANCH_GAIN))
            else:
                x = g.conv(branch, hidden, outputs, kernel=1)
            inputs = outputs
    x = relu6(g.conv(x, inputs, 1280, kernel=1))
    return _classify(g, x, 1280)


# ---- MobileNetV3 ----


@dataclass(frozen=True)
class V3Block:
    kernel: int
    hidden: int
    outputs: int
    squeeze: bool
    hard_swish: bool
    stride: int


V3_SMALL = (
    V3Block(3, 16, 16, True, False, 2),
    V3Block(3, 72, 24, False, False, 2),
    V3Block(3, 88, 24, False, False, 1),
    V3Block(5, 96, 40, True, True, 2),
    V3Block(5, 240, 40, True, True, 1),
    V3Block(5, 240, 40, True, True, 1),
    V3Block(5, 120, 48, True, True, 1),
    V3Block(5, 144, 48, True, True, 1),
    V3Block(5, 288, 96, True, True, 2),
    V3Block(5, 576, 96, True, True, 1),
    V3Block(5, 576, 96, True, True, 1),
)
V3_LARGE = (
    V3Block(3, 16, 16, False, False, 1),
    V3Block(3, 64, 24, False, False, 2),
    V3Block(3, 72, 24, False, False, 1),
    V3Block(5, 72, 40, True, False, 2),
    V3Block(5, 120, 40, True, False, 1),
    V3Block(5, 120, 40, True, False, 1),
    V3Block(3, 240, 80, False, True, 2),
    V3Block(3, 200, 80, False, True, 1),
    V3Block(3, 184, 80, False, True, 1),
    V3Block(3, 184, 80, False, True, 1),
    V3Block(3, 480, 112, True, True, 1),
    V3Block(3, 672, 112, True, True, 1),
    V3Block(5, 672, 160, True, True, 2),
    V3Block(5, 960, 160, True, True, 1),
    V3Block(5, 960, 160, True, True, 1),
)


def mobilenet_v3(name: str, blocks: tuple[V3Block, ...], last: int) -> onnx.ModelProto:
    """`last` is the width of the classifier's hidden layer."""
    g, x = _start(name, 14)
    x = g.op("HardSwish", g.conv(x, 3, 16, kernel=3, stride=2))
    inputs = 16
    for block in blocks:
        x = _v3_block(g, x, inputs, block)
        inputs = block.outputs
    x = g.op("HardSwish", g.conv(x, inputs, 6 * inputs, kernel=1))
    flat = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    hidden = g.op("HardSwish", g.gemm(flat, 6 * inputs, last))
    g.output("output", g.gemm(hidden, last, 1000), ["batch", 1000])
    return g.model()


def _v3_block(g: GraphBuilder, x: str, inputs: int, block: V3Block) -> str:
    activation = "HardSwish" if block.hard_swish else "Relu"
    branch = x
    if block.hidden != inputs:
        branch = g.op(activation, g.conv(x, inputs, block.hidden, kernel=1))
    branch = g.conv(
        branch, block.hidden, block.hidden, block.kernel, block.stride, groups=block.hidden
    )
    branch = g.op(activation, branch)
    if block.squeeze:
        squeezed = _make_divisible(block.hidden / 4)
        pooled = g.op("GlobalAveragePool", branch)
        gate = g.op("Relu", g.conv(pooled, block.hidden, squeezed, kernel=1))
        gate = g.op("HardSigmoid", g.conv(gate, squeezed, block.hidden, kernel=1), alpha=1 / 6)
        branch = g.op("Mul", gate, branch)
    residual = block.stride == 1 and inputs == block.outputs
    gain = BRANCH_GAIN if residual else 1.0
    branch = g.conv(branch, block.hidden, block.outputs, kernel=1, gain=gain)
    return g.op("Add", branch, x) if residual else branch


# ---- EfficientNet-B0 ----


def efficientnet_b0(name: str) -> onnx.ModelProto:
    g, x = _start(name, 13)

    def silu(value: str) -> str:
        return g.op("Mul", value, g.op("Sigmoid", value))

    x = silu(g.conv(x, 3, 32, kernel=3, stride=2))
    inputs = 32
    for expansion, kernel, first_stride, outputs, repeats in (
        (1, 3, 1, 16, 1),
        (6, 3, 2, 24, 2),
        (6, 5, 2, 40, 2),
        (6, 3, 2, 80, 3),
        (6, 5, 1, 112, 3),
        (6, 5, 2, 192, 4),
        (6, 3, 1, 320, 1),
    ):
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            hidden = inputs * expansion
            branch = x if expansion == 1 else silu(g.conv(x, inputs, hidden, kernel=1))
            branch = silu(g.conv(branch, hidden, hidden, kernel, stride, groups=hidden))
            squeezed = max(1, inputs // 4)
            gate = silu(g.conv(g.op("GlobalAveragePool", branch), hidden, squeezed, kernel=1))
            gate = g.op("Sigmoid", g.conv(gate, squeezed, hidden, kernel=1))
            branch = g.op("Mul", gate, branch)
            if stride == 1 and inputs == outputs:
                x = g.op("Add", g.conv(branch, hidden, outputs, kernel=1, gain=BRANCH_GAIN), x)
            else:
                x = g.conv(branch, hidden, outputs, kernel=1)
            inputs = outputs
    x = silu(g.conv(x, inputs, 1280, kernel=1))
    return _classify(g, x, 1280)


# ---- ConvNeXt-Tiny ----


def convnext_tiny(name: str) -> onnx.ModelProto:
    g, x = _start(name, 17)

    def norm_channels(value: str, width: int) -> str:
        last = g.layer_norm(g.transpose(value, 0, 2, 3, 1), width, 1e-6)
        return g.transpose(last, 0, 3, 1, 2)

    def block(value: str, width: int) -> str:
        branch = g.conv(value, width, width, kernel=7, groups=width)
        branch = g.layer_norm(g.transpose(branch, 0, 2, 3, 1), width, 1e-6)
        branch = g.gelu(g.linear(branch, width, 4 * width))
        branch = g.transpose(g.linear(branch, 4 * width, width), 0, 3, 1, 2)
        scale = g.initializer(np.full((width, 1, 1), 0.2, np.float32))
        return g.op("Add", g.op("Mul", scale, branch), value)

    x = norm_channels(g.conv(x, 3, 96, kernel=4, stride=4, padding=0), 96)
    for stage, depth in enumerate((3, 3, 9, 3)):
        width = 96 << stage
        if stage > 0:
            x = norm_channels(x, width // 2)
            x = g.conv(x, width // 2, width, kernel=2, stride=2, padding=0)
        for _ in range(depth):
            x = block(x, width)
    x = g.op("Flatten", norm_channels(g.op("GlobalAveragePool", x), 768), axis=1)
    g.output("output", g.gemm(x, 768, 1000), ["batch", 1000])
    return g.model()


# ---- SqueezeNet 1.1 ----


def squeezenet(name: str) -> onnx.ModelProto:
    g, x = _start(name, 13)

    def pool(value: str) -> str:
        return g.op(
            "MaxPool", value, kernel_shape=[3, 3], pads=[0] * 4, strides=[2, 2], ceil_mode=1
        )

    def fire(value: str, inputs: int, squeezed: int, expanded: int) -> str:
        narrow = g.op("Relu", g.conv(value, inputs, squeezed, kernel=1))
        small = g.op("Relu", g.conv(narrow, squeezed, expanded, kernel=1))
        large = g.op("Relu", g.conv(narrow, squeezed, expanded, kernel=3))
        return g.op("Concat", small, large, axis=1)

    x = pool(g.op("Relu", g.conv(x, 3, 64, kernel=3, stride=2, padding=0)))
    x = fire(fire(x, 64, 16, 64), 128, 16, 64)
    x = pool(x)
    x = fire(fire(x, 128, 32, 128), 256, 32, 128)
    x = pool(x)
    x = fire(fire(x, 256, 48, 192), 384, 48, 192)
    x = fire(fire(x, 384, 64, 256), 512, 64, 256)
    x = g.op("Relu", g.conv(x, 512, 1000, kernel=1, gain=math.sqrt(0.5)))
    flat = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.output("output", flat, ["batch", 1000])
    return g.model()


# ---- DenseNet-121 ----


def densenet121(name: str) -> onnx.ModelProto:
    """Every layer of a block reads the outputs of all layers before it. The normalizations before
    convolutions are nodes: they cannot be folded."""
    g, x = _start(name, 13)

    def norm(value: str, width: int) -> str:
        spread = g.initializer(np.ones(width, np.float32))
        scale, bias, mean = g.near_one(width), g.bias(width), g.bias(width)
        value = g.op("BatchNormalization", value, scale, bias, mean, spread, epsilon=1e-5)
        return g.op("Relu", value)

    x = g.op("Relu", g.conv(x, 3, 64, kernel=7, stride=2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    width = 64
    for block, layers in enumerate((6, 12, 24, 16)):
        if block > 0:
            x = g.conv(norm(x, width), width, width // 2, kernel=1)
            x = g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
            width //= 2
        parts = [x]
        for _ in range(layers):
            joined = g.op("Concat", *parts, axis=1) if len(parts) > 1 else x
            hidden = g.op("Relu", g.conv(norm(joined, width), width, 128, kernel=1))
            parts.append(g.conv(hidden, 128, 32, kernel=3))
            width += 32
        x = g.op("Concat", *parts, axis=1)
    return _classify(g, norm(x, width), width)


# ---- YOLOv8n ----


def yolov8n(name: str) -> onnx.ModelProto:
    """ultralytics' detector of 80 classes on 640 x 640 pictures: boxes and scores of 8400 places,
    [batch, 84, 8400]."""
    g = GraphBuilder(name, 13)
    x = g.input("input", ["batch", 3, 640, 640])

    def conv(value: str, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> str:
        value = g.conv(value, inputs, outputs, kernel, stride)
        return g.op("Mul", value, g.op("Sigmoid", value))

    def stage(value: str, inputs: int, outputs: int, repeats: int, adds: bool) -> str:
        """C2f: half of the channels pass through a row of bottlenecks, and all are joined."""
        half = outputs // 2
        value = conv(value, inputs, outputs)
        parts = g.ops("Split", 2, value, g.ints(half, half), axis=1)
        for _ in range(repeats):
            branch = conv(conv(parts[-1], half, half, 3), half, half, 3)
            parts.append(g.op("Add", parts[-1], branch) if adds else branch)
        return conv(g.op("Concat", *parts, axis=1), (2 + repeats) * half, outputs)

    def pool(value: str) -> str:
        return g.op("MaxPool", value, kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1])

    def double(value: str) -> str:
        scales = g.constant([1, 1, 2, 2])
        attributes = {
            "coordinate_transformation_mode": "asymmetric",
            "mode": "nearest",
            "nearest_mode": "floor",
        }
        return g.op("Resize", value, "", scales, **attributes)

    x = conv(conv(x, 3, 16, 3, 2), 16, 32, 3, 2)
    x = conv(stage(x, 32, 32, 1, adds=True), 32, 64, 3, 2)
    fine = stage(x, 64, 64, 2, adds=True)
    middle = stage(conv(fine, 64, 128, 3, 2), 128, 128, 2, adds=True)
    x = stage(conv(middle, 128, 256, 3, 2), 256, 256, 1, adds=True)
    pooled = [conv(x, 256, 128)]
    for _ in range(3):
        pooled.append(pool(pooled[-1]))
    coarse = conv(g.op("Concat", *pooled, axis=1), 512, 256)
    middle = stage(g.op("Concat", double(coarse), middle, axis=1), 384, 128, 1, adds=False)
    fine = stage(g.op("Concat", double(middle), fine, axis=1), 192, 64, 1, adds=False)
    x = g.op("Concat", conv(fine, 64, 64, 3, 2), middle, axis=1)
    middle = stage(x, 192, 128, 1, adds=False)
    x = g.op("Concat", conv(middle, 128, 128, 3, 2), coarse, axis=1)
    coarse = stage(x, 384, 256, 1, adds=False)

    flat = []
    for value, width in ((fine, 64), (middle, 128), (coarse, 256)):
        box = conv(conv(value, width, 64, 3), 64, 64, 3)
        score = conv(conv(value, width, 80, 3), 80, 80, 3)
        joined = g.op(
            "Concat", g.conv(box, 64, 64, kernel=1), g.conv(score, 80, 80, kernel=1), axis=1
        )
        flat.append(g.reshape(joined, 0, 144, -1))
    boxes, scores = g.ops("Split", 2, g.op("Concat", *flat, axis=2), g.ints(64, 80), axis=1)
    g.output("output", _yolo_boxes(g, boxes, g.op("Sigmoid", scores)), ["batch", 84, 8400])
    return g.model()


def _yolo_boxes(g: GraphBuilder, boxes: str, scores: str) -> str:
    """The expected distance of each side from its place, as centre and size in pixels."""
    bins = g.transpose(g.reshape(boxes, 0, 4, 16, 8400), 0, 2, 1, 3)
    weight = g.initializer(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    expected = g.op("Conv", g.op("Softmax", bins, axis=1), weight, kernel_shape=[1, 1])
    sides = g.reshape(expected, 0, 4, 8400)
    sizes = [(80, 8), (40, 16), (20, 32)]
    places = [np.stack(np.meshgrid(np.arange(n) + 0.5, np.arange(n) + 0.5)) for n, _ in sizes]
    anchors = np.concatenate([place.reshape(2, -1) for place in places], 1)[None]
    strides = np.concatenate([np.full(n * n, stride) for n, stride in sizes])[None, None]
    low, high = g.ops("Split", 2, sides, g.ints(2, 2), axis=1)
    anchor = g.initializer(anchors.astype(np.float32))
    begin, end = g.op("Sub", anchor, low), g.op("Add", anchor, high)
    centre = g.op("Div", g.op("Add", begin, end), g.constant(2))
    box = g.op("Concat", centre, g.op("Sub", end, begin), axis=1)
    box = g.op("Mul", box, g.initializer(strides.astype(np.float32)))
    return g.op("Concat", box, scores, axis=1)


# ---- VGG ----


def vgg(name: str, stages: tuple[tuple[int, ...], ...]) -> onnx.ModelProto:
    """Without batch normalization; the classifier has 124 million parameters."""
    g, x = _start(name, 13)
    inputs = 3
    for stage in stages:
        for width in stage:
            x = g.op("Relu", g.conv(x, inputs, width, kernel=3))
            inputs = width
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.op("Flatten", x, axis=1)
    x = g.op("Relu", g.gemm(x, 7 * 7 * inputs, 4096))
    x = g.op("Relu", g.gemm(x, 4096, 4096))
    g.output("output", g.gemm(x, 4096, 1000), ["batch", 1000])
    return g.model()


# ---- U-Net (not torchvision's) ----


def unet(name: str, widths: tuple[int, ...]) -> onnx.ModelProto:
    """Two convolutions at each scale, transposed ones on the way up, and a mask."""
    g, x = _start(name, 13)

    def pair(value: str, inputs: int, outputs: int) -> str:
        value = g.op("Relu", g.conv(value, inputs, outputs, kernel=3))
        return g.op("Relu", g.conv(value, outputs, outputs, kernel=3))

    skipped = []
    inputs = 3
    for width in widths[:-1]:
        skipped.append(pair(x, inputs, width))
        x = g.op("MaxPool", skipped[-1], kernel_shape=[2, 2], strides=[2, 2])
        inputs = width
    x = pair(x, inputs, widths[-1])
    for width in reversed(widths[:-1]):
        weight = g.normal(2 * width, width, 2, 2, std=1 / math.sqrt(2 * width))
        x = g.op("ConvTranspose", x, weight, kernel_shape=[2, 2], strides=[2, 2])
        x = pair(g.op("Concat", skipped.pop(), x, axis=1), 2 * width, width)
    mask = g.op("Sigmoid", g.conv(x, widths[0], 1, kernel=1))
    g.output("output", mask, ["batch", 1, 224, 224])
    return g.model()

"""Gradients of operators that simpler ones compute again, beside differences of the functions
themselves; test_gradient_of_torch.py has others.
"""

import pathlib

import numpy as np
import onnx
import pytest
import tenon
from onnx import parser
from test_gradient import GRADIENT, HEADER, check_derivatives, make_model

HEADS = ([2, 4, 3, 5], [2, 2, 4, 5])  # [batch, heads, length, size] of a query and the keys
FLAT = ([2, 3, 20], [2, 4, 10])
MASK = "m = Constant <value = double[3, 4] {0, 1, -1, 2, 0, 0, 3, 1, -2, 1, 0, 0.5}> ()\n"
BOOL = "m = Constant <value = bool[2, 1, 1, 4] {1, 0, 1, 1, 0, 1, 1, 0}> ()\n"
PAST = """p = Constant <value_floats=[0.5]> ()
 s = Constant <value_ints=[2, 2, 2, 5]> ()
 f = Expand (p, s)
 past = Cast <to=11> (f)
 """

# Of each case what comes before, attributes, inputs after the value, and shapes.
ATTENTION = {
    "plain": ("", "", "", HEADS),
    "scaled": ("", "scale=0.3", "", HEADS),
    "causal": ("", "is_causal=1", "", HEADS),
    "capped": ("", "softcap=0.7", "", HEADS),
    "masked": (MASK, "", ", m", HEADS),
    "hidden keys": (BOOL, "is_causal=1", ", m", HEADS),
    "with a past": (PAST, "is_causal=1", ", , past, past", HEADS),
    "heads last": (MASK, "q_num_heads=4, kv_num_heads=2", ", m", FLAT),
    "of other lengths": (
        "n = Constant <value_ints=[3, 4]> ()\n",
        "is_causal=1",
        ", , , , n",
        HEADS,
    ),
}


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str, is_dynamic: bool) -> None:
    before, attributes, inputs, shapes = ATTENTION[name]
    outputs = "c, k, v" if "past" in inputs else "c"
    options = f"<{attributes}>" if attributes else ""
    nodes = f"{before} w = Sin (b)\n {outputs} = Attention {options} (a, b, w{inputs})"
    numbers = np.random.default_rng(5)
    values = [numbers.uniform(-1, 1, shape) for shape in shapes]
    declared = [[f"{n}{i}" for i in range(len(s))] for n, s in zip("ab", shapes, strict=True)]
    check_derivatives(f"{nodes}\n y = Mul (c, c)", values, 24, declared if is_dynamic else None)


def test_the_mask_of_attention() -> None:
    numbers = np.random.default_rng(5)
    values = [numbers.uniform(-1, 1, shape) for shape in ([1, 2, 3, 4], [3, 3])]
    check_derivatives("c = Attention (a, a, a, b)\n y = Mul (c, c)", values, 23)


GRIDS = [
    (mode, padding, is_aligned, axes)
    for mode in ("linear", "nearest", "cubic")
    for padding in ("zeros", "border", "reflection")
    for is_aligned in (0, 1)
    for axes in (1, 2, 3)
]


def positions(sizes: list[int], shape: list[int], is_aligned: int) -> np.ndarray:
    """Inside and outside, none near an element or the middle of two, where functions bend."""
    numbers = np.random.default_rng(5)
    found = []
    for size in reversed(sizes):
        x = numbers.integers(-3, size + 2, shape) + numbers.choice([0.3, 0.8], shape)
        found.append(2 * x / (size - 1) - 1 if is_aligned else (2 * x + 1) / size - 1)
    return np.stack(found, -1)


@pytest.mark.parametrize(("mode", "padding", "is_aligned", "axes"), GRIDS)
def test_grid_sample(mode: str, padding: str, is_aligned: int, axes: int) -> None:
    attributes = f'mode="{mode}", padding_mode="{padding}", align_corners={is_aligned}'
    sizes = [4, 5, 3][:axes]
    image = np.random.default_rng(5).uniform(-1, 1, [2, 3, *sizes])
    values = [image, positions(sizes, [2, 3, 2, 2][: axes + 1], is_aligned)]
    nodes = f"c = GridSample <{attributes}> (a, b)\n y = Mul (c, c)"
    check_derivatives(nodes, values, 20)


def test_grid_sample_of_opset_16() -> None:
    image = np.random.default_rng(5).uniform(-1, 1, [1, 2, 4, 5])
    values = [image, positions([4, 5], [1, 3, 2], 0)]
    check_derivatives("c = GridSample (a, b)\n y = Mul (c, c)", values, 16)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_grid_sample_between_the_corners_of_one_element(mode: str) -> None:
    image = np.random.default_rng(5).uniform(-1, 1, [1, 2, 1, 5])
    values = [image, positions([2, 5], [1, 3, 2], 1)]
    attributes = f'mode="{mode}", padding_mode="reflection", align_corners=1'
    check_derivatives(f"c = GridSample <{attributes}> (a, b)\n y = Mul (c, c)", values, 20)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_lrn(size: int) -> None:
    values = [np.random.default_rng(5).uniform(-1, 1, [2, 4, 3]), np.array([2.0])]
    nodes = f"c = LRN <size={size}, alpha=0.7, beta=0.6, bias=0.9> (a)\n y = Mul (c, b)"
    check_derivatives(nodes, values, 13)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_global_lp_pool(p: int) -> None:
    values = [np.random.default_rng(5).uniform(-1, 1, [2, 3, 4]), np.array([2.0])]
    check_derivatives(f"c = GlobalLpPool <p={p}> (a)\n y = Mul (c, b)", values, 13)


def test_scores_have_no_gradient() -> None:
    nodes = f"k, v, p, y = Attention (a, a, a)\n{GRADIENT}"
    with pytest.raises(Exception, match="no gradient yet for its output 3"):
        make_model(nodes, [[1, 2, 3, 4], [1, 2, 2, 2]], ["da"], 23)


GQA = "n = Constant <value = int32 {2}> ()\nl = Constant <value = int32[1] {1}> ()\n"
EMPTY = "p = Constant <value = double[1, 1, 3, 2] {0, 0, 0, 0, 0, 0}> ()\n"
CACHES = {
    "GroupQueryAttention": (
        f"{GQA}{EMPTY}y, k, v = com.microsoft.GroupQueryAttention <num_heads=1, kv_num_heads=1,"
        " local_window_size=1, sliding_window_cache=1> (a, a, a, p, p, l, n)",
        "GroupQueryAttention-1 (GroupQueryAttention node #3) has no gradient yet with a cache that"
        " slides",
    ),
    "MultiHeadAttention": (
        f"{GQA}{EMPTY}y, k, v = com.microsoft.MultiHeadAttention <num_heads=1>"
        " (a, a, a, , , , p, p, l)",
        "has no gradient yet with a cache of which a part is used: expected no input 8, got 'l'",
    ),
    "LinearAttention": (
        "y, s = com.microsoft.LinearAttention <q_num_heads=1, kv_num_heads=1, state_window=2,"
        ' update_rule="linear"> (a, a, a)',
        "has no gradient yet for state_window 2: expected 0",
    ),
}


@pytest.mark.parametrize("name", CACHES)
def test_caches_have_no_gradient(name: str) -> None:
    nodes, text = CACHES[name]
    with pytest.raises(Exception, match="no gradient yet") as caught:
        make_model(f"{nodes}\n{GRADIENT}", [[1, 2, 2], [1]], ["da"], 24)
    assert text in str(caught.value)


def gradient_nodes(nodes: str, shapes: list, tmp_path: pathlib.Path) -> set[str]:
    """The operators of a float32 model after optimization."""
    inputs = ", ".join(f"float{shape} {name}" for name, shape in zip("ab", shapes, strict=True))
    text = HEADER.format(opset=23) + f"g ({inputs}) => (float da) {{{nodes}\n{GRADIENT}}}"
    model = parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    options = tenon.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "model.onnx")
    tenon.InferenceSession(model.SerializeToString(), options)
    return {node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node}


MADE = "ScaledDotProductAttentionGrad"
SCORELESS = {
    "heads first": ("y = Attention <is_causal=1> (a, b, b)", [[1, 4, 3, 2], [1, 2, 3, 2]], True),
    "heads last": (
        "y = Attention <q_num_heads=2, kv_num_heads=1> (a, b, b)",
        [[1, 3, 4], [1, 5, 2]],
        True,
    ),
    "a mask without a gradient": (
        "m = Constant <value = bool[3, 3] {1, 0, 0, 1, 1, 0, 1, 1, 1}> ()\n"
        "y = Attention (a, b, b, m)",
        [[1, 4, 3, 2], [1, 2, 3, 2]],
        True,
    ),
    "a mask with one": ("y = Attention (a, a, a, b)", [[1, 4, 3, 2], [3, 3]], False),
    "capped": ("y = Attention <softcap=2.0> (a, b, b)", [[1, 4, 3, 2], [1, 2, 3, 2]], False),
    "MultiHeadAttention": (
        "y = com.microsoft.MultiHeadAttention <num_heads=2> (a, b, b)",
        [[1, 3, 4], [1, 5, 4]],
        True,
    ),
}


@pytest.mark.parametrize("name", SCORELESS)
def test_no_scores_are_kept_where_an_operator_does_without(
    name: str, tmp_path: pathlib.Path
) -> None:
    nodes, shapes, is_scoreless = SCORELESS[name]
    operators = gradient_nodes(nodes, shapes, tmp_path)
    assert (MADE in operators) == is_scoreless
    assert ("MatMul" in operators) != is_scoreless

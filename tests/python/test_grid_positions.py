"""GridSample of floats, found in vectors, beside that of doubles, found one by one."""

from __future__ import annotations

import numpy as np
import pytest
import tenon
from onnx import helper

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")


def samples(x: np.ndarray, grid: np.ndarray, **attributes: object) -> np.ndarray:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], **attributes)
    inputs = [
        helper.make_tensor_value_info(n, kind, a.shape) for n, a in (("x", x), ("grid", grid))
    ]
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = tenon.InferenceSession(model.SerializeToString())
    result: np.ndarray = session.run(None, {"x": x, "grid": grid})[0]
    return result


# No position is in the middle of two elements, at least not after rounding.
SPECIAL = [-np.inf, np.inf, np.nan, -1e30, 1e30, -1.0, 1.0, -1.07, 1.13, -3.3, 7.7, 0.0, -41.3]


@pytest.mark.parametrize("aligns", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("dims", "count"), [((5,), 37), ((4, 7), 53), ((1, 6), 9), ((3, 4, 5), 21)]
)
def test_positions(dims: tuple, count: int, mode: str, padding: str, aligns: int) -> None:
    if mode == "cubic" and len(dims) == 3:
        pytest.skip("cubic interpolation has at most two axes")
    rng = np.random.default_rng([count, aligns])
    x = rng.uniform(-1, 1, (2, 3, *dims)).astype(np.float32)
    shape = (2, *[1] * (len(dims) - 1), count, len(dims))
    grid = rng.uniform(-1.6, 1.6, shape).astype(np.float32)
    grid.reshape(-1)[: len(SPECIAL)] = SPECIAL
    settings = {"mode": mode, "padding_mode": padding, "align_corners": aligns}
    if padding == "reflection":
        # Of positions so far outside, floats do not say which element is meant.
        grid = np.where(abs(grid) < 100, grid, 0.3).astype(np.float32)
    actual = samples(x, grid, **settings)
    expected = samples(x.astype(np.float64), grid.astype(np.float64), **settings)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=3e-5)

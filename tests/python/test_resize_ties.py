"""Nearest elements of positions on and between two elements, computed with fractions."""

import math
from fractions import Fraction

import contrib
import numpy as np
import pytest

HALF = Fraction(1, 2)
POSITIONS = {
    "half_pixel": lambda x, n, m: (x + HALF) * n / m - HALF,
    "pytorch_half_pixel": lambda x, n, m: (x + HALF) * n / m - HALF if m > 1 else Fraction(0),
    "asymmetric": lambda x, n, m: Fraction(x * n, m),
    "half_pixel_symmetric": lambda x, n, m: (x + HALF) * n / m - HALF,
}
ROUNDINGS = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda x: math.ceil(x - HALF),
    "round_prefer_ceil": lambda x: math.floor(x + HALF),
}


@pytest.mark.parametrize("coordinates", POSITIONS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_sizes(coordinates: str, rounding: str) -> None:
    for n in range(1, 20, 2):
        for m in range(1, 36, 3):
            x = np.arange(n, dtype=np.float32)
            inputs = [x, None, None, np.array([m])]
            content = contrib.model(
                "Resize",
                inputs,
                {"y": np.float32},
                domain="",
                opset=19,
                constants=(3,),
                mode="nearest",
                coordinate_transformation_mode=coordinates,
                nearest_mode=rounding,
            )
            (y,) = contrib.run_tenon(content, inputs)
            places = [ROUNDINGS[rounding](POSITIONS[coordinates](i, n, m)) for i in range(m)]
            expected = [min(max(place, 0), n - 1) for place in places]
            np.testing.assert_array_equal(y, expected, err_msg=f"{n} to {m} elements")


@pytest.mark.parametrize("op_type", ["Resize", "Upsample"])
def test_scales_that_are_ratios(op_type: str) -> None:
    """A ratio is rounded to a float; the element is that of the ratio, as in PyTorch."""
    for n in range(1, 14):
        for m in range(n, 4 * n):
            scale = np.array([m / n], np.float32)
            if int(n * scale[0]) != m:
                continue  # rounded down, it has an element less
            x = np.arange(n, dtype=np.float32)
            is_resize = op_type == "Resize"
            attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            inputs = [x, None, scale] if is_resize else [x, scale]
            content = contrib.model(
                op_type,
                inputs,
                {"y": np.float32},
                domain="",
                opset=19 if is_resize else 9,
                constants=(len(inputs) - 1,),
                mode="nearest",
                **(attributes if is_resize else {}),
            )
            (y,) = contrib.run_tenon(content, inputs)
            expected = [i * n // m for i in range(m)]
            np.testing.assert_array_equal(y, expected, err_msg=f"{n} to {m} elements")


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "tf_crop_and_resize"])
def test_channels_after_the_axes(mode: str, dtype: type, coordinates: str) -> None:
    """Few are resized with the axis in front of them, more row by row."""
    for channels in (1, 2, 3, 8, 15, 16, 17, 24, 33):
        x = (contrib.floats(1, 7, 9, channels) * 40 + 100).astype(dtype)
        options = {"mode": mode, "coordinate_transformation_mode": coordinates}
        options["extrapolation_value"] = 3.0
        made = []
        for order in ((0, 1, 2, 3), (0, 3, 1, 2)):
            begins, ends, sizes = np.array(
                [[0, 0.1, -0.2, 0], [1, 0.8, 1.1, 1], [1, 12, 5, channels]]
            )[:, order]
            roi = np.concatenate([begins, ends]).astype(np.float32)
            inputs = [x.transpose(order).copy(), roi, None, sizes.astype(np.int64)]
            content = contrib.model(
                "Resize", inputs, {"y": dtype}, domain="", opset=19, constants=(1, 3), **options
            )
            made.append(contrib.run_tenon(content, inputs)[0])
        expected = made[1].transpose(0, 2, 3, 1)
        most = 1 if dtype == np.uint8 else 1e-3  # a half may round either way
        np.testing.assert_allclose(made[0].astype(np.float64), expected, rtol=1e-5, atol=most)

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

"""Compares Gradient of ai.onnx.preview.training with PyTorch's derivatives of the same function."""

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

sys.path.append(str(Path(__file__).parents[1] / "conformance"))
from test_gradient import GRADIENT, make_model  # noqa: E402

INT64, BOOL, DOUBLE = 7, 9, 11

# A function of a and b in ONNX's text form, and in PyTorch.
CASES = {
    "to integers and back": (
        f"c = Cast <to={INT64}> (a)\n d = Cast <to={DOUBLE}> (c)\n y = Mul (d, b)",
        lambda a, b: a.long().double() * b,
    ),
    "to booleans and back": (
        f"c = Cast <to={BOOL}> (a)\n d = Cast <to={DOUBLE}> (c)\n y = Mul (d, b)",
        lambda a, b: a.bool().double() * b,
    ),
    "by CastLike": (
        f"c = Cast <to={INT64}> (a)\n d = CastLike (c, b)\n y = Mul (d, b)",
        lambda a, b: a.long().to(b.dtype) * b,
    ),
    "arithmetic on integers": (
        f"c = Cast <to={INT64}> (a)\n e = Mul (c, c)\n f = Max (e, c)\n"
        f"d = Cast <to={DOUBLE}> (f)\n e2 = Erf (d)\n y = Mul (e2, b)",
        lambda a, b: torch.erf(torch.maximum(a.long() * a.long(), a.long()).double()) * b,
    ),
    "a part of the function": (
        f"c = Cast <to={INT64}> (a)\n d = Cast <to={DOUBLE}> (c)\n e = Sub (a, d)\ny = Mul (e, b)",
        lambda a, b: (a - a.long().double()) * b,
    ),
    "comparisons": (
        "c = Less (a, b)\n d = Not (c)\n e = And (c, c)\n f = Or (d, e)\n"
        f"g = Cast <to={DOUBLE}> (f)\n h = Mul (g, a)\n y = Where (c, h, b)",
        lambda a, b: torch.where(a < b, a, b),
    ),
    "a shape": (
        "c = Shape (a)\n d = ConstantOfShape (c)\n e = CastLike (d, a)\n f = Add (e, a)\n"
        "y = Mul (f, b)",
        lambda a, b: (torch.zeros(a.shape) + a) * b,
    ),
    "a narrow float": (
        f"c = Cast <to=10> (a)\n d = Cast <to={DOUBLE}> (c)\n y = Mul (d, b)",
        lambda a, b: a.half().double() * b,
    ),
    "an integer exponent": (
        f"c = Cast <to={INT64}> (b)\n y = Pow (a, c)",
        lambda a, b: a.pow(b.long()),
    ),
    "Pow": ("y = Pow (a, b)", lambda a, b: a.pow(b)),
    "Round, Ceil, Floor, Sign": (
        "c = Round (a)\n d = Ceil (a)\n e = Floor (a)\n f = Sign (a)\n"
        "g = Sum (c, d, e, f, a)\n y = Mul (g, b)",
        lambda a, b: (a.round() + a.ceil() + a.floor() + a.sign() + a) * b,
    ),
}
A = [0.5, 1.75, -2.25, 0, 0, 0, 3, -2]
B = [1.5, 2.25, 3, 0, 2, -1, 0, -1]


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    nodes, function = CASES[name]
    values = [np.array(A), np.array(B)]
    tensors = [torch.tensor(value, requires_grad=True) for value in values]
    y = function(*tensors)
    slopes = torch.autograd.grad(y.sum(), tensors, allow_unused=True)
    expected = [y.detach()] + [
        torch.zeros(len(A), dtype=torch.double) if slope is None else slope for slope in slopes
    ]
    session = make_model(f"{nodes}\n{GRADIENT}", [[len(A)]] * 2, ["y", "da", "db"], 15)
    actual = session.run(None, dict(zip("ab", values, strict=True)))
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-12)


def test_a_function_in_steps_has_no_gradient() -> None:
    nodes = f"y = Cast <to={INT64}> (a)\n{GRADIENT}\n z = Cast <to={DOUBLE}> (y)"
    session = make_model(nodes, [[3]] * 2, ["z", "da", "db"], 15)
    values = np.array([0.5, 1.75, -2.25])
    z, *slopes = session.run(None, {"a": values, "b": values})
    np.testing.assert_array_equal(z, torch.tensor(values).long().numpy())
    np.testing.assert_array_equal(slopes, np.zeros((2, 3)))

"""Gradients of If, Loop and Scan beside the differences of the functions themselves."""

import numpy as np
import pytest
from test_gradient import GRADIENT, TRAINING, check_derivatives, differences, make_model

IF = """c = Greater (t, u)
 d = If (c) <
   then_branch = first () => (double[2, 3] m) { n = Mul (a, a)  m = Mul (n, b) },
   else_branch = second () => (double[2, 3] m) { m = Sin (a) }
 >
 y = Mul (d, a)"""
THRESHOLD = "t = ReduceSum <keepdims=0> (b)\n u = Constant <value = double {%s}> ()\n"
TWO = """c = Greater (t, u)
 k, d, e = If (c) <
   then_branch = first () => (int64[2] i, double[2, 3] m, double[1] n) {
     i = Shape (a)  m = Mul (a, b)  n = Exp (b) },
   else_branch = second () => (int64[2] i, double[2, 3] m, double[1] n) {
     i = Shape (a)  m = Identity (a)  s = Sin (b)  n = Mul (s, s) }
 >
 f = Cast <to=11> (k)
 g = ReduceSum <keepdims=0> (f)
 h = Mul (e, g)
 y = Mul (d, h)"""
NESTED = """c = Greater (t, u)
 y = If (c) <
   then_branch = first () => (double[2, 3] m) {
     o = Greater (b, u)
     p = If (o) <
       then_branch = third () => (double[2, 3] q) { q = Mul (a, b) },
       else_branch = fourth () => (double[2, 3] q) { q = Exp (a) }
     >
     m = Mul (p, p) },
   else_branch = second () => (double[2, 3] m) { m = Neg (a) }
 >"""
SCAN = """zero = Constant <value = double[3] {0, 0.5, 0}> ()
 last, every = Scan <num_scan_inputs=1,
   body = cell (double[3] h, double[3] x) => (double[3] new, double[3] out) {
     p = Mul (h, b)  s = Add (p, x)  new = Tanh (s)  out = Mul (new, x) }> (zero, a)
 f = Mul (every, every)
 y = Add (f, last)"""
BACKWARD = """last, every = Scan <num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
     scan_output_axes=[1], scan_output_directions=[1],
   body = cell (double[1] h, double[2] x) => (double[1] new, double[2] out) {
     p = Sin (h)  s = ReduceSum <keepdims=0> (x)  new = Mul (p, s)  out = Mul (new, x) }> (b, a)
 f = Mul (every, every)
 y = Add (f, last)"""
LOOP = """n = Constant <value = int64 {4}> ()
 yes = Constant <value = bool {1}> ()
 last, every = Loop (n, yes, a) <
   body = step (int64 i, bool go, double[2, 3] x) => (bool on, double[2, 3] z, double[2, 3] out) {
     on = Identity (go)
     k = Cast <to=11> (i)
     p = Mul (x, b)
     s = Add (p, k)
     z = Sin (s)
     out = Mul (z, x) }>
 f = ReduceSum <keepdims=0> (every)
 y = Mul (last, f)"""
# Ends after the sum has passed a bound.
WHILE = """n = Constant <value = int64 {9}> ()
 yes = Constant <value = bool {1}> ()
 bound = Constant <value = double {30}> ()
 y = Loop (n, yes, a) <
   body = step (int64 i, bool go, double[2, 3] x) => (bool on, double[2, 3] z) {
     z = Mul (x, b)
     s = ReduceSum <keepdims=0> (z)
     on = Less (s, bound) }>"""
NEVER = """n = Constant <value = int64 {0}> ()
 last = Loop (n, , a) <
   body = step (int64 i, bool go, double[2, 3] x) => (bool on, double[2, 3] z) {
     on = Identity (go)  z = Mul (x, b) }>
 y = Mul (last, last)"""
WITHIN = """n = Constant <value = int64 {3}> ()
 y = Loop (n, , a) <
   body = step (int64 i, bool go, double[2, 3] x) => (bool on, double[2, 3] z) {
     on = Identity (go)
     one = Constant <value = int64 {1}> ()
     c = Less (i, one)
     z = If (c) <
       then_branch = first () => (double[2, 3] m) { m = Mul (x, b) },
       else_branch = second () => (double[2, 3] m) { m = Sin (x) }
     > }>"""

CASES = {
    "If, one branch": (THRESHOLD % 0 + IF, [1]),
    "If, the other": (THRESHOLD % 9 + IF, [1]),
    "If with outputs of two types": (THRESHOLD % 0 + TWO, [1]),
    "If, the other with outputs of two types": (THRESHOLD % 9 + TWO, [1]),
    "If within If": (THRESHOLD % 0 + NESTED, [1]),
    "Scan": (SCAN, [1]),
    "Scan backward along another axis": (BACKWARD, [1]),
    "Loop": (LOOP, [1]),
    "Loop with a condition": (WHILE, [1]),
    "Loop without an iteration": (NEVER, [1]),
    "If within Loop": (WITHIN, [1]),
}


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str, is_dynamic: bool) -> None:
    nodes, shape = CASES[name]
    numbers = np.random.default_rng(5)
    values = [numbers.uniform(1.1, 2, (2, 3)), numbers.uniform(1.1, 2, shape)]
    check_derivatives(nodes, values, 16, [["p", "q"], [1]] if is_dynamic else None)


def test_second_derivatives() -> None:
    nodes = f"""n = Constant <value = int64 {{3}}> ()
        y = Loop (n, , a) <
          body = step (int64 i, bool go, double[2] x) => (bool on, double[2] z) {{
            on = Identity (go)  p = Mul (x, b)  z = Sin (p) }}>
        da = {TRAINING}.Gradient <xs=["a"], zs=["b"], y="y"> (a, b)
        daa, dab = {TRAINING}.Gradient <xs=["a", "b"], y="da"> (a, b)"""
    session = make_model(nodes, [[2], [1]], ["da", "daa", "dab"], 16)
    values = [np.array([0.3, 0.7]), np.array([1.2])]

    def run(arguments: list[np.ndarray]) -> list[np.ndarray]:
        return session.run(None, dict(zip("ab", arguments, strict=True)))

    expected = differences(lambda arguments: run(arguments)[0], values)
    for actual, wanted in zip(run(values)[1:], expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("is_first", [False, True])
def test_at_another_place_than_the_graph_was_run(is_first: bool) -> None:
    """The node is copied, with what its branches read."""
    nodes = f"""c = Constant <value = bool {{{int(is_first)}}}> ()
        d = Exp (a)
        y = If (c) <
          then_branch = t () => (double[2] t) {{ t = Mul (a, d) }},
          else_branch = f () => (double[2] f) {{ f = Neg (d) }}
        >
        da = {TRAINING}.Gradient <xs=["a"], y="y"> (b)"""
    session = make_model(nodes, [[2], [2]], ["y", "da"], 15)
    a, b = np.array([0.5, 1.0]), np.array([0.25, -1])
    y, slope = session.run(None, {"a": a, "b": b})
    np.testing.assert_allclose(y, a * np.exp(a) if is_first else -np.exp(a), rtol=1e-15)
    np.testing.assert_allclose(slope, (1 + b) * np.exp(b) if is_first else -np.exp(b), rtol=1e-15)


def test_states_that_are_no_tensors() -> None:
    nodes = """n = Constant <value = int64 {3}> ()
        s = SequenceEmpty <dtype=11> ()
        t = Loop (n, , s) <
          body = step (int64 i, bool go, seq(double[2]) x) => (bool on, seq(double[2]) z) {
            on = Identity (go)  z = SequenceInsert (x, a) }>
        y = ConcatFromSequence <axis=0> (t)"""
    with pytest.raises(Exception, match="no gradient yet"):
        make_model(f"{nodes}\n{GRADIENT}", [[2], [1]], ["da"], 16)

"""Sessions that keep the caches of a decoder."""

import graphs
import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper

GENERATOR = np.random.default_rng(5)


def decoder(past: str = "past_key_values.0.", present: str = "present.0.") -> bytes:
    """Attention of the last token to all before it, with 2 heads of 4 elements."""
    cache = ["batch", 2, "past_length", 4]
    whole = ["batch", 2, "length", 4]
    token = ["batch", 2, "new", 4]
    node = helper.make_node(
        "Attention",
        ["q", "k", "v", "", f"{past}key", f"{past}value"],
        ["y", f"{present}key", f"{present}value"],
    )
    inputs = [graphs.tensor(name, shape=token) for name in "qkv"]
    inputs += [graphs.tensor(f"{past}{name}", shape=cache) for name in ("key", "value")]
    outputs = [graphs.tensor("y", shape=token)]
    outputs += [graphs.tensor(f"{present}{name}", shape=whole) for name in ("key", "value")]
    return graphs.model([node], inputs, outputs, opset=23)


def tokens(batch: int, count: int) -> dict[str, np.ndarray]:
    return {
        name: GENERATOR.standard_normal((batch, 2, count, 4)).astype(np.float32) for name in "qkv"
    }


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "names",
    [
        ("past_key_values.0.", "present.0."),
        ("past_", "present_"),
        ("past_key_values.0.decoder.", "present_key_values.0.decoder."),
    ],
)
def test_each_token_sees_all_before_it(names: tuple[str, str], batch: int) -> None:
    session = tenon.InferenceSession(decoder(*names)).stateful()
    assert session.pairs == {names[0] + kind: names[1] + kind for kind in ("key", "value")}
    whole = tokens(batch, 7)
    for _ in range(2):
        for i in range(7):
            feeds = {name: value[:, :, i : i + 1] for name, value in whole.items()}
            (y,) = session.run(None, feeds)
            seen = {name: value[:, :, : i + 1] for name, value in whole.items()}
            expected = attention(feeds["q"], seen["k"], seen["v"])
            np.testing.assert_allclose(y, expected, atol=1e-6)
            assert session.states[names[0] + "key"].shape() == [batch, 2, i + 1, 4]
        session.reset()


def test_states_can_be_fed_and_fetched() -> None:
    session = tenon.InferenceSession(decoder()).stateful()
    feeds = tokens(1, 1)
    k, y = session.run(["present.0.key", "y"], feeds)
    np.testing.assert_array_equal(k, feeds["k"])
    np.testing.assert_allclose(y, feeds["v"], rtol=1e-6)
    empty = np.zeros((1, 2, 0, 4), np.float32)
    again = {"past_key_values.0.key": empty, "past_key_values.0.value": empty}
    np.testing.assert_array_equal(session.run(["y"], {**feeds, **again})[0], y)
    assert session.states["past_key_values.0.key"].shape() == [1, 2, 1, 4]


def test_a_failed_run_keeps_the_states() -> None:
    session = tenon.InferenceSession(decoder()).stateful()
    feeds = tokens(2, 1)
    session.run(None, feeds)
    before = session.states
    with pytest.raises(Exception, match="q"):
        session.run(None, {**feeds, "q": np.zeros((2, 3, 1, 4), np.float32)})
    assert session.states is before


def recurrent(element_type: int = TensorProto.FLOAT) -> bytes:
    return graphs.model(
        [helper.make_node("Add", ["state", "x"], ["next"])],
        [graphs.tensor("x", element_type, ["n", 3]), graphs.tensor("state", element_type, [2, 3])],
        [graphs.tensor("next", element_type, [2, 3])],
        opset=21,
    )


def test_states_of_a_fixed_size_stay_in_place() -> None:
    session = tenon.InferenceSession(recurrent()).stateful({"state": "next"}, in_place=True)
    x = np.ones((2, 3), np.float32)
    session.run(None, {"x": x})
    address = session.states["state"].data_ptr()
    for _ in range(4):
        assert session.run(None, {"x": x}) == []
        assert session.states["state"].data_ptr() == address
    np.testing.assert_array_equal(session.states["state"].numpy(), 5 * x)


@pytest.mark.parametrize("name", ["FLOAT16", "BFLOAT16", "DOUBLE", "INT64", "INT8"])
def test_states_have_any_type(name: str) -> None:
    number = getattr(TensorProto, name)
    session = tenon.InferenceSession(recurrent(number)).stateful({"state": "next"})
    zeros = np.zeros((2, 3), np.uint16 if name == "BFLOAT16" else np.dtype(name.lower()))
    x = tenon.OrtValue.ortvalue_from_numpy_with_onnx_type(zeros, number)
    session.run(None, {"x": x})
    assert session.states["state"].shape() == [2, 3]
    assert session.states["state"].element_type() == number


def test_sizes_may_be_given() -> None:
    model = graphs.model(
        [helper.make_node("Concat", ["past", "x"], ["present"], axis=0)],
        [graphs.tensor("x", shape=["n", 3]), graphs.tensor("past", shape=["m", "width"])],
        [graphs.tensor("present")],
    )
    session = tenon.InferenceSession(model).stateful(dims={"m": 0, "width": 3})
    for rows in (2, 4, 6):
        session.run(None, {"x": np.ones((2, 3), np.float32)})
        assert session.states["past"].shape() == [rows, 3]


def test_models_without_states_are_told() -> None:
    session = tenon.InferenceSession(graphs.double())
    with pytest.raises(
        ValueError, match=r"no inputs past.*inputs are \['x'\], its outputs \['y'\]"
    ):
        session.stateful()
    with pytest.raises(ValueError, match="'x' is no input, or 'z' is no output"):
        session.stateful({"x": "z"})

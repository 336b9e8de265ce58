"""Feeds whose sizes differ where the model gives axes the same name, and scalars with axes.

ONNX Runtime runs them all: models of the field are not as strict as ONNX.
"""

import pathlib
import threading

import graphs
import numpy as np
import onnxruntime
import pytest
import tenon
from onnx import TensorProto, helper

SETTING = "tenon.strict_dim_names"


def concat() -> bytes:
    """z = concat(x, y), where both are called [N]."""
    return graphs.model(
        [helper.make_node("Concat", ["x", "y"], ["z"], axis=0)],
        [graphs.tensor("x", shape=["N"]), graphs.tensor("y", shape=["N"])],
        [graphs.tensor("z", shape=["M"])],
    )


def sizes_of_a_product() -> bytes:
    """An Expand that equal sizes would make superfluous, and the shape of a product."""
    return graphs.model(
        [
            helper.make_node("Shape", ["y"], ["s"]),
            helper.make_node("Expand", ["x", "s"], ["e"]),
            helper.make_node("Relu", ["e"], ["r"]),
            helper.make_node("MatMul", ["r", "w"], ["p"]),
        ],
        [graphs.tensor(name, shape=["N", "N"]) for name in ("x", "y", "w")],
        [graphs.tensor("p", shape=["N", "N"])],
    )


def ones(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def both(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Tenon's results, which are onnxruntime's."""
    results = tenon.InferenceSession(model).run(None, feeds)
    expected = onnxruntime.InferenceSession(model).run(None, feeds)
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.shape == other.shape
    return results


def test_a_question_mark_stands_for_any_size(capfd: pytest.CaptureFixture[str]) -> None:
    model = graphs.model(
        [helper.make_node("Transpose", ["x"], ["y"], perm=[2, 0, 1])],
        [graphs.tensor("x", shape=["?", 3, "?"])],
        [graphs.tensor("y", shape=["?", "?", 3])],
    )
    assert tenon.InferenceSession(model).get_inputs()[0].shape == ["?", 3, "?"]
    both(model, {"x": ones(2, 3, 5)})
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("as_file", [True, False])
def test_equal_names_may_have_other_sizes(
    as_file: bool, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(concat())
    session = tenon.InferenceSession(str(path) if as_file else concat())
    for _ in range(2):
        (z,) = session.run(None, {"x": ones(3), "y": ones(2)})
        np.testing.assert_array_equal(z, [1, 2, 3, 1, 2])
        (z,) = session.run(None, {"x": ones(1), "y": ones(1)})
        np.testing.assert_array_equal(z, [1, 1])
    warning = capfd.readouterr().err
    assert warning.count("expected size 3 at axis 0 of [N], got [2]") == 1
    assert warning.count("input 'y'") == 1


def test_no_rewrite_relies_on_names_then() -> None:
    feeds = {"x": ones(1, 3), "y": ones(2, 3), "w": ones(3, 4)}
    (p,) = both(sizes_of_a_product(), feeds)
    assert p.shape == (2, 4)


def test_a_binding_may_have_other_sizes() -> None:
    session = tenon.InferenceSession(concat())
    binding = session.io_binding()
    binding.bind_cpu_input("x", ones(3))
    binding.bind_cpu_input("y", ones(2))
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].shape == (5,)


def test_threads_may_feed_other_sizes() -> None:
    session = tenon.InferenceSession(concat())
    failures = []

    def run(extra: int) -> None:
        for n in range(1, 20):
            (z,) = session.run(None, {"x": ones(n), "y": ones(n + extra)})
            if not np.array_equal(z, np.concatenate([ones(n), ones(n + extra)])):
                failures.append((n, extra))

    threads = [threading.Thread(target=run, args=[i % 2]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_setting_makes_it_an_error() -> None:
    options = tenon.SessionOptions()
    options.add_session_config_entry(SETTING, "1")
    session = tenon.InferenceSession(concat(), options)
    wrong = r"input 'y': expected size 3 at axis 0 of \[N\], got \[2\]"
    with pytest.raises(Exception, match=wrong):
        session.run(None, {"x": ones(3), "y": ones(2)})


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_scalar_may_have_axes(shape: tuple[int, ...]) -> None:
    model = graphs.model(
        [helper.make_node("Mul", ["x", "s"], ["y"])],
        [graphs.tensor("x"), helper.make_tensor_value_info("s", TensorProto.FLOAT, [])],
        [graphs.tensor("y")],
    )
    for feeds in ({"x": ones(2), "s": ones(*shape)}, {"s": ones(*shape), "x": ones(2)}):
        both(model, feeds)
    with pytest.raises(Exception, match=r"input 's': expected rank 0 \[\], got rank 1 \[2\]"):
        tenon.InferenceSession(model).run(None, {"x": ones(2), "s": ones(2)})

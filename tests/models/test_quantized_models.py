"""Real models, quantized by Tenon and by onnxruntime's package, whose results are compared."""

import collections
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
import onnxruntime.quantization as theirs
import pytest
import tenon
import tenon.quantization as ours
from onnx import numpy_helper
from saturation import exact_session

FEEDS = 4
# By model: how far results may differ from those of the original, as a part of their range.
SHARES = {
    "dtln/dtln_model_1.onnx": 0.1,
    "dtln/dtln_model_2.onnx": 0.1,
    "magika/magika_fast_v2_1.onnx": 0.05,
    "mnist/mnist-cntk.onnx": 0.05,
    "mnist/opt-mnist.onnx": 0.05,
    "tract-cases/deconv_group.onnx": 0.05,
    "ultraface/ultraface-RFB-320.onnx": 0.1,
}


def feeds_of(path: pathlib.Path) -> list[dict[str, np.ndarray]]:
    random, feeds = np.random.default_rng(0), []
    inputs = tenon.InferenceSession(path).get_inputs()
    for _ in range(FEEDS):
        feed = {}
        for one in inputs:
            shape = [dim if isinstance(dim, int) else 1 for dim in one.shape]
            if one.type == "tensor(float)":
                feed[one.name] = 0.3 * random.standard_normal(shape).astype(np.float32)
            else:
                feed[one.name] = random.integers(0, 3, shape).astype(np.int32)
        feeds.append(feed)
    return feeds


def reader_of(package, feeds: list) -> object:
    class Reader(package.CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds = iter(feeds)

        def get_next(self) -> dict | None:
            return next(self.feeds, None)

    return Reader()


def quantize(package, source: pathlib.Path, target: pathlib.Path, way: str, feeds: list) -> None:
    if way == "dynamic":
        package.quantize_dynamic(source, target)
    else:
        package.quantize_static(
            source,
            target,
            reader_of(package, feeds),
            package.QuantFormat[way],
            activation_type=package.QuantType.QUInt8,
        )


def constants_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def run_genuine(path: pathlib.Path, feed: dict) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return exact_session(path.read_bytes(), options).run(None, feed)


@pytest.mark.parametrize("way", ["dynamic", "QDQ", "QOperator"])
@pytest.mark.parametrize("name", SHARES)
def test_quantizes_as_onnxruntime(
    models: pathlib.Path, name: str, way: str, tmp_path: pathlib.Path
) -> None:
    source = pathlib.Path(shutil.copy(models / name, tmp_path / "model.onnx"))
    feeds = feeds_of(source)
    made = []
    for package in (ours, theirs):
        path = tmp_path / f"{package.__name__}.onnx"
        quantize(package, source, path, way, feeds)
        made.append(path)
    mine, other = (onnx.load(path) for path in made)
    # Quantized constants are kept for nodes that read them as numbers, because no node makes them.
    counts = [collections.Counter(one.op_type for one in each.graph.node) for each in (mine, other)]
    assert (counts[0] - counts[1]) == {}
    assert (counts[1] - counts[0]).total() <= 1
    left, right = constants_of(mine), constants_of(other)
    assert right.keys() <= left.keys()
    for key, b in right.items():
        a = left[key].reshape(b.shape).astype(np.float64)
        if b.dtype == np.float32:  # ranges come from two runtimes
            np.testing.assert_allclose(a, b, rtol=1e-3, err_msg=key)
        else:
            np.testing.assert_allclose(a, b.astype(np.float64), atol=1, rtol=1e-3, err_msg=key)
    expected = tenon.InferenceSession(source).run(None, feeds[0])
    for actual in (
        tenon.InferenceSession(made[0]).run(None, feeds[0]),
        run_genuine(made[0], feeds[0]),
    ):
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=SHARES[name] * np.ptp(b))

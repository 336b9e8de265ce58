"""Calibrators, their results, and the files in which these are stored."""

import pathlib
import struct

import numpy as np
import onnx
import onnxruntime.quantization as theirs
import pytest
import tenon
import tenon.quantization as ours
from onnx import TensorProto
from onnxruntime.quantization.calibrate import HistogramCollector as TheirCollector
from onnxruntime.quantization.CalTableFlatBuffers.TrtTable import TrtTable
from quantized_models import MODELS, READERS, Reader, model, node, op_types
from tenon.quantization.calibrate import HistogramCollector
from tenon.quantization.quant_utils import read_calibration_table

METHODS: dict[str, list[dict]] = {
    "MinMax": [
        {},
        {"symmetric": True},
        {"moving_average": True, "averaging_constant": 0.2},
        {"per_channel": True},
    ],
    "Entropy": [{}, {"num_bins": 300, "num_quantized_bins": 60}],
    "Percentile": [{}, {"symmetric": False}, {"percentile": 90.0, "num_bins": 500}],
    "Distribution": [{}, {"scenario": "same", "num_bins": 600}],
}
CASES = [(method, options) for method, several in METHODS.items() for options in several]


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize(("method", "options"), CASES)
def test_finds_the_same_ranges(
    method: str, options: dict, rounds: int, tmp_path: pathlib.Path
) -> None:
    source = MODELS["convolutions"]
    onnx.save(source, tmp_path / "model.onnx")
    found = []
    if options.get("per_channel"):
        rounds = 1  # theirs merges single numbers only
    for package in (ours, theirs):
        calibrator = package.create_calibrator(
            tmp_path / "model.onnx",
            ["Conv", "Add", "Gemm"],
            augmented_model_path=str(tmp_path / "augmented.onnx"),
            calibrate_method=package.CalibrationMethod[method],
            extra_options=dict(options),
        )
        reader = READERS[package](source)
        for i in range(rounds):
            reader.set_range(3 * i, 3 * i + 3)
            calibrator.collect_data(reader)
        found.append(calibrator.compute_data())
    mine, other = found
    assert mine.calibration_method.name == other.calibration_method.name
    assert set(mine) == set(other.keys())
    parts = ("avg", "std", "lowest", "highest") if method == "Distribution" else ()
    for name, data in mine.items():
        for part in parts or ("lowest", "highest"):
            a, b = getattr(data, part), getattr(other[name], part)
            assert a.dtype == b.dtype == np.float32
            np.testing.assert_allclose(
                np.ravel(a), np.ravel(b), rtol=1e-4, atol=1e-5, err_msg=f"{name} {part}"
            )


def test_two_parts_of_the_data_give_what_all_of_it_gives(tmp_path: pathlib.Path) -> None:
    source, found = MODELS["convolutions"], []
    for most in (None, 3):
        calibrator = ours.create_calibrator(
            source,
            augmented_model_path=tmp_path / "augmented.onnx",
            extra_options={"max_intermediate_outputs": most},
        )
        calibrator.collect_data(Reader(source))
        found.append(calibrator.compute_data().to_dict()["data"])
    for name, data in found[0].items():
        for a, b in zip(data.range_value, found[1][name].range_value, strict=True):
            np.testing.assert_array_equal(a, b)


def test_ranges_are_those_of_the_values(tmp_path: pathlib.Path) -> None:
    """Compares with a run of the model itself."""
    source = MODELS["products"]
    calibrator = ours.create_calibrator(source, augmented_model_path=tmp_path / "augmented.onnx")
    calibrator.collect_data(Reader(source))
    ranges = calibrator.compute_data()
    seen = [tenon.InferenceSession(source).run(["y"], feed)[0] for feed in Reader(source)]
    low, high = ranges["y"].range_value
    np.testing.assert_array_equal(low, [np.min(seen)])
    np.testing.assert_array_equal(high, [np.max(seen)])
    given = [feed["x"] for feed in Reader(source)]
    np.testing.assert_array_equal(ranges["x"].range_value[1], [np.max(given)])


def test_values_without_elements_have_empty_ranges(tmp_path: pathlib.Path) -> None:
    nodes = [node("Slice", "x starts starts", "s"), node("Abs", "s", "y")]
    source = model(nodes, {"x": [2, 3]}, {"y": [0, 3]}, {"starts": np.array([0])})
    calibrator = ours.create_calibrator(source, augmented_model_path=tmp_path / "augmented.onnx")
    calibrator.collect_data(Reader(source))
    low, high = calibrator.compute_data()["s"].range_value
    assert (low, high) == (0, 0)


@pytest.mark.parametrize("method", ["entropy", "percentile"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_collects_arrays_of_any_kind(method: str, symmetric: bool) -> None:
    random = np.random.default_rng(5)
    batches = [
        {
            "zeros": np.zeros((3, 4), np.float32),
            "wider": (i + 1) * random.standard_normal((40, 5)).astype(np.float32),
            "list": [random.random(7, np.float32), random.random(7, np.float32)],
        }
        for i in range(3)
    ]
    found = []
    for kind in (HistogramCollector, TheirCollector):
        collector = kind(method, symmetric, 256, 128, 99.0, "same")
        for batch in batches:
            collector.collect(batch)
        result = collector.compute_collection_result()
        found.append({k: getattr(v, "range_value", None) or v[:2] for k, v in result.items()})
    for name, ends in found[0].items():
        np.testing.assert_allclose(ends, found[1][name], rtol=1e-6, err_msg=name)


def test_cube_roots_of_numbers_have_a_mean_and_a_deviation() -> None:
    collector = HistogramCollector("distribution", False, 4096, 128, 99.0, "p3")
    numbers = np.random.default_rng(1).standard_normal(100_000).astype(np.float32) ** 3
    collector.collect({"x": numbers})
    mean, deviation = collector.compute_collection_result()["x"].avg_std
    roots = np.cbrt(numbers)
    # The bins are 0.04 wide, and many roots lie in the one around zero.
    np.testing.assert_allclose(mean, roots.mean(), atol=0.02)
    np.testing.assert_allclose(deviation, roots.std(), rtol=0.05)


def test_refuses_what_it_cannot_do(tmp_path: pathlib.Path) -> None:
    source = MODELS["products"]
    with pytest.raises(ValueError, match="expected 0 to 1, got 3"):
        ours.MinMaxCalibrater(source, moving_average=True, averaging_constant=3)
    with pytest.raises(ValueError, match="512 <= num_bins, got 100"):
        ours.create_calibrator(
            source,
            augmented_model_path=tmp_path / "augmented.onnx",
            calibrate_method=ours.CalibrationMethod.Distribution,
            extra_options={"num_bins": 100},
        )
    with pytest.raises(ValueError, match="Unexpected value 'top'"):
        ours.TensorData(top=np.float32(1))
    with pytest.raises(ValueError, match="lowest: expected an array of float16 or float32"):
        ours.TensorData(lowest=1.0)
    with pytest.raises(AttributeError, match="no avg and no std"):
        _ = ours.TensorData(lowest=np.float32(0), highest=np.float32(1)).avg_std
    ranges = ours.TensorsData(ours.CalibrationMethod.MinMax, {"x": (np.float32(0), np.float32(1))})
    with pytest.raises(RuntimeError, match="Only an existing tensor"):
        ranges["y"] = ranges["x"]


def test_calibrators_may_be_derived(tmp_path: pathlib.Path) -> None:
    """Like programs that collect other data: the model, its session and its values."""

    class Means(ours.CalibraterBase):
        def augment_graph(self) -> None:
            names, values = self.select_tensors_to_calibrate(self.model)
            self.names = sorted(names - {"x", "y"})
            self.model.graph.output.extend(values[name] for name in self.names)
            onnx.save(self.model, self.augmented_model_path)

        def collect_data(self, data_reader: ours.CalibrationDataReader) -> None:
            assert self.infer_session is not None
            runs = [self.infer_session.run(self.names, feed) for feed in data_reader]
            self.means = [np.mean(several) for several in zip(*runs, strict=True)]

    calibrater = Means(MODELS["products"], ["MatMul"], tmp_path / "augmented.onnx")
    calibrater.augment_graph()
    calibrater.set_execution_providers(["CPUExecutionProvider"])
    calibrater.collect_data(Reader(MODELS["products"]))
    assert calibrater.names == ["c", "m1", "m2"]
    assert np.isfinite(calibrater.means).all()


RANGES = {
    "x": (np.array([-1, 2], np.float32), np.array([1, 3.5], np.float32)),
    "y": (np.float32(-0.25), np.float32(3)),
}


def test_calibration_is_saved_as_onnxruntime_saves_it(tmp_path: pathlib.Path) -> None:
    for number, (writer, reader) in enumerate([(ours, theirs), (theirs, ours), (ours, ours)]):
        data = writer.TensorsData(writer.CalibrationMethod.MinMax, RANGES)
        path = tmp_path / "folder" / f"{number}.json"
        writer.save_tensors_data(data, path)
        read = reader.load_tensors_data(path)
        assert read.calibration_method == reader.CalibrationMethod.MinMax
        for name, expected in RANGES.items():
            for one, other in zip(read[name].range_value, expected, strict=True):
                np.testing.assert_array_equal(one, other)
                assert one.dtype == np.float32
    folder = tmp_path / "folder"
    texts = [(folder / f"{number}.json").read_text() for number in (0, 1)]
    assert texts[0] == texts[1]
    assert sorted(path.name for path in folder.iterdir()) == ["0.json", "1.json", "2.json"]
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match=r"other\.json holds no calibration data"):
        ours.load_tensors_data(tmp_path / "other.json")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        ours.load_tensors_data(tmp_path / "nowhere.json")


def test_histograms_survive_files(tmp_path: pathlib.Path) -> None:
    source = MODELS["products"]
    calibrator = ours.create_calibrator(
        source,
        augmented_model_path=tmp_path / "augmented.onnx",
        calibrate_method=ours.CalibrationMethod.Distribution,
    )
    calibrator.collect_data(Reader(source))
    data = calibrator.compute_data()
    ours.save_tensors_data(data, tmp_path / "data.json")
    for read in (
        ours.load_tensors_data(tmp_path / "data.json"),
        theirs.load_tensors_data(tmp_path / "data.json"),
    ):
        for name, one in data.items():
            for part, value in one.to_dict().items():
                np.testing.assert_array_equal(read[name].to_dict()[part], value)


def test_ranges_are_read_from_a_cache(tmp_path: pathlib.Path) -> None:
    source, cache = MODELS["products"], tmp_path / "cache.json"
    paths = [tmp_path / f"{i}.onnx" for i in range(2)]
    ours.quantize_static(source, paths[0], Reader(source), calibration_cache_path=cache)
    ours.quantize_static(source, paths[1], calibration_cache_path=cache)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert op_types(paths[0])["QuantizeLinear"] > 0
    with pytest.raises(ValueError, match=r"was produced with CalibrationMethod\.MinMax"):
        ours.quantize_static(
            source,
            paths[1],
            calibrate_method=ours.CalibrationMethod.Entropy,
            calibration_cache_path=cache,
        )
    with pytest.raises(ValueError, match="Either calibration_data_reader or an existing"):
        ours.quantize_static(source, paths[1], calibration_cache_path=tmp_path / "none.json")


def test_tables_are_what_onnxruntime_writes(tmp_path: pathlib.Path) -> None:
    ranges = {f"tensor_{i}": (np.float32(-i), np.float32(i / 3)) for i in range(-3, 4)}
    ranges |= {"": (np.float32(0), np.float32(1)), "ä/b": (np.float32(0), np.float32(1e-7))}
    for package in (ours, theirs):
        folder = tmp_path / package.__name__
        folder.mkdir()
        data = package.TensorsData(package.CalibrationMethod.MinMax, ranges)
        package.write_calibration_table(data, str(folder))
    mine, other = (tmp_path / package.__name__ for package in (ours, theirs))
    for name in ("calibration.json", "calibration.cache"):
        assert (mine / name).read_text() == (other / name).read_text()
    tables = []
    for folder in (mine, other):
        table = TrtTable.GetRootAs((folder / "calibration.flatbuffers").read_bytes(), 0)
        rows = [table.Dict(i) for i in range(table.DictLength())]
        tables.append({row.Key(): row.Value() for row in rows})
        assert len(rows) == len(ranges)
    assert tables[0] == tables[1]
    expected = {name: float(max(one)) for name, one in ranges.items()}
    assert read_calibration_table(mine) == read_calibration_table(other) == expected
    assert set(ours.load_tensors_data(mine / "calibration.json")) == set(ranges)


def test_tables_keep_the_alignment_of_flatbuffers(tmp_path: pathlib.Path) -> None:
    for size in range(1, 9):
        data = ours.TensorsData(
            ours.CalibrationMethod.MinMax, {"n" * size: (np.float32(0), np.float32(1))}
        )
        ours.write_calibration_table(data, tmp_path)
        content = (tmp_path / "calibration.flatbuffers").read_bytes()
        (root,) = struct.unpack_from("<I", content)
        assert root % 4 == 0
        row = TrtTable.GetRootAs(content, 0).Dict(0)
        assert (row.Key(), row.Value()) == (b"n" * size, b"1.0")
    data = ours.TensorsData(ours.CalibrationMethod.MinMax, {})
    ours.write_calibration_table(data, tmp_path)
    assert read_calibration_table(tmp_path) == {}


def test_calibrates_values_of_float16(tmp_path: pathlib.Path) -> None:
    nodes = [node("Abs", "x", "y")]
    source = model(nodes, {"x": [2, 3]}, {"y": [2, 3]}, {})
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    calibrator = ours.create_calibrator(source, augmented_model_path=tmp_path / "augmented.onnx")
    calibrator.collect_data(Reader(source))
    assert calibrator.compute_data()["y"].highest.dtype == np.float16

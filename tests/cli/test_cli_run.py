"""tenon run: its results are those of onnxruntime and NumPy."""

import struct
import wave
import zlib

import cli_models
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(0)


def reference(path, feeds):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def fed(tenon, model, source, *options):
    """The values that the command makes from a source, read back through an identity."""
    tenon.ok("run", model, "--input", f"x={source}", "--output", "y.npy", *options)
    return np.load(tenon.folder / "y.npy")


def test_outputs_match_onnxruntime(tenon, tmp_path):
    weights = numpy_helper.from_array(RNG.standard_normal((8, 5)).astype(np.float32), "w")
    bias = numpy_helper.from_array(RNG.standard_normal(5).astype(np.float32), "b")
    model = cli_models.save(
        tmp_path / "model.onnx",
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["hidden/raw:0"]),
            helper.make_node("Relu", ["hidden/raw:0"], ["h"]),
            helper.make_node("Softmax", ["h"], ["p"], axis=1),
        ],
        [cli_models.value("x", ["batch", 8])],
        [cli_models.value("p", ["batch", 5]), cli_models.value("hidden/raw:0", ["batch", 5])],
        [weights, bias],
    )
    x = RNG.standard_normal((3, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    expected = reference(model, {"x": x})
    text = tenon.ok("run", model, "--input", "x.npy", "--output", "out", "--output", "all.npz")
    assert "p: float [3, 5]" in text
    archive = np.load(tmp_path / "all.npz")
    for name, file, array in zip(
        ["p", "hidden/raw:0"], ["p.npy", "hidden_raw_0.npy"], expected, strict=True
    ):
        saved = np.load(tmp_path / "out" / file)
        np.testing.assert_allclose(saved, array, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(saved, archive[name])

    first = tenon.json("run", model, "--input", "x.npy", "--top-k", 2)["outputs"][0]
    assert (first["type"], first["shape"]) == ("float", [3, 5])
    assert first["max"] == pytest.approx(expected[0].max(), rel=1e-5)
    assert first["mean"] == pytest.approx(expected[0].mean(), rel=1e-5)
    assert [[entry["index"] for entry in row] for row in first["top"]] == [
        list(np.argsort(-row, kind="stable")[:2]) for row in expected[0]
    ]


def test_labels_name_the_largest(tenon, tmp_path):
    model = cli_models.identity(tmp_path / "m.onnx", [1, 3])
    np.save(tmp_path / "x.npy", np.array([[0.25, np.nan, 0.75]], np.float32))
    (tmp_path / "labels.txt").write_text("cat\ndog\r\nbird\n")
    (output,) = tenon.json("run", model, "--input", "x.npy", "--labels", "labels.txt")["outputs"]
    (row,) = output["top"]
    assert [(entry["index"], entry["label"]) for entry in row] == [
        (2, "bird"),
        (0, "cat"),
        (1, "dog"),
    ]
    assert output["nans"] == 1
    assert "bird" in tenon.ok("run", model, "--input", "x.npy", "--labels", "labels.txt")


DTYPES = {
    "f4": TensorProto.FLOAT,
    "f8": TensorProto.DOUBLE,
    "f2": TensorProto.FLOAT16,
    "i1": TensorProto.INT8,
    "i2": TensorProto.INT16,
    "i4": TensorProto.INT32,
    "i8": TensorProto.INT64,
    "u1": TensorProto.UINT8,
    "u2": TensorProto.UINT16,
    "u4": TensorProto.UINT32,
    "u8": TensorProto.UINT64,
    "?": TensorProto.BOOL,
    "c8": TensorProto.COMPLEX64,
    "V2": TensorProto.BFLOAT16,  # as the ml_dtypes package saves bfloat16
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_npy_comes_back_as_it_was(tenon, tmp_path, dtype):
    for shape in [(), (0,), (1,), (2, 3), (2, 0, 3), (2, 1, 3, 2)]:
        integers = RNG.integers(0, 100, shape)
        array = integers.astype("i2").view(dtype) if dtype == "V2" else integers.astype(dtype)
        np.save(tmp_path / "x.npy", array)
        model = cli_models.identity(tmp_path / "m.onnx", [None] * len(shape), DTYPES[dtype])
        y = fed(tenon, model, "x.npy")
        assert y.dtype == array.dtype
        np.testing.assert_array_equal(y, array)


@pytest.mark.parametrize(
    "change",
    [np.asfortranarray, lambda a: a.astype(a.dtype.newbyteorder(">")), lambda a: a[::-1]],
    ids=["fortran", "big-endian", "reversed view"],
)
def test_npy_in_another_order_is_the_same_array(tenon, tmp_path, change):
    array = change(RNG.standard_normal((2, 3, 4)).astype(np.float32))
    np.save(tmp_path / "x.npy", array)
    model = cli_models.identity(tmp_path / "m.onnx", [2, 3, 4])
    np.testing.assert_array_equal(fed(tenon, model, "x.npy"), array)


def test_npy_of_version_2(tenon, tmp_path):
    array = np.arange(6, dtype=np.float32)
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=(2, 0))
    model = cli_models.identity(tmp_path / "m.onnx", [6])
    np.testing.assert_array_equal(fed(tenon, model, "x.npy"), array)


@pytest.mark.parametrize("dtype", ["U", "S", ">U5"])
def test_npy_of_strings(tenon, tmp_path, dtype):
    words = ["a", "", "word"] if dtype == "S" else ["a", "", "ñ€😀"]
    np.save(tmp_path / "x.npy", np.array(words, dtype))
    model = cli_models.identity(tmp_path / "m.onnx", [3], TensorProto.STRING)
    (output,) = tenon.json("run", model, "--input", "x.npy")["outputs"]
    assert output["first"] == words
    assert [text.decode() for text in fed(tenon, model, "x.npy")] == words


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_npz_entries_go_to_the_inputs_of_their_names(tenon, tmp_path, write):
    model = cli_models.add(tmp_path / "m.onnx", ["n", 300])
    left, right = (RNG.standard_normal((4, 300)).astype(np.float32) for _ in range(2))
    write(tmp_path / "in.npz", right=right, left=left)
    for options in (["in.npz"], ["left=in.npz", "--input", "right=in.npz"]):
        tenon.ok("run", model, "--input", *options, "--output", "total=y.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), left + right)


def test_saved_npz_is_read_back(tenon, tmp_path):
    model = cli_models.identity(tmp_path / "m.onnx", ["n"])
    tenon.ok("run", model, "--input", "random", "--dim", "n=1000", "--output", "a.npz")
    assert np.load(tmp_path / "a.npz")["y"].shape == (1000,)
    tenon.ok("run", model, "--input", "x=a.npz", "--output", "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_random_depends_on_the_seed_alone(tenon, tmp_path):
    model = cli_models.identity(tmp_path / "m.onnx", ["n", None])
    sizes = ["--dim", "n=100", "--dim", "x.1=50"]
    a, b, c = (fed(tenon, model, "random", *sizes, "--seed", seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert a.shape == (100, 50)
    assert not np.array_equal(a, c)
    assert 0 <= a.min() < 0.01 and 0.99 < a.max() < 1
    assert abs(a.mean() - 0.5) < 0.02


@pytest.mark.parametrize(
    ("source", "dtype", "expected"),
    [("zeros", "f4", 0), ("2.5", "f4", 2.5), ("16000", "i8", 16000), ("-1", "i4", -1)],
)
def test_constants(tenon, tmp_path, source, dtype, expected):
    model = cli_models.identity(tmp_path / "m.onnx", [2, 3], DTYPES[dtype])
    np.testing.assert_array_equal(fed(tenon, model, source), np.full((2, 3), expected, dtype))


# ---- pictures ----


def write_png(path, pixels):
    """A PNG of uint8 [height, width] or [height, width, 3]."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    color = 2 if pixels.ndim == 3 else 0
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def triangle(size, target):
    """Rows of weights that resize `size` samples to `target`, edges repeated."""
    ratio = size / target
    width = max(ratio, 1)
    matrix = np.zeros((target, size))
    for i in range(target):
        center = (i + 0.5) * ratio
        for j in range(int(np.floor(center - width)) - 1, int(np.ceil(center + width)) + 2):
            weight = max(0, 1 - abs(j + 0.5 - center) / width)
            matrix[i, min(max(j, 0), size - 1)] += weight
    return matrix / matrix.sum(axis=1, keepdims=True)


COLOR = RNG.integers(0, 256, (6, 9, 3)).astype(np.uint8)
GRAY = RNG.integers(0, 256, (5, 4)).astype(np.uint8)
UNIT = COLOR / 255
NORMALIZED = (UNIT - [0.4, 0.5, 0.6]) / [0.2, 0.25, 0.5]

# pixels, shape of the input, options, expected
PICTURES = {
    "nchw": (COLOR, [1, 3, "h", "w"], "", UNIT.transpose(2, 0, 1)[None]),
    "nhwc": (COLOR, [1, None, None, 3], "", UNIT[None]),
    "chw": (COLOR, [3, 6, 9], "", UNIT.transpose(2, 0, 1)),
    "free": (COLOR, None, "", UNIT.transpose(2, 0, 1)[None]),
    "free nhwc": (COLOR, ["n", "h", "w", "c"], "--layout nhwc", UNIT[None]),
    "bgr": (COLOR, [1, 3, 6, 9], "--color bgr", UNIT[..., ::-1].transpose(2, 0, 1)[None]),
    "scale": (COLOR, [1, 6, 9, 3], "--scale 1", COLOR[None]),
    "fraction": (COLOR, [1, 6, 9, 3], "--scale 2/255", 2 * UNIT[None]),
    "normalized": (
        COLOR,
        [1, 3, 6, 9],
        "--mean 0.4,0.5,0.6 --std 0.2,0.25,0.5",
        NORMALIZED.transpose(2, 0, 1)[None],
    ),
    "one mean": (COLOR, [1, 6, 9, 3], "--mean 0.5", UNIT[None] - 0.5),
    "gray": (GRAY, [1, 1, 5, 4], "", GRAY[None, None] / 255),
    "gray matrix": (GRAY, [5, 4], "", GRAY / 255),
    "gray as color": (GRAY, [1, 3, 5, 4], "", np.stack([GRAY] * 3)[None] / 255),
    "larger": (
        GRAY,
        [1, 1, "h", "w"],
        "--resize 11x7",
        (triangle(5, 7) @ GRAY @ triangle(4, 11).T)[None, None] / 255,
    ),
    "smaller, as the input fixes it": (
        GRAY,
        [1, 1, 2, 3],
        "",
        (triangle(5, 2) @ GRAY @ triangle(4, 3).T)[None, None] / 255,
    ),
}


@pytest.mark.parametrize("case", PICTURES)
def test_pictures(tenon, tmp_path, case):
    pixels, shape, options, expected = PICTURES[case]
    write_png(tmp_path / "x.png", pixels)
    model = cli_models.identity(tmp_path / "m.onnx", shape)
    y = fed(tenon, model, "x.png", *options.split())
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, atol=2e-5)


def test_picture_for_bytes_is_not_scaled(tenon, tmp_path):
    write_png(tmp_path / "x.png", COLOR)
    model = cli_models.identity(tmp_path / "m.onnx", [1, 6, 9, 3], TensorProto.UINT8)
    np.testing.assert_array_equal(fed(tenon, model, "x.png"), COLOR[None])


# ---- sound ----

SAMPLES = RNG.integers(-32768, 32768, 1000).astype(np.int16)
SOUND = SAMPLES.astype(np.float32) / 32768


def write_wav(path, samples, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())


def write_float_wav(path, samples):
    data = samples.astype(np.float32).tobytes()
    head = struct.pack("<HHIIHH", 3, 1, 16000, 64000, 4, 32)
    chunks = b"WAVEfmt " + struct.pack("<I", len(head)) + head
    chunks += b"LIST" + struct.pack("<I", 3) + b"abc\0"  # an odd chunk is padded
    chunks += b"data" + struct.pack("<I", len(data)) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", len(chunks)) + chunks)


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        (["n"], [], SOUND),
        (["batch", "n"], [], SOUND[None]),
        ([1, "n", 1], [], SOUND[None, :, None]),
        ([1, 1, 400], [], SOUND[None, None, :400]),
        ([1, 1200], [], np.pad(SOUND, (0, 200))[None]),
        (["n"], ["--dim", "n=512"], SOUND[:512]),
    ],
    ids=str,
)
def test_sound_is_fitted_to_the_input(tenon, tmp_path, shape, options, expected):
    write_wav(tmp_path / "x.wav", SAMPLES)
    model = cli_models.identity(tmp_path / "m.onnx", shape)
    np.testing.assert_array_equal(fed(tenon, model, "x.wav", *options), expected)


def test_sound_of_floats_and_of_two_channels(tenon, tmp_path):
    model = cli_models.identity(tmp_path / "m.onnx", ["n"])
    write_float_wav(tmp_path / "f.wav", SOUND)
    np.testing.assert_array_equal(fed(tenon, model, "f.wav"), SOUND)
    write_wav(tmp_path / "s.wav", SAMPLES, channels=2)
    stereo = fed(tenon, model, "s.wav")
    np.testing.assert_allclose(stereo, SOUND.reshape(-1, 2).mean(axis=1), atol=1e-7)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_sound_of_integers_of_every_size(tenon, tmp_path, size):
    top = 1 << (8 * size - 1)
    numbers = [-top, -top // 3, -1, 0, 1, top // 2, top - 1]
    with wave.open(str(tmp_path / "x.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(size)
        file.setframerate(16000)
        is_signed = size > 1
        shift = 0 if is_signed else top
        file.writeframes(
            b"".join((n + shift).to_bytes(size, "little", signed=is_signed) for n in numbers)
        )
    model = cli_models.identity(tmp_path / "m.onnx", ["n"])
    expected = (np.array(numbers) / top).astype(np.float32)
    np.testing.assert_array_equal(fed(tenon, model, "x.wav"), expected)


def test_cut_sound_is_told(tenon, tmp_path):
    write_wav(tmp_path / "x.wav", SAMPLES)
    model = cli_models.identity(tmp_path / "m.onnx", [1, 400])
    result = tenon("run", model, "--input", "x.wav")
    assert "'x.wav' has 1000 samples (0.06 s), cut to 400" in result.stderr

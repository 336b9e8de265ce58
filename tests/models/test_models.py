"""Every real model gives onnxruntime's results, element by element, within its tolerance."""

import dataclasses
import pathlib
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import onnxruntime
import pytest
import samples
import tenon
from samples import Feeds

# Makes the feeds of several runs from the folder of models and a generator.
FeedMaker = Callable[[pathlib.Path, np.random.Generator], Iterator[Feeds]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, its inputs, and the tolerance of an element: atol + rtol * |expected|."""

    path: str
    feeds: FeedMaker
    atol: float = 1e-5
    rtol: float = 1e-4


def random_floats(name: str, *shape: int, batches: tuple[int, ...] = (1,)) -> FeedMaker:
    """Standard normal numbers, [batch, *shape]."""

    def make(_: pathlib.Path, rng: np.random.Generator) -> Iterator[Feeds]:
        for batch in batches:
            yield {name: rng.standard_normal((batch, *shape), np.float32)}

    return make


def random_bytes(name: str, size: int) -> FeedMaker:
    """Bytes, and 256 for padding, as magika has them."""

    def make(_: pathlib.Path, rng: np.random.Generator) -> Iterator[Feeds]:
        for batch in (1, 3, 16):
            yield {name: rng.integers(0, 257, (batch, size), np.int32)}

    return make


def text_bytes(_: pathlib.Path, rng: np.random.Generator) -> Iterator[Feeds]:
    """Lower-case words, in batches of several lengths."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz    .", np.uint8)
    for shape in ((1, 1), (1, 58), (3, 20)):
        yield {"input": rng.choice(letters, shape)}


def stored(path: str, name: str) -> FeedMaker:
    """The input in the folder of the model."""

    def make(models: pathlib.Path, _: np.random.Generator) -> Iterator[Feeds]:
        yield {name: np.load(models / path)[name]}

    return make


def speech_windows(name: str, size: int) -> FeedMaker:
    def make(models: pathlib.Path, _: np.random.Generator) -> Iterator[Feeds]:
        for count in (1, 3):
            yield {name: samples.windows(samples.speech(models), size, count)}

    return make


def speech_spectra(models: pathlib.Path, _: np.random.Generator) -> Iterator[Feeds]:
    speech = samples.speech(models)
    for count in (1, 2):
        parts = samples.windows(speech, 160 * 900 + 321, count)
        yield {"input_1": np.stack([samples.log_mel(part, 900) for part in parts])}


def singing_windows(models: pathlib.Path, _: np.random.Generator) -> Iterator[Feeds]:
    for count in (1, 2):
        parts = samples.windows(samples.singing(models), 43844, count)
        yield {"serving_default_input_2:0": parts[:, :, None]}


def picture(_: pathlib.Path, rng: np.random.Generator) -> Iterator[Feeds]:
    yield {"input": rng.uniform(-1, 1, (1, 3, 240, 320)).astype(np.float32)}


def light_picture(name: str) -> FeedMaker:
    """The picture for the expected outputs of onnx's light models, and a random one."""

    def make(_: pathlib.Path, rng: np.random.Generator) -> Iterator[Feeds]:
        shape = (1, 3, 224, 224)
        count = np.prod(shape)
        yield {name: (np.arange(count).reshape(shape) / count).astype(np.float32)}
        yield {name: rng.uniform(0, 1, shape).astype(np.float32)}

    return make


def light_case(model: str, name: str) -> Case:
    return Case(f"onnx-light/light_{model}.onnx", light_picture(name), atol=1e-7, rtol=1e-4)


LIGHT_CASES = (
    light_case("bvlc_alexnet", "data_0"),
    light_case("densenet121", "data_0"),
    light_case("inception_v1", "data_0"),
    light_case("inception_v2", "data_0"),
    light_case("resnet50", "gpu_0/data_0"),
    light_case("shufflenet", "gpu_0/data_0"),
    light_case("squeezenet", "data_0"),
    light_case("vgg19", "data_0"),
    light_case("zfnet512", "gpu_0/data_0"),
)

CASES = (
    *LIGHT_CASES,
    # These are probabilities. Their logits have errors of some 1e-5, whose differences are scaled
    # by 88.
    Case("basic-pitch/nmp.onnx", singing_windows, atol=1e-4),
    Case("dnsmos/model_v8.onnx", speech_spectra),
    Case("dnsmos/sig_bak_ovr.onnx", speech_windows("input_1", 144160)),
    Case("magika/magika_fast_v2_1.onnx", random_bytes("bytes", 1024)),
    Case("magika/magika_standard_v3_3.onnx", random_bytes("bytes", 2048)),
    Case("mnist/mnist-cntk.onnx", random_floats("Input3", 1, 28, 28)),
    Case("mnist/opt-mnist.onnx", random_floats("Input3", 1, 28, 28)),
    Case("sklearn/sklearn_randomforest.onnx", random_floats("X", 4, batches=(1, 7, 100))),
    Case("tract-cases/byte_sb_bidi_lstm.onnx", text_bytes),
    Case(
        "tract-cases/byte_sb_bidi_lstm.onnx",
        stored("tract-cases/byte_sb_bidi_lstm.io.npz", "input"),
    ),
    Case("tract-cases/deconv_group.onnx", random_floats("input", 2, 5)),
    Case("tract-cases/lgbm_classifier_tensor.onnx", random_floats("input", 13, batches=(1, 5, 64))),
    Case("tract-cases/lgbm_regressor_tensor.onnx", random_floats("input", 13, batches=(1, 5, 64))),
    Case("tract-cases/linear_classifier.onnx", random_floats("input", 12, batches=(1, 5, 64))),
    Case("tract-cases/linear_regressor.onnx", random_floats("input", 21, batches=(1, 5, 64))),
    Case(
        "tract-cases/xgboost_classifier_tree.onnx", random_floats("input", 13, batches=(1, 5, 64))
    ),
    Case("tract-cases/xgboost_regressor_tree.onnx", random_floats("input", 13, batches=(1, 5, 64))),
    Case("ultraface/ultraface-RFB-320.onnx", picture),
)


@dataclasses.dataclass(frozen=True)
class StreamCase:
    """A model that processes speech block by block and passes its state on to the next block."""

    path: str
    blocks: Callable[[np.ndarray], Iterator[Feeds]]
    state: str  # the input that takes the last output
    state_shape: tuple[int, ...]
    atol: float = 1e-5
    rtol: float = 1e-4


BLOCKS = 250


def silero_blocks(**constants: np.ndarray) -> Callable[[np.ndarray], Iterator[Feeds]]:
    """Blocks of 512 samples, each after the 64 before it."""

    def make(speech: np.ndarray) -> Iterator[Feeds]:
        padded = np.concatenate([np.zeros(64, np.float32), speech])
        for i in range(BLOCKS):
            yield {"input": padded[None, 512 * i : 512 * i + 576], **constants}

    return make


def dtln_spectra(speech: np.ndarray) -> Iterator[Feeds]:
    """Magnitudes of blocks of 512 samples, 128 apart."""
    for i in range(BLOCKS):
        spectrum = np.abs(np.fft.rfft(speech[128 * i : 128 * i + 512]))
        yield {"input_2": spectrum.astype(np.float32).reshape(1, 1, -1)}


def dtln_samples(speech: np.ndarray) -> Iterator[Feeds]:
    for i in range(BLOCKS):
        yield {"input_4": speech[128 * i : 128 * i + 512].reshape(1, 1, -1)}


RATE = np.array(16000, np.int64)
STREAM_CASES = (
    StreamCase("silero-vad/silero_vad.onnx", silero_blocks(sr=RATE), "state", (2, 1, 128)),
    StreamCase("silero-vad/silero_vad_16k_op15.onnx", silero_blocks(sr=RATE), "state", (2, 1, 128)),
    StreamCase(
        "silero-vad/silero_vad_op18_ifless.onnx", silero_blocks(sr=RATE), "state", (2, 1, 128)
    ),
    # Rounds to 11 bits at every node, and the state adds up.
    StreamCase(
        "silero-vad/silero_vad_half.onnx", silero_blocks(), "state", (2, 1, 128), 2e-2, 1e-2
    ),
    StreamCase("dtln/dtln_model_1.onnx", dtln_spectra, "input_3", (1, 2, 128, 2)),
    StreamCase("dtln/dtln_model_2.onnx", dtln_samples, "input_5", (1, 2, 128, 2)),
)


METADATA_FIELDS = (
    "custom_metadata_map",
    "description",
    "domain",
    "graph_description",
    "graph_name",
    "producer_name",
    "version",
)


def sessions(path: pathlib.Path) -> tuple[tenon.InferenceSession, onnxruntime.InferenceSession]:
    if not path.exists():
        pytest.skip(f"no {path}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return tenon.InferenceSession(path), onnxruntime.InferenceSession(path, options)


def expect_close(name: str, actual: object, expected: object, atol: float, rtol: float) -> None:
    """Compares values of any kind; a failure names the output and the worst element."""
    assert type(actual) is type(expected), name
    if isinstance(expected, list):
        assert len(actual) == len(expected), name
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            expect_close(f"{name}[{i}]", a, e, atol, rtol)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected), name
        for key, value in expected.items():
            np.testing.assert_allclose(actual[key], value, rtol, atol, err_msg=f"{name}[{key}]")
    else:
        assert actual.dtype == expected.dtype, name
        np.testing.assert_allclose(actual, expected, rtol, atol, err_msg=name)


def expect_all_close(
    session: tenon.InferenceSession, actual: list, expected: list, atol: float, rtol: float
) -> None:
    names = [output.name for output in session.get_outputs()]
    for name, a, e in zip(names, actual, expected, strict=True):
        expect_close(name, a, e, atol, rtol)


def label(case: Case | StreamCase) -> str:
    return pathlib.PurePath(case.path).stem


@pytest.mark.parametrize("case", CASES, ids=label)
def test_gives_what_onnxruntime_gives(case: Case, models: pathlib.Path) -> None:
    session, reference = sessions(models / case.path)
    for feeds in case.feeds(models, np.random.default_rng(1)):
        actual, expected = session.run(None, feeds), reference.run(None, feeds)
        expect_all_close(session, actual, expected, case.atol, case.rtol)


@pytest.mark.parametrize("case", STREAM_CASES, ids=label)
def test_streams_as_onnxruntime_does(case: StreamCase, models: pathlib.Path) -> None:
    session, reference = sessions(models / case.path)
    state = reference_state = np.zeros(case.state_shape, np.float32)
    for feeds in case.blocks(samples.speech(models)):
        actual = session.run(None, feeds | {case.state: state})
        expected = reference.run(None, feeds | {case.state: reference_state})
        expect_all_close(session, actual, expected, case.atol, case.rtol)
        state, reference_state = actual[-1], expected[-1]


@pytest.mark.parametrize("case", (*CASES, *STREAM_CASES), ids=label)
def test_describes_itself_as_in_onnxruntime(case: Case | StreamCase, models: pathlib.Path) -> None:
    session, reference = sessions(models / case.path)
    for method in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        actual = [(arg.name, arg.type, arg.shape) for arg in getattr(session, method)()]
        expected = [(arg.name, arg.type, arg.shape) for arg in getattr(reference, method)()]
        assert actual == expected
    actual_meta, expected_meta = session.get_modelmeta(), reference.get_modelmeta()
    for field in METADATA_FIELDS:
        assert getattr(actual_meta, field) == getattr(expected_meta, field), field


@pytest.mark.parametrize("case", LIGHT_CASES, ids=label)
def test_gives_the_published_output(case: Case, models: pathlib.Path) -> None:
    path = models / case.path
    session, _ = sessions(path)
    stored = onnx.load_tensor(path.with_name(f"{path.stem}_output_0.pb"))
    feeds = next(case.feeds(models, np.random.default_rng(1)))
    (actual,) = session.run(None, feeds)
    expected = onnx.numpy_helper.to_array(stored)
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, rtol=1e-3, atol=1e-7)


# Model, input, output of the model and its name in the file.
STORED_OUTPUTS = (
    ("byte_sb_bidi_lstm", "output", "Add_26"),
    ("deconv_group", "output", "output"),
    ("lgbm_classifier_tensor", "probabilities", "probabilities"),
    ("lgbm_regressor_tensor", "output", "output"),
    ("xgboost_classifier_tree", "probabilities", "probabilities"),
    ("xgboost_regressor_tree", "variable", "variable"),
)


@pytest.mark.parametrize(("model", "output", "stored_name"), STORED_OUTPUTS)
def test_gives_the_stored_output(
    model: str, output: str, stored_name: str, models: pathlib.Path
) -> None:
    path = models / f"tract-cases/{model}.onnx"
    session, _ = sessions(path)
    stored = np.load(path.with_suffix(".io.npz"))
    (actual,) = session.run([output], {"input": stored["input"]})
    expected = stored[stored_name]
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


def test_refuses_a_model_without_opset_import(models: pathlib.Path) -> None:
    path = models / "super-resolution/super_resolution.onnx"
    if not path.exists():
        pytest.skip(f"no {path}")
    with pytest.raises(Exception, match="opset") as raised:
        tenon.InferenceSession(path)
    assert type(raised.value).__module__ == "tenon.capi.onnxruntime_pybind11_state"


def test_covers_every_model(models: pathlib.Path) -> None:
    covered = {case.path for case in (*CASES, *STREAM_CASES)} | {
        "super-resolution/super_resolution.onnx"
    }
    present = {str(path.relative_to(models)) for path in models.glob("*/*.onnx")}
    assert present <= covered
